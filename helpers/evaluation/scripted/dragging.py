"""Scripts for what is dragged: items of a list or of a grid, numbers to sort, a box into a box.

The mouse lets go in the middle of an element. That is where jQuery UI's lists take an item that
comes from below, and its grids one that comes from the left or from above in the same column; other
items stay where they were. So these scripts cannot solve every page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from helpers.browser.actions import format_action
from helpers.evaluation.scripted.page import (
    find,
    nameless,
    ordinal,
    plain_texts,
    submit,
    whole_numbers,
    with_role,
)

if TYPE_CHECKING:  # importing OpenEnv's types takes seconds
    from helpers.browser.models import BrowserObservation, Element

COLUMNS = 3  # of the grid
ROWS_OF_GOAL = {"top": 0, "center": 1, "bottom": 2}
COLUMNS_OF_GOAL = {"left": 0, "center": 1, "right": 2}
STEPS_IN_LIST = {"up": -1, "down": 1}
STEPS_IN_GRID = {"up": -COLUMNS, "down": COLUMNS, "left": -1, "right": 1}


def drag(what: Element, to: Element) -> str:
    """Drags the middle of one element to the middle of another."""
    return format_action("drag_and_drop", what.bid, to.bid)


def to_place(seen: BrowserObservation, turn: int) -> str:
    """Drags the item that the goal names to the place that it names, in the list."""
    names = plain_texts(seen)
    name, where = find(r"Drag (\S+) (?:to the )?(\w+)", seen.goal).groups()
    begin = names.index(name)
    if where in STEPS_IN_LIST:
        place = begin + STEPS_IN_LIST[where]
    elif where in ("top", "bottom"):
        place = 0 if where == "top" else len(names) - 1
    else:
        place = ordinal(seen.goal) - 1
    items = with_role(seen, "listitem")
    return drag(items[begin], items[place])


def in_grid(seen: BrowserObservation, turn: int) -> str:
    """Drags the item that the goal names to the place that it names, in the grid of nine."""
    names = plain_texts(seen)
    name, where = find(r"Drag (\S+) (?:to the )?(.*)\.", seen.goal).groups()
    begin = names.index(name)
    direction = where.removesuffix(" by one")
    if direction in STEPS_IN_GRID:
        place = begin + STEPS_IN_GRID[direction]
    else:
        words = where.split()
        place = ROWS_OF_GOAL[words[0]] * COLUMNS + COLUMNS_OF_GOAL[words[-1]]
    if place < begin and (place - 1) % COLUMNS > begin % COLUMNS:
        place -= 1  # from the left and from below the item comes behind the one it is let go on
    items = with_role(seen, "listitem")
    return drag(items[begin], items[place])


def sort(seen: BrowserObservation, turn: int) -> str:
    """Brings the least number up to the top, then the next one under it, and hands in."""
    numbers = whole_numbers(seen)
    items = with_role(seen, "listitem")
    for place, number in enumerate(sorted(numbers)):
        if numbers[place] != number:
            return drag(items[numbers.index(number, place)], items[place])
    return submit(seen)


def box(seen: BrowserObservation, turn: int) -> str:
    """Drags the small box, which is the first, into the large one, then hands in."""
    if turn > 0:
        return submit(seen)
    small, large = nameless(seen)
    return drag(small, large)
