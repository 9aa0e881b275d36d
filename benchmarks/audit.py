"""What the tasks pay, and to whom: scripted solutions and agents that read no goal, on every task.

    python -m benchmarks.audit                   a table of the tasks on which the raw reward pays for less than the task
    python -m benchmarks.audit --record          the same, written to recordings/audit/result.json (10 min on 2 cores)

An episode is *paid* where its strict reward is 1 and *tipped* where the raw reward is above 0 but not 1: success as BrowserGym
counts it, a wrong answer as the strict reward does. Agents without a goal can be paid too, by luck or because nothing was to be
done; a task on which one of them is always paid measures nothing.
"""

import argparse
import random
import sys
from collections.abc import Callable

from benchmarks.recording import record
from helpers.browser import list_tasks, start_browser_server
from helpers.browser.actions import format_action
from helpers.episodes.play import play_agent
from helpers.episodes.tasks import VALIDATION_SEEDS, specs
from helpers.evaluation.agents import careful, random_agent
from helpers.evaluation.scripted import SCRIPTS

TURNS, ORACLE_TURNS = 5, 24


def submit_at_once(seen, turn: int) -> str:
    """The last button, without having done anything."""
    buttons = [e for e in seen.elements if e.role == "button"]
    return format_action("click", buttons[-1].bid) if buttons else "noop(500)"


def click_everything(seen, turn: int) -> str:
    """One element after the other, from the top; buttons come last, as most of them end the episode."""
    bids = [e.bid for e in sorted(seen.elements, key=lambda e: e.role == "button") if e.clickable]
    return format_action("click", bids[turn % len(bids)]) if bids else "noop(500)"


def wrong_answer(seen, turn: int) -> str:
    """Fills every field with a word that no goal asks for, and hands in."""
    fields = [e for e in seen.elements if e.role in ("textbox", "spinbutton", "searchbox")]
    return (
        format_action("fill", fields[turn].bid, "zzz")
        if turn < len(fields)
        else submit_at_once(seen, turn)
    )


BLIND: dict[str, Callable] = {
    "random": random_agent(0),
    "submit at once": submit_at_once,
    "click everything": click_everything,
    "wrong answer": wrong_answer,
}


def audit(n: int, tasks: list[str]) -> dict[str, dict[str, dict]]:
    """{task: {agent: {"n", "paid", "tipped"}}} over ``n`` validation seeds."""
    results: dict[str, dict[str, dict]] = {task: {} for task in tasks}
    with start_browser_server(
        workers=6
    ) as server:  # most of the time goes into waiting for clicks that the page refuses
        clients = server.clients(12)
        for done, task in enumerate(tasks):
            print(f"\r{done} of {len(tasks)} tasks", end="", file=sys.stderr, flush=True)
            for name, agent in {
                **({"oracle": SCRIPTS[task]} if task in SCRIPTS else {}),
                **BLIND,
            }.items():
                pages = specs(task, VALIDATION_SEEDS, n)
                random.Random(0).shuffle(pages)
                turns = ORACLE_TURNS if name == "oracle" else TURNS
                episodes = [
                    e
                    for e in play_agent(careful(agent), pages, clients, turns)
                    if e.reward is not None
                ]
                results[task][name] = {
                    "n": len(episodes),
                    "paid": sum(e.reward == 1 for e in episodes),
                    "tipped": sum(0 < (e.raw_reward or 0) < 1 for e in episodes),
                }
    return results


def show(results: dict[str, dict[str, dict]]) -> None:
    names = ["oracle", *BLIND]
    print(f"{'paid / tipped of n':28}" + "".join(f"{name:>18}" for name in names))
    for task, row in results.items():
        cells = [
            f"{row[name]['paid']} / {row[name]['tipped']} of {row[name]['n']}"
            if name in row
            else "-"
            for name in names
        ]
        print(f"{task:28}" + "".join(f"{cell:>18}" for cell in cells))
    tipped = [task for task, row in results.items() if any(r["tipped"] for r in row.values())]
    print(f"\nraw > 0 is not success on {len(tipped)} of {len(results)} tasks: {', '.join(tipped)}")
    perfect = [
        task
        for task, row in results.items()
        if "oracle" in row and row["oracle"]["paid"] == row["oracle"]["n"] > 0
    ]
    print(
        f"scripted solutions: {sum('oracle' in row for row in results.values())} tasks, always paid on {len(perfect)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--n", type=int, default=6, help="seeds per task and agent")
    parser.add_argument("--tasks", help="only these, separated by commas")
    options = parser.parse_args()
    results = audit(options.n, options.tasks.split(",") if options.tasks else list(list_tasks()))
    if options.record:
        record("audit", {"n": options.n, "tasks": results})
    show(results)


if __name__ == "__main__":
    main()
