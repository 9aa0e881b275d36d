"""What all figures share: the colours of Okabe and Ito, the style, and the small picture."""

import functools
import importlib.metadata
import io
from typing import Any

import matplotlib.pyplot as plt
from IPython.display import Image
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image as Pictures

from helpers.settings.language import language

BLACK = "#000000"
ORANGE = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
BLUE = "#0072B2"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"
COLOURS = (BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY, BLACK)  # of series, in this order
LINES = ("-", "--", "-.", ":")  # so that series differ without colour as well
MARKERS = ("o", "s", "^", "D", "v")


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple[Figure, Any]:
    """A figure in the course's style, and its axes.

    ``width`` and ``height`` are in inches. The axes are what ``plt.subplots`` gives: one ``Axes``
    where there is one, else an array of them.
    """
    plt.rcParams.update(
        {
            "font.family": ["sans-serif", *_fonts_of_the_language()],
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


def _fonts_of_the_language() -> list[str]:
    """The fonts that have what matplotlib's own lacks."""
    return [_chinese_font()] if language() == "zh" else []


@functools.cache
def _chinese_font() -> str:
    """The name of Noto Sans SC, which matplotlib then knows.

    It is a file of the package zhplot, of which nothing else is used.
    """
    package = importlib.metadata.distribution("zhplot")
    file = str(package.locate_file("zhplot/fonts/NotoSansSC-Regular.ttf"))
    font_manager.fontManager.addfont(file)
    return font_manager.FontProperties(fname=file).get_name()


def new_panels(width: float, height: float, rows: int, columns: int) -> tuple[Figure, list[Axes]]:
    """`new_figure` with its axes as one list, row by row, also where there is a single one."""
    figure, axes = new_figure(width, height, rows, columns)
    if rows * columns == 1:
        return figure, [axes]
    return figure, list(axes.flat)


def show(figure: Figure, alt: str, colours: int = 96) -> Image:
    """The figure as a small picture with the alt text ``alt``, see `as_png`."""
    return Image(as_png(figure, colours), format="png", alt=alt)


def as_png(figure: Figure, colours: int = 96) -> bytes:
    """The figure as a PNG; the figure is closed.

    ``colours``: how many the picture keeps. 96 look like all of them at a third of the size.
    """
    full = io.BytesIO()
    figure.savefig(full, format="png")
    plt.close(figure)
    picture = Pictures.open(full).convert("RGB")
    small = io.BytesIO()
    few = picture.quantize(colours, dither=Pictures.Dither.NONE)
    few.save(small, "PNG", optimize=True)
    return small.getvalue()
