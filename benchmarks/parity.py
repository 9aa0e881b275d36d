"""Whether an episode here is an episode of stock BrowserGym: every task, three seeds, after the reset and after two actions.

    python -m benchmarks.parity              play the recorded episodes here, compare, print what differs (1 min on 2 cores)
    python -m benchmarks.parity --record     the same, with the counts written to recordings/parity/result.json
    python -m benchmarks.parity --stock      play them in stock first: recordings/parity/stock.jsonl.gz (25 min on 2 cores)
    python -m benchmarks.parity --control    without the settling rule: this must show differences
    python -m benchmarks.parity --choose     with every page used again: writes helpers/browser/in_place.json (5 min on 2 cores)

Compared are goal, accessibility tree, bids, clickable flags, focus, error text, reward, raw reward and done. Before each episode
another one of the same task is played in the same session, so that whatever it leaves behind would show.
"""

import argparse
import gzip
import json
import os
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from benchmarks.environment import in_stock
from benchmarks.recording import record
from helpers.browser import BrowserClient, BrowserObservation, list_tasks, start_browser_server
from helpers.settings.paths import ROOT

GOLDEN = ROOT / "recordings" / "parity" / "stock.jsonl.gz"
IN_PLACE = ROOT / "helpers" / "browser" / "in_place.json"
SEEDS = (1, 2, 3)
FIELDS = (
    "goal",
    "axtree_txt",
    "bids",
    "clickable",
    "focused_bid",
    "error",
    "reward",
    "raw_reward",
    "done",
)
# What cannot be equal, and why. Their own rule is determinism (tests/test_parity.py).
NOT_COVERED: dict[str, str] = {
    "social-media": "an icon changes its picture under the mouse: a click lands once that is loaded: here, not in stock",
    "login-user-popup": "a field is disabled by its own focus: whether the next key finds it there is a race, in stock too",
    "stock-market": "the price follows the wall clock; here the page's clock, which moves 600 ms per action",
    "terminal": "shows the date of today",
}


# A double click whose first half opens a mail: what its second half hits depends on whether the icons have loaded by then, in
# stock too, so they are not drawn. Other double clicks are.
RACES = ("email-inbox",)


def draw_action(seen: BrowserObservation, draw: random.Random) -> str:
    """An action that the page may answer: mostly clicks, now and then text, a key, a choice from a list."""
    fields = [e.bid for e in seen.elements if e.role in ("textbox", "searchbox", "spinbutton")]
    lists = [e.bid for e in seen.elements if e.role == "combobox"]
    options = [e.name for e in seen.elements if e.role == "option" and e.name and "'" not in e.name]
    bid = draw.choice([e.bid for e in seen.elements if e.clickable or e.role == "button"] or ["0"])
    if fields and draw.random() < 0.5:
        return f"fill('{draw.choice(fields)}', '{draw.choice(['ab', '12', '03/04/2017'])}')"
    if lists and options and draw.random() < 0.5:
        return f"select_option('{draw.choice(lists)}', '{draw.choice(options)}')"
    if seen.task == "login-user-popup":  # see NOT_COVERED
        return f"click('{bid}')"
    others = [
        f"press('{bid}', 'Tab')",
        f"hover('{bid}')",
        *([] if seen.task.startswith(RACES) else [f"dblclick('{bid}')"]),
    ]
    return draw.choice([f"click('{bid}')"] * 5 + others)


def play(
    env: BrowserClient, task: str, seed: int, actions: Sequence[str] | None = None, turns: int = 2
) -> tuple[list[BrowserObservation], list]:
    """One episode: what was seen, and the actions; where none are given, ``turns`` of them are drawn."""
    draw, seen, taken = random.Random(f"{task} {seed}"), [env.reset(task, seed)], []
    for i in range(turns if actions is None else len(actions)):
        if seen[-1].done:
            break
        taken.append(draw_action(seen[-1], draw) if actions is None else actions[i])
        seen.append(env.step(taken[-1]))
    return seen, taken


