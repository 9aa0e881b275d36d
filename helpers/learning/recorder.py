"""What a training run leaves behind update by update, and its line of progress.

``metrics.csv`` has one row per update, ``episodes.jsonl`` every episode that was trained on.
"""

from __future__ import annotations

import csv
import io
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import TrainerCallback
from typing_extensions import override

from helpers.browser.actions import KINDS
from helpers.episodes.episode import Episode
from helpers.evaluation.evaluate import MAX_INFRASTRUCTURE_RATE
from helpers.learning.checkpoints import (
    drop_checkpoints_after,
    drop_older_checkpoints,
    keep_settings,
)
from helpers.learning.diagnosis import still_reward, still_weights, success_apart
from helpers.learning.steps import Step, StepMeter
from helpers.output import Progress
from helpers.settings.files import ANY_CHARACTER, RunFileError, set_aside, write_whole, writing
from helpers.settings.language import say

if TYPE_CHECKING:
    from transformers import TrainerControl, TrainerState, TrainingArguments

    from helpers.settings.profiles import Profile

METRICS = (
    "update",
    "reward",
    "reward_std",
    "success/strict",
    "success/raw",
    "frac_reward_zero_std",
    "pages/silent_before",
    "pages/silent",
    "pages/extra_episodes",
    "pages/extra_seconds",
    "replayed",
    "valid",
    "infrastructure",
    "entropy",
    "loss",
    "grad_norm",
    "learning_rate",
    "update/size",
    "update/moved",
    "logprob_gap/max",
    "sampling/sampling_logp_difference/mean",
    "completions/mean_length",
    "step_time",
    *KINDS,
)
"""The columns of ``metrics.csv``: ours, TRL's under their names, and a count per kind of answer.

``success/strict`` and ``success/raw`` are in every run, whatever it is paid for: the share of its
episodes that solved the task, and of those that the page paid anything at all.
"""

RECENT = 5  # updates in the mean reward of the line of progress

Row = dict[str, Any]


