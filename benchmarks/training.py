"""Where the seconds of one GRPO update go, and what each shortcut is worth, all in one run.

An update is 16 episodes (4 pages, 4 rollouts each) of click-button with SmolLM2-135M. Each variant
runs in a process of its own, because vLLM never gives its memory back within one; the first update
is not counted. Parts:

- environment: the rollout beside generation; what browsers do meanwhile costs no time of its own
- prefill: the steps of generation that begin to read pages; decode: those that only write answers
- logprobs: forward passes without gradient; forward and backward: the loss
- sync: the new weights go to vLLM; other: optimiser, tokenisation, metrics
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from benchmarks.recording import AsJson, Record, record
from helpers.browser import start_browser_server
from helpers.command_line import run
from helpers.output import table
from helpers.settings.paths import ROOT
from helpers.settings.profiles import get_profile

if TYPE_CHECKING:
    from helpers.learning.trainer import BrowserGRPOTrainer
    from helpers.policy.slots import SlotStream
    from helpers.policy.vllm_stream import VLLMStream

PARTS = ("environment", "prefill", "decode", "logprobs", "forward", "backward", "sync", "other")
GROUPS, GROUP_SIZE = 4, 4


@dataclass(frozen=True)
class Variant:
    """One way to train: environment variables, and two shortcuts."""

    environment: dict[str, str] = field(default_factory=dict)
    share_prefixes: bool = True
    lora: bool = False


VARIANTS = {
    "as in the course": Variant(),
    "each prompt computed per rollout": Variant(share_prefixes=False),
    "transformers generates": Variant({"COURSE_GENERATOR": "transformers"}),
    # The weights are fp32 in all of them (`helpers.learning.precision`).
    "vLLM samples in bf16": Variant({"COURSE_VLLM_DTYPE": "bfloat16"}),
    "all computes in bf16": Variant({"COURSE_DTYPE": "bfloat16", "COURSE_VLLM_DTYPE": "bfloat16"}),
    "LoRA": Variant(lora=True),
}


# ---- one variant, in this process ----


class PartTimer:
    """Seconds per part of the running update. A part that runs inside another one counts for
    itself only."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._inner: list[float] = []  # for each running part the seconds of the parts in it

    def wrap(self, owner: Any, name: str, part: str | Callable[..., str]) -> None:
        """Replace ``owner.name`` by one that is timed.

        ``part``: its name, or a function of the call's arguments.
        """
        call = getattr(owner, name)

        def timed(*arguments: Any, **named: Any) -> Any:
            label = part(*arguments, **named) if callable(part) else part
            begin = time.perf_counter()
            self._inner.append(0.0)
            try:
                return call(*arguments, **named)
            finally:
                took = time.perf_counter() - begin
                self.seconds[label] += took - self._inner.pop()
                if self._inner:
                    self._inner[-1] += took

        setattr(owner, name, timed)


def watch(trainer: BrowserGRPOTrainer, timer: PartTimer) -> None:
    """Put the timer on the calls of a trainer that the parts are made of."""
    import torch

    from helpers.policy.slots import SlotStream
    from helpers.policy.vllm_stream import VLLMStream

    timer.wrap(trainer, "rollout_func", "environment")
    timer.wrap(VLLMStream if trainer.use_vllm else SlotStream, "step", _part_of_step)
    if trainer.use_vllm:
        timer.wrap(trainer.vllm_generation, "sync_weights", "sync")

    def with_or_without_gradient(*_: Any, **__: Any) -> str:
        return "forward" if torch.is_grad_enabled() else "logprobs"

    timer.wrap(trainer, "_get_per_token_logps_and_entropies", with_or_without_gradient)
    timer.wrap(trainer.accelerator, "backward", "backward")


def _part_of_step(stream: VLLMStream | SlotStream) -> str:
    """What a step of a stream is about to do."""
    return "prefill" if stream.has_new else "decode"


@dataclass
class Update:
    """When an update began, and the seconds of its parts."""

    begin: float
    seconds: dict[str, float]


def time_updates(trainer: BrowserGRPOTrainer) -> list[Update]:
    """Train, and time every update; a last entry says when the training ended."""
    timer = PartTimer()
    watch(trainer, timer)
    updates: list[Update] = []
    step = trainer.training_step

    def timed(*arguments: Any, **named: Any) -> Any:
        timer.seconds.clear()
        begin = time.perf_counter()
        loss = step(*arguments, **named)
        updates.append(Update(begin, dict(timer.seconds)))
        return loss

    trainer.training_step = timed
    trainer.train()
    updates.append(Update(time.perf_counter(), {}))
    return updates


