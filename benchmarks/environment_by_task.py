"""Episodes per second of every task, stock BrowserGym and ours: ``benchmarks.environment
--each-task``."""

import statistics
import time
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.recorded_episodes import Recorded, by_task, read_golden
from benchmarks.stock_processes import play_in_stock
from helpers.browser import BrowserClient, BrowserObservation, start_browser_server
from helpers.output import table

WORKERS, SESSIONS = 2, 8
STOCK_EPISODES = 2  # of each task, one per process


def measure(repeat: int) -> dict[str, dict[str, float]]:
    """Episodes per second of the recorded episodes of every covered task, and an observation's
    bytes.

    An episode is a reset and up to two actions. Two stock processes play one each, then our two
    workers with four sessions each play ``repeat`` episodes a session. The bytes are those of an
    observation without and with its picture.
    """
    tasks = by_task(read_golden())
    stock = stock_rates(tasks)
    result = {}
    with (
        start_browser_server(workers=WORKERS) as server,
        ThreadPoolExecutor(SESSIONS) as threads,
    ):
        clients = server.clients(SESSIONS)

        def play_in_all(episodes: Sequence[Recorded]) -> None:
            for played in [threads.submit(play, client, episodes) for client in clients]:
                played.result()

        for task, episodes in tasks.items():
            play_in_all(episodes[:1])  # warms every session
            started = time.perf_counter()
            play_in_all((episodes[:2] * repeat)[:repeat])
            rate = SESSIONS * repeat / (time.perf_counter() - started)
            seen = clients[0].reset(task, episodes[0]["seed"], screenshot=True)
            result[task] = {
                "stock": round(stock[task], 3),
                "ours": round(rate, 2),
                "ratio": round(rate / stock[task], 1),
                "text_bytes": sent_bytes(seen.model_copy(update={"screenshot": None})),
                "picture_bytes": sent_bytes(seen),
            }
    return result


def stock_rates(tasks: dict[str, list[Recorded]]) -> dict[str, float]:
    """Episodes per second of two stock processes, from the seconds of one episode in each."""
    plans = []
    for i in range(STOCK_EPISODES):
        chosen = [episodes[i] for episodes in tasks.values()]
        plans.append([[e["task"], e["seed"], e["actions"]] for e in chosen])
    sides, _ = play_in_stock(plans)
    rates = {}
    for i, task in enumerate(tasks):
        seconds = [sum(seen["seconds"] for seen in side[i]) for side in sides]
        rates[task] = STOCK_EPISODES / statistics.mean(seconds)
    return rates


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
