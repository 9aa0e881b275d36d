"""Drawn episodes, played in stock BrowserGym and here in one run: ``benchmarks.parity --draw``.

Each is played here on a page of its own, with pictures and all details, while its actions are
drawn; then in stock; then here once more, after other episodes on the session, mostly as a policy
that reads text plays it: without pictures and details. Where anything differs stock plays it a
second time. A field is stock's own difference where stock is another the second time, or where it
has been another since an earlier action, and ours everywhere else.

What stock showed is kept in runs/parity/, so that a change here is tried without stock.
"""

import queue
import random
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from benchmarks.comparison import compare
from benchmarks.drawn_actions import Drawn, draw_episode, play_drawn, play_others
from benchmarks.fields import Differences
from benchmarks.recorded_episodes import (
    Lines,
    Recorded,
    add_again,
    as_played,
    as_recorded,
    with_pictures,
    write_golden,
)
from benchmarks.stock_processes import StockEpisode, StockPool
from benchmarks.stock_record import PROCESSES
from helpers.browser import (
    BrowserClient,
    BrowserObservation,
    BrowserServer,
    list_tasks,
    start_browser_server,
)
from helpers.output import Progress
from helpers.settings.paths import RECORDINGS, runs_folder

KEPT_DRAW = 1  # the seed of the draw whose first episodes the tests play again
KEPT_EPISODES = 30  # of it, about 100 observations
WORKERS = 2
TRIES = 3  # of an episode that the infrastructure lost
WITH_EVERYTHING = 0.25  # of the episodes after others are played with pictures and details, too

Found = dict[str, Any]  # {"run", "step", "after", "fields": Differences}
Stock = Callable[[Recorded], StockEpisode]


def name_of(seed: int, places: bool = False) -> str:
    """Of the recording of the draw ``seed``."""
    return f"drawn_on_places-{seed}" if places else f"drawn-{seed}"


def kept_of(places: bool) -> Path:
    """Where the episodes are that the tests play again."""
    return RECORDINGS / "parity" / f"{name_of(KEPT_DRAW, places)}.jsonl.gz"


def lines_of(seed: int, places: bool = False) -> Path:
    """Where the episodes of the draw ``seed`` are kept while it runs, and afterwards."""
    return runs_folder("parity") / f"{name_of(seed, places)}.jsonl"


# ---- one episode ----


class Players:
    """Plays drawn episodes here, several at once."""

    def __init__(self, server: BrowserServer, sessions: int) -> None:
        self._server = server
        self._kept: queue.Queue[BrowserClient] = queue.Queue()
        for client in server.clients(sessions):
            self._kept.put(client)

    def draw(self, number: int, seed: int, places: bool) -> list[str]:
        """The actions of an episode, drawn on a page of its own."""
        actions: list[str] = []
        for _ in range(TRIES):
            with self._server.client() as client:
                seen, actions = play_drawn(client, draw_episode(number, seed, places))
            if not seen[-1].infrastructure_error:
                break
        return actions

    def fresh(self, episode: Recorded) -> list[BrowserObservation]:
        """What is seen on a page of its own, with pictures and details."""
        seen: list[BrowserObservation] = []
        for _ in range(TRIES):
            with self._server.client() as client:
                seen = play_again(client, episode, everything=True)
            if not seen[-1].infrastructure_error:
                break
        return seen

    def after_others(self, episode: Recorded, drawn: Drawn) -> list[BrowserObservation]:
        """What is seen on a session that has played for a while, right after some others."""
        everything = random.Random(str(drawn.others)).random() < WITH_EVERYTHING
        client = self._kept.get()
        seen: list[BrowserObservation] = []
        try:
            for _ in range(TRIES):
                play_others(client, drawn)
                seen = play_again(client, episode, everything)
                if not seen[-1].infrastructure_error:
                    break
        finally:
            self._kept.put(client)
        return seen


def play_again(
    client: BrowserClient, episode: Recorded, everything: bool
) -> list[BrowserObservation]:
    """What is seen with an episode's actions."""
    wanted: dict[str, Any] = {"screenshot": everything, "details": everything}
    seen = [client.reset(episode["task"], episode["seed"], **wanted)]
    for action in episode["actions"]:
        if seen[-1].done:
            break
        seen.append(client.step(action, **wanted))
    return seen


def examine(
    players: Players,
    number: int,
    seed: int,
    known: Recorded | None,
    stock: Stock,
    places: bool = False,
) -> Found:
    """Play an episode, and again where it is ``known``: it, with what stock showed in it, and the
    differences "ours" and "stock's". What stock cannot play has no "stock"."""
    drawn = draw_episode(number, seed, places)
    episode: Recorded = {"number": number, "task": drawn.task, "seed": drawn.seed}
    if known is None:
        episode["actions"] = players.draw(number, seed, places)
        shown = stock(episode)
        if not shown:
            return episode
        episode = as_recorded(episode, as_played(shown))
    elif "stock" in known:
        episode = {name: known[name] for name in (*episode, "actions", "stock", "pictures")}
        if "twice" in known:
            episode["twice"] = True
    else:
        return known
    runs = {
        "fresh": players.fresh(episode),
        "after others": players.after_others(episode, drawn),
    }
    found = differences(episode, runs)
    if found["ours"] and "twice" not in episode:
        again = stock(episode)
        if again:
            episode = add_again(episode, as_played(again)) | {"twice": True}
            found = differences(episode, runs)
    return episode | found


