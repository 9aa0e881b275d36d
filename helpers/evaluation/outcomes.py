"""What a long evaluation keeps of each episode: one line of a file that grows while it runs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from helpers.episodes.config import EpisodeSpec
from helpers.episodes.episode import Episode
from helpers.evaluation.statistics import macro_mean, wilson_interval
from helpers.settings.files import writing


@dataclass(frozen=True)
class Outcome:
    """How one episode of a set ended. ``place``: that of its page in the set, for a set may hold a
    page twice."""

    place: int
    task: str
    seed: int
    reward: float | None
    """1 solved, 0 not, None where the infrastructure failed."""
    raw_reward: float | None
    ended: str
    """As `Episode.ended`."""
    turns: int
    kinds: dict[str, int]
    """How many answers of each kind."""
    stock_reward: float | None = None
    """What stock BrowserGym pays, and its leaderboard counts; None where the server cannot tell."""

    @classmethod
    def of(cls, place: int, episode: Episode) -> Outcome:
        """The outcome of an episode that has ended."""
        return cls(
            place,
            episode.task,
            episode.seed,
            episode.reward,
            episode.raw_reward,
            episode.ended,
            len(episode.turns),
            dict(Counter(episode.kinds)),
            episode.stock_reward,
        )

    @property
    def lost(self) -> bool:
        """Whether the infrastructure failed."""
        return self.reward is None

    @property
    def solved(self) -> bool:
        """Strict success, as `Episode.solved`."""
        return self.reward == 1.0

    @property
    def paid_in_stock(self) -> bool:
        """Whether stock BrowserGym pays: for any raw reward above 0, and for none after a click on
        a link to "#"."""
        if self.stock_reward is not None:
            return self.stock_reward > 0
        return (self.raw_reward or 0.0) > 0


def append_outcomes(path: Path, outcomes: Iterable[Outcome]) -> None:
    """Add a line for each, in one write. Raises `RunFileError` where the disk refuses."""
    lines = "".join(json.dumps(asdict(outcome)) + "\n" for outcome in outcomes)
    with writing(path), path.open("ab+") as file:
        cut_short = file.tell() > 0 and path.read_bytes()[-1:] != b"\n"
        file.write((b"\n" if cut_short else b"") + lines.encode())


def read_outcomes(path: Path, pages: Sequence[EpisodeSpec]) -> dict[int, Outcome]:
    """The outcomes in a file, by place; of one page the last counts.

    Lines that are no outcome of these pages, such as one that was cut short, are left out.
    """
    found: dict[int, Outcome] = {}
    if path.exists():
        for line in path.read_bytes().split(b"\n"):
            outcome = _read_line(line)
            if outcome is None or not 0 <= outcome.place < len(pages):
                continue
            if EpisodeSpec(outcome.task, outcome.seed) == pages[outcome.place]:
                found[outcome.place] = outcome
    return found


def _read_line(line: bytes) -> Outcome | None:
    try:
        return Outcome(**json.loads(line))
    except (ValueError, TypeError):
        return None


def summary(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """The numbers of a result, ready for JSON: strict, and as BrowserGym's leaderboard counts.

    ``macro`` and ``macro_raw`` are the means over the tasks with their 95 % intervals. What the
    infrastructure lost is in ``lost`` and in no other number.
    """
    by_task: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_task.setdefault(outcome.task, []).append(outcome)
    rows = {task: _row(those) for task, those in by_task.items()}
    lost = sum(row["lost"] for row in rows.values())
    n = sum(row["n"] for row in rows.values())
    return {
        "n": n,
        "lost": lost,
        "macro": macro_of(rows, "solved"),
        "macro_raw": macro_of(rows, "raw_above_0"),
        "by_task": rows,
    }


def macro_of(rows: Mapping[str, Mapping[str, Any]], key: str) -> list[float]:
    """Mean, low and high of a count (solved, raw_above_0) as a share of the episodes, over the
    tasks of a result's ``by_task``."""
    rates = [(row[key] / row["n"] if row["n"] else 0.0, row["n"]) for row in rows.values()]
    return [round(value, 4) for value in macro_mean(rates)]


def _row(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The numbers of one task."""
    scored = [outcome for outcome in outcomes if not outcome.lost]
    solved = sum(outcome.solved for outcome in scored)
    low, high = wilson_interval(solved, len(scored))
    kinds: Counter[str] = Counter()
    for outcome in scored:
        kinds.update(outcome.kinds)
    return {
        "n": len(scored),
        "solved": solved,
        "low": round(low, 4),
        "high": round(high, 4),
        "raw_above_0": sum(outcome.paid_in_stock for outcome in scored),
        "lost": len(outcomes) - len(scored),
        "ended": dict(Counter(outcome.ended for outcome in scored)),
        "kinds": dict(kinds),
    }
