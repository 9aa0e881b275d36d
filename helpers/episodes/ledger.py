"""The token ledger of an episode, the sequence that is trained on, and the check of a rollout.

The ledger is append-only: every id is written once, by the prompt, by the policy (with the logprob
it was sampled with) or by the environment, so the trainer sees exactly what the policy saw.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from helpers.settings.errors import CourseError

PROMPT, POLICY, ENVIRONMENT = 0, 1, 2

COLUMNS = ("prompt_ids", "completion_ids", "env_mask", "logprobs", "task", "seed")
"""What a rollout has at least, one entry per sample."""


class RolloutError(CourseError, ValueError):
    """A rollout breaks the trainer's contract: training on it would optimise the wrong thing."""


@dataclass
class Ledger:
    """Token ids, who wrote each, and with which logprob: three lists of the same length.

    ``owner``: `PROMPT`, `POLICY` or `ENVIRONMENT`. ``logprobs``: as sampled for the policy's
    tokens, 0 for all others.
    """

    ids: list[int] = field(default_factory=list)
    owner: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)

    def append(
        self, ids: Sequence[int], owner: int, logprobs: Sequence[float] | None = None
    ) -> None:
        """Add tokens at the end; there is no other way to change a ledger.

        Raises `RolloutError` unless the policy's tokens, and no others, have one logprob each.
        """
        if owner == POLICY:
            complete = logprobs is not None and len(logprobs) == len(ids)
        else:
            complete = logprobs is None
        if not complete:
            raise RolloutError(
                "The policy's tokens come with one logprob each, all other tokens without."
            )
        self.ids += ids
        self.owner += [owner] * len(ids)
        self.logprobs += logprobs if logprobs is not None else [0.0] * len(ids)

    @property
    def prompt_length(self) -> int:
        """Number of tokens before the policy's first."""
        return self.owner.index(POLICY) if POLICY in self.owner else len(self.owner)

    @property
    def completion_length(self) -> int:
        """Number of tokens from the policy's first to its last.

        What the environment wrote after that teaches nothing.
        """
        if POLICY not in self.owner:
            return 0
        after_the_last = len(self.owner) - self.owner[::-1].index(POLICY)
        return after_the_last - self.prompt_length

    def columns(self) -> dict[str, list]:
        """The four sequences that `GRPOTrainer` wants.

        They are prompt_ids, completion_ids, env_mask (1 = written by the policy) and logprobs; the
        last three are as long as the completion.
        """
        start = self.prompt_length
        end = start + self.completion_length
        return {
            "prompt_ids": self.ids[:start],
            "completion_ids": self.ids[start:end],
            "env_mask": [int(who == POLICY) for who in self.owner[start:end]],
            "logprobs": self.logprobs[start:end],
        }


def check_rollout(rollout: dict[str, list], group_size: int) -> None:
    """State the contract of `GRPOTrainer`'s ``rollout_func``; raises `RolloutError` at a breach.

    ``rollout``: at least the columns of `COLUMNS`, each with one entry per sample, the samples of a
    group next to each other. The error names the first breach.
    """
    _check_columns(rollout)
    n = len(rollout["prompt_ids"])
    if n == 0 or n % group_size:
        raise RolloutError(f"{n} samples cannot be split into groups of {group_size}.")
    for i in range(n):
        problem = _problem_of_sample(
            rollout["prompt_ids"][i],
            rollout["completion_ids"][i],
            rollout["env_mask"][i],
            rollout["logprobs"][i],
        )
        if problem:
            raise RolloutError(f"Sample {i}: {problem}.")
    for start in range(0, n, group_size):
        _check_group(rollout, range(start, start + group_size))


def _check_columns(rollout: dict[str, list]) -> None:
    """All columns are there, and as long as each other."""
    missing = set(COLUMNS) - set(rollout)
    if missing:
        raise RolloutError(f"These columns are missing: {', '.join(sorted(missing))}.")
    lengths = {name: len(column) for name, column in rollout.items()}
    if len(set(lengths.values())) != 1:
        raise RolloutError(
            f"Every column needs one entry per sample, but the lengths are {lengths}."
        )


def _problem_of_sample(
    prompt: list[int], completion: list[int], mask: list[int], logprobs: list[float]
) -> str:
    """What is wrong with one sample, or an empty string."""
    if not prompt or not completion:
        return "its prompt or its completion is empty"
    if not len(completion) == len(mask) == len(logprobs):
        return (
            f"{len(completion)} tokens, {len(mask)} mask entries and {len(logprobs)} logprobs "
            "do not match"
        )
    if not set(mask) <= {0, 1} or mask[0] != 1 or mask[-1] != 1:
        return "its completion must begin and end with a token of the policy (mask 1)"
    for by_policy, logprob in zip(mask, logprobs, strict=True):
        if by_policy and not (math.isfinite(logprob) and logprob <= 1e-6):
            return f"a token of the policy has the logprob {logprob}"
    return ""


def _check_group(rollout: dict[str, list], members: range) -> None:
    """The samples of a group come from one page."""
    pages = {(rollout["task"][i], rollout["seed"][i]) for i in members}
    if len(pages) != 1:
        raise RolloutError(
            f"Samples {members.start} to {members.stop - 1} form a group but differ in task or "
            "seed: their rewards cannot be compared."
        )
