"""Which rows go through a model together, and how much of two of them is the same."""

import math
from collections.abc import Sequence


def split_lengths(
    lengths: Sequence[int], most: int, most_padding: float = math.inf
) -> list[list[int]]:
    """The places of ``lengths`` in parts, the shortest first.

    A part's tokens are the number of its rows times its longest, because the others are padded. Of
    a part with more than one row they are at most ``most``, and at most ``most_padding`` times the
    tokens that are no padding.
    """
    parts: list[list[int]] = []
    tokens = 0  # of the last part, without padding
    for row in sorted(range(len(lengths)), key=lambda row: lengths[row]):
        tokens += lengths[row]  # the longest so far
        padded = (len(parts[-1]) + 1) * lengths[row] if parts else math.inf
        if padded <= min(most, most_padding * tokens):
            parts[-1].append(row)
        else:
            parts.append([row])
            tokens = lengths[row]
    return parts


def length_in_common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens both begin with; they are two lists, or two tuples."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
