"""Episodes per second of every task, stock BrowserGym and ours: ``benchmarks.environment
--each-task``."""

import itertools
import statistics
import time
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.recorded_episodes import Recorded, by_task, read_golden
from benchmarks.stock_processes import PlannedEpisode, StockEpisode, StockPool
from helpers.browser import BrowserClient, BrowserObservation, start_browser_server
from helpers.output import Progress, table

WORKERS, SESSIONS = 2, 8
STOCK_PROCESSES = 2
EPISODES = 2  # of each task, on either side
TURNS = 2  # of stock; ours has one more
TURN_S = 3.0  # of ours; one of stock's takes about five


def measure() -> dict[str, dict[str, float]]:
    """Episodes per second of the recorded episodes of every covered task, and an observation's
    bytes.

    An episode is a reset and up to two actions. For each task the two sides play in turn: our two
    workers with four sessions each, two stock processes, which play an episode each, and so on. A
    shared machine may be half as fast for some seconds as for the next ones: of stock's episodes
    the mean counts, of our three turns the middle one. The bytes are those of an observation
    without and with its picture.
    """
    tasks = by_task(read_golden())
    result = {}
    with (
        StockPool(STOCK_PROCESSES, details=False) as stock,
        start_browser_server(workers=WORKERS) as server,
        ThreadPoolExecutor(SESSIONS) as threads,
        Progress(len(tasks), "tasks") as progress,
    ):
        clients = server.clients(SESSIONS)
        for done, (task, recorded) in enumerate(tasks.items(), 1):
            episodes = recorded[:EPISODES]
            warm(threads, clients, episodes)
            rates = [our_rate(threads, clients, episodes)]
            seconds = []
            for _ in range(TURNS):
                seconds += stock_seconds(stock, episodes)
                rates.append(our_rate(threads, clients, episodes))
            ours = statistics.median(rates)
            theirs = STOCK_PROCESSES / statistics.mean(seconds)
            seen = clients[0].reset(task, episodes[0]["seed"], screenshot=True)
            result[task] = {
                "stock": round(theirs, 3),
                "ours": round(ours, 2),
                "ratio": round(ours / theirs, 1),
                "text_bytes": sent_bytes(seen.model_copy(update={"screenshot": None})),
                "picture_bytes": sent_bytes(seen),
            }
            progress.reach(done, task)
    return result


def stock_seconds(stock: StockPool, episodes: Sequence[Recorded]) -> list[float]:
    """What each episode takes in stock, all played at once: the start of a process and of its
    environment is not counted."""
    seconds: list[float] = []

    def note(_: PlannedEpisode, seen: StockEpisode) -> None:
        if seen:  # not one that stock could not play this time
            seconds.append(sum(each["seconds"] for each in seen))

    stock.for_each([[e["task"], e["seed"], e["actions"]] for e in episodes], note)
    return seconds


def warm(
    threads: ThreadPoolExecutor, clients: Sequence[BrowserClient], episodes: Sequence[Recorded]
) -> None:
    """Play each episode once in every session, all at once."""

    def play_all(client: BrowserClient) -> None:
        for episode in episodes:
            play(client, episode)

    list(threads.map(play_all, clients))


def our_rate(
    threads: ThreadPoolExecutor, clients: Sequence[BrowserClient], episodes: Sequence[Recorded]
) -> float:
    """Episodes per second of all clients together, each of which plays for `TURN_S` seconds and
    then to the end of its episode."""

    def rate(client: BrowserClient) -> float:
        started = time.perf_counter()
        for played, episode in enumerate(itertools.cycle(episodes), 1):
            play(client, episode)
            passed = time.perf_counter() - started
            if passed > TURN_S:
                return played / passed
        raise ValueError("There are no episodes to play.")

    return sum(threads.map(rate, clients))


def play(client: BrowserClient, episode: Recorded) -> None:
    """Play a recorded episode."""
    client.reset(episode["task"], episode["seed"])
    for action in episode["actions"]:
        client.step(action)


def sent_bytes(seen: BrowserObservation) -> int:
    """Bytes of an observation as the WebSocket sends it: deflated."""
    return len(zlib.compress(seen.model_dump_json().encode(), wbits=-15))


def show(result: dict[str, dict[str, Any]]) -> None:
    """Print the tasks, those that gain the least first, and a verdict."""
    rows = [
        [
            task,
            f"{row['stock']:.3f}",
            f"{row['ours']:.2f}",
            f"{row['ratio']:.1f}",
            f"{row['text_bytes']:,}",
            f"{row['picture_bytes']:,}",
        ]
        for task, row in sorted(result.items(), key=lambda item: item[1]["ratio"])
    ]
    print("episodes per second, and an observation's bytes")
    print(table(["task", "stock", "ours", "ratio", "text", "with picture"], rows))
    ratios = [row["ratio"] for row in result.values()]
    print(
        f"{len(ratios)} tasks: median {statistics.median(ratios):.0f} times stock, "
        f"least {min(ratios):.1f}, below 12 on {sum(ratio < 12 for ratio in ratios)}"
    )
