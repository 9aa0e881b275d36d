"""One `Episode` type from rollout to reward, evaluation, plot and recording; and the token ledger inside it.

The ledger is the sequence that is trained on. It is append-only: every id is written once, by the prompt, by the policy
(with the logprob it was sampled with) or by the environment, so the trainer sees exactly what the policy saw.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from helpers.browser.actions import ParsedAction
from helpers.episodes.ledger import Ledger


@dataclass
class Turn:
    """One turn: what the policy read, what it answered, and what came of it."""

    page: list[str]
    answer: str
    parsed: ParsedAction
    reward: float | None = None
    error: str = ""
    screenshot: bytes | None = None
    box: tuple[float, float, float, float] | None = None


@dataclass
class Episode:
    """One episode. ``reward``: 1 solved, 0 not, None where the infrastructure failed; ``raw_reward``: the page's own, -1 to
    1; ``ended``: solved, failed, time_limit, left_page, turn_limit, length_limit or infrastructure_error."""

    task: str
    seed: int
    goal: str = ""
    turns: list[Turn] = field(default_factory=list)
    ledger: Ledger = field(default_factory=Ledger)
    reward: float | None = 0.0
    raw_reward: float | None = None
    ended: str = ""
    infrastructure_error: str = ""
    last_screenshot: bytes | None = None

    @property
    def solved(self) -> bool:
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
        turns = [
            Turn(
                **{
                    **turn,
                    "parsed": ParsedAction(
                        **{**turn["parsed"], "args": tuple(turn["parsed"]["args"])}
                    ),
                }
            )
            for turn in record["turns"]
        ]
        return cls(**{**record, "turns": turns, "ledger": Ledger(**record["ledger"])})


def write_episodes(path: Path, episodes: Iterable[Episode]) -> None:
    """Write a recording, one episode per line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(e.to_json(), ensure_ascii=False) + "\n" for e in episodes))


def read_episodes(path: Path) -> list[Episode]:
    """Read a recording of `write_episodes`."""
    return [Episode.from_json(json.loads(line)) for line in Path(path).read_text().splitlines()]