def comparable(seen: BrowserObservation, stock: dict) -> dict:
    """Our observation in the terms of the recorded one. Stock lists the bids of the whole document, we those that a policy may
    act on: they have to be among stock's, with the same flag."""
    own = {e.bid for e in seen.elements}
    clickable = {e.bid for e in seen.elements if e.clickable}
    return {
        "goal": seen.goal,
        "axtree_txt": without_port(seen.axtree_txt),
        "focused_bid": seen.focused_bid,
        "bids": stock["bids"] if own <= set(stock["bids"]) else sorted(own),
        "clickable": stock["clickable"]
        if clickable == own & set(stock["clickable"])
        else sorted(clickable),
        # We add the page's reason to the first line of Playwright's error, which is all that stock's record keeps.
        "error": stock["error"]
        if seen.error.startswith(stock["error"]) == bool(seen.error)
        else seen.error,
        "reward": float(seen.done and (seen.raw_reward or 0) > 0),
        "raw_reward": seen.raw_reward,
        "done": seen.done,
    }


def without_port(text: str) -> str:
    return re.sub(r"http://(127\.0\.0\.1:\d+|miniwob\.localhost)/", "http://host/", text)


def compare(seen: list[BrowserObservation], stock: list[dict]) -> list[list[str]]:
    """For each observation the fields that differ."""
    if len(seen) != len(stock):
        return [["number of observations"]] * max(len(seen), len(stock))
    pairs = [
        (comparable(mine, theirs), theirs)
        for mine, theirs in zip(seen, stock, strict=True)
        if not only_a_fragment(theirs)
    ]
    return [[name for name in FIELDS if mine[name] != theirs[name]] for mine, theirs in pairs]


def only_a_fragment(stock: dict) -> bool:
    """Whether stock ended the episode because a link to "#" was clicked; it pays nothing then, whatever the page says. We go by
    the page, so such an observation cannot be compared."""
    return (
        stock["left"].startswith("invalid url")
        and "#" in stock["url"]
        and "/miniwob/" in stock["url"]
    )


def read_golden() -> list[dict]:
    """The recorded episodes: {"task", "seed", "actions", "stock": [observation, ...]}."""
    with gzip.open(GOLDEN, "rt") as file:
        return [json.loads(line) for line in file]


def with_each(
    tasks: Iterable[str], work: Callable[[BrowserClient, str], list], sessions: int = 8, **server
) -> dict[str, list]:
    """What ``work(client, task)`` returns for each task, several at once on one server."""
    tasks = list(tasks)
    with start_browser_server(**server) as running, ThreadPoolExecutor(sessions) as threads:
        idle = running.clients(sessions)

        def one(task: str) -> list:
            env = idle.pop()
            try:
                return work(env, task)
            finally:
                idle.append(env)

        return dict(zip(tasks, threads.map(one, tasks), strict=True))


Row = tuple[
    dict, int, list[str], BrowserObservation
]  # episode, step, fields that differ from stock's, what is seen here


def compare_all(golden: list[dict], before: int = 1, **server) -> dict[str, list[Row]]:
    """Play every recorded episode here, each after ``before`` others of its task. Returns a `Row` for each observation."""
    by_task: dict[str, list[dict]] = {}
    for episode in golden:
        by_task.setdefault(episode["task"], []).append(episode)

    def again(env: BrowserClient, task: str) -> list:
        found = []
        for episode in by_task[task]:
            for other in range(before):  # something else first: nothing of it may be left
                play(env, task, episode["seed"] + 50 * (other + 1), turns=2 * before)
            seen, _ = play(env, task, episode["seed"], episode["actions"])
            found += [
                (episode, step, fields, seen[min(step, len(seen) - 1)])
                for step, fields in enumerate(compare(seen, episode["stock"]))
            ]
        return found

    return with_each(by_task, again, **server)


