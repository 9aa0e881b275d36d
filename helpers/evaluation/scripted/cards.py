"""Scripts for small searches: the greatest card, a contact, a number that fits, a text to copy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from helpers.evaluation.scripted.page import (
    click,
    fill,
    find,
    nameless,
    ordinal,
    plain_texts,
    submit,
    whole_numbers,
    with_name,
    with_role,
)

if TYPE_CHECKING:  # importing OpenEnv's types takes seconds
    from helpers.browser.models import BrowserObservation

CONTACT = ("phone", "email", "address")  # the order of a contact's links


def greatest(seen: BrowserObservation, turn: int) -> str:
    """Picks the card with the greatest number, then hands in."""
    if turn > 0:
        return submit(seen)
    numbers = [int(text) for text in plain_texts(seen)]
    return click(nameless(seen)[numbers.index(max(numbers))])


def contact(seen: BrowserObservation, turn: int) -> str:
    """Turns the pages of the contact book to the goal's name, and clicks what is asked for."""
    name = find(r"Find (\S+) in", seen.goal)[1]
    if not with_name(seen, name, "heading"):
        return click(with_name(seen, ">", "link"))
    wanted = find("|".join(CONTACT), seen.goal)[0]
    return click(with_role(seen, "link")[CONTACT.index(wanted)])


def number_that_fits(seen: BrowserObservation, turn: int) -> str:
    """Has numbers made until one is as the goal wants it, then hands in."""
    numbers = whole_numbers(seen)
    if numbers and _fits(numbers[0], seen.goal):
        return submit(seen)
    return click(with_name(seen, "Generate", "button"))


def _fits(number: int, goal: str) -> bool:
    if "odd" in goal or "even" in goal:
        return (number % 2 == 1) == ("odd" in goal)
    bound = int(find(r"-?\d+", goal)[0])
    return number > bound if re.search("greater|more|larger", goal) else number < bound


def copy(seen: BrowserObservation, turn: int) -> str:
    """Types the text of a text area into the field, then hands in: the one that the goal counts, or
    the only one."""
    boxes = with_role(seen, "textbox")
    areas, fields = [e for e in boxes if e.value], [e for e in boxes if not e.value]
    if not fields:
        return submit(seen)
    place = ordinal(seen.goal) - 1 if re.search(r"\d(?:st|nd|rd|th)", seen.goal) else 0
    return fill(fields[0], areas[place].value)


def last_word(seen: BrowserObservation, turn: int) -> str:
    """Types the last word of the text area into the field, then hands in."""
    area, field = with_role(seen, "textbox")
    return submit(seen) if field.value else fill(field, area.value.split()[-1])
