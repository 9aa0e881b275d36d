"""The figures of the notebooks: a function returns a ``Figure``, `show` a small picture of it.

`pages` draws screenshots and episodes, `eyes` what a policy sees of them, `results` rates and
curves, `advantages` what a rollout is worth to its group; `style` holds the colours and the size of
everything.
"""

from helpers.course.figures.advantages import advantage_curves
from helpers.course.figures.eyes import Click, clicked_pages, gaze_maps, named_squares
from helpers.course.figures.pages import (
    FULL,
    PAGE,
    Panel,
    annotate,
    draw_page,
    episode_strip,
    frames,
    gallery,
    page_grid,
)
from helpers.course.figures.results import rates, success_curves, training_curves
from helpers.course.figures.style import (
    BLACK,
    BLUE,
    COLOURS,
    GREEN,
    LINES,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    as_png,
    new_figure,
    show,
)

__all__ = [
    "BLACK",
    "BLUE",
    "COLOURS",
    "FULL",
    "GREEN",
    "LINES",
    "ORANGE",
    "PAGE",
    "PURPLE",
    "SKY",
    "VERMILLION",
    "Click",
    "Panel",
    "advantage_curves",
    "annotate",
    "as_png",
    "clicked_pages",
    "draw_page",
    "episode_strip",
    "frames",
    "gallery",
    "gaze_maps",
    "named_squares",
    "new_figure",
    "page_grid",
    "rates",
    "show",
    "success_curves",
    "training_curves",
]
