"""Whether anything piles up: thousands of episodes on one server, its memory, file descriptors and zombies along the way.

    python -m benchmarks.soak                    5,000 episodes of mixed tasks (10 min on 2 cores), a row every 500
    python -m benchmarks.soak --record           the same, written to recordings/soak/result.json

Memory is the proportional set size (PSS) of the server and everything below it: shared pages count once. The verdict compares
the last quarter with the first rows after the warm-up of 1,000 episodes.
"""

import argparse
import time

import psutil

from benchmarks.recording import record
from helpers.browser import start_browser_server
from helpers.browser.processes import descendants
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.play import play_agent
from helpers.episodes.tasks import TASKS, TRAIN_SEEDS
from helpers.evaluation.agents import random_agent

SESSIONS = 8


def measure(pid: int) -> dict:
    """Megabytes, file descriptors, processes and zombies of a server's tree."""
    row = {"memory_mb": 0.0, "descriptors": 0, "processes": 0, "zombies": 0}
    for process in descendants(pid):
        try:
            row["zombies"] += process.status() == psutil.STATUS_ZOMBIE
            row["memory_mb"] += process.memory_full_info().pss / 1e6
            row["descriptors"] += process.num_fds()
            row["processes"] += 1
        except psutil.Error:  # ended while we looked
            continue
    return row | {"memory_mb": round(row["memory_mb"], 1)}


def soak(episodes: int, every: int) -> list[dict]:
    rows, tasks, played, lost, started = [], list(TASKS), 0, 0, time.monotonic()
    with start_browser_server() as server:
        clients = server.clients(SESSIONS)
        while played < episodes:
            pages = [
                EpisodeSpec(tasks[n % len(tasks)], TRAIN_SEEDS[n])
                for n in range(played, played + every)
            ]
            lost += sum(
                e.reward is None for e in play_agent(random_agent(0), pages, clients, max_turns=2)
            )
            played += every
            rows.append(
                {
                    "episodes": played,
                    "lost": lost,
                    "minutes": round((time.monotonic() - started) / 60, 2),
                    **measure(server._process.pid),
                }
            )
            print("  ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--episodes", type=int, default=5_000)
    options = parser.parse_args()
    rows = soak(options.episodes, max(1, options.episodes // 10))
    warm = [row for row in rows if row["episodes"] > options.episodes // 5]
    early, late = warm[:2], warm[-2:]
    growth = sum(r["memory_mb"] for r in late) / sum(r["memory_mb"] for r in early) - 1
    descriptors = late[-1]["descriptors"] - early[0]["descriptors"]
    print(
        f"memory {100 * growth:+.1f} % after warm-up, descriptors {descriptors:+d}, zombies {late[-1]['zombies']}, "
        f"lost {late[-1]['lost']} of {late[-1]['episodes']}"
    )
    if options.record:
        record(
            "soak", {"memory_growth": round(growth, 4), "descriptors": descriptors, "rows": rows}
        )


if __name__ == "__main__":
    main()
