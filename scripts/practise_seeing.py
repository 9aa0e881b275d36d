"""Let a policy with eyes practise: GRPO on what it sees, and test pages before and after.

    python -m scripts.practise_seeing --output runs/practice
    python -m scripts.practise_seeing --output runs/practice --resume

It begins with the eyes of ``recordings/eyes``, or with those that `scripts.learn_to_see` made.
"""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from helpers.command_line import run
from helpers.settings.files import write_json
from helpers.settings.machine import run_facts
from helpers.settings.profiles import get_profile
from helpers.settings.run_folder import release_folder
from scripts.options import OutputOption, UpdatesOption


def main(
    context: typer.Context,
    eyes: Annotated[str, typer.Option(help="folder of eyes")] = "recordings/eyes",
    output: OutputOption = "runs/practice",
    task: Annotated[
        str | None,
        typer.Option(
            help="tasks with commas, whose pages take turns; by default those of the recorded runs"
        ),
    ] = None,
    updates: UpdatesOption = None,
    groups: Annotated[int | None, typer.Option(help="pages of an update")] = None,
    group_size: Annotated[int | None, typer.Option(help="clicks on each of them")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="of the adapter")] = None,
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

    profile = practice_profile(
        get_profile(),
        task=task,
        updates=updates,
        groups=groups,
        group_size=group_size,
        lora_learning_rate=learning_rate,
        seed=seed,
        generator=generator,
    )
    command = shlex.join(["python", "-m", "scripts.practise_seeing", *context.obj])
    result: dict[str, Any] = {"command": command}
    result |= practise(profile, Path(eyes), Path(output), play, resume)
    if play:
        print(show_played(beside(result["before"], {"after": result["after"]})))
    write_json(Path(output) / "result.json", {**result, **run_facts()})
    release_folder(output)


if __name__ == "__main__":
    sys.exit(run(main))
