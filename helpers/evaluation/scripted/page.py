"""What every script needs: reading a page and its goal, and writing the actions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from helpers.browser.actions import format_action
from helpers.episodes.play import Agent

if TYPE_CHECKING:  # importing OpenEnv's types takes seconds
    from helpers.browser.models import BrowserObservation, Element

# A line of the tree: [13] button 'Ok', focused. Not every node has a bid.
_NODE = re.compile(
    r"^\t*(?:\[(?P<bid>\w+)\] )?(?P<role>[\w-]+) "
    r"(?P<quote>['\"])(?P<name>.*?)(?P=quote)(?=$|, | \w+=)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Node:
    """One line of the accessibility tree. ``bid`` is "" where the node has none."""

    bid: str
    role: str
    name: str


CLICK_NOTHING = "click(None)"  # no action: it names no element


# ---- reading ----


def with_role(seen: BrowserObservation, *roles: str) -> list[Element]:
    """The elements of one of these roles, top down."""
    return [e for e in seen.elements if e.role in roles]


def with_name(seen: BrowserObservation, name: str, *roles: str) -> Element | None:
    """The first element with this name (in any case), of one of the roles if any are given."""
    for element in seen.elements:
        same_name = element.name.strip().lower() == name.strip().lower()
        if same_name and (not roles or element.role in roles):
            return element
    return None


def nodes(seen: BrowserObservation) -> list[Node]:
    """The accessibility tree, line by line, top down; pieces of texts are left out."""
    found = _NODE.finditer(seen.axtree_txt)
    lines = [Node(match["bid"] or "", match["role"], match["name"]) for match in found]
    return [node for node in lines if node.role != "InlineTextBox"]


def plain_texts(seen: BrowserObservation) -> list[str]:
    """The texts of the page that are no names of elements, top down."""
    return [node.name for node in nodes(seen) if node.role == "StaticText"]


def whole_numbers(seen: BrowserObservation) -> list[int]:
    """The whole numbers among the plain texts of the page, top down."""
    return [int(text) for text in plain_texts(seen) if re.fullmatch(r"-?\d+", text)]


def minutes(texts: Iterable[str]) -> list[int]:
    """The durations among these texts, in minutes: "5h 12m" is 312."""
    found = (re.fullmatch(r"(\d+)h (\d+)m", text) for text in texts)
    return [60 * int(duration[1]) + int(duration[2]) for duration in found if duration]


def nameless(seen: BrowserObservation) -> list[Element]:
    """The elements that take clicks and that the tree does not name, in the order of the page."""
    return [e for e in seen.elements if e.clickable and not e.name and e.role == "generic"]


def quoted(seen: BrowserObservation) -> list[str]:
    """What the goal has in quotes."""
    return re.findall(r'"([^"]*)"', seen.goal)


def first_quoted(seen: BrowserObservation) -> str:
    """The first of what the goal has in quotes; IndexError where it has nothing."""
    return quoted(seen)[0]


def find(pattern: str, text: str) -> re.Match[str]:
    """The first match of a pattern; ValueError where there is none."""
    match = re.search(pattern, text)
    if match is None:
        raise ValueError(f"There is no {pattern!r} in {text!r}.")
    return match


def ordinal(goal: str) -> int:
    """The place that a goal counts to: "the 3rd word" is 3; ValueError where it counts none."""
    return int(find(r"(\d+)(?:st|nd|rd|th)", goal)[1])


def to_tick(goal: str) -> list[str]:
    """The names that a goal lists: "Select a, b and click Submit."; ValueError where it lists
    none."""
    return find(r"^Select (.*?)(?: and click Submit\.?)?$", goal)[1].split(", ")


def number_to_select(seen: BrowserObservation) -> int:
    """The number of a goal such as "Select -94 with the slider"; ValueError where it has none."""
    return int(find(r"Select (-?\d+)", seen.goal)[1])


# ---- acting ----


def click(element: Element | None) -> str:
    """A click; where the page has no such element (None) an answer that costs the turn."""
    return format_action("click", element.bid) if element else CLICK_NOTHING


def hover(element: Element) -> str:
    """Moves the mouse over an element."""
    return format_action("hover", element.bid)


def press(element: Element, key: str) -> str:
    """Presses a key in an element."""
    return format_action("press", element.bid, key)


def fill(element: Element, text: str) -> str:
    """Types a text into a field."""
    return format_action("fill", element.bid, text)


def select(element: Element, options: str | list[str]) -> str:
    """Chooses one option of a list, or several."""
    return format_action("select_option", element.bid, options)


def submit(seen: BrowserObservation) -> str:
    """Clicks "Submit", or else the last button, which in these tasks is the one that hands in."""
    return click(with_name(seen, "Submit", "button") or with_role(seen, "button")[-1])


# ---- a script made of parts ----


def fill_fields(values_of: Callable[[BrowserObservation], list[str]]) -> Agent:
    """A script that types one value a turn into the text fields, top down, and then hands in."""

    def act(seen: BrowserObservation, turn: int) -> str:
        values = values_of(seen)
        if turn >= len(values):
            return submit(seen)
        return fill(with_role(seen, "textbox")[turn], values[turn])

    return act
