"""Give a policy eyes: SmolLM2 with a small vision encoder that learns from pages without end.

    python -m scripts.learn_to_see --output runs/eyes
    python -m scripts.learn_to_see --output runs/eyes --play 200

The first command draws the pages, teaches what stands where, where to look and where to click, and
goes on where it was stopped. With ``--play`` it then plays so many test pages of each task in the
browser, seeing and blind. ``make eyes`` calls it; `helpers.learning.eyes` says how.
"""

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from helpers.command_line import run
from helpers.settings.files import write_json
from helpers.settings.machine import run_facts
from helpers.settings.names import split_names
from helpers.settings.run_folder import hold_folder, hold_to_settings, release_folder


def main(
    context: typer.Context,
    output: Annotated[str, typer.Option(help="folder for the eyes and what is kept")] = "runs/eyes",
    first_steps: Annotated[int, typer.Option(min=1, help="of what stands where")] = 400,
    second_steps: Annotated[int, typer.Option(min=0, help="of where to look; 0: none")] = 300,
    third_steps: Annotated[int, typer.Option(min=0, help="of where to click; 0: none")] = 240,
    task: Annotated[
        str,
        typer.Option(
            help="tasks of the questions, with commas, in the order of their steps; by default "
            "those of the recorded eyes"
        ),
    ] = "",
    questions: Annotated[int, typer.Option(min=1, help="about each page, at most")] = 8,
    pages: Annotated[int, typer.Option(min=1, help="training pages of each task")] = 2_000,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="of weights and order")] = 0,
    begin: Annotated[
        Path | None, typer.Option(help="folder of eyes that have had the first lesson")
    ] = None,
    play: Annotated[int, typer.Option(min=0, help="test pages of each task to be played")] = 0,
) -> None:
    """Teach SmolLM2 to see MiniWoB's pages, from a random vision encoder."""
    hold_folder(output)
    # Takes ten seconds; an option that is misspelt is refused before.
    from helpers.learning.eyes.learn import Course, learn_to_see, show_squares
    from helpers.learning.eyes.played import play_tasks, show_played
    from helpers.policy.eyes import policy_with_eyes

    course = Course(
        third=split_names(task) if task else Course.third,
        pages=pages,
        first_steps=first_steps,
        second_steps=second_steps,
        third_steps=third_steps,
        questions=questions,
        seed=seed,
    )
    folder = Path(output)
    settings = {
        "task": ",".join(course.third),
        "pages": pages,
        "seed": seed,
        "begin": str(begin or ""),
    }
    hold_to_settings(folder, settings)  # the steps may change: a lesson is made longer
    command = shlex.join(["python", "-m", "scripts.learn_to_see", *context.obj])
    result: dict[str, Any] = {"command": command}
    if begin is not None and (begin / "result.json").exists():
        result["began_with"] = json.loads((begin / "result.json").read_text())
    result |= learn_to_see(folder, course, begin)
    print(show_squares(result["squares"]))
    if play:
        result["played"] = play_tasks(*policy_with_eyes(folder / "eyes"), course.first, play)
        print(show_played(result["played"]))
    write_json(folder / "result.json", {**result, **run_facts()})
    release_folder(folder)


if __name__ == "__main__":
    sys.exit(run(main))
