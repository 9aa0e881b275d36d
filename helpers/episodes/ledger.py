"""One `Episode` type from rollout to reward, evaluation, plot and recording; and the token ledger inside it.

The ledger is the sequence that is trained on. It is append-only: every id is written once, by the prompt, by the policy
(with the logprob it was sampled with) or by the environment, so the trainer sees exactly what the policy saw.
"""

import math
from dataclasses import dataclass, field

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
        if (owner == POLICY) != (logprobs is not None) or (
            logprobs is not None and len(logprobs) != len(ids)
        ):
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
        """Number of tokens from the policy's first to its last; what the environment wrote after that teaches nothing."""
        last = max((i for i, who in enumerate(self.owner) if who == POLICY), default=-1)
        return max(0, last + 1 - self.prompt_length)

    def columns(self) -> dict[str, list]:
        """The four sequences that `GRPOTrainer` wants: prompt_ids, completion_ids, env_mask (1 = policy) and logprobs."""
        start, end = self.prompt_length, self.prompt_length + self.completion_length
        return {
            "prompt_ids": self.ids[:start],
            "completion_ids": self.ids[start:end],
            "env_mask": [int(who == POLICY) for who in self.owner[start:end]],
            "logprobs": self.logprobs[start:end],
        }


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
    if missing := {"prompt_ids", "completion_ids", "env_mask", "logprobs", "task", "seed"} - set(
        rollout
    ):
        raise RolloutError(f"These columns are missing: {', '.join(sorted(missing))}.")
    lengths = {key: len(column) for key, column in rollout.items()}
    if len(set(lengths.values())) != 1:
        raise RolloutError(
            f"Every column needs one entry per sample, but the lengths are {lengths}."
        )
    n = lengths["prompt_ids"]
    if n == 0 or n % group_size:
        raise RolloutError(f"{n} samples cannot be split into groups of {group_size}.")
    for i in range(n):
        if problem := _problem(i, rollout):
            raise RolloutError(f"Sample {i}: {problem}.")
    for start in range(0, n, group_size):
        members = range(start, start + group_size)
        if len({(rollout["task"][i], rollout["seed"][i]) for i in members}) != 1:
            raise RolloutError(
                f"Samples {start} to {start + group_size - 1} form a group but differ in task or seed: their "
                "rewards cannot be compared."
            )
