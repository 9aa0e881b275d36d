"""Whether an episode here is an episode of stock BrowserGym: every task, three seeds, after the
reset and after two actions.

Compared are goal, accessibility tree, bids, clickable flags, focus, error text, reward, raw reward
and done. Before each episode another one of the same task is played in the same session, so that
whatever it leaves behind would show.
"""

import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from benchmarks.comparison import FIELDS, Row, compare_all, play, with_each, without_port
from benchmarks.recorded_episodes import (
    GOLDEN,
    SEEDS,
    Recorded,
    read_golden,
    write_golden,
)
from benchmarks.recording import Record, record
from benchmarks.reuse import audit
from benchmarks.stock_processes import Plan, play_in_stock
from helpers.browser import list_tasks
from helpers.browser.options import IN_PLACE, PageRules
from helpers.command_line import run
from helpers.episodes.tasks import read_tasks
from helpers.settings.paths import ROOT

# What cannot be equal, and why. Their own rule is determinism (tests/browser/test_parity.py).
NOT_COVERED: dict[str, str] = {
    "social-media": "an icon changes its picture under the mouse: a click lands once that is "
    "loaded: here, not in stock",
    "login-user-popup": "a field is disabled by its own focus: whether the next key finds it there "
    "is a race, in stock too",
    "stock-market": "the price follows the wall clock; here the page's clock, which moves 600 ms "
    "per action",
    "terminal": "shows the date of today",
}


LEAK_ROUNDS = (0, 1, 2)  # of hostile episodes, when tasks are chosen


# ---- the record ----


def record_stock(tasks: Sequence[str]) -> None:
    """Draw the actions here, play them in stock in as many processes as there are cores, and write
    what stock shows; what the record has of other tasks stays."""
    covered = [task for task in tasks if task not in NOT_COVERED]
    drawn = with_each(covered, lambda env, task: [play(env, task, seed)[1] for seed in SEEDS])
    cores = os.cpu_count() or 1
    plans: list[Plan] = [[] for _ in range(cores)]
    for i, task in enumerate(covered):
        for seed, actions in zip(SEEDS, drawn[task], strict=True):
            plans[i % cores].append([task, seed, actions])
    episodes: list[Recorded] = []
    if GOLDEN.exists():
        episodes = [e for e in read_golden() if e["task"] not in tasks]
    played, _ = play_in_stock(plans)
    for plan, answers in zip(plans, played, strict=True):
        for (task, seed, actions), stock in zip(plan, answers, strict=True):
            if stock:
                shown = [kept_of(seen) for seen in stock]
                episodes.append({"task": task, "seed": seed, "actions": actions, "stock": shown})
            else:
                print(f"stock BrowserGym cannot play {task}, seed {seed}: {actions}")
    write_golden(episodes)


def kept_of(seen: dict[str, Any]) -> dict[str, Any]:
    """What the record keeps of one observation."""
    kept = {name: seen[name] for name in (*FIELDS, "url", "left")}
    kept["axtree_txt"] = without_port(seen["axtree_txt"])
    return kept


# ---- which tasks may use a page again ----


def choose() -> None:
    """Find the tasks that may use a page again, and write them to helpers/browser/in_place.json.

    A task may where its episodes on a page that others have used (one short one, two, three long
    ones) are stock's, and are in everything that we show, boxes and values too, those on a page
    loaded anew; and where nothing of a hostile episode shows in the next one (`benchmarks.reuse`).
    Tried with the page's elements kept, then, for the tasks that this is not true of, with copies
    of them.
    """
    golden = read_golden()
    anew = compare_all(golden, before=0, rules=PageRules(in_place={}))
    chosen: dict[str, str] = {}
    for how in ("keep", "copy"):
        left = [episode for episode in golden if episode["task"] not in chosen]
        reasons = reasons_against(how, left, anew)
        equal = [task for task, found in reasons.items() if not found]
        rules = PageRules(in_place=dict.fromkeys(equal, how))
        for leak in audit(equal, LEAK_ROUNDS, rules, show=True, timeout=120):
            reasons[leak.task].add(f"{leak.probe} after {leak.hostile}")
        for task, found in sorted(reasons.items()):
            if found:
                print(f"{task}: with {how} {', '.join(sorted(found))} would differ")
            else:
                chosen[task] = how
    IN_PLACE.write_text(json.dumps(chosen, indent=0, sort_keys=True) + "\n")
    print(f"{len(chosen)} of {len(anew)} tasks may use a page again: {IN_PLACE.relative_to(ROOT)}")


def reasons_against(
    how: str, golden: Sequence[Recorded], anew: dict[str, list[Row]]
) -> dict[str, set[str]]:
    """For each task what would differ if all tasks used their pages again this way.

    ``anew``: what each task shows on pages that are loaded for every episode.
    """
    rules = PageRules(in_place=dict.fromkeys(list_tasks(), how))
    reasons: dict[str, set[str]] = {episode["task"]: set() for episode in golden}
    for before in (1, 2, 3):
        for task, rows in compare_all(golden, before=before, rules=rules).items():
            for row in rows:
                reasons[task].update(row.fields)
            if any(row.seen != loaded.seen for row, loaded in zip(rows, anew[task], strict=False)):
                reasons[task].add("a box or a value")
            if len(rows) != len(anew[task]):
                reasons[task].add("length")
    return reasons


# ---- the comparison ----


def show(results: dict[str, list[Row]]) -> int:
    """Print what differs, then the counts; returns how many observations are equal."""
    rows = [(task, row) for task, found in results.items() for row in found]
    unequal = [(task, row) for task, row in rows if row.fields]
    for task, row in unequal:
        after = ["the reset", *row.episode["actions"]][row.step]
        print(f"{task}, seed {row.episode['seed']}, after {after}: {', '.join(row.fields)}")
    fields = Counter(name for _, row in unequal for name in row.fields)
    print("differing fields:", dict(fields) or "none")
    equal = len(rows) - len(unequal)
    print(f"{len(results)} tasks, {len(SEEDS)} seeds, {len(rows)} observations, {equal} equal")
    return equal


def main(
    record_it: Record = False,
    stock: Annotated[
        bool, typer.Option("--stock", help="play the episodes in stock first (25 min on 2 cores)")
    ] = False,
    control: Annotated[
        bool, typer.Option("--control", help="without the settling rule: there must be differences")
    ] = False,
    choose_tasks: Annotated[
        bool, typer.Option("--choose", help="with every page used again (5 min on 2 cores)")
    ] = False,
    tasks: Annotated[str, typer.Option(help="with --stock: only these, separated by commas")] = "",
) -> int:
    """Whether an episode here is an episode of stock BrowserGym.

    \b
    python -m benchmarks.parity              play the recorded episodes here, print what differs
                                             (1 min on 2 cores)
    python -m benchmarks.parity --record     the counts are written to recordings/parity/ too
    python -m benchmarks.parity --stock      make recordings/parity/stock.jsonl.gz first
    python -m benchmarks.parity --choose     write helpers/browser/in_place.json
    """
    if stock:
        record_stock(read_tasks(tasks) if tasks else list_tasks())
    if choose_tasks:
        choose()
        return 0
    rules = PageRules(settle_ms=0) if control else PageRules()
    results = compare_all(read_golden(), rules=rules)
    observations = sum(len(rows) for rows in results.values())
    equal = show(results)
    if record_it:
        counts = {
            "tasks": len(results),
            "seeds": len(SEEDS),
            "observations": observations,
            "equal": equal,
            "not_covered": NOT_COVERED,
        }
        record("parity", counts)
    return int(equal < observations)


if __name__ == "__main__":
    sys.exit(run(main))
