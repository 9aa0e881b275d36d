"""What reinforcement learning adds to demonstrations, as one command. ``make arms`` calls it.

    python -m scripts.experiment --until tasks     the warm-up, and the tasks that it half solves
    python -m scripts.experiment --seed 0          all arms with one training seed
    python -m scripts.experiment --arm grpo        one of them, with all seeds
    python -m scripts.experiment                   all of it: several hours on 2 cores
    python -m scripts.experiment --until now       the table of what is done, and nothing more
    python -m scripts.experiment --record          and what was measured into recordings/arms/

Stop it when you like: called again with the same options it goes on, and in a folder that is empty
with what is recorded (``--from-recording``). `helpers.learning.arms.plan` says what is compared,
and every number of it, which ``--change`` changes.
"""

import shlex
import shutil
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Literal

import typer

from helpers.command_line import run
from helpers.episodes.how_played import HOW
from helpers.episodes.tasks import read_tasks
from helpers.evaluation.scripted import SCRIPTS
from helpers.learning.arms.groups import GROUPS, write_groups
from helpers.learning.arms.plan import ARMS, Plan, hold_to_plan, planned, run_folder
from helpers.policy.at_hand import with_policy_at_hand
from helpers.settings.errors import ProfileError
from helpers.settings.files import copy_file, read_object, write_json
from helpers.settings.machine import run_facts
from helpers.settings.paths import RECORDINGS
from helpers.settings.profiles import get_profile
from helpers.settings.run_folder import hold_folder, release_folder
from scripts.options import PolicyOption

ARMS_RECORDED = RECORDINGS / "arms"
KEPT = ("plan.json", "needs.json", "choice.json", "result.json")
# An adapter alone: its tokenizer is that of the policy below it.
ADAPTED = ("adapter_config.json", "adapter_model.safetensors", HOW)
RECORDED = (
    "warm-*/*.json",
    *(f"warm-*/policy/{name}" for name in ADAPTED),
    "runs/*/outcomes.json",
    "runs/*/metrics.csv",
    f"runs/*/{GROUPS}",
)


def main(
    context: typer.Context,
    folder: Annotated[Path, typer.Option(help="where everything is kept")] = Path("runs/arms"),
    until: Annotated[
        Literal["tasks", "now", "table"],
        typer.Option(help="tasks: only choose them; now: run nothing more; table: all of it"),
    ] = "table",
    policy: PolicyOption = None,
    task: Annotated[
        str,
        typer.Option(
            help="candidates, with commas; default: those of the experiment that it goes on with, "
            "or every task with a script"
        ),
    ] = "",
    change: Annotated[
        list[str] | None,
        typer.Option(help="a number of the plan, such as updates=10 or seeds=0,1; repeatable"),
    ] = None,
    seed: Annotated[
        list[int] | None,
        typer.Option(help="run only these training seeds of the plan; repeatable", min=0),
    ] = None,
    arm: Annotated[
        list[str] | None, typer.Option(help="run only these arms, such as grpo; repeatable")
    ] = None,
    from_recording: Annotated[
        bool, typer.Option("--from-recording", help="begin with what recordings/arms/ has")
    ] = False,
    record: Annotated[
        bool, typer.Option("--record", help="write the result into recordings/arms/ too")
    ] = False,
) -> None:
    """Compare what a policy learns beyond its demonstrations, arm by arm."""
    profile = get_profile()
    if policy is None:
        profile = with_policy_at_hand(profile)
    candidates = candidates_of(task, folder, from_recording)
    plan = planned(policy or profile.policy, candidates, change or [])
    seeds = chosen_seeds(plan, seed)
    arms = chosen_arms(arm)
    hold_folder(folder)
    if from_recording and not (folder / "plan.json").exists():
        shutil.copytree(ARMS_RECORDED, folder, dirs_exist_ok=True)
    hold_to_plan(folder, plan)
    # Takes ten seconds; an option that is misspelt is refused before.
    from helpers.learning.arms.experiment import Experiment
    from helpers.learning.arms.table import report, results, run_all
    from helpers.learning.run import open_browsers

    if until == "now" and not (folder / "choice.json").exists():
        raise ProfileError(f"{folder} has no tasks yet: run make arms UNTIL=tasks first.")
    # What is done is read from files alone.
    with nullcontext([]) if until == "now" else open_browsers(profile) as clients:
        experiment = Experiment(plan, profile, clients, folder)
        tasks = experiment.tasks()
        if until == "tasks":
            print(f"{len(tasks)} tasks: {', '.join(tasks)}")
            return
        if until == "table":
            run_all(experiment, seeds, arms)
        result = results(experiment)
    command = shlex.join(["python", "-m", "scripts.experiment", *context.obj])
    content = {"command": command, **result, **run_facts()}
    write_json(folder / "result.json", content)
    print(report(result))
    if record:
        keep_recording(folder, ARMS_RECORDED)
    release_folder(folder)


def candidates_of(task: str, folder: Path, from_recording: bool) -> tuple[str, ...]:
    """The tasks to choose among: those of ``task``, else those of the experiment to go on with,
    which may be older than the newest script, else every task with a script."""
    if task:
        return read_tasks(task)
    kept = read_object(folder / "plan.json")
    if kept is None and from_recording:
        kept = read_object(ARMS_RECORDED / "plan.json")
    return tuple((kept or {}).get("candidates", SCRIPTS))


def chosen_seeds(plan: Plan, wanted: list[int] | None) -> tuple[int, ...]:
    """The training seeds to run; raises `ProfileError` for one that the plan has not."""
    unknown = [seed for seed in wanted or [] if seed not in plan.seeds]
    if unknown:
        raise ProfileError(
            f"The plan has no training seed {unknown[0]}: choose among "
            f"{', '.join(map(str, plan.seeds))}, or change its seeds."
        )
    return tuple(wanted or plan.seeds)


def chosen_arms(wanted: list[str] | None) -> tuple[str, ...]:
    """The arms to run; raises `ProfileError` for one that there is not."""
    unknown = [arm for arm in wanted or [] if arm not in ARMS]
    if unknown:
        raise ProfileError(f"There is no arm {unknown[0]!r}: choose among {', '.join(ARMS)}.")
    return tuple(wanted or ARMS)


def keep_recording(folder: Path, recording: Path) -> None:
    """Copy the table, the choice, the outcomes of runs, and the adapters of warm-up and best arm.

    The other runs' adapters stay where they are, and the demonstrations, which scripts play again.
    Of the episodes that a run was trained on it keeps how many of each group were solved.
    """
    for played in sorted(folder.glob("runs/*/episodes.jsonl")):
        write_groups(played)
    best = best_policy(folder)
    if best is not None:
        for name in ADAPTED:
            copy_file(best / name, recording / "best" / name)
    found = [folder / name for name in KEPT]
    for pattern in RECORDED:
        found += sorted(folder.glob(pattern))
    for path in found:
        copy_file(path, recording / path.relative_to(folder))


def best_policy(folder: Path) -> Path | None:
    """The policy of the best arm's first training seed.

    None where no arm is done, or that policy is on the machine that recorded it: then it is in the
    recording.
    """
    result = read_object(folder / "result.json") or {}
    rows = [row for row in result.get("rows", []) if row["arm"] == result["best"]]
    if not rows:
        return None
    # The first row has the plan's demonstrations.
    first = run_folder(folder, result["best"], rows[0]["demos"], min(rows[0]["seeds"]))
    return first / "policy" if (first / "policy").exists() else None


if __name__ == "__main__":
    sys.exit(run(main))
