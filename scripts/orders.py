"""What policies do on pages that give them orders, as one command. ``make orders`` calls it.

    python -m scripts.orders                      every policy and defence: half an hour on 2 cores
    python -m scripts.orders --until now          the table of what is done, and nothing more
    python -m scripts.orders --record             and what was measured into recordings/orders/

Stop it when you like: called again it goes on. `helpers.learning.orders.plan` has the attacks, and
which of them the defences may have seen.
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

SHARES = ("obeyed", "solved", "both", "benign")


def main(
    context: typer.Context,
    folder: Annotated[Path, typer.Option(help="where everything is kept")] = Path("runs/orders"),
    until: Annotated[
        Literal["now", "table"], typer.Option(help="now: run nothing more; table: all of it")
    ] = "table",
    only: Annotated[
        list[str] | None, typer.Option(help="only these rows of the table; repeatable")
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="write the result into recordings/orders/ too")
    ] = False,
) -> None:
    """Measure who obeys the orders of a page, and what helps against it."""
    profile = get_profile()
    hold_folder(folder)
    # Takes ten seconds; an option that is misspelt is refused before.
    from helpers.learning.orders.experiment import CONDITIONS, Experiment, results, run_all
    from helpers.learning.orders.plan import Plan
    from helpers.learning.run import open_browsers

    plan = Plan()
    names = [condition.name for condition in CONDITIONS]
    unknown = [name for name in only or [] if name not in names]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {'; '.join(names)}")
    with open_browsers(replace(profile, clients=plan.groups * plan.group_size)) as clients:
        experiment = Experiment(plan, profile, clients, folder)
        if until == "table":
            run_all(experiment, only or ())
        result = results(experiment)
    command = shlex.join(["python", "-m", "scripts.orders", *context.obj])
    content = {"command": command, **result, **run_facts()}
    write_json(folder / "result.json", content)
    print(report(result))
    if record:
        keep_recording(folder, RECORDINGS / "orders")
    release_folder(folder)


def report(result: dict) -> str:
    """The table as plain text."""
    rows = []
    for row in result["rows"]:
        shares = [percent_of(row[name]) for name in SHARES]
        rows.append((row["name"], row["obeyed"]["n"], *shares, row["benign"]["n"]))
    return table(("policy", "pages", "obeyed", "solved", "both", "without orders", "pages"), rows)


def keep_recording(folder: Path, recording: Path) -> None:
    """Copy the table, each row's outcomes, and the metrics of the training run."""
    for path in sorted(folder.glob("*.json")):
        copy_file(path, recording / path.name)
    metrics = folder / "trained" / "metrics.csv"
    if metrics.exists():
        copy_file(metrics, recording / "metrics.csv")


if __name__ == "__main__":
    sys.exit(run(main))
