"""What a training run leaves behind update by update, and its line of progress.

``metrics.csv`` has one row per update, ``episodes.jsonl`` every episode that was trained on.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback
from typing_extensions import override

from helpers.browser.actions import KINDS
from helpers.episodes.episode import Episode
from helpers.evaluation.evaluate import MAX_INFRASTRUCTURE_RATE
from helpers.output import Progress

if TYPE_CHECKING:
    from transformers import TrainerControl, TrainerState, TrainingArguments

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
"""The columns of ``metrics.csv``: ours, TRL's under their names, and a count per kind of answer."""

RECENT = 5  # updates in the mean reward of the line of progress

Row = dict[str, Any]


class Recorder(TrainerCallback):
    """Writes metrics and episodes, and shows one line of progress.

    A resumed run drops what was recorded after its checkpoint and goes on from there. Of several
    processes, each with its own part of the episodes, the first one keeps the record.
    """

    def __init__(self, folder: Path, updates: int, progress: bool = True) -> None:
        """``updates``: how many the run has; ``progress``: whether to show the line."""
        self.folder = folder
        self.updates = updates
        self.rows: list[Row] = []
        self.episodes: list[Episode] = []
        self.lost = 0
        self.played = 0
        self._shows_progress = progress
        self._progress: Progress | None = None
        self._started = 0.0
        self._first_update = 0

    def on_batch(self, episodes: list[Episode]) -> None:
        """Called by the rollout function with the episodes of one update."""
        self.episodes = episodes
        self.played += len(episodes)
        self.lost += count_lost(episodes)

    @override
    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """Take up the record where the run begins: at 0, or after its checkpoint."""
        self._started = time.monotonic()
        self._first_update = state.global_step
        self.folder.mkdir(parents=True, exist_ok=True)
        self.rows = [row for row in read_metrics(self.folder) if row["update"] <= state.global_step]
        drop_episodes_after(self.folder, state.global_step)
        self._close_progress()  # that of an interrupted run
        if self._shows_progress and state.is_world_process_zero:
            self._progress = Progress(self.updates, "update", initial=state.global_step)

    @override
    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        """Record an update; ``logs`` are the trainer's metrics, and at the end those of the run."""
        if not logs or "reward" not in logs:
            return
        self.rows.append(metrics_row(state.global_step, logs, self.episodes))
        if not state.is_world_process_zero:
            return
        write_metrics(self.folder, self.rows)
        append_episodes(self.folder, state.global_step, self.episodes)
        if self._progress is not None:
            self._progress.reach(state.global_step, self._remark(state.global_step))

    @override
    def on_train_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """Say where the infrastructure has lost too much for a result."""
        self._close_progress()
        if self.lost > MAX_INFRASTRUCTURE_RATE * max(1, self.played):
            print(
                f"This run is invalid: {self.lost} of {self.played} episodes were lost to the "
                f"infrastructure (more than {100 * MAX_INFRASTRUCTURE_RATE:.0f} %)."
            )

    def _remark(self, update: int) -> str:
        """How it goes: the reward lately, and the seconds that an update of this run takes."""
        recent = [row["reward"] for row in self.rows[-RECENT:]]
        mean = sum(recent) / len(recent)
        seconds = (time.monotonic() - self._started) / max(1, update - self._first_update)
        return f"reward of the last {len(recent)}: {mean:.2f} · {seconds:.1f} s each"

    def _close_progress(self) -> None:
        if self._progress is not None:
            self._progress.close()
            self._progress = None


def count_lost(episodes: Sequence[Episode]) -> int:
    """How many episodes the infrastructure lost; they have no reward."""
    return sum(episode.reward is None for episode in episodes)


def metrics_row(update: int, logs: dict[str, float], episodes: Sequence[Episode]) -> Row:
    """The row of one update: what the trainer has logged, and what its episodes say."""
    kinds = [kind for episode in episodes for kind in episode.kinds]
    row: Row = {name: float(logs[name]) for name in METRICS if name in logs}
    for kind in KINDS:
        row[kind] = kinds.count(kind)
    row["update"] = update
    row["valid"] = kinds.count("ok") / max(1, len(kinds))
    row["infrastructure"] = count_lost(episodes)
    return row


def write_metrics(folder: Path, rows: Sequence[Row]) -> None:
    """Write ``metrics.csv`` in one move, so that it is never half there.

    A column without a value stays empty.
    """
    unfinished = folder / "metrics.tmp"
    with unfinished.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(METRICS)
        for row in rows:
            writer.writerow([_rounded(row.get(name, "")) for name in METRICS])
    unfinished.replace(folder / "metrics.csv")


def _rounded(value: Any) -> Any:
    """A float to six places, anything else as it is."""
    return round(value, 6) if isinstance(value, float) else value


def read_metrics(folder: Path | str) -> list[dict[str, float]]:
    """The rows of ``metrics.csv`` as numbers, [] where there is none."""
    path = Path(folder) / "metrics.csv"
    if not path.exists():
        return []
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return [{name: float(value) for name, value in row.items() if value != ""} for row in rows]


def append_episodes(folder: Path, update: int, episodes: Sequence[Episode]) -> None:
    """Append the episodes of one update to ``episodes.jsonl``, one per line."""
    with (folder / "episodes.jsonl").open("a") as file:
        for episode in episodes:
            record = {"update": update, **episode.to_json()}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def drop_episodes_after(folder: Path, update: int) -> None:
    """Keep of ``episodes.jsonl`` the whole lines up to ``update``: a kill may have cut the last."""
    path = folder / "episodes.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    kept = [line for line in lines if line.endswith("\n") and json.loads(line)["update"] <= update]
    path.write_text("".join(kept))
