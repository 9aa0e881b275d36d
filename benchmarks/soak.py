"""Whether anything piles up over thousands of episodes on one server.

Memory is the proportional set size (PSS) of the server and everything below it: shared pages count
once. The verdict compares the last rows with the first ones after the warm-up of 1,000 episodes.
"""

import sys
import time
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from benchmarks.process_usage import server_pid, tree_usage
from benchmarks.recording import Record, record
from helpers.browser import start_browser_server
from helpers.command_line import run
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.play import play_agent
from helpers.episodes.tasks import TASKS, TRAIN_SEEDS
from helpers.evaluation.agents import random_agent

SESSIONS = 8
ROWS = 10


def soak(episodes: int, every: int) -> list[dict[str, Any]]:
    """Play ``episodes`` and look at the server after ``every`` of them; prints and returns a row
    each time."""
    tasks = list(TASKS)
    rows: list[dict[str, Any]] = []
    played = lost = 0
    started = time.monotonic()
    with start_browser_server() as server:
        clients = server.clients(SESSIONS)
        while played < episodes:
            pages = [
                EpisodeSpec(tasks[n % len(tasks)], TRAIN_SEEDS[n])
                for n in range(played, played + every)
            ]
            ended = play_agent(random_agent(0), pages, clients, max_turns=2)
            lost += sum(episode.reward is None for episode in ended)
            played += every
            row = {
                "episodes": played,
                "lost": lost,
                "minutes": round((time.monotonic() - started) / 60, 2),
                **tree_usage(server_pid(server)),
            }
            rows.append(row)
            print("  ".join(f"{name} {value}" for name, value in row.items()), flush=True)
    return rows


def growth(rows: Sequence[dict[str, Any]], warm_after: int) -> tuple[float, int]:
    """How much memory grew after the warm-up (0.01: by 1 %), and by how many file descriptors."""
    warm = [row for row in rows if row["episodes"] > warm_after]
    early = sum(row["memory_mb"] for row in warm[:2])
    late = sum(row["memory_mb"] for row in warm[-2:])
    return late / early - 1, warm[-1]["descriptors"] - warm[0]["descriptors"]


def main(
    record_it: Record = False,
    episodes: Annotated[int, typer.Option(help="how many are played")] = 5_000,
) -> None:
    """Whether anything piles up: a server's memory, file descriptors and zombies along the way.

    \b
    python -m benchmarks.soak             5,000 episodes of mixed tasks (10 min on 2 cores)
    python -m benchmarks.soak --record    the same, written to recordings/soak/result.json
    """
    rows = soak(episodes, max(1, episodes // ROWS))
    memory_growth, descriptors = growth(rows, episodes // 5)
    last = rows[-1]
    print(
        f"memory {100 * memory_growth:+.1f} % after warm-up, descriptors {descriptors:+d}, "
        f"zombies {last['zombies']}, lost {last['lost']} of {last['episodes']}"
    )
    if record_it:
        found = {
            "memory_growth": round(memory_growth, 4),
            "descriptors": descriptors,
            "rows": rows,
        }
        record("soak", found)


if __name__ == "__main__":
    sys.exit(run(main))