def record_stock(tasks: Sequence[str]) -> None:
    """Draw the actions here, play them in stock in as many processes as there are cores, keep what stock shows (and what the
    record has of other tasks)."""
    covered = [task for task in tasks if task not in NOT_COVERED]
    drawn = with_each(covered, lambda env, task: [play(env, task, seed)[1] for seed in SEEDS])
    plan = [
        [task, seed, actions]
        for task in covered
        for seed, actions in zip(SEEDS, drawn[task], strict=True)
    ]
    cores = os.cpu_count() or 1
    plans = [
        [episode for episode in plan if covered.index(episode[0]) % cores == i]
        for i in range(cores)
    ]
    GOLDEN.parent.mkdir(parents=True, exist_ok=True)
    episodes = [e for e in read_golden() if e["task"] not in tasks] if GOLDEN.exists() else []
    for part, answers in zip(plans, in_stock(plans)[0], strict=True):
        for (task, seed, actions), stock in zip(part, answers, strict=True):
            if not stock:
                print(f"stock BrowserGym cannot play {task}, seed {seed}: {actions}")
                continue
            stock = [
                {name: seen[name] for name in (*FIELDS, "url", "left")}
                | {"axtree_txt": without_port(seen["axtree_txt"])}
                for seen in stock
            ]
            episodes.append({"task": task, "seed": seed, "actions": actions, "stock": stock})
    with gzip.GzipFile(
        GOLDEN, "wb", mtime=0
    ) as file:  # no time in it: the same content is the same file
        file.writelines(
            json.dumps(e, ensure_ascii=False).encode() + b"\n"
            for e in sorted(episodes, key=lambda e: e["task"])
        )


def choose() -> int:
    """A task may use a page again where its episodes on a page that others have used (one short one, two, three long ones) are
    stock's, and are in everything that we show, boxes and values too, those on a page loaded anew. Tried with the page's elements
    kept, then, for the tasks that this is not true of, with copies of them."""
    golden, chosen = read_golden(), {}
    os.environ["PARITY_IN_PLACE"] = "no"
    fresh = compare_all(golden, before=0)
    for how in ("keep", "copy"):
        os.environ["PARITY_IN_PLACE"] = how
        why: dict[str, set[str]] = {task: set() for task in fresh.keys() - chosen.keys()}
        for before in (1, 2, 3):
            for task, rows in compare_all(
                [e for e in golden if e["task"] in why], before=before
            ).items():
                pairs = list(zip(rows, fresh[task], strict=False))
                why[task] |= {name for row in rows for name in row[2]}
                why[task] |= (
                    {"a box or a value"}
                    if any(mine != own for (*_, mine), (*_, own) in pairs)
                    else set()
                )
                why[task] |= {"length"} if len(rows) != len(fresh[task]) else set()
        chosen |= {task: how for task, found in why.items() if not found}
        for task in sorted(why.keys() - chosen.keys()):
            print(f"{task}: with {how} {', '.join(sorted(why[task]))} would differ")
    IN_PLACE.write_text(json.dumps(chosen, indent=0, sort_keys=True) + "\n")
    print(f"{len(chosen)} of {len(fresh)} tasks may use a page again: {IN_PLACE.relative_to(ROOT)}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("record", "stock", "control", "choose"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--tasks", help="with --stock: only these, separated by commas")
    options = parser.parse_args()
    if options.stock:
        record_stock(options.tasks.split(",") if options.tasks else list_tasks())
    if options.control:
        os.environ["PARITY_SETTLE_MS"] = "0"
    if options.choose:
        return choose()
    results = compare_all(read_golden())
    unequal = {task: [r for r in rows if r[2]] for task, rows in results.items()}
    observations = sum(map(len, results.values()))
    for task, rows in unequal.items():
        for episode, step, fields, _ in rows:
            print(
                f"{task}, seed {episode['seed']}, after {['the reset', *episode['actions']][step]}: {', '.join(fields)}"
            )
    print(
        "differing fields:",
        dict(Counter(f for rows in unequal.values() for r in rows for f in r[2])) or "none",
    )
    equal = observations - sum(map(len, unequal.values()))
    print(f"{len(results)} tasks, {len(SEEDS)} seeds, {observations} observations, {equal} equal")
    if options.record:
        record(
            "parity",
            {
                "tasks": len(results),
                "seeds": len(SEEDS),
                "observations": observations,
                "equal": equal,
                "not_covered": NOT_COVERED,
            },
        )
    return int(any(unequal.values()))


if __name__ == "__main__":
    sys.exit(main())
