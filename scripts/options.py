"""What the commands have in common: options that change the machine's profile, and ranges."""

import math
from dataclasses import replace
from typing import Annotated

import typer

from helpers.episodes.how_played import kept_how
from helpers.episodes.tasks import TEST_SEEDS, read_tasks
from helpers.policy.at_hand import with_policy_at_hand
from helpers.settings.errors import ProfileError
from helpers.settings.profiles import Profile, get_profile, with_options

PolicyOption = Annotated[
    str | None, typer.Option(help="a name of helpers.policy.loading, a folder or a Hub id")
]
TaskOption = Annotated[
    str | None,
    typer.Option(
        help="a MiniWoB task, or several with commas; suite: the course's own list; taught: those "
        "that the folder of the policy says it was taught"
    ),
]
UpdatesOption = Annotated[int | None, typer.Option(help="how many updates the run has")]
SeedOption = Annotated[int | None, typer.Option(help="the seed of the run")]
LoraOption = Annotated[bool, typer.Option("--lora", help="train adapters, not all weights")]
OutputOption = Annotated[str, typer.Option(help="folder for metrics, checkpoints and the policy")]


def positive(value: float) -> float:
    """A number of the command line that is above 0: a range would let 0 and nan through."""
    if value > 0 and math.isfinite(value):
        return value
    raise typer.BadParameter(f"{value} is not a number above 0")


def finite(value: float) -> float:
    """A number of the command line that is one: a range would let nan through."""
    if math.isfinite(value):
        return value
    raise typer.BadParameter(f"{value} is not a finite number")


EpisodesOption = Annotated[int, typer.Option(min=1, max=len(TEST_SEEDS), help="episodes per task")]
TemperatureOption = Annotated[
    float, typer.Option(min=0, max=100, callback=finite, help="1 samples, 0 is greedy")
]
RateOption = Annotated[
    float, typer.Option(max=1, callback=positive, help="the learning rate at its highest")
]
EpochsOption = Annotated[
    float, typer.Option(max=1_000, callback=positive, help="how often each episode is learned from")
]


def chosen_profile(
    policy: str | None = None,
    task: str | None = None,
    updates: int | None = None,
    seed: int | None = None,
) -> Profile:
    """The profile of this machine with the options that were given (None: as the profile has it).

    A policy that nobody named and that cannot be had becomes the embedded one, with a sentence.
    Raises `ProfileError` for a task or a setting that there is not.
    """
    profile = with_options(get_profile(), policy=policy, task=task, updates=updates, seed=seed)
    if policy is None:
        profile = with_policy_at_hand(profile)
    if profile.task == "taught":
        return replace(profile, task=",".join(_taught(profile.policy)))
    return replace(profile, task=",".join(read_tasks(profile.task)))


def _taught(policy: str) -> tuple[str, ...]:
    """The tasks that the folder of a policy says it was taught."""
    taught = kept_how(policy)
    if taught is None:
        raise ProfileError(
            f"{policy} does not say which tasks it was taught: name them with --task."
        )
    return taught.tasks
