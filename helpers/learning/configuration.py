"""What a training run takes from a `Profile`: its episodes, GRPO's settings, LoRA's."""

from __future__ import annotations

import importlib.util
import itertools
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK
from trl import GRPOConfig

from helpers.episodes.config import EpisodeSpec
from helpers.episodes.how_played import episode_config
from helpers.episodes.tasks import train_seeds
from helpers.policy.lora import lora_of_rank
from helpers.settings.errors import ProfileError
from helpers.settings.names import split_names
from helpers.settings.profiles import Profile

if TYPE_CHECKING:
    from peft import LoraConfig


def training_specs(profile: Profile, n: int) -> list[EpisodeSpec]:
    """``n`` training episodes of the profile's tasks, in turn, in an order that its seed fixes.

    A list of pages that is shorter than the run is gone through again, in another order.
    """
    draw = random.Random(profile.seed)
    streams = [_pages(task, profile.pages, n, draw) for task in profile.tasks]
    turns = itertools.islice(itertools.cycle(streams), n)
    return [next(stream) for stream in turns]


def _pages(task: str, pages: str, n: int, draw: random.Random) -> Iterator[EpisodeSpec]:
    """The training pages of a task without an end; each is seen before one is seen again."""
    seeds = train_seeds(task, pages)
    while True:
        for seed in draw.sample(seeds, min(len(seeds), n)):
            yield EpisodeSpec(task, seed)


def process_count() -> int:
    """How many processes share this run; ``accelerate launch`` says so in ``WORLD_SIZE``."""
    return int(os.environ.get("WORLD_SIZE", 1))


def grpo_config(profile: Profile, folder: Path | str, lora: bool = False) -> GRPOConfig:
    """The trainer's configuration; `helpers.learning.trainer` says what of GRPO is left out.

    ``folder``: where checkpoints are written. ``lora``: with the learning rate of adapters. Raises
    `ProfileError` where the groups cannot be shared by the processes.
    """
    on_cpu = profile.device == "cpu"
    return GRPOConfig(
        output_dir=str(folder),
        seed=profile.seed,
        # How much: updates, and the episodes of each.
        max_steps=profile.updates,
        num_generations=profile.group_size,
        per_device_train_batch_size=_rows_per_pass(profile),
        gradient_accumulation_steps=profile.accumulate,
        shuffle_dataset=False,  # `training_specs` has drawn the order
        # How it is sampled: from the plain softmax, because the loss takes the logprobs for those
        # of the policy itself. The temperature stays 1, top-k and top-p stay off.
        temperature=profile.temperature,
        top_k=profile.top_k,
        top_p=1.0,
        max_completion_length=1024,
        # How it is learned.
        loss_type="dapo",
        scale_rewards="group",
        beta=0.0,
        entropy_coef=profile.entropy,
        learning_rate=profile.lora_learning_rate if lora else profile.learning_rate,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=profile.warmup,
        # vLLM. Where both compute in fp32 sampled and recomputed logprobs agree to 1e-4, so the
        # correction for their ratio would multiply by 1 and cost a forward pass; else it is on.
        use_vllm=profile.generator == "vllm",
        vllm_mode="server" if profile.vllm_server else "colocate",
        vllm_server_base_url=profile.vllm_server or None,
        vllm_max_model_length=episode_config(profile).max_length,
        vllm_importance_sampling_correction=_samples_otherwise(profile),
        vllm_gpu_memory_utilization=profile.vllm_memory,
        # The machine. The weights are fp32 (`helpers.learning.precision`); bf16 means autocast.
        use_cpu=on_cpu,
        bf16=profile.dtype == "bfloat16",
        fp16=False,
        activation_checkpointing=False,  # these models fit without
        dataloader_pin_memory=not on_cpu,
        # What is kept and shown.
        logging_steps=1,
        save_strategy="steps",
        save_steps=profile.save_every,
        save_total_limit=None,  # the recorder deletes older checkpoints, and nothing else
        disable_tqdm=True,
        report_to=_reporters(),
    )


def _reporters() -> list[str]:
    """Where the metrics go besides the run's own record: the names in ``COURSE_REPORT_TO``."""
    names = [name for name in split_names(os.environ.get("COURSE_REPORT_TO", "")) if name]
    for name in names:
        if name not in INTEGRATION_TO_CALLBACK:
            known = ", ".join(sorted(INTEGRATION_TO_CALLBACK))
            raise ProfileError(f"COURSE_REPORT_TO={name} is unknown: use one of {known}.")
        if name in ("trackio", "wandb") and importlib.util.find_spec(name) is None:
            raise ProfileError(
                f"COURSE_REPORT_TO={name} needs a package that is not installed: pip install "
                f"{name}, or unset it."
            )
    return names


def _samples_otherwise(profile: Profile) -> bool:
    """Whether the logprobs of sampling differ from those of training by more than rounding."""
    return (profile.dtype, profile.vllm_dtype) != ("float32", "float32")


def _rows_per_pass(profile: Profile) -> int:
    """How many episodes a process puts through the loss at once: its groups, in equal parts."""
    processes = process_count()
    parts = profile.accumulate * processes
    if profile.groups % processes or profile.batch % parts:
        raise ProfileError(
            f"{profile.groups} groups of {profile.group_size} cannot be shared by {processes} "
            f"processes in {profile.accumulate} parts: choose COURSE_GROUPS and COURSE_ACCUMULATE "
            "so that they can."
        )
    return profile.batch // parts


def lora_config(profile: Profile, family: str) -> LoraConfig:
    """The profile's LoRA; see `helpers.policy.lora.lora_of_rank`."""
    return lora_of_rank(profile.lora_rank, family)
