"""GRPO with TRL on browser episodes: the trainer, its metrics, checkpoints and resume. ``scripts/train.py`` is a whole run."""

import contextlib
import csv
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from helpers.browser.actions import KINDS
from helpers.episodes.episode import Episode

METRICS = (
    "update",
    "reward",
    "reward_std",
    "frac_reward_zero_std",
    "valid",
    "infrastructure",
    "entropy",
    "loss",
    "grad_norm",
    "learning_rate",
    "logprob_gap/max",
    "sampling/sampling_logp_difference/mean",
    "completions/mean_length",
    "step_time",
    *KINDS,
)


class Recorder(TrainerCallback):
    """Writes ``metrics.csv`` (one row per update) and ``episodes.jsonl`` (every training episode), and shows one line of
    progress. A resumed run drops the rows after its checkpoint and goes on."""

    def __init__(self, folder: Path, updates: int, show: Callable[[str], None] | None = None):
        self.folder, self.updates, self.show = folder, updates, show or progress_line()
        self.rows: list[dict[str, Any]] = []
        self.episodes: list[Episode] = []
        self.lost = self.played = 0
        self.started = self.first_update = None

    def on_batch(self, episodes: list[Episode]) -> None:
        """Called by the rollout function with the episodes of one update."""
        self.episodes = episodes
        self.played += len(episodes)
        self.lost += sum(e.reward is None for e in episodes)

    def on_train_begin(self, args, state, control, **kwargs) -> None:
        self.started, self.first_update = time.monotonic(), state.global_step
        self.folder.mkdir(parents=True, exist_ok=True)
        self.rows = [row for row in read_metrics(self.folder) if row["update"] <= state.global_step]
        done = self.folder / "episodes.jsonl"
        lines = done.read_text().splitlines(keepends=True) if done.exists() else []
        done.write_text(
            "".join(
                line
                for line in lines  # the last one may have been cut off
                if line.endswith("\n") and json.loads(line)["update"] <= state.global_step
            )
        )

    def on_log(self, args, state, control, logs=None, **kwargs) -> None:
        if not logs or "reward" not in logs:
            return
        kinds = [kind for e in self.episodes for kind in e.kinds]
        row = {key: float(logs[key]) for key in METRICS if key in logs}
        row |= {kind: kinds.count(kind) for kind in KINDS}
        row |= {
            "update": state.global_step,
            "valid": kinds.count("ok") / max(1, len(kinds)),
            "infrastructure": sum(e.reward is None for e in self.episodes),
        }
        self.rows.append(row)
        if (
            not state.is_world_process_zero
        ):  # of several processes, each with its own part of the episodes, one keeps the record
            return
        write_metrics(self.folder, self.rows)
        with (self.folder / "episodes.jsonl").open("a") as file:
            for episode in self.episodes:
                file.write(
                    json.dumps(
                        {"update": state.global_step, **episode.to_json()}, ensure_ascii=False
                    )
                    + "\n"
                )
        recent = [r["reward"] for r in self.rows[-5:]]
        each = (time.monotonic() - self.started) / max(1, state.global_step - self.first_update)
        self.show(
            f"update {state.global_step} of {self.updates} · reward of the last {len(recent)}: "
            f"{sum(recent) / len(recent):.2f} · {each:.1f} s each · "
            f"{each * (self.updates - state.global_step) / 60:.1f} min left"
        )

    def on_train_end(self, args, state, control, **kwargs) -> None:
        if self.lost > 0.01 * max(1, self.played):
            print(
                f"This run is invalid: {self.lost} of {self.played} episodes were lost to the infrastructure (more than 1 %)."
            )


def progress_line() -> Callable[[str], None]:
    """A function that shows a line in place of its last one, in a notebook or in a terminal."""
    with contextlib.suppress(ImportError):
        from IPython import get_ipython
        from IPython.display import display

        if getattr(get_ipython(), "kernel", None):
            handle = display({"text/plain": ""}, raw=True, display_id=True)
            return lambda text: handle.update({"text/plain": text}, raw=True)
    return lambda text: print(f"\r{text:<110}", end="", flush=True)


def write_metrics(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Write ``metrics.csv``, in one move so that it is never half there; a column without a value stays empty."""
    with (folder / "metrics.tmp").open("w", newline="") as file:
        writer = csv.DictWriter(
            file, METRICS, restval="", extrasaction="ignore", lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(
            {k: round(v, 6) if isinstance(v, float) else v for k, v in row.items()} for row in rows
        )
    (folder / "metrics.tmp").replace(folder / "metrics.csv")


def read_metrics(folder: Path | str) -> list[dict[str, float]]:
    """The rows of ``metrics.csv`` as numbers, [] where there is none."""
    path = Path(folder) / "metrics.csv"
    if not path.exists():
        return []
    with path.open() as file:
        return [{k: float(v) for k, v in row.items() if v != ""} for row in csv.DictReader(file)]