def run_variant(name: str, updates: int, groups: int = GROUPS) -> dict[str, Any]:
    """Mean seconds per update and part, in this process."""
    # Here, because the process that starts the variants needs neither torch nor TRL.
    from transformers.trainer_utils import SaveStrategy

    from helpers.learning.run import build_trainer
    from helpers.policy.loading import load_policy

    variant = VARIANTS[name]
    profile = replace(
        get_profile(scale="demo"),
        groups=groups,
        group_size=GROUP_SIZE,
        accumulate=1,  # a step of the trainer is an update
        updates=updates + 1,
        clients=GROUP_SIZE * groups,
    )
    policy = load_policy(profile.policy, "float32", profile.device)
    with (
        start_browser_server(workers=profile.workers) as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        clients = server.clients(profile.clients)
        trainer = build_trainer(profile, policy, clients, folder, variant.lora, progress=False)
        trainer.share_prefixes = variant.share_prefixes
        trainer.args.save_strategy = SaveStrategy.NO  # it would save within the last update
        timed = time_updates(trainer)
        rows = trainer.recorder.rows
    whole, parts = mean_seconds(timed)
    return {
        "update_s": whole,
        "updates": updates,
        "generator": profile.generator,
        "largest_logprob_gap": max(row["logprob_gap/max"] for row in rows),
        **parts,
    }


def mean_seconds(timed: Sequence[Update]) -> tuple[float, dict[str, float]]:
    """Seconds of a whole update and of its parts, in the mean; the first update is not counted.

    An update lasts until the next one begins.
    """
    counted, n = timed[1:-1], len(timed) - 2
    whole = (timed[-1].begin - timed[1].begin) / n
    parts = {part: sum(u.seconds.get(part, 0.0) for u in counted) / n for part in PARTS[:-1]}
    parts["other"] = whole - sum(parts.values())
    return round(whole, 2), {part: round(seconds, 2) for part, seconds in parts.items()}


# ---- all variants, each in a process of its own ----


def measure(updates: int) -> dict[str, Any]:
    """Run every variant, as the object that ``--json`` prints."""
    results = {}
    for name, variant in VARIANTS.items():
        command = [sys.executable, "-m", "benchmarks.training"]
        command += ["--variant", name, "--updates", str(updates)]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **variant.environment},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(f"{name}: {done.stderr[-2000:]}")
        results[name] = json.loads(done.stdout.rpartition("RESULT ")[2])
    usual = results["as in the course"]["update_s"]
    for row in results.values():
        row["ratio"] = round(row["update_s"] / usual, 2)
    return {
        "variants": results,
        "episodes": GROUPS * GROUP_SIZE,
        "task": "click-button",
        "cores": os.cpu_count(),
    }


def show(result: dict[str, Any]) -> None:
    """Print the table."""
    rows = []
    for name, row in result["variants"].items():
        cells = [row["update_s"], *(row[part] for part in PARTS), row["ratio"]]
        rows.append([name, *(f"{cell:.2f}" for cell in cells)])
    print(f"seconds per update of {result['episodes']} episodes")
    print(table(["variant", "all", *PARTS, "ratio"], rows))


def main(
    as_json: AsJson = False,
    record_it: Record = False,
    updates: Annotated[int, typer.Option(help="those that are counted")] = 6,
    groups: Annotated[int, typer.Option(help="pages per update, with --variant")] = GROUPS,
    variant: Annotated[
        str, typer.Option(help=f"only this one, in this process: {', '.join(VARIANTS)}")
    ] = "",
) -> None:
    """Where the seconds of one GRPO update go, and what each shortcut is worth.

    \b
    python -m benchmarks.training             a table (about 17 min on 2 cores)
    python -m benchmarks.training --record    written to recordings/training/result.json too
    """
    if variant:
        if variant not in VARIANTS:
            raise typer.BadParameter(f"there is no variant {variant!r}: {', '.join(VARIANTS)}")
        print("RESULT " + json.dumps(run_variant(variant, updates, groups)))
        return
    result = measure(updates)
    if record_it:
        record("training", result)
    if as_json:
        print(json.dumps(result))
    else:
        show(result)


if __name__ == "__main__":
    sys.exit(run(main))
