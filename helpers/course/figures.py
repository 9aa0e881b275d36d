"""Figures of pages: a screenshot with its elements, an episode as a strip or a GIF, a gallery, rates with intervals.
Each returns a ``Figure``; `show` makes it a small picture with alt text. Colours: Okabe-Ito."""

import io
import math
import textwrap
from typing import Any

import matplotlib.pyplot as plt
from IPython.display import Image
from matplotlib.patches import Rectangle
from PIL import Image as Pictures

from helpers.episodes.advantages import EPSILON, group_advantages, no_signal_probability
from helpers.evaluation.statistics import wilson_interval

BLACK, ORANGE, SKY, GREEN, BLUE, VERMILLION, PURPLE = (
    "#000000",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
)
COLOURS = (BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY, BLACK)
LINES = ("-", "--", "-.", ":")
FULL, PAGE = (
    (0, 0, 332, 214),
    (0, 50, 160, 210),
)  # the screenshot; where a task draws: below its yellow bar, left of the grey


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple[Any, Any]:
    """A figure in the course's style, size in inches, and its array of axes (one ``Axes`` where there is one)."""
    plt.rcParams.update(
        {
            "font.size": 9,
            "axes.titlesize": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.prop_cycle": plt.cycler(color=COLOURS),
            "savefig.dpi": 100,
            "figure.dpi": 100,
        }
    )
    return plt.subplots(rows, columns, figsize=(width, height), layout="constrained")


def show(figure: Any, alt: str, colours: int = 96) -> Image:
    """The figure as a PNG of few ``colours`` (a third of the size) with the alt text ``alt``; the figure is closed."""
    file, small = io.BytesIO(), io.BytesIO()
    figure.savefig(file, format="png")
    plt.close(figure)
    Pictures.open(file).convert("RGB").quantize(colours, dither=Pictures.Dither.NONE).save(
        small, "PNG", optimize=True
    )
    return Image(small.getvalue(), format="png", alt=alt)


def draw_page(
    axes: Any, screenshot: bytes | None, boxes: dict[str, Any], crop: tuple = PAGE
) -> None:
    """Draw PNG bytes (grey where None) and ``boxes``: label -> (x, y, width, height) in screenshot pixels or None."""
    image = (
        Pictures.open(io.BytesIO(screenshot)).convert("RGB")
        if screenshot
        else Pictures.new("RGB", FULL[2:], "#cccccc")
    )
    left, top, right, bottom = crop
    axes.imshow(image.crop(crop), interpolation="lanczos", extent=(left, right, bottom, top))
    for label, box in boxes.items():
        if box:
            axes.add_patch(
                Rectangle(box[:2], *box[2:], fill=False, edgecolor=VERMILLION, linewidth=1.6)
            )
            axes.text(
                box[0] + box[2] + 2,
                box[1] + box[3] / 2,
                label,
                color="white",
                fontsize=8,
                va="center",
                clip_on=True,
                bbox={"facecolor": VERMILLION, "edgecolor": "none", "pad": 1.2} if label else None,
            )
    axes.spines[:].set(visible=True, color="#999999")
    axes.set(xticks=[], yticks=[], xlim=(left, right), ylim=(bottom, top))


def annotate(seen: Any, title: str, crop: tuple = FULL) -> Any:
    """The screenshot of an observation with a box and the bid at each element that can be clicked."""
    _, axes = new_figure(*((6.4, 4.4) if crop == FULL else (3.6, 3.8)))
    draw_page(axes, seen.screenshot, {e.bid: e.box for e in seen.elements if e.clickable}, crop)
    return axes.set_title(title).figure


