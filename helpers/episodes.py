"""One `Episode` type from rollout to reward, evaluation, plot and recording; and the token ledger inside it.

The ledger is the sequence that is trained on. It is append-only: every id is written once, by the prompt, by the policy
(with the logprob it was sampled with) or by the environment, so the trainer sees exactly what the policy saw.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from helpers.actions import ParsedAction

PROMPT, POLICY, ENVIRONMENT = 0, 1, 2


class RolloutError(ValueError):
    """A rollout breaks the contract of the trainer; training on it would optimise the wrong thing."""


@dataclass
class Ledger:
    """Token ids, who wrote each (`PROMPT`, `POLICY`, `ENVIRONMENT`) and, for the policy's, the sampled logprob (else 0)."""

    ids: list[int] = field(default_factory=list)
    owner: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)

    def append(self, ids: list[int], owner: int, logprobs: list[float] | None = None) -> None:
        """Add tokens at the end; there is no other way to change a ledger."""
        if (owner == POLICY) != (logprobs is not None) or (logprobs is not None and len(logprobs) != len(ids)):
            raise RolloutError("The policy's tokens come with one logprob each, all other tokens without.")
        self.ids += ids
        self.owner += [owner] * len(ids)
        self.logprobs += logprobs if logprobs is not None else [0.0] * len(ids)

    @property
    def prompt_length(self) -> int:
        """Number of tokens before the policy's first."""
        return self.owner.index(POLICY) if POLICY in self.owner else len(self.owner)

    @property
    def completion_length(self) -> int:
        """Number of tokens from the policy's first to its last; what the environment wrote after that teaches nothing."""
        last = max((i for i, who in enumerate(self.owner) if who == POLICY), default=-1)
        return max(0, last + 1 - self.prompt_length)

    def columns(self) -> dict[str, list]:
        """The four sequences that `GRPOTrainer` wants: prompt_ids, completion_ids, env_mask (1 = policy) and logprobs."""
        start, end = self.prompt_length, self.prompt_length + self.completion_length
        return {"prompt_ids": self.ids[:start], "completion_ids": self.ids[start:end],
                "env_mask": [int(who == POLICY) for who in self.owner[start:end]], "logprobs": self.logprobs[start:end]}


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
        """The kind of every answer, see `helpers.actions.KINDS`."""
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
        turns = [Turn(**{**turn, "parsed": ParsedAction(**{**turn["parsed"], "args": tuple(turn["parsed"]["args"])})})
                 for turn in record["turns"]]
        return cls(**{**record, "turns": turns, "ledger": Ledger(**record["ledger"])})


def write_episodes(path: Path, episodes: Iterable[Episode]) -> None:
    """Write a recording, one episode per line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(e.to_json(), ensure_ascii=False) + "\n" for e in episodes))


def read_episodes(path: Path) -> list[Episode]:
    """Read a recording of `write_episodes`."""
    return [Episode.from_json(json.loads(line)) for line in Path(path).read_text().splitlines()]


def _problem(i: int, rollout: dict[str, list]) -> str:
    """What is wrong with sample ``i``, or an empty string."""
    prompt, completion = rollout["prompt_ids"][i], rollout["completion_ids"][i]
    mask, logprobs = rollout["env_mask"][i], rollout["logprobs"][i]
    if not prompt or not completion:
        return "its prompt or its completion is empty"
    if not len(completion) == len(mask) == len(logprobs):
        return f"{len(completion)} tokens, {len(mask)} mask entries and {len(logprobs)} logprobs do not match"
    if not set(mask) <= {0, 1} or mask[0] != 1 or mask[-1] != 1:
        return "its completion must begin and end with a token of the policy (mask 1)"
    for token_mask, logprob in zip(mask, logprobs, strict=True):
        if token_mask and not (math.isfinite(logprob) and logprob <= 1e-6):
            return f"a token of the policy has the logprob {logprob}"
    return ""


def check_rollout(rollout: dict[str, list], group_size: int) -> None:
    """State the contract of `GRPOTrainer`'s ``rollout_func``; raises `RolloutError` with the first breach.

    ``rollout``: columns prompt_ids, completion_ids, env_mask, logprobs, task, seed, each with one entry per sample, the
    samples of a group next to each other.
    """
    if missing := {"prompt_ids", "completion_ids", "env_mask", "logprobs", "task", "seed"} - set(rollout):
        raise RolloutError(f"These columns are missing: {', '.join(sorted(missing))}.")
    lengths = {key: len(column) for key, column in rollout.items()}
    if len(set(lengths.values())) != 1:
        raise RolloutError(f"Every column needs one entry per sample, but the lengths are {lengths}.")
    n = lengths["prompt_ids"]
    if n == 0 or n % group_size:
        raise RolloutError(f"{n} samples cannot be split into groups of {group_size}.")
    for i in range(n):
        if problem := _problem(i, rollout):
            raise RolloutError(f"Sample {i}: {problem}.")
    for start in range(0, n, group_size):
        members = range(start, start + group_size)
        if len({(rollout["task"][i], rollout["seed"][i]) for i in members}) != 1:
            raise RolloutError(f"Samples {start} to {start + group_size - 1} form a group but differ in task or seed: their "
                               "rewards cannot be compared.")
