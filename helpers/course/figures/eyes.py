"""Figures of a policy with eyes: what its squares say, where it looks, and where it clicks."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from helpers.browser.options import SCALE
from helpers.course.figures.pages import PAGE, draw_page
from helpers.course.figures.style import GREEN, VERMILLION, new_figure, new_panels
from helpers.policy.eyes import PATCH, SIDE

LEFT, TOP, *_ = PAGE  # what is looked at, in pixels of the screenshot
GRID = SIDE // PATCH  # squares in a row, and in a column
SQUARE = PATCH * SCALE  # width and height of one, in pixels of the screenshot


class Click(NamedTuple):
    """Where a policy clicked, in pixels of the screenshot, and whether the page paid for it."""

    x: float
    y: float
    paid: bool


def named_squares(screenshot: bytes, words: Sequence[str], title: str) -> Figure:
    """A page, and beside it what its 64 squares say; an empty string is an empty square."""
    figure, (page, said) = new_figure(7.2, 3.8, 1, 2)
    draw_page(page, screenshot, {})
    draw_page(said, screenshot, {})
    for axes in (page, said):
        _draw_grid(axes)
    for square, text in enumerate(words):
        _cover(said, square, 0.85)
        x, y = _corner(square)
        middle = x + SQUARE / 2, y + SQUARE / 2
        said.text(*middle, text.replace(" ", "\n"), ha="center", va="center", fontsize=5.5)
    figure.suptitle(title)
    return figure


def gaze_maps(panels: Sequence[tuple[bytes, str, Sequence[float]]], title: str) -> Figure:
    """Pages side by side, each with a goal and the share of attention of each of its 64 squares.

    A square that gets none is covered, one that gets all is as it is on the page.
    """
    figure, every = new_panels(1.9 * len(panels), 2.5, 1, len(panels))
    for axes, (screenshot, goal, shares) in zip(every, panels, strict=True):
        _draw_goal(axes, screenshot, goal)
        highest = max(shares)
        for square, share in enumerate(shares):
            _cover(axes, square, 0.9 * (1 - share / highest))
    figure.suptitle(title)
    return figure


def clicked_pages(
    panels: Sequence[tuple[bytes, str, Sequence[Click]]], columns: int, title: str
) -> Figure:
    """Pages with a dot for each click: green and round where the page paid, else a red cross."""
    rows = math.ceil(len(panels) / columns)
    figure, every = new_panels(1.9 * columns, 2.3 * rows + 0.2, rows, columns)
    for axes in every[len(panels) :]:
        axes.set_visible(False)
    for axes, (screenshot, goal, clicks) in zip(every, panels, strict=False):
        _draw_goal(axes, screenshot, goal)
        for click in clicks:
            _draw_click(axes, click)
    figure.suptitle(title)
    return figure


def _draw_goal(axes: Axes, screenshot: bytes, goal: str) -> None:
    """A page, and its goal above it."""
    draw_page(axes, screenshot, {})
    axes.set_title(textwrap.fill(goal, 24), fontsize=8)


def _draw_click(axes: Axes, click: Click) -> None:
    """A dot with a white edge, so that it is seen on any colour."""
    colour, marker = (GREEN, "o") if click.paid else (VERMILLION, "X")
    axes.scatter(
        click.x,
        click.y,
        s=60,
        color=colour,
        marker=marker,
        edgecolors="white",
        linewidths=1,
        alpha=0.7,
        zorder=3,
    )


def _cover(axes: Axes, square: int, alpha: float) -> None:
    """White paper on a square; an ``alpha`` of 1 hides it."""
    paper = Rectangle(_corner(square), SQUARE, SQUARE, facecolor="white", alpha=alpha)
    axes.add_patch(paper)


def _draw_grid(axes: Axes) -> None:
    """The edges of the squares."""
    for i in range(1, GRID):
        axes.axvline(LEFT + i * SQUARE, color="#bbbbbb", linewidth=0.5)
        axes.axhline(TOP + i * SQUARE, color="#bbbbbb", linewidth=0.5)


def _corner(square: int) -> tuple[float, float]:
    """The top left corner of a square, in pixels of the screenshot."""
    row, column = divmod(square, GRID)
    return LEFT + column * SQUARE, TOP + row * SQUARE
