"""What a policy does that is paid for the wrong thing, as one command. ``make wrongpay`` calls it.

    python -m scripts.wrong_pay --seed 0          every reward with one training seed
    python -m scripts.wrong_pay                   all of it
    python -m scripts.wrong_pay --until now       the table of what is done, and nothing more
    python -m scripts.wrong_pay --record          and what was measured into recordings/wrong_pay/

Stop it when you like: called again it goes on. `helpers.learning.wrong_pay.plan` says what is
compared, and every number of it.
"""

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from helpers.command_line import run
from helpers.output import percent_of, table
from helpers.settings.files import copy_file, write_json
from helpers.settings.machine import run_facts
from helpers.settings.paths import RECORDINGS
from helpers.settings.profiles import get_profile
from helpers.settings.run_folder import hold_folder, release_folder

OF_A_RUN = ("outcomes.json", "metrics.csv", "tested.jsonl")
RECORDED = ("result.json", "pages.json", "before.json")


def main(
    context: typer.Context,
    folder: Annotated[Path, typer.Option(help="where everything is kept")] = Path("runs/wrong_pay"),
    until: Annotated[
        Literal["now", "table"], typer.Option(help="now: run nothing more; table: all of it")
    ] = "table",
    seed: Annotated[
        list[int] | None, typer.Option(help="run only these training seeds; repeatable", min=0)
    ] = None,
    reward: Annotated[
        list[str] | None, typer.Option(help="run only these rewards; repeatable")
    ] = None,
    updates: Annotated[int | None, typer.Option(help="of each run", min=1)] = None,
    record: Annotated[
        bool, typer.Option("--record", help="write the result into recordings/wrong_pay/ too")
    ] = False,
) -> None:
    """Train on strict success, on raw success and on format alone, and compare."""
    profile = get_profile()
    hold_folder(folder)
    # Takes ten seconds; an option that is misspelt is refused before.
    from helpers.learning.run import open_browsers
    from helpers.learning.wrong_pay.experiment import Experiment, results, run_all
    from helpers.learning.wrong_pay.plan import RUNS, Plan

    plan = Plan() if updates is None else replace(Plan(), updates=updates)
    unknown = [name for name in reward or [] if name not in RUNS]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(RUNS)}")
    sessions = plan.groups * plan.group_size
    with open_browsers(replace(profile, clients=sessions)) as clients:
        experiment = Experiment(plan, profile, clients, folder)
        if until == "table":
            run_all(experiment, seed or plan.seeds, reward or RUNS)
        result = results(experiment)
    command = shlex.join(["python", "-m", "scripts.wrong_pay", *context.obj])
    content = {"command": command, **result, **run_facts()}
    write_json(folder / "result.json", content)
    print(report(result))
    if record:
        keep_recording(folder, RECORDINGS / "wrong_pay")
    release_folder(folder)


def report(result: dict) -> str:
    """The table as plain text: the sampled episodes."""
    rows = []
    for row in result["rows"]:
        shares = [percent_of(row["sampled"][name]) for name in ("strict", "raw", "untouched")]
        rows.append((row["run"], len(row["seeds"]), row["sampled"]["strict"]["n"], *shares))
    return table(
        ("paid for", "runs", "episodes", "solved", "paid by page", "submitted as it was"), rows
    )


def keep_recording(folder: Path, recording: Path) -> None:
    """Copy the table, the pages, and of each run that is done its outcomes, metrics and episodes of
    the test."""
    paths = [folder / name for name in RECORDED]
    for done in sorted(folder.glob("runs/*/outcomes.json")):
        paths += [done.with_name(name) for name in OF_A_RUN]
    for path in paths:
        copy_file(path, recording / path.relative_to(folder))


if __name__ == "__main__":
    sys.exit(run(main))