def page_grid(pages: list[tuple[bytes | None, Any, str, str]], columns: int, title: str) -> Any:
    """Pages side by side, each as (screenshot, box to draw or None, text above, text below)."""
    rows = -(-len(pages) // columns)
    figure, axes = new_figure(1.72 * columns, 2.2 * rows + 0.2, rows, columns)
    for axis, content in zip(
        getattr(axes, "flat", [axes]), pages + [None] * (rows * columns - len(pages)), strict=True
    ):
        axis.set_visible(content is not None)
        if content:
            draw_page(axis, content[0], {"": content[1]})
            axis.set_title(content[2], fontsize=8)
            axis.set_xlabel(content[3], fontsize=7)
    figure.suptitle(title, fontsize=9)
    return figure


def frames(episode: Any) -> list[tuple[bytes | None, Any, str, str]]:
    """For each turn the page, the box that the action hits, "turn 1", action and reward; then the last page."""
    rows = [
        (
            t.screenshot,
            t.box,
            f"turn {i + 1}",
            textwrap.shorten(
                t.parsed.action or f"{t.parsed.kind}: {t.answer}", 30, placeholder=" …"
            )
            + ("" if t.reward is None else f"\nreward {t.reward:g}"),
        )
        for i, t in enumerate(episode.turns)
    ]
    return [*rows, (episode.last_screenshot, None, "after", f"end: {episode.ended}\n ")]


def episode_strip(episode: Any, title: str, columns: int = 5) -> Any:
    """The frames of an episode, ``columns`` to a row."""
    return page_grid(shots := frames(episode), min(columns, len(shots)), title)


def gallery(seen: list[Any], columns: int, title: str, field: str = "task") -> Any:
    """The pages of many observations: above each its task (or another ``field``), below it the start of the goal."""
    goals = [
        "\n".join(textwrap.wrap(textwrap.shorten(o.goal, 60, placeholder=" …"), 30)) for o in seen
    ]
    names = [f"{field} {getattr(o, field)}".removeprefix("task ") for o in seen]
    return page_grid(
        [(o.screenshot, None, n, g) for o, n, g in zip(seen, names, goals, strict=True)],
        columns,
        title,
    )


def rates(
    groups: dict[str, dict[str, tuple[int, int]]], title: str, label: str = "episodes solved (%)"
) -> Any:
    """Rates with 95 % Wilson intervals. ``groups``: row -> {series: (successes, n)}."""
    series = list(dict.fromkeys(name for row in groups.values() for name in row))
    figure, axes = new_figure(6.6, 1.0 + 0.15 * len(groups) * (len(series) + 1))
    for k, name in enumerate(series):
        for y, (wins, n) in (
            (y, row[name]) for y, row in enumerate(groups.values()) if name in row
        ):
            at, ends = (
                y + 0.7 * (k - (len(series) - 1) / 2) / len(series),
                [100 * v for v in wilson_interval(wins, n)],
            )
            axes.plot(ends, [at, at], color=COLOURS[k], linestyle=LINES[k % 4])
            axes.plot(
                100 * wins / max(n, 1),
                at,
                "os^Dv"[k % 5],
                color=COLOURS[k],
                label="_" if y else name,
                markersize=5,
            )
    axes.set(
        yticks=range(len(groups)),
        yticklabels=groups,
        ylim=(len(groups) - 0.5, -0.5),
        xlim=(-2, 102),
        xlabel=label,
    )
    figure.legend(loc="outside lower center", ncols=len(series), frameon=False, fontsize=8)
    return axes.set_title(title).figure


def training_curves(runs: dict[str, list[dict[str, float]]], title: str) -> Any:
    """Mean reward of each update (dots) and of the last ten (line), for each run of `helpers.learning.recorder.read_metrics`."""
    figure, axes = new_figure(6.6, 2.9)
    for i, (name, rows) in enumerate(runs.items()):
        x, y = [row["update"] for row in rows], [row["reward"] for row in rows]
        axes.plot(x, y, ".", color=COLOURS[i], alpha=0.25, markersize=4)
        smooth = [
            sum(y[max(0, k - 9) : k + 1]) / len(y[max(0, k - 9) : k + 1]) for k in range(len(y))
        ]
        axes.plot(x, smooth, color=COLOURS[i], linestyle=LINES[i % 4], label=name)
    (
        axes.set(xlabel="update", ylabel="mean strict reward", ylim=(-0.03, 1.03)),
        axes.locator_params("x", integer=True),
    )
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    return axes.set_title(title).figure


def advantage_curves(settings: list[tuple[int, float, str]], title: str) -> Any:
    """For each (group size, success rate, scaling): the advantage of a solved and of a failed rollout by how many of the
    group are solved; the size of a point is how often that happens, the grey points at the ends teach nothing."""
    figure, row = new_figure(max(3.2, 2.4 * len(settings)), 2.9, 1, len(settings))
    limit = 1.15 * max(math.sqrt(size) for size, *_ in settings)
    for axes, (size, rate, scale) in zip(getattr(row, "flat", [row]), settings, strict=True):
        silent = no_signal_probability(rate, size)
        batch_std = math.sqrt(rate * (1 - rate))
        for k in range(size + 1):
            rewards, often = (
                [1.0] * k + [0.0] * (size - k),
                math.comb(size, k) * rate**k * (1 - rate) ** (size - k),
            )
            values = group_advantages(rewards, size, "group" if scale == "group" else "none")
            values = [v / (batch_std + EPSILON) for v in values] if scale == "batch" else values
            for value, colour, marker, present in (
                (values[0], GREEN, "o", k > 0),
                (values[-1], VERMILLION, "s", k < size),
            ):
                if present:
                    axes.scatter(
                        k,
                        value,
                        6 + 500 * often,
                        colour if 0 < k < size else "#999999",
                        marker,
                        alpha=0.8,
                    )
        axes.axhline(0, color=BLACK, linewidth=0.8)
        axes.set(
            xlabel="rollouts solved in the group",
            ylabel="advantage (no unit)",
            xticks=range(0, size + 1, -(-size // 8)),
        )
        axes.set(ylim=(-limit, limit))
        axes.set_title(
            f"G = {size}, p = {rate:.2f}, {scale}\nno signal: {100 * silent:.0f} %", fontsize=8
        )
    figure.suptitle(title, fontsize=9)
    return figure
