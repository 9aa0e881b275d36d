"""Let a policy with eyes practise: GRPO on what it sees, and test pages before and after.

    python -m scripts.practise_seeing --output runs/practice
    python -m scripts.practise_seeing --output runs/practice --resume

It begins with the eyes of ``recordings/eyes``, or with those that `scripts.learn_to_see` made.
"""

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from helpers.command_line import run
from helpers.settings.files import write_whole
from helpers.settings.machine import run_facts
from helpers.settings.profiles import get_profile
from helpers.settings.run_folder import release_folder
from scripts.options import OutputOption


def main(
    context: typer.Context,
    eyes: Annotated[str, typer.Option(help="folder of eyes")] = "recordings/eyes",
    output: OutputOption = "runs/practice",
    task: Annotated[
        str,
        typer.Option(
            help="tasks with commas, whose pages take turns; by default those of the recorded eyes"
        ),
    ] = "",
    updates: Annotated[int, typer.Option(min=1, help="how many updates the run has")] = 30,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="of the run")] = 0,
    generator: Annotated[
        Literal["transformers", "vllm"], typer.Option(help="what answers the pages")
    ] = "transformers",
    play: Annotated[
        int, typer.Option(min=0, help="test pages of each task, before and after")
    ] = 200,
    resume: Annotated[bool, typer.Option("--resume", help="go on where it was stopped")] = False,
) -> None:
    """GRPO for a policy with eyes, with pictures in the training pass."""
    # Takes ten seconds; an option that is misspelt is refused before.
    from helpers.learning.eyes.played import show_played
    from helpers.learning.eyes.practice import beside, practice_profile, practise

    chosen = {"task": task} if task else {}
    profile = practice_profile(
        get_profile(), updates=updates, seed=seed, generator=generator, **chosen
    )
    command = shlex.join(["python", "-m", "scripts.practise_seeing", *context.obj])
    result: dict[str, Any] = {"command": command}
    result |= practise(profile, Path(eyes), Path(output), play, resume)
    if play:
        print(show_played(beside(result["before"], result["after"])))
    write_whole(Path(output) / "result.json", json.dumps({**result, **run_facts()}) + "\n")
    release_folder(output)


if __name__ == "__main__":
    sys.exit(run(main))
