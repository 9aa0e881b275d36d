"""What to type in tasks that fill text fields: each function reads the values off page and goal.

`helpers.evaluation.scripted.page.fill_fields` makes a script of each.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from helpers.evaluation.scripted.page import (
    find,
    first_quoted,
    ordinal,
    plain_texts,
    with_role,
)

if TYPE_CHECKING:  # importing OpenEnv's types takes seconds
    from helpers.browser.models import BrowserObservation


def word_of_goal(seen: BrowserObservation) -> list[str]:
    """The word that the goal has in quotes."""
    return [first_quoted(seen)]


def word_of_goal_twice(seen: BrowserObservation) -> list[str]:
    """A password and its repetition."""
    return [first_quoted(seen)] * 2


def word_of_goal_in_case(seen: BrowserObservation) -> list[str]:
    """The word that the goal has in quotes, in the case that it asks for."""
    word = first_quoted(seen)
    return [word.lower() if "lower case" in seen.goal else word.upper()]


def word_of_text(seen: BrowserObservation) -> list[str]:
    """The word of the page's text that the goal counts."""
    words = re.findall(r"[A-Za-z]+", " ".join(plain_texts(seen)))
    return [words[ordinal(seen.goal) - 1]]


def whole_text(seen: BrowserObservation) -> list[str]:
    """All the text of the page: a word whose letters are turned and moved."""
    return ["".join(plain_texts(seen))]


def arithmetic(seen: BrowserObservation) -> list[str]:
    """The result of the sum, difference or product on the page."""
    first, sign, second = find(r"(-?\d+) ([x+\-]) (-?\d+)", " ".join(plain_texts(seen))).groups()
    left, right = int(first), int(second)
    results = {"x": left * right, "+": left + right, "-": left - right}
    return [str(results[sign])]


def algebra(seen: BrowserObservation) -> list[str]:
    """The x of an equation such as "x + 3 = 10" or "7 - x = 2"."""
    equation = next(text for text in plain_texts(seen) if "=" in text and text != "x =")
    left, right = equation.split("=")
    first, sign, second = find(r"^\s*(x|-?\d+)\s*([+\-])\s*(x|-?\d+)\s*$", left).groups()
    result = int(right)
    if first == "x":
        return [str(result - int(second) if sign == "+" else result + int(second))]
    return [str(result - int(first) if sign == "+" else int(first) - result)]


def cell_of_goal(seen: BrowserObservation) -> list[str]:
    """The value of the table's row that the goal names."""
    row = find(r"value of (.*) into", seen.goal)[1]
    return [_table(seen)[row]]


def cells_of_labels(seen: BrowserObservation) -> list[str]:
    """The values of the rows that the labels of the two fields name."""
    values = _table(seen)
    texts = [text.rstrip(": ") for text in plain_texts(seen)]
    labels = [text for text in texts if text in values]
    return [values[label] for label in labels[-2:]]


def _table(seen: BrowserObservation) -> dict[str, str]:
    """A table of two columns: {name: value}."""
    cells = [e.name for e in with_role(seen, "cell")]
    return dict(zip(cells[::2], cells[1::2], strict=False))


COLOURS = {
    "black": "000000",
    "white": "FFFFFF",
    "aqua": "00FFFF",
    "blue": "0000FF",
    "gray": "808080",
    "green": "008000",
    "lime": "00FF00",
    "maroon": "800000",
    "navy": "000080",
    "olive": "808000",
    "purple": "800080",
    "red": "FF0000",
    "silver": "C0C0C0",
    "teal": "008080",
    "yellow": "FFFF00",
    "pink": "FFC0CB",
    "magenta": "FF00FF",
    "gold": "FFD700",
    "orange": "FFA500",
}
"""CSS's numbers of the colours that a goal may name (CSS Color Module Level 4, 6.1)."""


def colour(seen: BrowserObservation) -> list[str]:
    """The colour of the goal in six digits, as the field of a colour picker has them."""
    number, name = find(r"#(\w{6})|Select (\w+) with", seen.goal).groups()
    return [number.upper() if number else COLOURS[name]]
