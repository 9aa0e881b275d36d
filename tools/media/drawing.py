"""Cards, arrows and labels with matplotlib, and how a figure becomes a small PNG or GIF."""

import io
from collections import Counter
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from PIL import Image

from helpers.course.figures import BLUE, GREEN, ORANGE, SKY, VERMILLION
from helpers.settings.paths import ROOT

MEDIA = ROOT / "media"
CARD = "#FCFBF7"
INK = "#1A1A1A"
GREY = "#6B6B6B"
STAGES = (  # the names and numbers of the loop, the same in prose, code and figures
    ("1 Reset", "task and seed\nfix the page"),
    ("2 Read", "goal and page\nbecome a prompt"),
    ("3 Answer", "the policy samples\ntokens + logprobs"),
    ("4 Act", "parse, step the\nbrowser, reward"),
    ("5 Learn", "advantages, update,\nnew weights"),
)
STAGE_COLOURS = (BLUE, SKY, GREEN, ORANGE, VERMILLION)
# How long a frame of an animation stays, in milliseconds.
GLANCE = 1200
LOOKING = 1800
READING = 2400
ENDING = 4500

Point = tuple[float, float]
Box = tuple[float, float, float, float]  # x, y, width, height


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure in inches and axes whose units are inches, too."""
    figure = plt.figure(figsize=(width, height), facecolor=CARD)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.axis("off")
    return figure, axes


def label(where: Axes | Figure, at: Point, text: str, size: float, **style: Any) -> None:
    """A text whose middle is ``at``; ``style`` is what matplotlib's ``text`` takes besides."""
    usual: dict[str, Any] = {"ha": "center", "va": "center", "color": INK, "fontsize": size}
    where.text(*at, text, **(usual | style))


def card(
    axes: Axes,
    box: Box,
    colour: str,
    title: str,
    text: str = "",
    fill: str = "white",
    top: bool = False,
) -> None:
    """A rounded box with a coloured edge, its title in bold, and lines of text below the title.

    ``top``: the title stands at the top edge, where something else fills the box.
    """
    x, y, width, height = box
    corners = "round,pad=0,rounding_size=0.12"
    style = {"boxstyle": corners, "facecolor": fill, "edgecolor": colour, "linewidth": 2}
    axes.add_patch(FancyBboxPatch((x, y), width, height, **style))
    lines = text.count("\n") + 1 if text else 0
    middle = x + width / 2
    title_y = y + height - 0.12 if top else y + height / 2 + 0.085 * lines
    title_va = "top" if top else "center"
    label(axes, (middle, title_y), title, 11, va=title_va, fontweight="bold")
    if text:
        text_y = title_y - (0.32 if top else 0.2)
        label(axes, (middle, text_y), text, 8.5, va="top", linespacing=1.35)


def arrow(
    axes: Axes,
    start: Point,
    end: Point,
    text: str = "",
    at: Point | None = None,
    bend: float = 0.0,
    colour: str = INK,
    ha: str = "center",
) -> None:
    """An arrow from one point to another, and its label at ``at`` (the middle where None)."""
    style = {"arrowstyle": "-|>", "mutation_scale": 13, "linewidth": 1.6, "color": colour}
    bent = {"connectionstyle": f"arc3,rad={bend}", "shrinkA": 3, "shrinkB": 3}
    axes.add_patch(FancyArrowPatch(start, end, **style, **bent))
    middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    label(axes, at or middle, text, 8.5, ha=ha, linespacing=1.3)


def picture(figure: Figure, dpi: int = 100) -> Image.Image:
    """The figure as a picture; the figure is closed."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=dpi, facecolor=CARD)
    plt.close(figure)
    return Image.open(file).convert("RGB")


def save(figure: Figure, name: str, colours: int = 64, dpi: int = 110) -> None:
    """The figure as a PNG of few colours: a third of the size."""
    small = picture(figure, dpi).quantize(colours, dither=Image.Dither.NONE)
    small.save(MEDIA / f"{name}.png", "PNG", optimize=True)
    _say(f"{name}.png")


def save_gif(frames: Sequence[tuple[Image.Image, int]], name: str, colours: int = 64) -> None:
    """Frames and their milliseconds, for ever in a loop.

    All have one palette, so that what does not change from frame to frame costs nothing.
    """
    images = [image for image, _ in frames]
    times = [milliseconds for _, milliseconds in frames]
    palette = _commonest_colours(images, colours)
    first, *others = [_in_palette(image, palette) for image in images]
    path = MEDIA / f"{name}.gif"
    first.save(path, save_all=True, append_images=others, duration=times, loop=0, optimize=True)
    _say(f"{name}.gif")


def _commonest_colours(images: Sequence[Image.Image], colours: int) -> np.ndarray:
    """The colours that most pixels of all images have, as they are: (colours, 3)."""
    counts: Counter = Counter()
    for image in images:
        counts.update({colour: n for n, colour in image.getcolors(1 << 24) or []})
    return np.array([colour for colour, _ in counts.most_common(colours)])


def _in_palette(image: Image.Image, palette: np.ndarray) -> Image.Image:
    """The image with the nearest colours of a palette.

    They are looked up here because Pillow's own search is coarse, and tints surfaces.
    """
    found, where = np.unique(np.asarray(image).reshape(-1, 3), axis=0, return_inverse=True)
    nearest = ((found[:, None].astype(int) - palette) ** 2).sum(-1).argmin(-1)
    indices = nearest[where.ravel()].reshape(image.height, image.width)
    small = Image.fromarray(indices.astype(np.uint8), "P")
    small.putpalette(palette.ravel().tolist())
    return small


def _say(name: str) -> None:
    """Print that a picture is written, and how large it is."""
    print(f"  media/{name}  {(MEDIA / name).stat().st_size / 1e3:.0f} kB", flush=True)
