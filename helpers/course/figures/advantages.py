"""What a rollout is worth to its group, by how many of the group are solved."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from helpers.course.figures.style import BLACK, GREEN, VERMILLION, new_panels
from helpers.episodes.advantages import EPSILON, group_advantages, no_signal_probability
from helpers.settings.language import say

NO_SIGNAL = "#999999"


def advantage_curves(settings: Sequence[tuple[int, float, str]], title: str) -> Figure:
    """The advantage of a solved and of a failed rollout, one panel per setting.

    ``settings``: (group size, success rate, scaling), the scaling one of group, batch and none. The
    size of a point is how often a group has so many solved; grey points at the ends teach nothing.
    """
    width = max(3.2, 2.4 * len(settings))
    figure, panels = new_panels(width, 2.9, 1, len(settings))
    limit = 1.15 * max(math.sqrt(size) for size, _, _ in settings)
    for axes, (size, rate, scaling) in zip(panels, settings, strict=True):
        _draw_groups(axes, size, rate, scaling)
        axes.axhline(0, color=BLACK, linewidth=0.8)
        axes.set(
            xlabel=say("rollouts solved in the group"),
            ylabel=say("advantage (no unit)"),
            xticks=range(0, size + 1, math.ceil(size / 8)),
            ylim=(-limit, limit),
        )
        silent = 100 * no_signal_probability(rate, size)
        no_signal = say("no signal: {share:.0f} %", share=silent)
        axes.set_title(f"G = {size}, p = {rate:.2f}, {scaling}\n{no_signal}", fontsize=8)
    figure.suptitle(title, fontsize=9)
    return figure


def _draw_groups(axes: Axes, size: int, rate: float, scaling: str) -> None:
    """For each number of solved rollouts the advantage of a solved and of a failed one."""
    for solved in range(size + 1):
        chance = math.comb(size, solved) * rate**solved * (1 - rate) ** (size - solved)
        area = 6 + 500 * chance
        advantages = _advantages(solved, size, rate, scaling)
        teaches = 0 < solved < size
        if solved > 0:
            colour = GREEN if teaches else NO_SIGNAL
            axes.scatter(solved, advantages[0], s=area, c=colour, marker="o", alpha=0.8)
        if solved < size:
            colour = VERMILLION if teaches else NO_SIGNAL
            axes.scatter(solved, advantages[-1], s=area, c=colour, marker="s", alpha=0.8)


def _advantages(solved: int, size: int, rate: float, scaling: str) -> list[float]:
    """The advantages of a group whose first ``solved`` rollouts are solved."""
    rewards = [1.0] * solved + [0.0] * (size - solved)
    if scaling != "batch":
        return group_advantages(rewards, size, scaling)
    deviation = math.sqrt(rate * (1 - rate))  # of the rewards of a large batch
    return [value / (deviation + EPSILON) for value in group_advantages(rewards, size, "none")]
