"""What was solved on which page: the part of an evaluation that comparisons need, as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helpers.episodes.config import EpisodeSpec
from helpers.evaluation.statistics import macro_mean, paired_change

if TYPE_CHECKING:
    from helpers.episodes.episode import Episode
    from helpers.evaluation.outcomes import Outcome

Solved = dict[str, list[bool | None]]
"""For each page, "task#seed", its episodes in the order in which they were played; None where the
infrastructure lost one."""

MEASURES = ("greedy", "sampled", "pass")
"""One greedy episode a page; each sampled one; whether any of the sampled ones solved the page."""


@dataclass
class Outcomes:
    """How a policy did on the test pages."""

    greedy: Solved
    sampled: Solved

    def measure(self, name: str) -> Solved:
        """The outcomes that a measure of `MEASURES` counts, page by page."""
        if name == "pass":
            return {page: [_any_solved(tries)] for page, tries in self.sampled.items()}
        return self.greedy if name == "greedy" else self.sampled


def _any_solved(tries: Sequence[bool | None]) -> bool | None:
    known = [solved for solved in tries if solved is not None]
    return any(known) if known else None


def outcomes_of(episodes: Iterable[Episode | Outcome]) -> Solved:
    """What was solved, page by page."""
    solved: Solved = {}
    for episode in episodes:
        page = str(EpisodeSpec(episode.task, episode.seed))
        solved.setdefault(page, []).append(None if episode.reward is None else episode.solved)
    return solved


def rates(solved: Solved) -> dict[str, tuple[float, int]]:
    """For each task its success and the number of episodes that count."""
    by_task: dict[str, list[bool]] = {}
    for page, tries in solved.items():
        known = [one for one in tries if one is not None]
        by_task.setdefault(EpisodeSpec.read(page).task, []).extend(known)
    return {
        task: (sum(known) / len(known) if known else 0.0, len(known))
        for task, known in by_task.items()
    }


def mean_success(runs: Sequence[Solved]) -> tuple[float, float, float]:
    """The mean over tasks, and its 95 % interval, of all runs together."""
    pooled: dict[str, tuple[float, int]] = {}
    for solved in runs:
        for task, (rate, n) in rates(solved).items():
            before, m = pooled.get(task, (0.0, 0))
            total = n + m
            pooled[task] = ((rate * n + before * m) / total if total else 0.0, total)
    return macro_mean(list(pooled.values()))


def compare(before: Sequence[Solved], after: Sequence[Solved]) -> dict[str, float]:
    """The change from one arm to another with its 95 % interval for pairs (Tango's).

    The runs of both are in the order of their training seeds. A pair is the same seed, page and
    try; pairs that either side lost are left out. The interval takes pairs as independent: those
    of one page on several seeds are not quite.
    """
    gained = lost = n = 0
    for one, other in zip(before, after, strict=True):
        for page in one.keys() & other.keys():
            for was, now in zip(one[page], other[page], strict=False):
                if was is None or now is None:
                    continue
                n += 1
                gained += now and not was
                lost += was and not now
    return paired_change(gained, lost, n)


Player = Callable[[Sequence[EpisodeSpec], float], "list[Episode]"]
"""Plays pages at a temperature."""


def measure_outcomes(
    pages: Sequence[EpisodeSpec],
    sampled_pages: Sequence[EpisodeSpec],
    samples: int,
    player: Player,
) -> Outcomes:
    """Play each page once greedily; ``sampled_pages`` ``samples`` times at temperature 1."""
    greedy = outcomes_of(player(pages, 0.0))
    sampled = outcomes_of(player([page for page in sampled_pages for _ in range(samples)], 1.0))
    return Outcomes(greedy, sampled)
