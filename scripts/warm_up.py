"""Supervised warm-up before GRPO, on episodes that scripts play. ``make warmup`` calls it.

    python -m scripts.warm_up --task suite --demos 30 --output runs/warm
    COURSE_EXAMPLES=none make train POLICY=runs/warm/policy TASK=suite

    python -m scripts.warm_up --task scripted --measured --rank 16   one adapter for all scripts
    python -m scripts.warm_up --task scripted --split train ...   those that BrowserGym trains on
    python -m scripts.warm_up --policy runs/warm/policy --task scripted --measured --rehearse 6
        the tasks that it does not know yet, and a few pages of the others, lest it forgets them
    python -m scripts.warm_up --task scripted --measured --rank 16 --demos 384 --rehearse 64
        --evaluation runs/validation
        of each task the more, the less of it was solved in an evaluation (scripts.evaluate
        --validation --output runs/validation), whichever policy that was of
    python -m scripts.warm_up --task scripted --measured --rank 16 --thoughts
        answers that begin with a line of thought
    python -m scripts.warm_up --policy runs/warm/policy --task scripted --measured --rehearse 12
        --evaluation runs/validation --thoughts --thoughts-below 0.6
        a line of thought only where the policy solves less than 60 %

The policy learns the format and what scripts can show; its prompt has no worked examples, so it is
trained on without them, too. `helpers.learning.warm_up` says how.
"""

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from helpers.browser import start_browser_server
from helpers.browser.orders import base_task
from helpers.command_line import run
from helpers.episodes.how_played import (
    LONGEST_SHOWN,
    Taught,
    keep_how,
    kept_how,
    rollout_config,
    taught_more,
)
from helpers.episodes.tasks import read_tasks
from helpers.evaluation.record import validated_success
from helpers.evaluation.scripted import SCRIPTS
from helpers.evaluation.scripted.thoughts import REASONS
from helpers.evaluation.standard_sets import tasks_where
from helpers.policy.at_hand import with_policy_at_hand
from helpers.settings.errors import ProfileError
from helpers.settings.files import write_json
from helpers.settings.profiles import get_profile
from helpers.settings.run_folder import hold_folder, hold_to_settings, release_folder
from scripts.options import EpochsOption, PolicyOption, RateOption

SCRIPTED = "scripted"


def tasks_of(task: str, split: str | None) -> tuple[str, ...]:
    """The tasks that an option names, of them those in this half of BrowserGym's table.

    Raises `ProfileError` for a task that there is not, and where no task is left.
    """
    tasks = tuple(SCRIPTS) if task == SCRIPTED else read_tasks(task)
    if split is None:
        return tasks
    half = set(tasks_where("browsergym_split", split))
    chosen = tuple(name for name in tasks if name in half)
    if not chosen:
        raise ProfileError(
            f"None of --task {task} is in BrowserGym's {split} half: leave out --split, or name "
            f"some of {', '.join(sorted(half & set(SCRIPTS))[:5])} ..."
        )
    return chosen


def taught_before(policy: str, kept: Taught | None) -> tuple[str, ...]:
    """The tasks that a policy was taught; `ProfileError` where its folder has not kept it."""
    if kept is None:
        raise ProfileError(
            f"{policy} does not say what it was taught, so there is nothing to rehearse: leave out "
            "--rehearse, or name the folder of a policy that was taught with --measured."
        )
    return kept.tasks


def in_need_of_thoughts(
    tasks: Sequence[str], success: Mapping[str, float], below: float
) -> tuple[str, ...]:
    """Of these tasks those whose script has reasons to say, and of which less than ``below`` was
    solved: a part from 0 to 1, which is 0 for a task that is not known."""
    return tuple(
        task for task in tasks if base_task(task) in REASONS and success.get(task, 0.0) < below
    )


