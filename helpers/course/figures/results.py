"""Figures of results: rates with their intervals, and the reward over the updates of a run."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from helpers.course.figures.style import COLOURS, LINES, MARKERS, new_figure
from helpers.evaluation.statistics import wilson_interval
from helpers.settings.language import say

SMOOTHED = 10  # updates in the running mean of a training curve


def rates(
    groups: Mapping[str, Mapping[str, tuple[int, int]]],
    title: str,
    label: str = "",
) -> Figure:
    """Rates with 95 % Wilson intervals, in rows.

    ``groups``: row -> {series: (successes, n)}; ``label``: what the axis says,
    "episodes solved (%)" where it is empty.
    """
    names = [name for row in groups.values() for name in row]
    series = list(dict.fromkeys(names))
    figure, axes = new_figure(6.6, 1.0 + 0.15 * len(groups) * (len(series) + 1))
    for number, name in enumerate(series):
        beside = 0.7 * (number - (len(series) - 1) / 2) / len(series)  # series share a row
        for row, counts in enumerate(groups.values()):
            if name in counts:
                legend = name if row == 0 else "_"
                _draw_rate(axes, counts[name], row + beside, number, legend)
    axes.set(
        yticks=range(len(groups)),
        yticklabels=groups,
        ylim=(len(groups) - 0.5, -0.5),
        xlim=(-2, 102),
        xlabel=label or say("episodes solved (%)"),
    )
    figure.legend(loc="outside lower center", ncols=len(series), frameon=False, fontsize=8)
    axes.set_title(title)
    return figure


def _draw_rate(axes: Axes, counts: tuple[int, int], y: float, number: int, legend: str) -> None:
    """The point and the interval of one rate at height ``y``, in the style of a series."""
    successes, n = counts
    colour = COLOURS[number]
    ends = [100 * end for end in wilson_interval(successes, n)]
    axes.plot(ends, [y, y], color=colour, linestyle=LINES[number % len(LINES)])
    axes.plot(
        100 * successes / max(n, 1),
        y,
        MARKERS[number % len(MARKERS)],
        color=colour,
        label=legend,
        markersize=5,
    )


def training_curves(runs: Mapping[str, Sequence[Mapping[str, float]]], title: str) -> Figure:
    """Mean reward of each update (dots) and of the last ten (line), for each run.

    ``runs``: name -> the rows of `helpers.learning.recorder.read_metrics`.
    """
    curves = {name: [(row["update"], row["reward"]) for row in rows] for name, rows in runs.items()}
    return _curves(curves, say("mean strict reward"), title)


def success_curves(rows: Sequence[Mapping[str, float]], title: str) -> Figure:
    """Strict and raw success of each update (dots) and of the last ten (lines), in one plot.

    ``rows``: those of `helpers.learning.recorder.read_metrics`. Where the lines part, the policy is
    paid for something else than its task.
    """
    names = {"success/strict": say("strict: solved"), "success/raw": say("raw: paid anything")}
    curves = {
        name: [(row["update"], row[column]) for row in rows if column in row]
        for column, name in names.items()
    }
    return _curves(curves, say("share of the episodes"), title)


def _curves(curves: Mapping[str, Sequence[tuple[float, float]]], label: str, title: str) -> Figure:
    """Values between 0 and 1 of each update (dots), and the mean of the last ten (lines).

    ``curves``: name -> pairs (update, value); ``label``: what the vertical axis says.
    """
    figure, axes = new_figure(6.6, 2.9)
    for i, (name, points) in enumerate(curves.items()):
        updates = [update for update, _ in points]
        values = [value for _, value in points]
        line = LINES[i % len(LINES)]
        axes.plot(updates, values, ".", color=COLOURS[i], alpha=0.25, markersize=4)
        axes.plot(updates, _running_mean(values), color=COLOURS[i], linestyle=line, label=name)
    axes.set(xlabel=say("update"), ylabel=label, ylim=(-0.03, 1.03))
    axes.locator_params("x", integer=True)
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    axes.set_title(title)
    return figure


def _running_mean(values: Sequence[float]) -> list[float]:
    """For each value the mean of it and of those before it, `SMOOTHED` at most."""
    means = []
    for end in range(1, len(values) + 1):
        window = values[max(0, end - SMOOTHED) : end]
        means.append(sum(window) / len(window))
    return means
