"""Episodes per second of every task, stock BrowserGym and ours: ``benchmarks.environment
--each-task``."""

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


def measure(repeat: int) -> dict[str, dict[str, float]]:
    """Episodes per second of the recorded episodes of every covered task, and an observation's
    bytes.

    An episode is a reset and up to two actions. For each task two stock processes play one each,
    then our two workers with four sessions each play ``repeat`` episodes a session, then stock
    plays again: a machine that has other things to do for a while shows on both sides. The bytes
    are those of an observation without and with its picture.
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
            before = stock_seconds(stock, episodes)
            ours = our_rate(threads, clients, episodes, repeat)
            seconds = before + stock_seconds(stock, episodes)
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


def our_rate(
    threads: ThreadPoolExecutor,
    clients: Sequence[BrowserClient],
    episodes: Sequence[Recorded],
    repeat: int,
) -> float:
    """Episodes per second where every client plays ``repeat`` of them, at once."""

    def play_in_all(chosen: Sequence[Recorded]) -> None:
        for played in [threads.submit(play, client, chosen) for client in clients]:
            played.result()

    play_in_all(episodes[:1])  # warms every session
    started = time.perf_counter()
    play_in_all([episodes[i % len(episodes)] for i in range(repeat)])
    return len(clients) * repeat / (time.perf_counter() - started)


def play(client: BrowserClient, episodes: Sequence[Recorded]) -> None:
    """Play recorded episodes one after another."""
    for episode in episodes:
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
