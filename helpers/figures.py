"""Figures of pages: a screenshot with its elements, an episode as a strip or a GIF, a gallery, rates with intervals.
Each returns a ``Figure``; `show` makes it a small picture with alt text. Colours: Okabe-Ito."""

import base64
import io
import textwrap
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from IPython.display import HTML, Image
from matplotlib.patches import Rectangle
from PIL import Image as Pictures

from helpers.evaluation import wilson_interval

BLACK, ORANGE, SKY, GREEN, BLUE, VERMILLION, PURPLE = "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7"
COLOURS = (BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY, BLACK)
LINES = ("-", "--", "-.", ":")
FULL, PAGE = (0, 0, 332, 214), (0, 50, 160, 210)  # the screenshot; where a task draws: below its yellow bar, left of the grey


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple[Any, Any]:
    """A figure in the course's style, size in inches, and its array of axes (one ``Axes`` where there is one)."""
    plt.rcParams.update({"font.size": 9, "axes.titlesize": 9, "axes.spines.top": False, "axes.spines.right": False,
                         "axes.prop_cycle": plt.cycler(color=COLOURS), "savefig.dpi": 100, "figure.dpi": 100})
    return plt.subplots(rows, columns, figsize=(width, height), layout="constrained")


def show(figure: Any, alt: str, colours: int = 96) -> Image:
    """The figure as a PNG of few ``colours`` (a third of the size) with the alt text ``alt``; the figure is closed."""
    file, small = io.BytesIO(), io.BytesIO()
    figure.savefig(file, format="png")
    plt.close(figure)
    Pictures.open(file).convert("RGB").quantize(colours, dither=Pictures.Dither.NONE).save(small, "PNG", optimize=True)
    return Image(small.getvalue(), format="png", alt=alt)


def draw_page(axes: Any, screenshot: bytes | None, boxes: dict[str, Any], crop: tuple = PAGE) -> None:
    """Draw PNG bytes (grey where None) and ``boxes``: label -> (x, y, width, height) in screenshot pixels or None."""
    image = Pictures.open(io.BytesIO(screenshot)).convert("RGB") if screenshot else Pictures.new("RGB", FULL[2:], "#cccccc")
    left, top, right, bottom = crop
    axes.imshow(image.crop(crop), interpolation="lanczos", extent=(left, right, bottom, top))
    for label, box in boxes.items():
        if box:
            axes.add_patch(Rectangle(box[:2], *box[2:], fill=False, edgecolor=VERMILLION, linewidth=1.6))
            axes.text(box[0] + box[2] + 2, box[1] + box[3] / 2, label, color="white", fontsize=8, va="center", clip_on=True,
                      bbox={"facecolor": VERMILLION, "edgecolor": "none", "pad": 1.2} if label else None)
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
    for axis, content in zip(getattr(axes, "flat", [axes]), pages + [None] * (rows * columns - len(pages)), strict=True):
        axis.set_visible(content is not None)
        if content:
            draw_page(axis, content[0], {"": content[1]})
            axis.set_title(content[2], fontsize=8)
            axis.set_xlabel(content[3], fontsize=7)
    figure.suptitle(title, fontsize=9)
    return figure


def frames(episode: Any) -> list[tuple[bytes | None, Any, str, str]]:
    """For each turn the page, the box that the action hits, "turn 1", action and reward; then the last page."""
    rows = [(t.screenshot, t.box, f"turn {i + 1}", textwrap.shorten(t.parsed.action or f"{t.parsed.kind}: {t.answer}", 30,
             placeholder=" …") + ("" if t.reward is None else f"\nreward {t.reward:g}")) for i, t in enumerate(episode.turns)]
    return [*rows, (episode.last_screenshot, None, "after", f"end: {episode.ended}\n ")]


def episode_strip(episode: Any, title: str, columns: int = 5) -> Any:
    """The frames of an episode, ``columns`` to a row."""
    return page_grid(shots := frames(episode), min(columns, len(shots)), title)


def gallery(seen: list[Any], columns: int, title: str, field: str = "task") -> Any:
    """The pages of many observations: above each its task (or another ``field``), below it the start of the goal."""
    goal = {id(o): "\n".join(textwrap.wrap(textwrap.shorten(o.goal, 60, placeholder=" …"), 30)) for o in seen}
    return page_grid([(o.screenshot, None, str(getattr(o, field)), goal[id(o)]) for o in seen], columns, title)


def write_gif(episode: Any, path: Path | str, alt: str, milliseconds: int = 1100) -> HTML:
    """Write the frames as a GIF that repeats; returns it as HTML, because exports leave a plain GIF output out."""
    shots = [Pictures.open(io.BytesIO(show(page_grid([frame], 1, ""), "").data)).convert("RGB") for frame in frames(episode)]
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    shots[0].save(path, save_all=True, append_images=shots[1:], duration=milliseconds, loop=0)
    return HTML(f'<img alt="{alt}" src="data:image/gif;base64,{base64.b64encode(Path(path).read_bytes()).decode()}">')


def rates(groups: dict[str, dict[str, tuple[int, int]]], title: str, label: str = "episodes solved (%)") -> Any:
    """Rates with 95 % Wilson intervals. ``groups``: row -> {series: (successes, n)}."""
    series = list(dict.fromkeys(name for row in groups.values() for name in row))
    figure, axes = new_figure(6.6, 1.0 + 0.15 * len(groups) * (len(series) + 1))
    for k, name in enumerate(series):
        for y, (wins, n) in ((y, row[name]) for y, row in enumerate(groups.values()) if name in row):
            at, ends = y + 0.7 * (k - (len(series) - 1) / 2) / len(series), [100 * v for v in wilson_interval(wins, n)]
            axes.plot(ends, [at, at], color=COLOURS[k], linestyle=LINES[k % 4])
            axes.plot(100 * wins / max(n, 1), at, "os^Dv"[k % 5], color=COLOURS[k], label="_" if y else name, markersize=5)
    axes.set(yticks=range(len(groups)), yticklabels=groups, ylim=(len(groups) - 0.5, -0.5), xlim=(-2, 102), xlabel=label)
    figure.legend(loc="outside lower center", ncols=len(series), frameon=False, fontsize=8)
    return axes.set_title(title).figure
