"""Scripts for tasks in which buttons, tabs and the like are clicked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from helpers.episodes.play import Agent
from helpers.evaluation.scripted.page import (
    click,
    find,
    first_quoted,
    minutes,
    ordinal,
    plain_texts,
    quoted,
    submit,
    whole_numbers,
    with_name,
    with_role,
)

if TYPE_CHECKING:  # importing OpenEnv's types takes seconds
    from helpers.browser.models import BrowserObservation

TEXT_FIELD = 5.5  # times as wide as high, or more: a text area is less


def buttons_in_order(seen: BrowserObservation, turn: int) -> str:
    """One button a turn: "Click button ONE, then click button TWO"."""
    names = re.findall(r"button ([A-Z]+)", seen.goal)
    return click(with_name(seen, names[turn], "button"))


def dialog(seen: BrowserObservation, turn: int) -> str:
    """Presses the button that the goal names; "x", or no name at all, is the one that closes."""
    name = first_quoted(seen) if quoted(seen) else "x"
    return click(with_name(seen, "Close" if name == "x" else name, "button"))


def tab(seen: BrowserObservation, turn: int) -> str:
    """Opens the tab with the goal's number."""
    return click(with_name(seen, find(r"Tab #\d+", seen.goal)[0], "link", "tab"))


def collapsible(seen: BrowserObservation, turn: int) -> str:
    """Opens the section, then hands in."""
    if turn == 0:
        return click(with_role(seen, "tab")[0])
    return click(with_name(seen, "Submit", "button"))


def widget(seen: BrowserObservation, turn: int) -> str:
    """Clicks a widget of the kind that the goal has in quotes. Text fields and text areas have the
    same role; their shape tells them apart."""
    kind = first_quoted(seen)
    if kind not in ("text", "textarea"):
        return click(with_role(seen, kind)[0])
    boxes = [
        e
        for e in with_role(seen, "textbox")
        if e.box is not None and (e.box[2] < TEXT_FIELD * e.box[3]) == (kind == "textarea")
    ]
    return click(boxes[0])


def counted(role: str) -> Agent:
    """The element of a role that the goal counts ("the 2nd input"), or the only one."""

    def act(seen: BrowserObservation, turn: int) -> str:
        counts = re.search(r"\d(?:st|nd|rd|th)", seen.goal)
        return click(with_role(seen, role)[ordinal(seen.goal) - 1 if counts else 0])

    return act


def odd_or_even(seen: BrowserObservation, turn: int) -> str:
    """One number a turn. Each row has one button of either kind, so the button's index among its
    kind is the row's."""
    numbers = whole_numbers(seen)
    if turn >= len(numbers):
        return submit(seen)
    name = "Odd" if numbers[turn] % 2 else "Even"
    of_this_kind = [e for e in with_role(seen, "button") if e.name == name]
    return click(of_this_kind[turn])


def ticket(seen: BrowserObservation, turn: int) -> str:
    """Books the cheapest, dearest, shortest or longest flight."""
    buttons = [e for e in with_role(seen, "button") if e.name.startswith("Book for")]
    if "duration" in seen.goal:
        values = minutes(plain_texts(seen))
    else:
        values = [int(e.name.rpartition("$")[2]) for e in buttons]
    largest = re.search("most expensive|longest", seen.goal)
    value = max(values) if largest else min(values)
    return click(buttons[values.index(value)])


def kind_of_drawing(seen: BrowserObservation, turn: int) -> str:
    """Says what is drawn. A letter or a digit is text; of shapes the tree says nothing, so this is
    a guess."""
    texts = plain_texts(seen)
    if not texts:
        name = "Rectangle"
    elif texts[0].isdigit():
        name = "Number"
    else:
        name = "Letter"
    return click(with_name(seen, name, "button"))
