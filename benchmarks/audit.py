"""What the tasks pay, and to whom: scripted solutions and agents that read no goal, on every task.

An episode is *paid* where its strict reward is 1 and *tipped* where the raw reward is above 0 but
not 1: success as BrowserGym counts it, a wrong answer as the strict reward does. Agents without a
goal can be paid too, by luck or because nothing was to be done; a task on which one of them is
always paid measures nothing.
"""

import random
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from benchmarks.recording import Record, record
from helpers.browser import list_tasks, start_browser_server
from helpers.browser.actions import format_action
from helpers.browser.models import BrowserObservation
from helpers.command_line import run
from helpers.episodes.episode import Episode
from helpers.episodes.play import Agent, play_agent
from helpers.episodes.tasks import VALIDATION_SEEDS, read_tasks, specs
from helpers.evaluation.agents import WAIT, noop_on_error, random_agent
from helpers.evaluation.scripted import SCRIPTS
from helpers.output import Progress, table
from helpers.settings.files import read_object
from helpers.settings.paths import RECORDINGS

TURNS = 5  # of an agent that reads no goal
SCRIPT_TURNS = 24  # of a scripted solution
WORKERS, SESSIONS = 6, 12  # most of the time goes into waiting for clicks that the page refuses

Counts = dict[str, int]  # {"n", "paid", "tipped"}
Results = dict[str, dict[str, Counts]]  # {task: {agent: counts}}


def submit_at_once(seen: BrowserObservation, turn: int) -> str:
    """The last button, without having done anything."""
    buttons = [e for e in seen.elements if e.role == "button"]
    return format_action("click", buttons[-1].bid) if buttons else WAIT


def click_everything(seen: BrowserObservation, turn: int) -> str:
    """One element after the other, from the top; buttons come last, as most of them end the
    episode."""
    buttons_last = sorted(seen.elements, key=lambda e: e.role == "button")
    bids = [e.bid for e in buttons_last if e.clickable]
    return format_action("click", bids[turn % len(bids)]) if bids else WAIT


def wrong_answer(seen: BrowserObservation, turn: int) -> str:
    """Fills every field with a word that no goal asks for, and hands in."""
    fields = [e for e in seen.elements if e.role in ("textbox", "spinbutton", "searchbox")]
    if turn < len(fields):
        return format_action("fill", fields[turn].bid, "zzz")
    return submit_at_once(seen, turn)


BLIND: dict[str, Agent] = {
    "random": random_agent(0),
    "submit at once": submit_at_once,
    "click everything": click_everything,
    "wrong answer": wrong_answer,
}


def count(episodes: Sequence[Episode]) -> Counts:
    """How many episodes were scored, paid and tipped."""
    scored = [e for e in episodes if e.reward is not None]
    return {
        "n": len(scored),
        "paid": sum(e.reward == 1 for e in scored),
        "tipped": sum(0 < (e.raw_reward or 0) < 1 for e in scored),
    }


def audit(n: int, solutions: int, tasks: Sequence[str]) -> Results:
    """{task: {agent: counts}} over ``n`` validation seeds, or ``solutions`` for the scripted
    solution; 0 leaves out."""
    results: Results = {}
    with (
        start_browser_server(workers=WORKERS) as server,
        Progress(len(tasks), "tasks") as progress,
    ):
        clients = server.clients(SESSIONS)
        for task in tasks:
            agents = dict(BLIND) if n else {}
            if task in SCRIPTS and solutions:
                agents = {"oracle": SCRIPTS[task], **agents}
            results[task] = {}
            for name, agent in agents.items():
                pages = specs(task, VALIDATION_SEEDS, solutions if name == "oracle" else n)
                random.Random(0).shuffle(pages)
                turns = SCRIPT_TURNS if name == "oracle" else TURNS
                episodes = play_agent(noop_on_error(agent), pages, clients, turns)
                results[task][name] = count(episodes)
            progress.reach(len(results))
    return results


def with_recorded(results: Results) -> dict[str, Any]:
    """What to record: the recorded results with those that were measured anew in their place, and
    the commands of the others."""
    old = read_object(RECORDINGS / "audit" / "result.json") or {}
    recorded = old.get("tasks", {})
    tasks = sorted({*recorded, *results})
    merged = {task: recorded.get(task, {}) | results.get(task, {}) for task in tasks}
    return {"before": [*old.get("before", []), old.get("command", "")], "tasks": merged}


def show(results: Results) -> None:
    """Print the table, and what it says about rewards and scripts."""
    names = ["oracle", *BLIND]
    rows = []
    for task, row in results.items():
        cells = []
        for name in names:
            counts = row.get(name)
            cells.append(
                f"{counts['paid']} / {counts['tipped']} of {counts['n']}" if counts else "-"
            )
        rows.append([task, *cells])
    print(table(["paid / tipped of n", *names], rows))
    tipped = [
        task for task, row in results.items() if any(counts["tipped"] for counts in row.values())
    ]
    print(f"\nraw > 0 is not success on {len(tipped)} of {len(results)} tasks: {', '.join(tipped)}")
    scripted = [row["oracle"] for row in results.values() if "oracle" in row]
    perfect = [counts for counts in scripted if counts["paid"] == counts["n"] > 0]
    print(f"scripted solutions: {len(scripted)} tasks, always paid on {len(perfect)}")


def main(
    record_it: Record = False,
    n: Annotated[int, typer.Option(min=0, help="seeds per task and agent without a goal")] = 6,
    solutions: Annotated[int, typer.Option(min=0, help="seeds per scripted solution")] = 100,
    tasks: Annotated[str, typer.Option(help="only these, separated by commas")] = "",
) -> None:
    """What the tasks pay, and to whom: scripted solutions and agents that read no goal.

    \b
    python -m benchmarks.audit             a table of all tasks (30 min on 2 cores)
    python -m benchmarks.audit --record    the same, written to recordings/audit/result.json;
                                           what was not measured stays there as it was
    """
    results = audit(n, solutions, read_tasks(tasks) if tasks else list_tasks())
    if record_it:
        options = f"--n {n} --solutions {solutions}" + (f" --tasks {tasks}" if tasks else "")
        record("audit", with_recorded(results), options=options)
    show(results)


if __name__ == "__main__":
    sys.exit(run(main))
