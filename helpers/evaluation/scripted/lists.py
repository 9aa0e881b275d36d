"""Scripts for tasks with something to choose from: boxes, lists, menus and trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from helpers.browser.actions import format_action
from helpers.episodes.play import Agent
from helpers.evaluation.scripted.page import (
    click,
    find,
    first_quoted,
    hover,
    quoted,
    select,
    submit,
    to_tick,
    with_name,
    with_role,
)
from helpers.evaluation.scripted.words import same_meaning

if TYPE_CHECKING:  # importing OpenEnv's types takes seconds
    from helpers.browser.models import BrowserObservation

ICONS = {  # the usual meaning of jQuery's pictures
    "ui-icon-disk": "Save",
    "ui-icon-seek-start": "Prev",
    "ui-icon-stop": "Stop",
    "ui-icon-play": "Play",
    "ui-icon-seek-end": "Next",
    "ui-icon-zoomin": "Zoom In",
    "ui-icon-zoomout": "Zoom Out",
}


def tick(role: str) -> Agent:
    """Ticks what the goal lists ("Select a, b and click Submit."), one box a turn, then hands
    in."""

    def act(seen: BrowserObservation, turn: int) -> str:
        for name in to_tick(seen.goal):
            box = with_name(seen, name, role)
            if box and box.value != "true":
                return click(box)
        return submit(seen)

    return act


def tick_synonyms(seen: BrowserObservation, turn: int) -> str:
    """Ticks a word of the same meaning for each that the goal lists, one a turn, then hands in."""
    words = find(r"^Select words similar to (.*) and click Submit", seen.goal)[1].split(", ")
    for box in with_role(seen, "checkbox"):
        if box.value != "true" and any(same_meaning(box.name, word) for word in words):
            return click(box)
    return submit(seen)


def select_listed(seen: BrowserObservation, turn: int) -> str:
    """Chooses in one action what the goal lists, then hands in."""
    if turn > 0:
        return submit(seen)
    names = find(r"^Select (.*) from the (?:scroll )?list", seen.goal)[1].split(", ")
    return select(with_role(seen, "combobox", "listbox")[0], names if len(names) > 1 else names[0])


def menu_path(seen: BrowserObservation, turn: int) -> str:
    """Walks down a menu ("Select A>B>C"): the mouse over each item but the last, which is
    clicked."""
    path = seen.goal.removeprefix("Select ").split(">")
    item = with_name(seen, path[turn], "menuitem")
    if turn == len(path) - 1:
        return click(item)
    if item is None:
        raise LookupError(f"There is no item {path[turn]!r} in the menu.")
    return hover(item)


def menu_behind_button(seen: BrowserObservation, turn: int) -> str:
    """Opens the menu, then walks to the item; a submenu opens under the mouse. The goal may name an
    item by its picture."""
    wanted = quoted(seen)[-1]
    item = with_name(seen, ICONS.get(wanted, wanted), "menuitem")
    if item:
        return click(item)
    for branch in with_role(seen, "menuitem"):
        if branch.name == "Playback":
            return hover(branch)
    return click(with_name(seen, "Menu", "button"))


def tree(seen: BrowserObservation, turn: int) -> str:
    """Clicks the name where it is shown, else opens the folders one after the other.

    A name is text below the element that takes the click; a folder is an item with parts.
    """
    lines = seen.axtree_txt.splitlines()
    for line, below in zip(lines, lines[1:], strict=False):
        if below.strip() == f"StaticText '{first_quoted(seen)}'":
            return format_action("click", find(r"\[(\w+)\]", line)[1])
    folders = [
        element
        for element, after in zip(seen.elements, seen.elements[1:], strict=False)
        if element.role == "listitem" and after.role == "generic"
    ]
    return click(folders[turn])
