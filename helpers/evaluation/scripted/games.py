"""Scripts for tic-tac-toe and for drawings: the best guess from what the page tells."""

from __future__ import annotations

import functools
import math
import re
from typing import TYPE_CHECKING

from helpers.evaluation.scripted.page import (
    click,
    find,
    nodes,
    plain_texts,
    with_role,
)

if TYPE_CHECKING:  # importing OpenEnv's types takes seconds
    from helpers.browser.models import BrowserObservation

Cells = frozenset[int]  # numbers of a board of nine, row by row

# ---- tic-tac-toe ----

LINES = [frozenset(line) for line in ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7))]
LINES += [frozenset(line) for line in ((2, 5, 8), (0, 4, 8), (2, 4, 6))]
ALL_CELLS = frozenset(range(9))
AT_RANDOM = 0.55  # of the opponent's moves: the page's own number


class TicTacToe:
    """Plays X. The tree shows a cross and a nought alike, so it remembers its own moves, as a
    policy has them in its conversation."""

    def __init__(self) -> None:
        self._mine: dict[int | None, Cells] = {}  # by the page's seed

    def __call__(self, seen: BrowserObservation, turn: int) -> str:
        """Clicks the cell with the best chance to win."""
        board = [e for e in seen.elements if e.role in ("generic", "image") and e.clickable]
        board.sort(key=lambda e: int(e.bid))
        taken = frozenset(i for i, cell in enumerate(board) if cell.role == "image")
        mine = self._mine.get(seen.seed, frozenset()) & taken if turn else frozenset()
        theirs = taken - mine
        free = sorted(ALL_CELLS - taken)
        won = _completing(mine, frozenset(free))
        cell = max(won or free, key=lambda i: _after_mine(mine | {i}, theirs))
        self._mine[seen.seed] = mine | {cell}
        return click(board[cell])


def _wins(cells: Cells) -> bool:
    return any(line <= cells for line in LINES)


def _completing(cells: Cells, free: Cells) -> list[int]:
    """The free cells with which ``cells`` would have a line."""
    return [i for i in sorted(free) if _wins(cells | {i})]


@functools.cache
def _before_mine(mine: Cells, theirs: Cells) -> float:
    """The chance to win when it is my turn."""
    free = ALL_CELLS - mine - theirs
    if _wins(theirs) or not free:
        return 0.0
    return max(_after_mine(mine | {i}, theirs) for i in free)


@functools.cache
def _after_mine(mine: Cells, theirs: Cells) -> float:
    """The chance to win when it is the opponent's turn.

    It moves at random, or else completes a line, or prevents one, or moves at random.
    """
    free = ALL_CELLS - mine - theirs
    if _wins(mine) or not free:
        return float(_wins(mine))
    thought_out = _completing(theirs, free) or _completing(mine, free) or sorted(free)
    random_part = sum(_before_mine(mine, theirs | {i}) for i in free) / len(free)
    other_part = sum(_before_mine(mine, theirs | {i}) for i in thought_out) / len(thought_out)
    return AT_RANDOM * random_part + (1 - AT_RANDOM) * other_part


# ---- drawings ----

SIZES, COLOURS, SHAPES = 2, 7, 3  # how many there are of each, none of which the tree tells
ASKED_AT_RANDOM = 0.3  # of the goals; the others describe something that is there


def count_drawings(seen: BrowserObservation, turn: int) -> str:
    """Chooses the likeliest of the offered numbers. Letters and digits are text and can be counted;
    size, colour and kind of shape cannot be read, so this is a guess where the goal names one."""
    size, what = find(r"How many (small |large )?(.*)s are there", seen.goal).groups()
    colour, _, kind = what.rpartition(" ")
    texts = plain_texts(seen)
    shapes = sum(node.role == "graphics-symbol" for node in nodes(seen))
    candidates, share = _candidates(kind, texts, shapes)
    share /= (SIZES if size else 1) * (COLOURS if colour else 1)
    total = len(texts) + shapes

    def weight(count: int) -> float:
        if count > candidates:
            return 0.0
        ways = math.comb(candidates, count)
        chance = ways * share**count * (1 - share) ** (candidates - count)
        return chance * (ASKED_AT_RANDOM * share + (1 - ASKED_AT_RANDOM) * count / total)

    return click(max(with_role(seen, "button"), key=lambda e: weight(int(e.name))))


def _candidates(kind: str, texts: list[str], shapes: int) -> tuple[int, float]:
    """How many drawings may be of a kind, and the share of them that are, as far as it is known."""
    if kind in ("circle", "rectangle", "triangle"):
        return shapes, 1 / SHAPES
    if kind == "shape":
        return shapes, 1.0
    if kind == "item":
        return len(texts) + shapes, 1.0
    pattern = {"letter": "[A-Za-z]", "digit": r"\d"}.get(kind, re.escape(kind))
    return sum(re.fullmatch(pattern, text) is not None for text in texts), 1.0


def middle_of_grid(seen: BrowserObservation, turn: int) -> str:
    """Clicks the drawing, and so its middle: the only one of its 25 points that can be clicked."""
    return click(with_role(seen, "SvgRoot")[0])
