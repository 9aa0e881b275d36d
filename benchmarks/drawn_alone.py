"""Drawn episodes that differed, played once more with nothing beside them: ``benchmarks.parity
--alone``.

While a draw runs, stock and we play several episodes at once, which keeps two cores busy. Stock
goes by the wall clock: what it shows of an animation, or hits with the second half of a double
click, depends on how busy the machine is. What differs in a draw and is equal here was the
machine's doing; what differs here as well needs another reason.
"""

import json
from collections.abc import Container, Sequence
from typing import Any

from benchmarks.drawn_episodes import differences, play_again
from benchmarks.recorded_episodes import Recorded, add_again, as_played, as_recorded
from benchmarks.stock_processes import StockPool
from helpers.browser import BrowserServer, start_browser_server
from helpers.output import Progress, table
from helpers.settings.paths import RECORDINGS

TIMES = 3  # that each is played here, after stock has played it twice
TRIES = 3  # of an episode that stock could not play


def differing_episodes(without: Container[str]) -> list[Recorded]:
    """The episodes that differ in the recorded draws, but those of the tasks ``without``: with the
    "draw" that has them, its file's name."""
    return [
        {"draw": path.stem} | {name: episode[name] for name in ("task", "seed", "actions")}
        for path in sorted((RECORDINGS / "parity").glob("drawn*-*.json"))
        for episode in json.loads(path.read_text())["differing"]
        if episode["task"] not in without
    ]


def play_alone(episodes: Sequence[Recorded], known: Container[str] = ()) -> list[dict[str, Any]]:
    """Each episode with how often it was "equal" of so many "times", and, if it differed, how it
    did "first" and which of the ``known`` reasons it has: a task or an action's name, or "".
    """
    played = []
    with (
        StockPool(1) as stock,
        start_browser_server(workers=1, timeout=120) as server,
        Progress(len(episodes), "episodes alone") as progress,
    ):
        for episode in episodes:
            found = _alone(episode, stock, server)
            if "first" in found:
                found["known"] = _reason(found, known)
            played.append(found)
            progress.reach(len(played), episode["task"])
    return played


def _alone(episode: Recorded, stock: StockPool, server: BrowserServer) -> dict[str, Any]:
    known = as_recorded(episode, _in_stock(episode, stock))
    known = add_again(known, _in_stock(episode, stock))
    result: dict[str, Any] = episode | {"equal": 0, "times": TIMES}
    for _ in range(TIMES):
        with server.client() as client:
            seen = play_again(client, known, everything=True)
        found = differences(known, {"alone": seen})["ours"]
        if found:
            result.setdefault("first", found[0])
        else:
            result["equal"] += 1
    return result


def _reason(found: dict[str, Any], known: Container[str]) -> str:
    """A failed drag shows in pictures alone: a drag after which anything else differs has no known
    reason."""
    if found["task"] in known:
        return found["task"]
    action = found["first"]["after"].partition("(")[0]
    in_pictures_alone = set(found["first"]["fields"]) == {"screenshot"}
    return action if action in known and in_pictures_alone else ""


def _in_stock(episode: Recorded, stock: StockPool) -> list[dict[str, Any]]:
    for _ in range(TRIES):
        shown = stock.play([episode["task"], episode["seed"], episode["actions"]])
        if shown:
            return as_played(shown)
    raise RuntimeError(f"stock could not play {episode['task']}, seed {episode['seed']}")


def show(played: Sequence[dict[str, Any]]) -> None:
    """Print how often each episode was equal, and what differed first."""
    rows = [
        [
            each["task"],
            each["seed"],
            f"{each['equal']} of {each['times']}",
            ", ".join(each.get("first", {}).get("fields", {})),
            each.get("known", ""),
        ]
        for each in played
    ]
    print(table(["task", "seed", "equal", "differs in", "known of"], rows))