class Recorder(TrainerCallback):
    """Writes metrics and episodes, and shows one line of progress.

    A resumed run drops what was recorded after its checkpoint and goes on from there. Of several
    processes, each with its own part of the episodes, the first one keeps the record.
    """

    def __init__(self, folder: Path, profile: Profile, progress: bool = True) -> None:
        """``profile``: the run's settings; ``progress``: whether to show the line."""
        self.folder = folder
        self.profile = profile
        self.rows: list[Row] = []
        self.episodes: list[Episode] = []
        self.lost = 0
        self.played = 0
        self.stepping = False
        """Whether the optimiser is changing the weights at this moment."""
        self._meter: StepMeter | None = None
        self._step: Step | None = None
        self._said: set[str] = set()
        self._shows_progress = progress
        self._progress: Progress | None = None
        self._started = 0.0
        self._first_update = 0

    def on_batch(self, episodes: list[Episode]) -> None:
        """Called by the rollout function with the episodes of one update."""
        self.episodes = episodes
        self.played += len(episodes)
        self.lost += count_lost(episodes)

    def on_extra(self, episodes: list[Episode]) -> None:
        """Called with episodes that were played in an update and are not trained on."""
        self.played += len(episodes)
        self.lost += count_lost(episodes)

    @override
    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        model: torch.nn.Module | None = None,
        **kwargs: Any,
    ) -> None:
        """Take up the record where the run begins: at 0, or after its checkpoint."""
        self._started = time.monotonic()
        self._first_update = state.global_step
        self._meter = None if model is None else StepMeter(model)
        self.rows = [row for row in read_metrics(self.folder) if row["update"] <= state.global_step]
        if state.is_world_process_zero:
            drop_what_came_after(self.folder, state.global_step)
        self._close_progress()  # that of an interrupted run
        if self._shows_progress and state.is_world_process_zero:
            self._progress = Progress(
                self.profile.updates, say("update"), initial=state.global_step
            )

    @override
    def on_pre_optimizer_step(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """Remember the weights, of which the optimiser is about to make others."""
        if self._meter is not None:
            self._meter.before()
        self.stepping = True

    @override
    def on_optimizer_step(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """Measure how far the optimiser has moved the weights."""
        self.stepping = False
        if self._meter is not None:
            self._step = self._meter.after()

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
        row = metrics_row(state.global_step, logs, self.episodes)
        if self._step is not None:
            row |= {"update/size": self._step.size, "update/moved": self._step.moved}
        self.rows.append(row)
        if not state.is_world_process_zero:
            return
        write_metrics(self.folder, self.rows)
        append_episodes(self.folder, state.global_step, self.episodes)
        if self._progress is not None:
            self._progress.reach(state.global_step, self._remark(state.global_step))
        self._say_what_is_wrong()

    @override
    def on_save(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """Say in the new checkpoint whose it is, and delete those that it takes the place of."""
        if state.is_world_process_zero:
            keep_settings(self.folder / f"checkpoint-{state.global_step}", self.profile)
            drop_older_checkpoints(self.folder, state.global_step)

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
                say(
                    "This run is invalid: {lost} of {played} episodes were lost to the "
                    "infrastructure (more than {most:.0f} %).",
                    lost=self.lost,
                    played=self.played,
                    most=100 * MAX_INFRASTRUCTURE_RATE,
                )
            )

    def _say_what_is_wrong(self) -> None:
        """Print what the metrics say is wrong, each thing once in a run."""
        precisions = self._meter.precisions if self._meter is not None else {"float32"}
        found = {
            "weights": still_weights(self.rows, precisions),
            "reward": still_reward(self.rows),
            "success": success_apart(self.rows),
        }
        for what, sentence in found.items():
            if sentence and what not in self._said:
                self._said.add(what)
                # On a terminal the line of progress stands where the cursor is.
                begin = "\n" if self._progress is not None and sys.stdout.isatty() else ""
                update = int(self.rows[-1]["update"])
                line = say("Update {update}: {sentence}", update=update, sentence=sentence)
                print(f"{begin}{line}", flush=True)

    def _remark(self, update: int) -> str:
        """How it goes: the reward lately, and the seconds that an update of this run takes."""
        recent = [row["reward"] for row in self.rows[-RECENT:]]
        mean = sum(recent) / len(recent)
        seconds = (time.monotonic() - self._started) / max(1, update - self._first_update)
        return say(
            "reward of the last {n}: {mean:.2f} · {seconds:.1f} s each",
            n=len(recent),
            mean=mean,
            seconds=seconds,
        )

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
    scored = [episode for episode in episodes if episode.reward is not None]
    if scored:
        row["success/strict"] = sum(episode.solved for episode in scored) / len(scored)
        paid = [episode for episode in scored if (episode.raw_reward or 0.0) > 0]
        row["success/raw"] = len(paid) / len(scored)
    return row


def write_metrics(folder: Path, rows: Sequence[Row]) -> None:
    """Write ``metrics.csv`` in one move, so that it is never half there.

    A column without a value stays empty. Raises `RunFileError` where the disk refuses.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(METRICS)
    for row in rows:
        writer.writerow([_rounded(row.get(name, "")) for name in METRICS])
    write_whole(folder / "metrics.csv", text.getvalue())


def _rounded(value: Any) -> Any:
    """A float to six places, anything else as it is."""
    return round(value, 6) if isinstance(value, float) else value


def read_metrics(folder: Path | str) -> list[dict[str, float]]:
    """The rows of ``metrics.csv`` as numbers, [] where there is none or nothing is in it.

    Rows that cannot be read, such as a last one that is cut short, are left out, and a line says
    how many. Raises `RunFileError` for a file that is no table of a run.
    """
    path = Path(folder) / "metrics.csv"
    rows = _rows_of(path)
    kept = [row for row in rows if row is not None]
    if len(kept) < len(rows):
        print(f"{len(rows) - len(kept)} of {len(rows)} rows of {path} cannot be read: left out.")
    return kept


def _rows_of(path: Path) -> list[dict[str, float] | None]:
    """Every row of a ``metrics.csv``, None for one that is not whole."""
    if not path.exists():
        return []
    heading, *lines = path.read_bytes().splitlines(keepends=True) or [b""]
    names = _cells(heading)
    if heading and "update" not in names:
        raise RunFileError(
            f"{path} is not the record of a run, which has a column update: move it away, or "
            "choose another folder."
        )
    return [_numbers(names, line) for line in lines]


def _cells(line: bytes) -> list[str]:
    """What stands between the commas of a line."""
    return line.decode(errors="replace").rstrip("\r\n").split(",")


def _numbers(names: Sequence[str], line: bytes) -> dict[str, float] | None:
    """The numbers in a line of ``metrics.csv`` by column; None for a line that is not a whole row.

    A row is whole if it ends its line and has a value, or nothing, for each column.
    """
    cells = _cells(line)
    if not line.endswith(b"\n") or len(cells) != len(names):
        return None
    try:
        row = {name: float(cell) for name, cell in zip(names, cells, strict=True) if cell}
    except ValueError:
        return None
    return row if "update" in row else None


def append_episodes(folder: Path, update: int, episodes: Sequence[Episode]) -> None:
    """Append the episodes of one update to ``episodes.jsonl``, one per line.

    Raises `RunFileError` where the disk refuses.
    """
    records = [{"update": update, **episode.to_json()} for episode in episodes]
    lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
    path = folder / "episodes.jsonl"
    with writing(path):
        folder.mkdir(parents=True, exist_ok=True)  # somebody may have deleted it meanwhile
        with path.open("ab") as file:
            file.write("".join(lines).encode("utf-8", ANY_CHARACTER))


def drop_what_came_after(folder: Path, update: int) -> None:
    """Drop what a run that was here has left of the time after ``update``: it is made again."""
    drop_checkpoints_after(folder, update)
    drop_episodes_after(folder, update)
    metrics = folder / "metrics.csv"
    if None in _rows_of(metrics)[:-1]:  # not only the last row, which a kill may have cut short
        print(f"{metrics} is damaged: it is kept as {set_aside(metrics).name}.")
    if update == 0:  # another run begins
        (folder / "result.json").unlink(missing_ok=True)


def drop_episodes_after(folder: Path, update: int) -> None:
    """Keep of ``episodes.jsonl`` the episodes up to ``update``, in one move.

    A last line that a kill has cut short is dropped. A file with anything else that is no episode
    of a run is kept under another name, and a line says so.
    """
    path = folder / "episodes.jsonl"
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    if lines and not lines[-1].endswith(b"\n"):
        lines.pop()
    updates = [_update_of(line) for line in lines]
    if None in updates:
        aside = set_aside(path)
        print(f"{updates.count(None)} lines of {path} are no episodes: it is kept as {aside.name}.")
    kept = [
        line.decode("utf-8", ANY_CHARACTER)
        for line, made in zip(lines, updates, strict=True)
        if made is not None and made <= update
    ]
    write_whole(path, "".join(kept))


def _update_of(line: bytes) -> int | None:
    """The update that an episode in ``episodes.jsonl`` belongs to; None where it is no episode."""
    try:
        return int(json.loads(line)["update"])
    except (ValueError, TypeError, KeyError):  # no text, no JSON, something else
        return None
