"""The recorded episodes on a busy machine: nothing that the load does may be blamed on the policy.

Each is played once as the machine is, then again and again beside processes that do nothing but use
the processor. What is counted: errors that stock did not report, observations that are another than
the first time (boxes, focus and ends included), and episodes that were lost to the infrastructure,
which is what a machine that is too slow may cost.

What stands behind ``--`` is run beside the same load instead: ``python -m benchmarks.busy --
make test``.
"""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from benchmarks.comparison import Row, changed_fields, compare_all
from benchmarks.recorded_episodes import Recorded, read_golden
from benchmarks.recording import Record, record
from helpers.command_line import run
from helpers.output import Progress
from helpers.settings.errors import CourseError
from helpers.settings.machine import run_facts

Place = tuple[str, int, int]  # task, seed, step


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """So many processes that never rest.

    Each in a session of its own: Linux divides the processor among sessions first (autogroup, see
    sched(7)), so all of one session together would have no more of it than one Chromium."""
    never_rest = [sys.executable, "-c", "while True: pass"]
    loops = [subprocess.Popen(never_rest, start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def play_all(golden: Sequence[Recorded]) -> dict[Place, Row]:
    """All recorded episodes, as a policy that reads text sees them, on a new server."""
    results = compare_all(golden, before=0, timeout=120)
    return {
        (task, row.episode["seed"], row.step): row for task, rows in results.items() for row in rows
    }


def false_errors(rows: dict[Place, Row]) -> list[str]:
    """Errors that the policy was told of, and that stock did not report."""
    return [
        f"{place}: {row.fields['error']}"
        for place, row in rows.items()
        if "error" in row.fields and not row.seen.infrastructure_error
    ]


def changes(rows: dict[Place, Row], quiet: dict[Place, Row]) -> list[str]:
    """What is another than on the machine as it was."""
    found = []
    for place, row in rows.items():
        if row.seen.infrastructure_error or quiet[place].seen.infrastructure_error:
            continue
        found += [f"{place}: {name}" for name, _, _ in changed_fields(row.seen, quiet[place].seen)]
    return found


def run_beside(loops: int, command: Sequence[str]) -> int:
    """Run a command beside so many busy loops, and return its exit code.

    Raises `CourseError` where there is no such command."""
    with busy_loops(loops):
        try:
            return subprocess.call(command)
        except OSError as error:
            raise CourseError(
                f"Cannot run {command[0]} ({error.strerror}): is it spelled right?"
            ) from None


def main(
    loops: Annotated[int, typer.Option(help="processes beside it", min=0)] = 4,
    actions: Annotated[
        int | None, typer.Option(help="to play beside them, at least: 3,000 without this", min=1)
    ] = None,
    record_it: Record = False,
    command: Annotated[
        list[str] | None, typer.Argument(help="run this beside them instead, and end as it does")
    ] = None,
) -> int:
    """Play the recorded episodes on a busy machine, and say what the load did to them."""
    if command:
        if actions or record_it:
            raise CourseError(
                "--actions and --record are about the recorded episodes: leave them out where you "
                "name a command, or name none."
            )
        return run_beside(loops, command)
    actions = actions or 3_000
    golden = read_golden()
    quiet = play_all(golden)
    counts: dict[str, Any] = {"loops": loops, "actions": 0}
    wrong: dict[str, list[str]] = {"false_errors": [], "changes": [], "lost": []}
    with busy_loops(loops), Progress(actions, "actions") as progress:
        while counts["actions"] < actions:
            rows = play_all(golden)
            counts["actions"] += sum(step > 0 for _, _, step in rows)
            wrong["false_errors"] += false_errors(rows)
            wrong["changes"] += changes(rows, quiet)
            lost = [str(place) for place, row in rows.items() if row.seen.infrastructure_error]
            wrong["lost"] += lost
            told = ", ".join(f"{len(found)} {name}" for name, found in wrong.items())
            progress.reach(min(counts["actions"], actions), told)
    for name, found in wrong.items():
        counts[name] = len(found)
        for line in found:
            print(f"{name}: {line}")
    print(counts)
    if record_it:
        record("busy", counts | run_facts())
    return int(bool(wrong["false_errors"] or wrong["changes"]))


if __name__ == "__main__":
    sys.exit(run(main))
