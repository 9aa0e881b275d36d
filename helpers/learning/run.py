"""GRPO with TRL on browser episodes: the trainer, its metrics, checkpoints and resume. ``scripts/train.py`` is a whole run."""

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PrinterCallback

from helpers.browser import BrowserClient, connect, start_browser_server
from helpers.episodes.config import RolloutConfig
from helpers.episodes.episode import write_episodes
from helpers.episodes.rewards import strict_success
from helpers.episodes.rollout_func import make_rollout_func
from helpers.episodes.tasks import episode_config, evaluation_config
from helpers.evaluation.evaluate import Evaluation, difference, evaluate
from helpers.learning.configuration import grpo_config, lora_config, training_specs
from helpers.learning.recorder import Recorder
from helpers.learning.trainer import BrowserGRPOTrainer, vllm_in_precision
from helpers.policy.choosing import trainer_generator
from helpers.policy.loading import Policy, load_policy, quiet_transformers
from helpers.policy.vllm_engine import prepare_vllm
from helpers.settings.machine import peak_memory_gb, run_facts
from helpers.settings.predictions import check_fits
from helpers.settings.profiles import Profile


def build_trainer(
    profile: Profile,
    policy: Policy,
    clients: Sequence[Any],
    folder: Path | str,
    lora: bool = False,
    reward_funcs: Sequence[Callable] = (strict_success,),
    config: RolloutConfig | None = None,
    show: Callable[[str], None] | None = None,
) -> BrowserGRPOTrainer:
    """Put policy, browsers and reward together; ``trainer.train()`` then runs, ``resume_from_checkpoint=True`` resumes.

    ``clients``: open browser sessions, best as many as an update has episodes. ``folder``: metrics, episodes, checkpoints.
    """
    folder = Path(folder)
    quiet_transformers()
    prepare_vllm()
    recorder = Recorder(folder, profile.updates, show)
    config = config or episode_config(profile)
    rows = [
        {"prompt": str(spec)} for spec in training_specs(profile, profile.updates * profile.groups)
    ]
    with (
        vllm_in_precision(profile.dtype)
        if profile.generator == "vllm"
        else contextlib.nullcontext()
    ):
        trainer = BrowserGRPOTrainer(
            model=policy.model,
            processing_class=policy.tokenizer,
            args=grpo_config(profile, folder, lora),
            train_dataset=Dataset.from_list(rows),
            reward_funcs=list(reward_funcs),
            rollout_func=make_rollout_func(clients, policy.tokenizer, config, recorder.on_batch),
            peft_config=lora_config(profile, policy.family) if lora else None,
            callbacks=[recorder],
        )
    trainer.remove_callback(PrinterCallback)
    trainer.recorder = recorder
    return trainer


def last_checkpoint(folder: Path | str) -> str | None:
    """The latest whole checkpoint of a run, for ``trainer.train(resume_from_checkpoint=...)``; None where there is none. What an
    interrupted save has left behind is deleted."""
    whole = None
    for path in sorted(
        Path(folder).glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2])
    ):
        try:
            json.loads((path / "trainer_state.json").read_text())  # written last
            whole = str(path)
        except (OSError, ValueError):
            shutil.rmtree(path)
    return whole


def sync_policy(trainer: BrowserGRPOTrainer) -> None:
    """Give the trainer's vLLM engine the current weights (after training, before an evaluation); nothing to do without."""
    if trainer.use_vllm:
        trainer.vllm_generation.sync_weights()


def save_result(
    folder: Path | str,
    trainer: BrowserGRPOTrainer,
    profile: Profile,
    before: Evaluation,
    after: Evaluation,
    seconds: dict[str, float],
    lora: bool = False,
) -> dict[str, Any]:
    """Save the policy (with LoRA: its adapter), the evaluated episodes and ``result.json``; returns that file's content ({} in
    all but the first of several processes)."""
    folder = Path(folder)
    trainer.save_model(str(folder / "policy"))
    if not trainer.is_world_process_zero():
        return {}
    trainer.processing_class.save_pretrained(folder / "policy")
    write_episodes(folder / "before.jsonl", before.episodes)
    write_episodes(folder / "after.jsonl", after.episodes)
    trainable = sum(p.numel() for p in trainer.model.parameters() if p.requires_grad)
    result = {
        "before": before.summary() if before.episodes else None,
        "after": after.summary(),
        "difference": difference(before, after) if before.episodes else None,
        "lora": lora,
        "trainable_parameters": trainable,
        "peak_memory_gb": peak_memory_gb(),
        "profile": asdict(profile),
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
        **run_facts(),
    }
    (folder / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    return result


@contextmanager
def open_browsers(profile: Profile) -> Iterator[list[BrowserClient]]:
    """The sessions of this process: on the servers of ``COURSE_SERVERS`` (URLs with commas, their token in
    ``COURSE_SERVER_TOKEN``), taken in turn, else on a server of its own. The processes of one run share sessions and workers."""
    processes = int(os.environ.get("WORLD_SIZE", 1))
    sessions = -(-profile.clients // processes)
    if not (
        urls := [
            url.strip() for url in os.environ.get("COURSE_SERVERS", "").split(",") if url.strip()
        ]
    ):
        with start_browser_server(workers=max(1, profile.workers // processes)) as server:
            yield server.clients(sessions)
        return
    with ExitStack() as opened:
        yield [
            opened.enter_context(
                connect(urls[i % len(urls)], token=os.environ.get("COURSE_SERVER_TOKEN"))
            )
            for i in range(sessions)
        ]


def train(
    profile: Profile,
    folder: Path | str,
    lora: bool = False,
    resume: bool = False,
    before: bool = True,
    test: str = "",
) -> dict[str, Any]:
    """Evaluate, train, evaluate: what notebook 5 does cell by cell. Returns the content of ``result.json``.

    ``test``: tasks to evaluate on (default: those trained on); ``before``: evaluate the policy before it is trained too.
    """
    check_fits(profile, lora)
    device = (
        f"cuda:{os.environ.get('LOCAL_RANK', 0)}" if profile.device == "cuda" else profile.device
    )
    policy = load_policy(profile.policy, profile.dtype, device)
    task = test or profile.task
    held_out = evaluation_config(task, profile.task, profile)
    with open_browsers(profile) as clients:
        started = time.monotonic()
        trainer = build_trainer(profile, policy, clients, folder, lora)
        ready = time.monotonic()

        def measure(name: str) -> Evaluation:
            result = Evaluation(name, [])
            if trainer.accelerator.is_main_process:
                generator = trainer_generator(trainer, policy.tokenizer)
                result = evaluate(
                    name,
                    task,
                    profile.eval_episodes,
                    clients,
                    generator,
                    policy.tokenizer,
                    held_out,
                )
                print(f"\n{result}", flush=True)
            trainer.accelerator.wait_for_everyone()
            return result

        first = measure("before") if before else Evaluation("before", [])
        begin = time.monotonic()
        trainer.train(resume_from_checkpoint=last_checkpoint(folder) if resume else None)
        seconds = time.monotonic() - begin
        sync_policy(trainer)
        after = measure("after")
    times = {"start": ready - started, "training": seconds, "total": time.monotonic() - started}
    return save_result(folder, trainer, profile, first, after, times, lora)
