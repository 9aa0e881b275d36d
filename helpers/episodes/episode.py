"""One `Episode` type from rollout to reward, evaluation, plot and recording."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from helpers.browser.actions import ParsedAction
from helpers.episodes.ledger import Ledger
from helpers.settings.files import write_whole


@dataclass
class Turn:
    """One turn: what the policy read, what it answered, and what came of it."""

    page: list[str]
    """The lines of the page, as `helpers.policy.prompts.page_lines` gives them."""
    answer: str
    parsed: ParsedAction
    """What the answer was as an action."""
    reward: float | None = None
    error: str = ""
    """Why the action failed, or why the answer was none; empty where all went well."""
    screenshot: bytes | None = None
    """The page before the action, as PNG."""
    box: tuple[float, float, float, float] | None = None
    """x, y, width and height of the element that the action is about."""


@dataclass
class Episode:
    """One episode: a page, the turns that were taken on it, and the outcome."""

    task: str
    seed: int
    goal: str = ""
    turns: list[Turn] = field(default_factory=list)
    ledger: Ledger = field(default_factory=Ledger)
    """The tokens; empty for an agent without tokens."""
    reward: float | None = 0.0
    """1 solved, 0 not, None where the infrastructure failed."""
    raw_reward: float | None = None
    """The page's own, -1 to 1; None where it is not known."""
    stock_reward: float | None = None
    """What stock BrowserGym pays, see `helpers.browser.models.BrowserObservation`."""
    ended: str = ""
    """solved, failed, time_limit, left_page, turn_limit, length_limit or infrastructure_error;
    no_call where a policy with tools called none; empty while the episode runs."""
    infrastructure_error: str = ""
    last_screenshot: bytes | None = None
    obeyed: bool | None = None
    """Whether the order in the page was obeyed; None where it has none (`browser.orders`)."""

    @property
    def solved(self) -> bool:
        """Whether the page says that the whole task is done."""
        return self.reward == 1.0

    @property
    def kinds(self) -> list[str]:
        """The kind of every answer, see `helpers.browser.actions.KINDS`."""
        return [turn.parsed.kind for turn in self.turns]

    def to_json(self) -> dict[str, Any]:
        """What a recording keeps: everything but the pictures."""
        record = asdict(self)
        record.pop("last_screenshot")
        for turn in record["turns"]:
            turn.pop("screenshot")
        return record

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Episode":
        """Read back what `to_json` wrote."""
        turns = [_turn_from_json(turn) for turn in record["turns"]]
        return cls(**{**record, "turns": turns, "ledger": Ledger(**record["ledger"])})


def _turn_from_json(record: dict[str, Any]) -> Turn:
    """A turn as `Episode.to_json` wrote it; JSON has no tuples."""
    parsed = record["parsed"]
    action = ParsedAction(**{**parsed, "args": tuple(parsed["args"])})
    return Turn(**{**record, "parsed": action})


def write_episodes(path: Path, episodes: Iterable[Episode]) -> None:
    """Write a recording in one move, one episode per line; folders that are missing are made.

    Raises `RunFileError` where the disk refuses.
    """
    lines = [json.dumps(episode.to_json(), ensure_ascii=False) + "\n" for episode in episodes]
    write_whole(path, "".join(lines))


def read_episodes(path: Path) -> list[Episode]:
    """Read a recording of `write_episodes`; see `read_recording`."""
    return [episode for _, episode in read_recording(path)]


def read_recording(path: Path) -> list[tuple[int, Episode]]:
    """The episodes of a recording, each with its update (0: it belongs to none).

    Lines that are no episode, such as a last one that is cut short, are left out; a line says how
    many.
    """
    # Not `str.splitlines`: what a policy writes may hold characters that it takes for line ends.
    lines = Path(path).read_bytes().split(b"\n")
    read = [_read_line(line) for line in lines if line]
    whole = [found for found in read if found is not None]
    if len(whole) < len(read):
        print(f"{len(read) - len(whole)} of {len(read)} lines of {path} are no episodes: left out.")
    return whole


def _read_line(line: bytes) -> tuple[int, Episode] | None:
    """Update and episode of a line; None where it is none."""
    try:
        record = json.loads(line)
        return int(record.pop("update", 0)), Episode.from_json(record)
    except (ValueError, TypeError, KeyError, AttributeError):  # no text, no JSON, something else
        return None
