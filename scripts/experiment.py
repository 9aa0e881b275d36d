"""What reinforcement learning adds to demonstrations, as one command. ``make arms`` calls it.

    python -m scripts.experiment --until tasks     the warm-up, and the tasks that it half solves
    python -m scripts.experiment                   all of it: about a day on 2 cores
    python -m scripts.experiment --record          and the table into recordings/arms/

Stop it when you like: called again with the same options it goes on. `helpers.learning.arms.plan`
says what is compared, and every number of it, which ``--change`` changes.
"""

import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from helpers.command_line import run
from helpers.episodes.tasks import read_tasks
from helpers.evaluation.scripted import SCRIPTS
from helpers.learning.arms.plan import hold_to_plan, planned
from helpers.policy.at_hand import with_policy_at_hand
from helpers.settings.files import write_whole
from helpers.settings.machine import run_facts
from helpers.settings.paths import RECORDINGS
from helpers.settings.profiles import get_profile
from helpers.settings.run_folder import hold_folder, release_folder
from scripts.options import PolicyOption

KEPT = ("plan.json", "needs.json", "choice.json", "result.json")


def main(
    context: typer.Context,
    folder: Annotated[Path, typer.Option(help="where everything is kept")] = Path("runs/arms"),
    until: Annotated[
        Literal["tasks", "table"], typer.Option(help="tasks: only choose them; table: all of it")
    ] = "table",
    policy: PolicyOption = None,
    task: Annotated[
        str, typer.Option(help="candidates, with commas; default: every task with a script")
    ] = "",
    change: Annotated[
        list[str] | None,
        typer.Option(help="a number of the plan, such as updates=10 or seeds=0,1; repeatable"),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="keep the policy of every run, 0.5 GB each")
    ] = False,
    record: Annotated[
        bool, typer.Option("--record", help="write the result into recordings/arms/ too")
    ] = False,
) -> None:
    """Compare what a policy learns beyond its demonstrations, arm by arm."""
    profile = get_profile()
    if policy is None:
        profile = with_policy_at_hand(profile)
    candidates = read_tasks(task) if task else tuple(SCRIPTS)
    plan = planned(policy or profile.policy, candidates, change or [])
    hold_folder(folder)
    hold_to_plan(folder, plan)
    # Takes ten seconds; an option that is misspelt is refused before.
    from helpers.learning.arms.experiment import Experiment
    from helpers.learning.arms.table import report, results
    from helpers.learning.run import open_browsers

    with open_browsers(profile) as clients:
        experiment = Experiment(plan, profile, clients, folder, keep)
        tasks = experiment.tasks()
        if until == "tasks":
            print(f"{len(tasks)} tasks: {', '.join(tasks)}")
            return
        result = results(experiment)
    command = shlex.join(["python", "-m", "scripts.experiment", *context.obj])
    content = {"command": command, **result, **run_facts()}
    write_whole(folder / "result.json", json.dumps(content, indent=1) + "\n")
    print(report(result))
    if record:
        keep_recording(folder, RECORDINGS / "arms")
    release_folder(folder)


def keep_recording(folder: Path, recording: Path) -> None:
    """Copy what was measured, and no weights: the table, the choice, and the outcomes of runs."""
    found = [folder / name for name in KEPT]
    for pattern in ("warm-*/*.json", "runs/*/outcomes.json", "runs/*/metrics.csv"):
        found += sorted(folder.glob(pattern))
    for path in found:
        target = recording / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


if __name__ == "__main__":
    sys.exit(run(main))
