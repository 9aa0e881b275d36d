"""The episodes that were recorded in stock BrowserGym.

`benchmarks.parity --stock` makes the record, recordings/parity/stock.jsonl.gz.
"""

import gzip
import json
from collections.abc import Sequence
from typing import Any

from helpers.settings.paths import RECORDINGS

GOLDEN = RECORDINGS / "parity" / "stock.jsonl.gz"
SEEDS = (1, 2, 3)  # of each task

Recorded = dict[str, Any]  # {"task", "seed", "actions", "stock": [observation, ...]}


def read_golden() -> list[Recorded]:
    """The recorded episodes."""
    with gzip.open(GOLDEN, "rt") as file:
        return [json.loads(line) for line in file]


def write_golden(episodes: Sequence[Recorded]) -> None:
    """Write the record anew, sorted by task."""
    GOLDEN.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps(episode, ensure_ascii=False).encode() + b"\n"
        for episode in sorted(episodes, key=lambda episode: episode["task"])
    ]
    with gzip.GzipFile(GOLDEN, "wb", mtime=0) as file:  # no time in it: same content, same file
        file.writelines(lines)


def by_task(episodes: Sequence[Recorded]) -> dict[str, list[Recorded]]:
    """The episodes of each task, in their order."""
    groups: dict[str, list[Recorded]] = {}
    for episode in episodes:
        groups.setdefault(episode["task"], []).append(episode)
    return groups
