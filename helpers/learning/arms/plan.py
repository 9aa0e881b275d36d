"""What is decided before anything is measured: the arms, their size, and how tasks are chosen."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from helpers.episodes.tasks import TEST_SEEDS, VALIDATION_SEEDS
from helpers.settings.errors import ProfileError
from helpers.settings.files import read_object, write_json

Count = Annotated[int, Field(ge=1, le=100_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Rate = Annotated[float, Field(gt=0, le=1)]


@dataclass(frozen=True, config=ConfigDict(allow_inf_nan=False))
class Plan:
    """Every number of the experiment; see `ARMS` for what the arms are."""

    policy: str
    """The model before its warm-up: a short name, a Hub id or a folder."""
    candidates: tuple[str, ...]
    """The tasks from which `helpers.learning.arms.choice` chooses: all that have a script."""

    # The warm-up
    demos: Count = 16
    """Demonstrations of each task."""
    other_demos: tuple[Count, ...] = (4, 64)
    """As many of the chosen tasks, for the best arm and the demonstrations once more."""
    warm_up_epochs: Annotated[float, Field(gt=0, le=1_000)] = 2
    warm_up_rate: Rate = 5e-4
    warm_up_dtype: Literal["float32", "bfloat16"] = "bfloat16"
    """What demonstrations are learned in, but for machines on which bf16 is slow; episodes are
    learned in the profile's."""
    rank: Annotated[int, Field(ge=1, le=1_024)] = 16
    """Of the adapters, which the arms train on: 10 MB a policy, so that all of them are kept."""
    most_tokens: Annotated[int, Field(ge=1, le=1_400)] = 340
    """Of an episode: longer ones make an update of minutes on two cores."""

    # The choice of the tasks
    low: Share = 0.2
    high: Share = 0.8
    """The sampled success between which a task is chosen."""
    fewest: Count = 8
    most: Count = 8
    """Tasks."""
    choice_pages: Annotated[int, Field(ge=1, le=len(VALIDATION_SEEDS))] = 6
    """Validation pages of each candidate."""
    choice_samples: Count = 4
    """Sampled episodes on each of them."""

    # The arms
    updates: Count = 30
    groups: Count = 8
    group_size: Annotated[int, Field(ge=2, le=1_000)] = 6
    learning_rate: Rate = 2e-4
    demo_batch: Count = 8
    """Demonstrations in an update of the arm that has nothing else."""
    seeds: Annotated[tuple[Annotated[int, Field(ge=0, lt=2**32)], ...], Field(min_length=1)] = (
        0,
        1,
        2,
    )
    """Of training."""

    # The test
    pages: Annotated[int, Field(ge=1, le=len(TEST_SEEDS))] = 20
    """Test pages of each task, each played once greedily."""
    sampled_pages: Annotated[int, Field(ge=1, le=len(TEST_SEEDS))] = 8
    """The first so many of them are sampled, too."""
    samples: Count = 8
    """Sampled episodes on each of those: pass@8."""

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high <= 1 or not 1 <= self.fewest <= self.most:
            raise ProfileError(
                "The plan chooses nothing: low has to be below high, and fewest at most as many as "
                "most."
            )

    def to_json(self) -> dict[str, Any]:
        """The plan as its file has it."""
        return json.loads(json.dumps(asdict(self)))


def planned(policy: str, candidates: Sequence[str], changes: Sequence[str] = ()) -> Plan:
    """The plan with ``changes``, such as "updates=10" or "seeds=0,1".

    Raises `ProfileError` for a number that there is not, or a value that it cannot have.
    """
    lists = {"other_demos", "seeds"}
    values: dict[str, Any] = {"policy": policy, "candidates": tuple(candidates)}
    known = [field.name for field in fields(Plan) if field.name not in values]
    for change in changes:
        name, equals, value = change.partition("=")
        if not equals or name not in known:
            raise ProfileError(
                f"{change!r} changes nothing of the plan: write NAME=VALUE with one of "
                f"{', '.join(known)}."
            )
        values[name] = [word for word in value.split(",") if word] if name in lists else value
    try:
        return Plan(**values)
    except ValidationError as error:
        problem = error.errors()[0]
        name = ".".join(str(part) for part in problem["loc"])
        raise ProfileError(f"The plan's {name} cannot be {problem['input']!r}.") from None


DEMONSTRATIONS = "demonstrations"
PLAIN = "grpo"

ARMS: dict[str, dict[str, Any]] = {
    DEMONSTRATIONS: {},  # more epochs of the same demonstrations: no episode is played
    PLAIN: {},
    "dynamic sampling": {},  # silent groups are played again: see `arm_settings`
    "curriculum": {"curriculum": "success"},  # and tasks and pages are chosen by their success
    "own solved": {"advantages": "solved"},
    "shuffled": {"advantages": "shuffled"},
    "turn groups": {"advantages": "turns"},
    "self-imitation": {"self_imitation": 8},
}
"""The arms and the fields of a profile in which each differs from GRPO.

All begin with the same warm-up, have as many updates, and, but for the first, as many episodes; the
arms with the same training seed begin each update on the same pages, unless the arm is about the
choice of pages.
"""


def arm_settings(arm: str, plan: Plan) -> dict[str, Any]:
    """What the profile of an arm has beside the plan's numbers.

    Dynamic sampling and the curriculum play a quarter of their groups only where others ended
    alike, so that they play at most as many episodes as the others.
    """
    settings = dict(ARMS[arm])
    if arm in ("dynamic sampling", "curriculum"):
        again = plan.groups // 4
        settings |= {"groups": plan.groups - again, "resample": again * plan.group_size}
    return settings


def hold_to_plan(folder: Path, plan: Plan) -> None:
    """Write the plan into the folder of an experiment; raises `ProfileError` for another one."""
    path = folder / "plan.json"
    begun = read_object(path)
    wanted = plan.to_json()
    if begun is None:
        write_json(path, wanted)
        return
    for name, value in wanted.items():
        if begun.get(name) != value:
            raise ProfileError(
                f"{folder} holds an experiment with {name}={begun.get(name)}, not {value}: give "
                "the same options to go on with it, or choose another folder with --folder."
            )


def run_folder(folder: Path, arm: str, demos: int, seed: int) -> Path:
    """Where the run of an arm is kept in the folder of an experiment."""
    return folder / "runs" / f"{arm.replace(' ', '-')}-{demos}-seed{seed}"
