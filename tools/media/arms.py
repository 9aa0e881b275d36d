"""The experiment of the arms, task by task."""

import json
from pathlib import Path

from helpers.course.figures import rates
from helpers.learning.arms.outcomes import rates as rates_of
from helpers.settings.paths import RECORDINGS
from tools.media.drawing import CARD, save

NAMES = {"demonstrations": "more of the demonstrations", "grpo": "GRPO"}


def arms_by_task() -> None:
    """What sampled answers solve on each task: after the warm-up, and after as many updates on more
    of the same demonstrations and of GRPO."""
    folder = RECORDINGS / "arms"
    plan = json.loads((folder / "result.json").read_text())["plan"]
    counts = {"after the warm-up": _solved([folder / f"warm-{plan['demos']}"])}
    for arm, name in NAMES.items():
        counts[name] = _solved(sorted(folder.glob(f"runs/{arm}-{plan['demos']}-seed*")))
    ours, theirs = counts["GRPO"], counts[NAMES["demonstrations"]]
    ahead = sum(_rate(ours[task]) > _rate(theirs[task]) for task in ours)
    figure = rates(
        {task: {name: solved[task] for name, solved in counts.items()} for task in ours},
        f"GRPO is ahead of the demonstrations on {ahead} of {len(ours)} tasks",
        "sampled episodes solved (%)",
    )
    figure.set_facecolor(CARD)
    save(figure, "arms_by_task")


def _solved(folders: list[Path]) -> dict[str, tuple[int, int]]:
    """For each task its solved episodes and their number, of all runs together."""
    total: dict[str, tuple[int, int]] = {}
    for folder in folders:
        sampled = json.loads((folder / "outcomes.json").read_text())["sampled"]
        for task, (rate, n) in rates_of(sampled).items():
            solved, before = total.get(task, (0, 0))
            total[task] = (solved + round(rate * n), before + n)
    return total


def _rate(counts: tuple[int, int]) -> float:
    return counts[0] / counts[1] if counts[1] else 0.0
