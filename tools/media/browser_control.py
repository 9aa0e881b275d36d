"""Browser control, turn by turn: the page, what a policy reads of it, and what it answers."""

import textwrap
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from PIL import Image

from helpers.browser import start_browser_server
from helpers.browser.models import BrowserObservation
from helpers.course.figures import PURPLE
from helpers.episodes.how_played import rollout_config
from helpers.episodes.players import Agent
from helpers.episodes.tools import content
from helpers.evaluation.scripted import SCRIPTS
from tools.media.drawing import (
    ENDING,
    INK,
    LOOKING,
    READING,
    STAGE_COLOURS,
    STAGES,
    canvas,
    label,
    picture,
    save_gif,
)
from tools.media.drawing import arrow as draw_arrow
from tools.media.pages import draw_page, one_line

WIDTH, HEIGHT = 9.6, 4.5  # inches of a frame
ADDITION = ("fill('26', '8')", "click('27')")  # visual-addition, seed 3: one block and seven


@dataclass
class Frame:
    """What one frame shows; before the policy has answered, the last two are empty."""

    seen: BrowserObservation
    turn: int
    reads: str | list[dict[str, Any]]  # text, or a picture and text
    answer: str = ""
    happened: str = ""


def browser_control_text() -> None:
    """A log-in by a script that reads the page as text."""
    control("browser_control_text", "login-user", SCRIPTS["login-user"], "tree")


def browser_control_marks() -> None:
    """A sum by a script that reads a picture with marks."""
    control("browser_control_marks", "visual-addition", _add, "marks")


def _add(seen: BrowserObservation, turn: int) -> str:
    """The solution of the page: what the picture shows is not in the observation."""
    return ADDITION[turn]


def control(name: str, task: str, script: Agent, observation: str) -> None:
    """An episode of a script as a GIF, two frames a turn; RuntimeError where it is not solved."""
    frames = []
    turn = 0
    with start_browser_server(workers=1) as server, server.client(screenshot=True) as client:
        seen = client.reset(task, seed=3)
        while not seen.done:
            reads = content(seen, rollout_config(task), observation, first=turn == 0)
            answer = script(seen, turn)
            before, seen = seen, client.step(answer)
            turn += 1
            frames.append((control_frame(Frame(before, turn, reads)), READING))
            outcome = "the page says solved, reward 1" if seen.done else "the browser executes it"
            happened = f"  |  {STAGES[3][0]}: {outcome}"
            shown = control_frame(Frame(before, turn, reads, answer, happened))
            frames.append((shown, ENDING if seen.done else LOOKING))
    if seen.reward != 1:
        raise RuntimeError(f"The script does not solve {task} with seed 3 (ended: {seen.ended}).")
    save_gif(frames, name)


def control_frame(frame: Frame) -> Image.Image:
    """One frame: the page, beside it what the policy reads, beside that its answer."""
    figure, axes = canvas(WIDTH, HEIGHT)

    def inset(x: float, y: float, width: float, height: float) -> Axes:
        """Axes of their own at a place in inches."""
        return figure.add_axes((x / WIDTH, y / HEIGHT, width / WIDTH, height / HEIGHT))

    label(axes, (4.8, 4.28), one_line(frame.seen.goal), 11.5, fontweight="bold")
    _empty_box(axes, 3.5, 3.5, stage=1)
    _empty_box(axes, 7.3, 2.1, stage=2)
    label(axes, (1.7, 3.97), "The page", 10.5)
    box = None
    for element in frame.seen.elements:
        if f"'{element.bid}'" in frame.answer:
            box = element.box
            break
    draw_page(inset(0.2, 0.65, 3.0, 3.0), frame.seen.screenshot, box, PURPLE)
    if isinstance(frame.reads, str):
        _write_lines(axes, 3.6, frame.reads, columns=37, size=9.5, indent="  ")
    else:
        shown, text = frame.reads
        beside = inset(3.55, 0.55, 2.44, 3.2)
        beside.imshow(shown["image"], interpolation="lanczos")
        beside.axis("off")
        _write_lines(axes, 6.05, text["text"], columns=12, size=9, indent="")
    label(axes, (8.35, 2.15), frame.answer, 11, family="monospace", fontweight="bold")
    draw_arrow(axes, (3.2, 2.15), (3.5, 2.15))
    draw_arrow(axes, (7.0, 2.15), (7.3, 2.15))
    words = f"turn {frame.turn}{frame.happened}"
    label(axes, (4.8, 0.24), words, 11.5, fontweight="bold")
    return picture(figure)


def _empty_box(axes: Axes, x: float, width: float, stage: int) -> None:
    """A white box in the colour of a stage of the loop, with the stage's name above it."""
    colour = STAGE_COLOURS[stage]
    axes.add_patch(
        Rectangle((x, 0.5), width, 3.3, facecolor="white", edgecolor=colour, linewidth=2),
    )
    label(axes, (x + width / 2, 3.97), STAGES[stage][0], 10.5)


def _write_lines(axes: Axes, x: float, text: str, columns: int, size: float, indent: str) -> None:
    """Text from the upper edge of a box down, its lines broken at ``columns``."""
    lines = [
        "\n".join(textwrap.wrap(line, columns, subsequent_indent=indent))
        for line in text.splitlines()
    ]
    style = {"va": "top", "family": "monospace", "color": INK, "linespacing": 1.5}
    axes.text(x, 3.65, "\n".join(lines), fontsize=size, **style)
