"""Group advantages as `GRPOTrainer` computes them from rewards, written to be read."""

import math
from collections.abc import Sequence

EPSILON = 1e-4  # TRL adds it to the standard deviation


def group_advantages(
    rewards: Sequence[float | None], group_size: int, scale: str = "group"
) -> list[float]:
    """The advantage of each sample, with TRL's arithmetic.

    ``rewards``: one per sample, groups next to each other, None = not scorable. ``scale``: divide
    by the standard deviation (n - 1) of the "group" (GRPO: arXiv 2402.03300, eq. 4), of the
    "batch", or by nothing ("none"; Dr. GRPO: arXiv 2503.20783). A sample without a reward gets
    advantage 0 and does not count in its group's mean. Raises ValueError for an unknown ``scale``
    or groups that do not fit.
    """
    if scale not in ("group", "batch", "none"):
        raise ValueError(f"scale is 'group', 'batch' or 'none', not {scale!r}.")
    if group_size < 1 or len(rewards) % group_size:
        raise ValueError(f"{len(rewards)} rewards cannot be split into groups of {group_size}.")
    advantages: list[float] = []
    for start in range(0, len(rewards), group_size):
        group = rewards[start : start + group_size]
        if scale == "group":
            divisor = _standard_deviation(group) + EPSILON
        elif scale == "batch":
            divisor = _standard_deviation(rewards) + EPSILON
        else:
            divisor = 1.0
        mean = _mean(group)
        advantages += [0.0 if reward is None else (reward - mean) / divisor for reward in group]
    return advantages


def _known(rewards: Sequence[float | None]) -> list[float]:
    return [reward for reward in rewards if reward is not None]


def _mean(rewards: Sequence[float | None]) -> float:
    """Mean of the known rewards; 0 where none is known."""
    known = _known(rewards)
    return sum(known) / len(known) if known else 0.0


def _standard_deviation(rewards: Sequence[float | None]) -> float:
    """Sample standard deviation (n - 1) of the known rewards; 0 for fewer than two."""
    known = _known(rewards)
    if len(known) < 2:
        return 0.0
    mean = _mean(known)
    return math.sqrt(sum((reward - mean) ** 2 for reward in known) / (len(known) - 1))


def no_signal_probability(success_rate: float, group_size: int) -> float:
    """How likely a group of independent episodes teaches nothing, as all succeed or all fail.

    p^G + (1 - p)^G for the success rate p and the group size G.
    """
    return success_rate**group_size + (1 - success_rate) ** group_size
