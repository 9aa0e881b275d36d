"""Notebook 4's own pieces: a reward, the advantages of a group, the clipped objective.

They are the solutions of its exercises; the notebook goes on with them where the reader's own are
not there yet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


def early(
    strict_reward: Sequence[float | None],
    turn_rewards: Sequence[Sequence[float | None]],
    **_: Any,
) -> list[float | None]:
    """A reward for solving a page soon: 1, less 0.25 for each turn after the first.

    0 for an episode that failed, None for one that the infrastructure lost.
    """
    return [
        None if strict is None else strict * (1 - 0.25 * (len(turns) - 1))
        for strict, turns in zip(strict_reward, turn_rewards, strict=True)
    ]


def advantages(rewards: Sequence[float | None]) -> list[float]:
    """The advantages of one group: reward minus mean, over the standard deviation (n - 1) + 1e-4.

    A reward of None gets advantage 0 and counts in neither. Source: DeepSeekMath (arXiv
    2402.03300), eq. 4.
    """
    known = [reward for reward in rewards if reward is not None]
    if len(known) < 2:
        return [0.0] * len(rewards)
    mean = sum(known) / len(known)
    deviation = math.sqrt(sum((reward - mean) ** 2 for reward in known) / (len(known) - 1))
    return [0.0 if reward is None else (reward - mean) / (deviation + 1e-4) for reward in rewards]


def objective(ratio: float, advantage: float, epsilon: float) -> float:
    """The clipped objective of one token; source: PPO (arXiv 1707.06347), eq. 7."""
    clipped = min(max(ratio, 1 - epsilon), 1 + epsilon)
    return min(ratio * advantage, clipped * advantage)
