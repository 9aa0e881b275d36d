"""Plays recorded episodes of stock BrowserGym here, and says in which fields they differ."""

import random
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from benchmarks.recorded_episodes import Recorded, by_task
from helpers.browser import BrowserClient, BrowserObservation, start_browser_server

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
SESSIONS = 8

# A double click whose first half opens a mail: what its second half hits depends on whether the
# icons have loaded by then, in stock too, so they are not drawn. Other double clicks are.
RACES = ("email-inbox",)


class Row(NamedTuple):
    """One observation of a recorded episode, played here."""

    episode: Recorded
    step: int  # 0: after the reset
    fields: list[str]  # those that differ from stock's
    seen: BrowserObservation  # what is seen here


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
    if seen.task == "login-user-popup":  # see benchmarks.parity.NOT_COVERED
        return f"click('{bid}')"
    others = [f"press('{bid}', 'Tab')", f"hover('{bid}')"]
    if not seen.task.startswith(RACES):
        others.append(f"dblclick('{bid}')")
    return draw.choice([f"click('{bid}')"] * 5 + others)


def play(
    env: BrowserClient, task: str, seed: int, actions: Sequence[str] | None = None, turns: int = 2
) -> tuple[list[BrowserObservation], list[str]]:
    """One episode: what was seen, and the actions; where none are given, ``turns`` of them are
    drawn."""
    draw = random.Random(f"{task} {seed}")
    seen = [env.reset(task, seed)]
    taken: list[str] = []
    for i in range(turns if actions is None else len(actions)):
        if seen[-1].done:
            break
        taken.append(draw_action(seen[-1], draw) if actions is None else actions[i])
        seen.append(env.step(taken[-1]))
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


def comparable(seen: BrowserObservation, stock: dict[str, Any]) -> dict[str, Any]:
    """Our observation in the terms of the recorded one.

    Stock lists the bids of the whole document, we those that a policy may act on: they have to be
    among stock's, with the same flag. Of an error stock's record keeps the first line, to which we
    add the page's reason.
    """
    own = {e.bid for e in seen.elements}
    clickable = {e.bid for e in seen.elements if e.clickable}
    same_bids = own <= set(stock["bids"])
    same_flags = clickable == own & set(stock["clickable"])
    same_error = seen.error.startswith(stock["error"]) == bool(seen.error)
    return {
        "goal": seen.goal,
        "axtree_txt": without_port(seen.axtree_txt),
        "focused_bid": seen.focused_bid,
        "bids": stock["bids"] if same_bids else sorted(own),
        "clickable": stock["clickable"] if same_flags else sorted(clickable),
        "error": stock["error"] if same_error else seen.error,
        "reward": float(seen.done and (seen.raw_reward or 0) > 0),
        "raw_reward": seen.raw_reward,
        "done": seen.done,
    }


def without_port(text: str) -> str:
    """A text in which the address of the task pages is the same on every server."""
    return re.sub(r"http://(127\.0\.0\.1:\d+|miniwob\.localhost)/", "http://host/", text)


def compare(seen: Sequence[BrowserObservation], stock: Sequence[dict]) -> list[list[str]]:
    """For each observation the fields that differ."""
    if len(seen) != len(stock):
        return [["number of observations"]] * max(len(seen), len(stock))
    differing = []
    for mine, theirs in zip(seen, stock, strict=True):
        if not only_a_fragment(theirs):
            ours = comparable(mine, theirs)
            differing.append([name for name in FIELDS if ours[name] != theirs[name]])
    return differing


def only_a_fragment(stock: dict[str, Any]) -> bool:
    """Whether stock ended the episode because a link to "#" was clicked; it pays nothing then,
    whatever the page says. We go by the page, so such an observation cannot be compared."""
    return (
        stock["left"].startswith("invalid url")
        and "#" in stock["url"]
        and "/miniwob/" in stock["url"]
    )


def compare_all(golden: Sequence[Recorded], before: int = 1, **server: Any) -> dict[str, list[Row]]:
    """Play every recorded episode here, each after ``before`` others of its task.

    Returns a `Row` for each observation, by task. ``server``: arguments of `start_browser_server`.
    """
    episodes_of = by_task(golden)

    def play_again(env: BrowserClient, task: str) -> list[Row]:
        rows = []
        for episode in episodes_of[task]:
            for other in range(before):  # something else first: nothing of it may be left
                play(env, task, episode["seed"] + 50 * (other + 1), turns=2 * before)
            seen, _ = play(env, task, episode["seed"], episode["actions"])
            for step, fields in enumerate(compare(seen, episode["stock"])):
                rows.append(Row(episode, step, fields, seen[min(step, len(seen) - 1)]))
        return rows

    return with_each(episodes_of, play_again, **server)
