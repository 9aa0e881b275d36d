"""Draw every picture in media/: ``make media``.

    python tools/make_media.py                         all of them
    python tools/make_media.py the_loop four_rollouts  some of them

The diagrams are drawn with matplotlib; pages come from a real browser. Episodes are scripted, or
recorded ones played again.
"""

import sys
from collections.abc import Callable
from typing import Annotated

import matplotlib
import typer

from helpers.command_line import run
from helpers.settings.errors import CourseError
from tools.media.arms import arms_by_task
from tools.media.browser_control import browser_control_marks, browser_control_text
from tools.media.diagrams import advantages_of_groups, colocated_vllm, components, the_loop
from tools.media.drawing import MEDIA
from tools.media.four_rollouts import four_rollouts
from tools.media.pages import task_gallery
from tools.media.trained_policy import trained_policy

PICTURES: dict[str, Callable[[], None]] = {
    draw.__name__: draw
    for draw in (
        components,
        colocated_vllm,
        the_loop,
        browser_control_text,
        browser_control_marks,
        four_rollouts,
        advantages_of_groups,
        trained_policy,
        task_gallery,
        arms_by_task,
    )
}


def main(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"Pictures to draw (all): {', '.join(PICTURES)}.")
    ] = None,
) -> None:
    """Draw the pictures in media/."""
    names = names or list(PICTURES)
    for name in names:
        if name not in PICTURES:
            raise CourseError(f"There is no picture {name!r}: use {', '.join(PICTURES)}.")
    matplotlib.use("Agg")  # no window, whatever else is set
    MEDIA.mkdir(exist_ok=True)
    for name in names:
        PICTURES[name]()


if __name__ == "__main__":
    sys.exit(run(main))
