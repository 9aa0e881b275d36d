"""The episodes that were recorded in stock BrowserGym, each of them played there twice.

`benchmarks.parity --stock` makes the record, recordings/parity/stock.jsonl.gz. What stock showed
the first time is an episode's "stock", a list of observations. A field in which the second time
was another is in the observation's "again", with its second value (of a picture: the share of
pixels that can be told apart). The pictures are together in the episode's "pictures".
"""

import base64
import gzip
import json
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.fields import DETAIL_FIELDS, TEXT_FIELDS, without_port
from benchmarks.pictures import differing_share, pack, read_picture, unpack
from helpers.settings.paths import RECORDINGS

GOLDEN = RECORDINGS / "parity" / "stock.jsonl.gz"
SEEDS = (1, 2, 3)  # of each task

Recorded = dict[str, Any]  # {"task", "seed", "actions", "stock": [observation, ...], "pictures"}
KEPT = tuple(name for name in (*TEXT_FIELDS, *DETAIL_FIELDS, "left") if name != "screenshot")
WITH_ADDRESS = ("axtree_txt", "pruned_html", "url")


# ---- the record ----


def read_golden(path: Path = GOLDEN) -> list[Recorded]:
    """The recorded episodes."""
    with gzip.open(path, "rt") as file:
        return [json.loads(line) for line in file]


def write_golden(episodes: Iterable[Recorded], path: Path = GOLDEN) -> None:
    """Write the record anew, sorted by task."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps(episode, ensure_ascii=False).encode() + b"\n"
        for episode in sorted(episodes, key=lambda episode: (episode["task"], episode["seed"]))
    ]
    with gzip.GzipFile(path, "wb", mtime=0) as file:  # no time in it: same content, same file
        file.writelines(lines)


def by_task(episodes: Sequence[Recorded]) -> dict[str, list[Recorded]]:
    """The episodes of each task, in their order."""
    groups: dict[str, list[Recorded]] = {}
    for episode in episodes:
        groups.setdefault(episode["task"], []).append(episode)
    return groups


def with_pictures(episode: Recorded) -> list[dict[str, Any]]:
    """The observations of a recorded episode, each with its picture as "screenshot"."""
    stock = episode["stock"]
    pictures = unpack(episode["pictures"], len(stock))
    return [seen | {"screenshot": picture} for seen, picture in zip(stock, pictures, strict=True)]


# ---- making it ----


def as_played(stock: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What `benchmarks.stock_browsergym` says of an episode, with pixels for PNGs, and with the
    same address in every run."""
    return [
        seen
        | {name: without_port(seen[name]) for name in WITH_ADDRESS}
        | {"screenshot": read_picture(base64.b64decode(seen["screenshot"]))}
        for seen in stock
    ]


def as_recorded(episode: Recorded, stock: Sequence[dict[str, Any]]) -> Recorded:
    """``episode`` (its task, seed and actions) with what stock showed, from `as_played`."""
    kept = [{name: seen[name] for name in KEPT} for seen in stock]
    return episode | {"stock": kept, "pictures": pack([seen["screenshot"] for seen in stock])}


def add_again(episode: Recorded, second: Sequence[dict[str, Any]]) -> Recorded:
    """A recorded episode and what was another the ``second`` time, from `as_played`."""
    first = with_pictures(episode)
    found = [disagreement(*each) for each in zip(first, second)]  # noqa: B905 (one may be longer)
    found += [{}] * (len(first) - len(found))
    stock = [
        kept | ({"again": again} if again else {})
        for kept, again in zip(episode["stock"], found, strict=True)
    ]
    return episode | {"stock": stock}


def disagreement(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """The fields in which stock was another the second time, and what they were then."""
    again = {name: second[name] for name in KEPT if second[name] != first[name]}
    share = differing_share(first["screenshot"], second["screenshot"])
    return again | ({"screenshot": share} if share else {})


class Lines:
    """A file of JSON lines that grows while something long is done, so that it can be stopped and
    goes on where it was."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._lock = threading.Lock()

    def read(self) -> list[dict[str, Any]]:
        """The lines so far; one that was cut off when it was written is left out."""
        if not self.path.exists():
            return []
        whole, _, rest = self.path.read_text().rpartition("\n")
        if rest:
            self.path.write_text(whole + "\n" if whole else "")
        return [json.loads(line) for line in whole.splitlines()]

    def add(self, line: dict[str, Any]) -> None:
        """One more, from any thread."""
        with self._lock, self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
