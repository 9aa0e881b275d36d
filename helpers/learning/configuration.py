"""GRPO with TRL on browser episodes: the trainer, its metrics, checkpoints and resume. ``scripts/train.py`` is a whole run."""

import itertools
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trl import GRPOConfig

from helpers.episodes.config import EpisodeSpec
from helpers.episodes.tasks import train_seeds
from helpers.policy.lora import lora_targets
from helpers.settings.profiles import Profile, ProfileError


def training_specs(profile: Profile, n: int) -> list[EpisodeSpec]:
    """``n`` training episodes of the profile's tasks (comma-separated, drawn in turn), in an order that ``seed`` fixes; a list
    of pages that is shorter than the run is gone through again, in another order."""
    draw = random.Random(profile.seed)

    def pages(task: str) -> Iterator[EpisodeSpec]:
        seeds = train_seeds(task, profile.pages)
        while True:
            yield from (EpisodeSpec(task, seed) for seed in draw.sample(seeds, min(len(seeds), n)))

    streams = itertools.cycle([pages(task) for task in profile.task.split(",")])
    return [next(stream) for stream in itertools.islice(streams, n)]


def grpo_config(profile: Profile, folder: Path | str, lora: bool = False) -> GRPOConfig:
    """The trainer's configuration: plain GRPO as TRL has it, sampled at temperature 1 without top-k or top-p.

    ``beta`` 0 means no KL term and so no reference model; gradient checkpointing is off because these models fit. In fp32 the
    sampled and the recomputed logprobs agree to 1e-4, so the correction for their ratio would multiply by 1 and cost a forward
    pass; it is on in bf16, where they differ.
    """
    cpu, processes = profile.device == "cpu", int(os.environ.get("WORLD_SIZE", 1))
    parts = profile.accumulate * processes
    if profile.groups % processes or profile.batch % parts:
        raise ProfileError(
            f"{profile.groups} groups of {profile.group_size} cannot be shared by {processes} processes in "
            f"{profile.accumulate} parts: choose COURSE_GROUPS and COURSE_ACCUMULATE so that they can."
        )
    return GRPOConfig(
        output_dir=str(folder),
        seed=profile.seed,
        max_steps=profile.updates,
        num_generations=profile.group_size,
        per_device_train_batch_size=profile.batch // parts,
        gradient_accumulation_steps=profile.accumulate,
        learning_rate=profile.lora_learning_rate if lora else profile.learning_rate,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=profile.warmup,
        temperature=profile.temperature,
        beta=0.0,
        top_k=profile.top_k,
        top_p=1.0,
        entropy_coef=profile.entropy,
        loss_type="dapo",
        scale_rewards="group",
        max_completion_length=1024,
        shuffle_dataset=False,
        activation_checkpointing=False,
        use_vllm=profile.generator == "vllm",
        vllm_mode="server" if profile.vllm_server else "colocate",
        vllm_server_base_url=profile.vllm_server or None,
        vllm_max_model_length=1536,
        vllm_importance_sampling_correction=profile.dtype != "float32",
        vllm_gpu_memory_utilization=profile.vllm_memory,
        use_cpu=cpu,
        bf16=profile.dtype == "bfloat16",
        fp16=False,
        dataloader_pin_memory=not cpu,
        logging_steps=1,
        save_strategy="steps",
        save_steps=profile.save_every,
        save_total_limit=1,
        disable_tqdm=True,
        report_to=[t for t in os.environ.get("COURSE_REPORT_TO", "").split(",") if t],
    )


def lora_config(profile: Profile, family: str) -> Any:
    """LoRA on every linear module inside the layers; alpha = 2 r, no dropout (it would make sampled and trained policy
    differ)."""
    from peft import LoraConfig

    return LoraConfig(
        r=profile.lora_rank,
        lora_alpha=2 * profile.lora_rank,
        lora_dropout=0.0,
        task_type="CAUSAL_LM",
        target_modules=list(lora_targets(family)),
    )
