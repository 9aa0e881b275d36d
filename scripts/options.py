"""What the training commands have in common: the options that change the machine's profile."""

from dataclasses import replace
from typing import Annotated

import typer

from helpers.episodes.tasks import read_tasks
from helpers.settings.profiles import Profile, get_profile

PolicyOption = Annotated[
    str | None, typer.Option(help="a name of helpers.policy.loading, a folder or a Hub id")
]
TaskOption = Annotated[
    str | None,
    typer.Option(help="a MiniWoB task, or several with commas; suite: the course's own list"),
]
UpdatesOption = Annotated[int | None, typer.Option(help="how many updates the run has")]
SeedOption = Annotated[int | None, typer.Option(help="the seed of the run")]
LoraOption = Annotated[bool, typer.Option("--lora", help="train adapters, not all weights")]
OutputOption = Annotated[str, typer.Option(help="folder for metrics, checkpoints and the policy")]


def chosen_profile(
    policy: str | None = None,
    task: str | None = None,
    updates: int | None = None,
    seed: int | None = None,
) -> Profile:
    """The profile of this machine with the options that were given (None: as the profile has it).

    Raises `ProfileError` for a task or a setting that there is not.
    """
    options = {"policy": policy, "task": task, "updates": updates, "seed": seed}
    given = {name: value for name, value in options.items() if value is not None}
    profile = replace(get_profile(), **given)
    return replace(profile, task=",".join(read_tasks(profile.task)))
