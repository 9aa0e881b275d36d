"""Held-out evaluation: strict success with an interval, failure kinds, and infrastructure failures counted apart."""

import math
from collections.abc import Sequence


def wilson_interval(successes: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """95 % score interval of a proportion (Wilson 1927); (0, 1) for n = 0."""
    if n == 0:
        return 0.0, 1.0
    p = successes / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def macro_mean(rates: Sequence[tuple[float, int]]) -> tuple[float, float, float]:
    """Mean success over tasks, each (rate, n) with the same weight, and its 95 % interval (low, high). The tasks are fixed, their
    pages are the sample: the variances of the tasks' means add up. Tasks without episodes are left out."""
    known = [(p, n) for p, n in rates if n]
    mean, half = (
        total / max(1, len(known))
        for total in (
            sum(p for p, _ in known),
            1.96 * math.sqrt(sum(p * (1 - p) / n for p, n in known)),
        )
    )
    return mean, max(0.0, mean - half), min(1.0, mean + half)
