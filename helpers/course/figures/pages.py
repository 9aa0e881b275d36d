"""Figures of pages: a screenshot with its elements, an episode as a strip, a gallery."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image as Pictures

from helpers.course.figures.style import VERMILLION, new_figure, new_panels
from helpers.episodes.episode import Episode, Turn
from helpers.settings.language import say

if TYPE_CHECKING:
    from helpers.browser.models import BrowserObservation

Box = tuple[float, float, float, float]
"""x, y, width and height in pixels of the screenshot."""
Crop = tuple[int, int, int, int]
"""Left, top, right and bottom in pixels of the screenshot."""

FULL: Crop = (0, 0, 498, 321)  # the whole screenshot
PAGE: Crop = (0, 75, 240, 315)  # where a task draws: below its yellow bar, left of the grey


class Panel(NamedTuple):
    """One page of a `page_grid`."""

    screenshot: bytes | None
    """PNG; None is drawn grey."""
    box: Box | None
    """The element to mark, if any."""
    above: str
    below: str


def draw_page(
    axes: Axes, screenshot: bytes | None, boxes: Mapping[str, Box | None], crop: Crop = PAGE
) -> None:
    """Draw a screenshot (PNG; grey where None), and a box around each element that has a place.

    ``boxes``: label -> place of the element, None for one that is not drawn on the page.
    """
    left, top, right, bottom = crop
    picture = _picture(screenshot).crop(crop)
    axes.imshow(picture, interpolation="lanczos", extent=(left, right, bottom, top))
    for label, box in boxes.items():
        if box:
            _draw_box(axes, label, box)
    axes.spines[:].set(visible=True, color="#999999")
    axes.set(xticks=[], yticks=[], xlim=(left, right), ylim=(bottom, top))


def annotate(seen: BrowserObservation, title: str, crop: Crop = FULL) -> Figure:
    """The screenshot of an observation, a box and the bid at each element that can be clicked."""
    width, height = (6.4, 4.4) if crop == FULL else (3.6, 3.8)
    figure, axes = new_figure(width, height)
    boxes = {element.bid: element.box for element in seen.elements if element.clickable}
    draw_page(axes, seen.screenshot, boxes, crop)
    axes.set_title(title)
    return figure


def page_grid(
    pages: Sequence[tuple[bytes | None, Box | None, str, str] | None], columns: int, title: str
) -> Figure:
    """Pages side by side, ``columns`` to a row, each a `Panel` or its four values; None: a gap."""
    rows = math.ceil(len(pages) / columns)
    figure, panels = new_panels(1.72 * columns, 2.2 * rows + 0.2, rows, columns)
    for axes in panels:
        axes.set_visible(False)
    for axes, page in zip(panels, pages, strict=False):  # the last row may have gaps
        if page is None:
            continue
        screenshot, box, above, below = page
        axes.set_visible(True)
        draw_page(axes, screenshot, {"": box})
        axes.set_title(above, fontsize=8)
        axes.set_xlabel(below, fontsize=7)
    figure.suptitle(title, fontsize=9)
    return figure


def frames(episode: Episode) -> list[Panel]:
    """An episode as panels: the page of each turn and what was done to it, then the last page."""
    turns = [
        Panel(turn.screenshot, turn.box, say("turn {n}", n=number), _what_was_done(turn))
        for number, turn in enumerate(episode.turns, 1)
    ]
    end = say("end: {ended}", ended=episode.ended)
    return [*turns, Panel(episode.last_screenshot, None, say("after"), f"{end}\n ")]


def episode_strip(episode: Episode, title: str, columns: int = 5) -> Figure:
    """The frames of an episode, ``columns`` to a row."""
    panels = frames(episode)
    return page_grid(panels, min(columns, len(panels)), title)


def gallery(
    seen: Sequence[BrowserObservation], columns: int, title: str, field: str = "task"
) -> Figure:
    """The pages of observations.

    Above each stands its task, or another ``field`` with its name; below it the start of its goal.
    """
    panels = []
    for observation in seen:
        value = getattr(observation, field)
        named = {"task": value, "seed": say("seed {n}", n=value), "step": say("step {n}", n=value)}
        above = named.get(field, f"{field} {value}")
        goal = textwrap.shorten(observation.goal, 60, placeholder=" …")
        below = "\n".join(textwrap.wrap(goal, 30))
        panels.append(Panel(observation.screenshot, None, above, below))
    return page_grid(panels, columns, title)


def _picture(screenshot: bytes | None) -> Pictures.Image:
    """The screenshot as large as the boxes take it to be, for it may be a small one."""
    if screenshot:
        return Pictures.open(io.BytesIO(screenshot)).convert("RGB").resize(FULL[2:])
    return Pictures.new("RGB", FULL[2:], "#cccccc")


def _draw_box(axes: Axes, label: str, box: Box) -> None:
    """A frame around an element, with its label (if it is not empty) on its right."""
    x, y, width, height = box
    frame = Rectangle((x, y), width, height, fill=False, edgecolor=VERMILLION, linewidth=1.6)
    axes.add_patch(frame)
    ground = {"facecolor": VERMILLION, "edgecolor": "none", "pad": 1.2}
    axes.text(
        x + width + 2,
        y + height / 2,
        label,
        color="white",
        fontsize=8,
        va="center",
        clip_on=True,
        bbox=ground if label else None,
    )


def _what_was_done(turn: Turn) -> str:
    """The action of a turn, or why its answer was none, and the reward where it is known."""
    done = turn.parsed.action or f"{turn.parsed.kind}: {turn.answer}"
    done = textwrap.shorten(done, 30, placeholder=" …")
    if turn.reward is None:
        return done
    reward = say("reward {reward:g}", reward=turn.reward)
    return f"{done}\n{reward}"
