"""Pages as a browser shows them: how one is drawn, recorded episodes, and a gallery of tasks."""

import io
import textwrap

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Rectangle
from PIL import Image

from helpers.browser import list_tasks, start_browser_server
from helpers.browser.models import Client
from helpers.course.figures import PAGE
from helpers.episodes.episode import Episode
from helpers.episodes.replay import replay
from tools.media.drawing import CARD, GREY, Box, save

GALLERY = (
    "click-button",
    "click-link",
    "click-dialog-2",
    "click-tab-2",
    "click-checkboxes",
    "enter-text",
    "login-user",
    "choose-list",
    "email-inbox",
    "social-media",
    "tic-tac-toe",
    "book-flight",
)


def one_line(text: str) -> str:
    """A goal or an answer without its line breaks."""
    return " ".join(text.split())


def escaped(text: str) -> str:
    """A text that matplotlib does not take for a formula."""
    return text.replace("$", r"\$")


def draw_page(
    axes: Axes,
    screenshot: bytes | None,
    box: Box | None = None,
    colour: str = GREY,
    edge: float = 1.0,
) -> None:
    """The task's part of a screenshot (PNG bytes; grey where None) in a frame.

    ``box`` is drawn on it in ``colour``, and so is the frame where its ``edge`` is wide.
    """
    left, top, right, bottom = PAGE
    if screenshot:
        shot = Image.open(io.BytesIO(screenshot)).convert("RGB").crop(PAGE)
        axes.imshow(shot, interpolation="lanczos", extent=(left, right, bottom, top))
    if box:
        axes.add_patch(Rectangle(box[:2], *box[2:], fill=False, edgecolor=colour, linewidth=2))
    axes.spines[:].set(visible=True, color=colour if edge > 1 else GREY, linewidth=edge)
    axes.set(xticks=[], yticks=[], xlim=(left, right), ylim=(bottom, top))
    axes.set(facecolor="#DDDDDD", aspect="equal")


def play_again(episode: Episode, client: Client) -> Episode:
    """A recorded episode with its screenshots and boxes.

    The same task and seed give the same page, so a recording holds actions only. RuntimeError where
    the page pays something else than it did: then the recording shows another page than this one.
    """
    again = replay(episode, client)
    if episode.reward is not None and again.reward != episode.reward:
        raise RuntimeError(
            f"{episode.task} with seed {episode.seed} was recorded with reward "
            f"{episode.reward:g} and earns {again.reward} now: record it again."
        )
    return episode


def task_gallery() -> None:
    """Twelve tasks, each with its goal below."""
    with start_browser_server(workers=1) as server, server.client(screenshot=True) as client:
        pages = [client.reset(task, seed=3) for task in GALLERY]
    layout = ConstrainedLayoutEngine(h_pad=0.07, w_pad=0.06, hspace=0.03)
    figure, grid = plt.subplots(2, 6, figsize=(10.4, 4.9), facecolor=CARD, layout=layout)
    for axes, seen in zip(grid.flat, pages, strict=True):
        draw_page(axes, seen.screenshot)
        axes.set_title(seen.task, fontsize=9)
        goal = textwrap.shorten(one_line(seen.goal), 60, placeholder=" …")
        axes.set_xlabel("\n".join(textwrap.wrap(goal, 31)[:2]), fontsize=7)
    number = len(list_tasks())
    title = f"Twelve of the {number} MiniWoB++ tasks: the goal is below each page"
    figure.suptitle(title, fontsize=10)
    save(figure, "task_gallery", colours=128, dpi=95)
