"""The square that a click lands in: the solution of the exercise of the notebook on eyes."""

from __future__ import annotations

import re


def square_of(answer: str) -> int | None:
    """The square, 0 to 63 row by row, that an answer such as "mouse_click(120, 150)" clicks in.

    None where the answer is no such click, or one outside of what is looked at.
    """
    numbers = re.fullmatch(r"mouse_click\((\d+), ?(\d+)\)", answer)
    if not numbers:
        return None
    column, row = int(numbers[1]) // 30, (int(numbers[2]) - 75) // 30
    return 8 * row + column if 0 <= column < 8 and 0 <= row < 8 else None
