"""Evaluate a policy, or an agent without one, on held-out pages: success with intervals."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from helpers.browser import start_browser_server
from helpers.command_line import run
from helpers.episodes.how_played import kept_how
from helpers.episodes.tasks import read_tasks
from helpers.evaluation.baselines import play_baseline
from helpers.evaluation.evaluate import OWN_PROMPTS, play_policy
from helpers.evaluation.record import PAGES, write_evaluation
from helpers.evaluation.report import task_report
from helpers.policy.at_hand import with_policy_at_hand
from helpers.settings.files import RunFileError
from helpers.settings.profiles import Profile, get_profile
from helpers.settings.run_folder import hold_folder, release_folder
from scripts.options import EpisodesOption, TemperatureOption

MAX_CLIENTS = 32

AgentName = Literal["random", "first_button", "text_match", "oracle"]  # those of `AGENTS`


def command_text(profile: Profile, words: Sequence[str]) -> str:
    """The command that was called, with the one setting that changes what a policy reads."""
    setting = f"COURSE_EXAMPLES={profile.examples} " if profile.examples != "task" else ""
    return f"{setting}python -m scripts.evaluate {' '.join(words)}"


def take_folder(folder: Path) -> None:
    """Keep a folder for this evaluation.

    Raises `RunFileError` where it cannot be written, or holds a training run, whose episodes have
    the name of ours.
    """
    hold_folder(folder)
    if (folder / "metrics.csv").exists():
        raise RunFileError(
            f"{folder} is the folder of a training run, whose episodes.jsonl would be lost: choose "
            "another one with --output."
        )


def main(
    context: typer.Context,
    task: Annotated[
        str,
        typer.Option(
            help="tasks with commas; suite and unseen: the course's own lists; by default those "
            "that the policy's folder names, else the suite"
        ),
    ] = "",
    taught: Annotated[
        str,
        typer.Option(
            help="the tasks that the policy was trained on, where they are others and its folder "
            "does not say how it is asked; own: each task with its own prompt"
        ),
    ] = "",
    n: EpisodesOption = 200,
    policy: Annotated[
        str, typer.Option(help="a name of helpers.policy.loading, a folder or a Hub id")
    ] = "",
    agent: Annotated[
        AgentName | None,
        typer.Option(help="play without a policy; oracle: helpers.evaluation.scripted"),
    ] = None,
    temperature: TemperatureOption = 0.0,
    validation: Annotated[
        bool,
        typer.Option(
            "--validation",
            help="play validation pages: whatever is decided by the result has then seen no test "
            "page",
        ),
    ] = False,
    output: Annotated[
        Path | None, typer.Option(help="folder for evaluation.json and three episodes of each task")
    ] = None,
) -> None:
    """Evaluate a policy, or an agent without one, on held-out pages, task by task.

    \b
    python -m scripts.evaluate --task suite,unseen --policy runs/train/policy --output runs/test
    python -m scripts.evaluate --task suite --agent text_match
    """
    if policy and agent:
        raise typer.BadParameter("--policy and --agent cannot be given together")
    profile = get_profile()
    how = kept_how(policy) if policy else None
    tasks = how.tasks if how and not task else read_tasks(task or "suite")
    pages = "validation" if validation else "test"
    seeds = PAGES[pages]
    prompts_of = taught if taught in ("", OWN_PROMPTS) else read_tasks(taught)
    if output:
        take_folder(output)  # before the episodes: what cannot be written is said now
    begin = time.monotonic()
    with start_browser_server(workers=profile.workers) as server:
        clients = server.clients(min(MAX_CLIENTS, profile.clients))
        if agent:
            result = play_baseline(agent, tasks, n, clients, seeds)
        else:
            name = policy or with_policy_at_hand(profile).policy
            result = play_policy(name, tasks, n, clients, profile, temperature, prompts_of, seeds)
    print(task_report(result))
    if output:
        seconds = time.monotonic() - begin
        command = command_text(profile, context.obj)
        write_evaluation(output, result, command, temperature, pages, seconds)
        release_folder(output)


if __name__ == "__main__":
    sys.exit(run(main))