def main(
    context: typer.Context,
    policy: PolicyOption = None,
    task: Annotated[
        str,
        typer.Option(
            help="tasks with commas; suite: the course's own list; scripted: all with a script"
        ),
    ] = "suite",
    split: Annotated[
        Literal["train", "test"] | None,
        typer.Option(help="of the tasks only those in this half of BrowserGym's table of 125"),
    ] = None,
    measured: Annotated[
        bool,
        typer.Option(
            "--measured",
            help="turns and tokens as the scripts need them, instead of the course's own, and "
            "without the tasks that are too long or that their script half fails",
        ),
    ] = False,
    longest: Annotated[
        int,
        typer.Option(
            min=200, max=8_000, help="with --measured: tokens of the longest episode that is shown"
        ),
    ] = LONGEST_SHOWN,
    thoughts: Annotated[
        bool,
        typer.Option(
            "--thoughts",
            help="with --measured: the scripts say a line of thought before each action, and so "
            "will the policy",
        ),
    ] = False,
    thoughts_below: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="with --thoughts and --evaluation: only on tasks of which less than this part was "
            "solved, and whose script has more to say than which element it takes",
        ),
    ] = None,
    demos: Annotated[int, typer.Option(min=1, help="pages per task")] = 30,
    epochs: EpochsOption = 2,
    learning_rate: RateOption = 5e-5,
    rank: Annotated[
        int, typer.Option(min=0, max=1_024, help="of LoRA's adapters; 0: train all weights")
    ] = 0,
    batch: Annotated[int, typer.Option(min=1, max=1_024, help="episodes of a step")] = 8,
    rehearse: Annotated[
        int,
        typer.Option(
            min=0,
            help="pages of each task that the policy was taught before, or of which it solved all "
            "in an --evaluation; --demos is for the others",
        ),
    ] = 0,
    evaluation: Annotated[
        Path | None,
        typer.Option(
            help="folder of an evaluation of the policy on validation pages: tasks of which it "
            "solved all are rehearsed, those of which it solved nothing get --demos pages, and the "
            "others something between"
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="of the pages and of the training")
    ] = 0,
    output: Annotated[str, typer.Option(help="folder for the policy and the episodes")] = (
        "runs/warm"
    ),
) -> None:
    """Teach a policy what scripts can show, before GRPO starts. Stop it when you like: the same
    command goes on."""
    profile = get_profile()
    if policy is None:
        profile = with_policy_at_hand(profile)
    tasks = tasks_of(task, split)
    if thoughts and not measured:
        raise ProfileError("--thoughts needs room for longer answers: add --measured.")
    if thoughts_below is not None and not (thoughts and evaluation):
        raise ProfileError(
            "--thoughts-below chooses among tasks that were evaluated: add --thoughts and an "
            "--evaluation."
        )
    success = validated_success(evaluation) if evaluation else {}
    rehearsing = rehearse and not (policy is None and success)
    name = policy or profile.policy
    kept = kept_how(name)
    before = taught_before(name, kept) if rehearsing else ()
    tasks = tuple(dict.fromkeys((*before, *tasks)))
    folder = Path(output)
    hold_folder(folder)
    # Takes ten seconds; an option that is misspelt is refused before.
    from helpers.learning.arms.needs import measured_way
    from helpers.learning.warm_up import MOST_SESSIONS, Lesson, warm_up
    from helpers.policy.lora import load_to_train

    lesson = Lesson(demos, epochs, learning_rate, seed, rank, batch, rehearse, success)
    settings = {"policy": name, "tasks": list(tasks), "measured": measured, "longest": longest}
    settings |= {"thoughts": thoughts, "thoughts_below": thoughts_below, **asdict(lesson)}
    thinks = tasks if thoughts else ()
    if thoughts_below is not None:
        thinks = in_need_of_thoughts(tasks, success, thoughts_below)
    if kept:  # a policy that thinks on some tasks goes on to
        thinks = tuple(dict.fromkeys((*kept.thinking, *thinks)))
    hold_to_settings(folder, settings)
    loaded = load_to_train(name, profile.device, adapted=not rank)
    with start_browser_server(workers=profile.workers) as server:
        clients = server.clients(min(MOST_SESSIONS, profile.clients))
        taught = Taught(tasks, rollout_config(tasks, examples=False))
        if measured:
            taught = measured_way(tasks, folder, clients, loaded.tokenizer, longest, thinks)
        known = taught_more(kept, taught) if kept and measured else taught
        shown = replace(known.config, max_length=taught.config.max_length)
        way = Taught(taught.tasks, shown)
        numbers = warm_up(profile, loaded, way, folder, lesson, clients, before)
    if measured:
        keep_how(folder / "policy", known)
    command = shlex.join(["python", "-m", "scripts.warm_up", *context.obj])
    write_json(folder / "warm_up.json", {"command": command, **numbers})
    release_folder(folder)


if __name__ == "__main__":
    sys.exit(run(main))
