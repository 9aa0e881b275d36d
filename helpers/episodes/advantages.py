"""Reward functions as `GRPOTrainer` calls them, and the group advantages it computes from them, written to be read.

A reward function gets the columns of the rollout as keyword arguments, one list entry per sample, and returns one number
per sample, or None for a sample that must not count (the infrastructure failed).
"""

import math
from collections.abc import Sequence

EPSILON = 1e-4  # TRL adds it to the standard deviation


def group_advantages(
    rewards: Sequence[float | None], group_size: int, scale: str = "group"
) -> list[float]:
    """The advantage of each sample, with TRL's arithmetic (GRPO: arXiv 2402.03300, eq. 4; "none": Dr. GRPO, 2503.20783).

    ``rewards``: one per sample, groups next to each other, None = not scorable. ``scale``: divide by the standard deviation
    (n - 1) of the "group", of the "batch", or by nothing ("none"). A sample without a reward gets advantage 0 and does not
    count in its group's mean. Raises ValueError for an unknown ``scale`` or groups that do not fit.
    """
    if scale not in ("group", "batch", "none"):
        raise ValueError(f"scale is 'group', 'batch' or 'none', not {scale!r}.")
    if group_size < 1 or len(rewards) % group_size:
        raise ValueError(f"{len(rewards)} rewards cannot be split into groups of {group_size}.")
    batch_std = _standard_deviation(rewards)
    advantages: list[float] = []
    for start in range(0, len(rewards), group_size):
        group = rewards[start : start + group_size]
        known = [r for r in group if r is not None]
        mean = sum(known) / len(known) if known else 0.0
        divisor = {
            "group": _standard_deviation(group) + EPSILON,
            "batch": batch_std + EPSILON,
            "none": 1.0,
        }[scale]
        advantages += [0.0 if r is None else (r - mean) / divisor for r in group]
    return advantages


def _standard_deviation(rewards: Sequence[float | None]) -> float:
    """Sample standard deviation (n - 1) of the known rewards; 0 for fewer than two."""
    known = [r for r in rewards if r is not None]
    if len(known) < 2:
        return 0.0
    mean = sum(known) / len(known)
    return math.sqrt(sum((r - mean) ** 2 for r in known) / (len(known) - 1))


def no_signal_probability(success_rate: float, group_size: int) -> float:
    """How likely a group of independent episodes teaches nothing because all succeed or all fail: p^G + (1-p)^G."""
    return success_rate**group_size + (1 - success_rate) ** group_size