def differences(episode: Recorded, runs: dict[str, list[BrowserObservation]]) -> dict[str, Any]:
    """What differs in the runs: what is "ours", what is "stock's" own, and how many were
    "compared"."""
    actions = ["the reset", *episode["actions"]]
    stock = with_pictures(episode)
    said: dict[str, list[Found]] = {"ours": [], "stock's": []}
    compared = 0
    for run, seen in runs.items():
        for step, row in enumerate(compare(seen, stock)):
            compared += 1
            for whose, fields in zip(said, row, strict=True):
                if fields:
                    said[whose].append(
                        {"run": run, "step": step, "after": actions[step], "fields": fields}
                    )
    return said | {"compared": compared}


# ---- all of them ----


def run(count: int, seed: int, again: bool = False, places: bool = False) -> list[Recorded]:
    """The first ``count`` episodes of the draw ``seed``; those that were played before are not
    played anew, unless ``again`` says so: then stock plays only what it has not played."""
    kept = lines_of(seed, places)
    before = {line["number"]: line for line in Lines(kept).read()}
    done = {} if again else {n: line for n, line in before.items() if n < count}
    lines = Lines(kept.with_suffix(".again.jsonl") if again else kept)
    if again:
        lines.path.unlink(missing_ok=True)  # of a run that was stopped
    left = [number for number in range(count) if number not in done]
    with (
        start_browser_server(workers=WORKERS, timeout=120) as server,
        StockPool(PROCESSES) as pool,
        ThreadPoolExecutor(PROCESSES) as threads,
        Progress(count, f"episodes of draw {seed}", initial=len(done)) as progress,
    ):
        players = Players(server, PROCESSES)

        def stock(episode: Recorded) -> StockEpisode:
            return pool.play([episode["task"], episode["seed"], episode["actions"]])

        def work(number: int) -> Recorded:
            line = examine(players, number, seed, before.get(number), stock, places)
            lines.add(line)
            return line

        for played in as_completed([threads.submit(work, number) for number in left]):
            line = played.result()
            done[line["number"]] = line
            ours = sum(bool(each.get("ours")) for each in done.values())
            progress.reach(len(done), f"{ours} differ")
    if again:
        rest = [line for number, line in before.items() if number not in done]
        for line in rest:
            lines.add(line)
        lines.path.replace(kept)
    return [done[number] for number in sorted(done)]


def counts(episodes: Sequence[Recorded]) -> dict[str, Any]:
    """What a run says, as recordings/parity/drawn-1.json has it."""
    played = [episode for episode in episodes if "stock" in episode]
    observations = sum(len(episode["stock"]) for episode in played)
    return {
        "episodes": len(played),
        "not_playable_in_stock": len(episodes) - len(played),
        "tasks": len({episode["task"] for episode in played}),
        "of_tasks": len(list_tasks()),
        "actions": sum(len(episode["actions"]) for episode in played),
        "observations": observations,
        "compared": sum(episode["compared"] for episode in played),
        "fields_that_differ": _fields(played, "ours"),
        "fields_in_which_stock_differs_with_itself": _fields(played, "stock's"),
        "differing": [described(episode) for episode in played if episode["ours"]],
    }


def _fields(episodes: Sequence[Recorded], whose: str) -> dict[str, int]:
    """In how many comparisons each field differs."""
    found = [each for episode in episodes for each in episode[whose]]
    return dict(Counter(name for each in found for name in each["fields"]).most_common())


def described(episode: Recorded) -> dict[str, Any]:
    """An episode and its first difference in each run."""
    first: dict[str, Found] = {}
    for each in episode["ours"]:
        first.setdefault(each["run"], each)
    kept = {name: episode[name] for name in ("number", "task", "seed", "actions")}
    return kept | {"first": list(first.values())}


def keep_some(episodes: Sequence[Recorded], places: bool = False) -> None:
    """Write the first episodes of `KEPT_DRAW`, with what stock showed, for the tests to play them
    again."""
    played = [episode for episode in episodes if "stock" in episode]
    kept = [
        {name: episode[name] for name in ("number", "task", "seed", "actions", "stock", "pictures")}
        for episode in played[:KEPT_EPISODES]
    ]
    write_golden(kept, kept_of(places))


def show(episodes: Sequence[Recorded]) -> None:
    """Print the differences that are ours, episode by episode, then the counts."""
    result = counts(episodes)
    for episode in result["differing"]:
        print(f"{episode['task']}, seed {episode['seed']}, {episode['actions']}")
        for found in episode["first"]:
            print(f"  {found['run']}, after {found['after']}:{_shown(found['fields'])}")
    print("differing fields:", result["fields_that_differ"] or "none")
    print("stock with itself:", result["fields_in_which_stock_differs_with_itself"] or "none")
    print(
        f"{result['episodes']} episodes of {result['tasks']} tasks, {result['observations']} "
        f"observations of stock, {result['compared']} compared, "
        f"{len(result['differing'])} episodes differ"
    )


def _shown(fields: Differences) -> str:
    return "".join(f"\n    {name}: {how}" for name, how in fields.items())
