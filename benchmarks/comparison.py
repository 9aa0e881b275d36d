"""Plays recorded episodes of stock BrowserGym here, and says in which fields they differ.

`benchmarks.fields` compares two observations.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from benchmarks.fields import Differences, differences_of, only_a_fragment
from benchmarks.recorded_episodes import Recorded, by_task, with_pictures
from helpers.browser import BrowserClient, BrowserObservation, start_browser_server

SESSIONS = 8
EXTRAS = {"screenshot", "details", "pruned_html"}  # are only sent where they are asked for

# A double click whose first half opens a mail: what its second half hits depends on whether the
# icons have loaded by then, in stock too, so they are not drawn. Other double clicks are.
RACES = ("email-inbox",)


class Row(NamedTuple):
    """One observation of a recorded episode, played here."""

    episode: Recorded
    step: int  # 0: after the reset
    fields: Differences  # those that differ from stock's, and how
    seen: BrowserObservation  # what is seen here
    noise: Differences = {}  # those that differ where stock does not agree with itself either


# ---- playing ----


def draw_action(seen: BrowserObservation, draw: random.Random) -> str:
    """An action that the page may answer: mostly clicks, now and then text, a key, a choice from a
    list."""
    fields = [e.bid for e in seen.elements if e.role in ("textbox", "searchbox", "spinbutton")]
    lists = [e.bid for e in seen.elements if e.role == "combobox"]
    options = [e.name for e in seen.elements if e.role == "option" and e.name and "'" not in e.name]
    to_click = [e.bid for e in seen.elements if e.clickable or e.role == "button"]
    bid = draw.choice(to_click or ["0"])
    if fields and draw.random() < 0.5:
        return f"fill('{draw.choice(fields)}', '{draw.choice(['ab', '12', '03/04/2017'])}')"
    if lists and options and draw.random() < 0.5:
        return f"select_option('{draw.choice(lists)}', '{draw.choice(options)}')"
    others = [f"press('{bid}', 'Tab')", f"hover('{bid}')"]
    if not seen.task.startswith(RACES):
        others.append(f"dblclick('{bid}')")
    return draw.choice([f"click('{bid}')"] * 5 + others)


def play(
    env: BrowserClient,
    task: str,
    seed: int,
    actions: Sequence[str] | None = None,
    turns: int = 2,
    everything: bool = False,
) -> tuple[list[BrowserObservation], list[str]]:
    """One episode: what was seen, and the actions; where none are given, ``turns`` of them are
    drawn. ``everything``: pictures and details, too."""
    draw = random.Random(f"{task} {seed}")
    wanted: dict[str, Any] = {"screenshot": everything, "details": everything}
    seen = [env.reset(task, seed, **wanted)]
    taken: list[str] = []
    for i in range(turns if actions is None else len(actions)):
        if seen[-1].done:
            break
        taken.append(draw_action(seen[-1], draw) if actions is None else actions[i])
        seen.append(env.step(taken[-1], **wanted))
    return seen, taken


def with_each(
    tasks: Iterable[str],
    work: Callable[[BrowserClient, str], list],
    sessions: int = SESSIONS,
    **server: Any,
) -> dict[str, list]:
    """What ``work(client, task)`` returns for each task, several at once on one server.

    ``server``: arguments of `start_browser_server`.
    """
    tasks = list(tasks)
    with start_browser_server(**server) as running, ThreadPoolExecutor(sessions) as threads:
        idle = running.clients(sessions)

        def work_on(task: str) -> list:
            env = idle.pop()
            try:
                return work(env, task)
            finally:
                idle.append(env)

        return dict(zip(tasks, threads.map(work_on, tasks), strict=True))


# ---- comparing ----


def compare(
    seen: Sequence[BrowserObservation], stock: Sequence[dict[str, Any]]
) -> list[tuple[Differences, Differences]]:
    """For each observation the fields that differ, and those of them that are stock's own: in which
    it is another the second time (what it showed then is its "again"), now or since an earlier
    action. One row for each of stock's observations.

    An episode that stock ends because a link to "#" was clicked is compared up to there."""
    rows: list[tuple[Differences, Differences]] = []
    astray = False  # whether stock has gone two ways before
    for mine, theirs in zip(seen, stock):  # noqa: B905 (one of them may end earlier)
        found = differences_of(mine, theirs)
        again = theirs.get("again", {})
        own = {name: how for name, how in found.items() if astray or name in again}
        rows.append(({name: found[name] for name in found if name not in own}, own))
        astray = astray or bool(again.keys() - {"screenshot"})
    if len(seen) != len(stock) and not (astray or only_a_fragment(stock[-1])):
        rows[-1][0]["length"] = f"{len(seen)} observations, stock's {len(stock)}"
    rows += [({}, {})] * (len(stock) - len(rows))
    return rows


def changed_fields(
    now: BrowserObservation, before: BrowserObservation
) -> list[tuple[str, Any, Any]]:
    """(name, then, now) of each field that a policy that reads text is sent, and that is another
    than it was; boxes, focus and ends included."""
    fields = now.model_dump(exclude=EXTRAS)
    then = before.model_dump(exclude=EXTRAS)
    return [(name, then[name], fields[name]) for name in then if fields[name] != then[name]]


def compare_all(
    golden: Sequence[Recorded], before: int = 1, everything: bool = False, **server: Any
) -> dict[str, list[Row]]:
    """Play every recorded episode here, each after ``before`` others of its task.

    Returns a `Row` for each observation, by task. ``everything``: with pictures, boxes of all
    elements and the like; else what a policy that reads text is sent. ``server``: arguments of
    `start_browser_server`.
    """
    episodes_of = by_task(golden)

    def play_again(env: BrowserClient, task: str) -> list[Row]:
        rows = []
        for episode in episodes_of[task]:
            for other in range(before):  # something else first: nothing of it may be left
                play(env, task, episode["seed"] + 50 * (other + 1), turns=2 * before)
            actions = episode["actions"]
            seen, _ = play(env, task, episode["seed"], actions, everything=everything)
            stock = with_pictures(episode) if everything else episode["stock"]
            for step, (fields, noise) in enumerate(compare(seen, stock)):
                rows.append(Row(episode, step, fields, seen[min(step, len(seen) - 1)], noise))
        return rows

    return with_each(episodes_of, play_again, **server)
