"""Where the seconds of one GRPO update go, and what each shortcut is worth, measured side by side in one run.

    python -m benchmarks.training             a table (about 15 min on 2 cores)
    python -m benchmarks.training --json      one JSON object
    python -m benchmarks.training --record    the same, written to recordings/training/result.json too

An update is 16 episodes (4 pages, 4 rollouts each) of click-button with SmolLM2-135M. Each variant runs in a process of its own,
because vLLM never gives its memory back within one; the first update is not counted. Parts:

- environment: the rollout without generation
- prefill and decode: vLLM on the prompts, then on the answers (transformers: all in decode)
- logprobs: forward passes without gradient; forward and backward: the loss
- sync: the new weights go to vLLM; other: optimiser, tokenisation, metrics
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections import defaultdict

from benchmarks.recording import record
from helpers.settings.paths import ROOT

PARTS = ("environment", "prefill", "decode", "logprobs", "forward", "backward", "sync", "other")
VARIANTS = {  # name: (environment variables, shares prompts, LoRA)
    "as in the course": ({}, True, False),
    "each prompt computed per rollout": ({}, False, False),
    "transformers generates": ({"COURSE_GENERATOR": "transformers"}, True, False),
    "bf16 weights": ({"COURSE_DTYPE": "bfloat16"}, True, False),
    "LoRA": ({}, True, True),
}


class Clock:
    """Seconds per part of the running update. A part that runs inside another one counts for itself only."""

    def __init__(self):
        self.seconds, self.stack = defaultdict(float), []

    def wrap(self, owner, name: str, part) -> None:
        """Replace ``owner.name`` by one that is timed; ``part``: its name, or a function of the call's arguments."""
        call = getattr(owner, name)

        def timed(*arguments, **named):
            label = part(*arguments, **named) if callable(part) else part
            begin = time.perf_counter()
            self.stack.append(0.0)
            try:
                return call(*arguments, **named)
            finally:
                took = time.perf_counter() - begin
                self.seconds[label] += took - self.stack.pop()
                if self.stack:
                    self.stack[-1] += took

        setattr(owner, name, timed)


def watch(trainer, clock: Clock) -> None:
    """Put the clock on the calls of a trainer that the parts are made of."""
    import torch

    import helpers.episodes.play as rollouts

    clock.wrap(rollouts, "play_episodes", "environment")
    if trainer.use_vllm:
        clock.wrap(
            trainer.vllm_generation.llm,
            "generate",
            lambda prompts, sampling, **_: "prefill" if sampling.max_tokens == 1 else "decode",
        )
        clock.wrap(trainer.vllm_generation, "sync_weights", "sync")
    else:
        clock.wrap(rollouts.TransformersGenerator, "generate", "decode")
    clock.wrap(
        trainer,
        "_get_per_token_logps_and_entropies",
        lambda *_, **__: "forward" if torch.is_grad_enabled() else "logprobs",
    )
    clock.wrap(trainer.accelerator, "backward", "backward")


def run_variant(name: str, updates: int, groups: int = 4) -> dict[str, float]:
    """Mean seconds per update and part, in this process."""
    import tempfile
    from dataclasses import replace

    from helpers.browser import start_browser_server
    from helpers.learning.run import build_trainer
    from helpers.policy.loading import load_policy
    from helpers.settings.profiles import get_profile

    _, share, lora = VARIANTS[name]
    profile = replace(
        get_profile(scale="demo"),
        groups=groups,
        group_size=4,
        updates=updates + 1,
        save_every=1_000,
        clients=4 * groups,
    )
    policy = load_policy(profile.policy, profile.dtype, profile.device)
    with (
        start_browser_server(workers=profile.workers) as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        trainer = build_trainer(
            profile, policy, server.clients(profile.clients), folder, lora, show=lambda text: None
        )
        trainer.share_prompts = share
        clock, totals = Clock(), []
        watch(trainer, clock)
        step = trainer.training_step

        def timed(*arguments, **named):
            clock.seconds.clear()
            begin = time.perf_counter()
            loss = step(*arguments, **named)
            totals.append((begin, dict(clock.seconds)))
            return loss

        trainer.training_step = timed
        trainer.train()
        totals.append((time.perf_counter(), {}))
        rows = trainer.recorder.rows
    whole = [after[0] - before[0] for before, after in zip(totals[1:], totals[2:], strict=False)]
    mean = {
        part: sum(seconds.get(part, 0.0) for _, seconds in totals[1:-1]) / updates
        for part in PARTS[:-1]
    }
    mean["other"] = sum(whole) / updates - sum(mean.values())
    return {
        "update_s": round(sum(whole) / updates, 2),
        "updates": updates,
        "generator": profile.generator,
        "largest_logprob_gap": max(row["logprob_gap/max"] for row in rows),
        **{part: round(seconds, 2) for part, seconds in mean.items()},
    }


def measure(names: list[str], updates: int) -> dict:
    results = {}
    for name in names:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "benchmarks.training",
                "--variant",
                name,
                "--updates",
                str(updates),
            ],
            cwd=ROOT,
            env=dict(os.environ, **VARIANTS[name][0]),
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(f"{name}: {done.stderr[-2000:]}")
        results[name] = json.loads(done.stdout.rpartition("RESULT ")[2])
    usual = results[names[0]]["update_s"]
    for row in results.values():
        row["ratio"] = round(row["update_s"] / usual, 2)
    return {"variants": results, "episodes": 16, "task": "click-button", "cores": os.cpu_count()}


def show(result: dict) -> None:
    print(
        f"{'seconds per update of 16 episodes':36}"
        + "".join(f"{part:>12}" for part in ("all", *PARTS))
        + f"{'ratio':>8}"
    )
    for name, row in result["variants"].items():
        print(
            f"{name:36}{row['update_s']:12.2f}"
            + "".join(f"{row[part]:12.2f}" for part in PARTS)
            + f"{row['ratio']:8.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object instead of a table"
    )
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--updates", type=int, default=6)
    parser.add_argument("--groups", type=int, default=4, help="pages per update, with --variant")
    parser.add_argument("--variant", choices=VARIANTS, help="only this one, in this process")
    options = parser.parse_args()
    if options.variant:
        print("RESULT " + json.dumps(run_variant(options.variant, options.updates, options.groups)))
        return
    result = measure(list(VARIANTS), options.updates)
    if options.record:
        record("training", result)
    if options.json:
        print(json.dumps(result))
    else:
        show(result)


if __name__ == "__main__":
    main()
