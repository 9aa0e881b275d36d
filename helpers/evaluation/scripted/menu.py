"""A script for ordering food: items by name, or so many of a kind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from helpers.evaluation.scripted.page import click, find, nameless, nodes, submit

if TYPE_CHECKING:  # importing OpenEnv's types takes seconds
    from helpers.browser.models import BrowserObservation


def order(seen: BrowserObservation, turn: int) -> str:
    """Adds one item a turn, then orders."""
    wanted = _wanted(seen)
    if turn == len(wanted):
        return submit(seen)
    return click(nameless(seen)[2 * wanted[turn] + 1])  # each item has its minus and its plus


def _wanted(seen: BrowserObservation) -> list[int]:
    """The items that the goal asks for, by their places on the menu; the first ones again where
    the menu has too few of a kind."""
    menu = _menu(seen)
    named = re.search(r"each item: (.*)", seen.goal)
    if named:
        names = [name for name, _ in menu]
        return [names.index(name.strip()) for name in named[1].split(",")]
    number, kind = find(r"Order (\d+) items that are (\S+)", seen.goal).groups()
    of_kind = [place for place, (_, kinds) in enumerate(menu) if kind in kinds]
    return [of_kind[i % len(of_kind)] for i in range(int(number))]


def _menu(seen: BrowserObservation) -> list[tuple[str, set[str]]]:
    """Each item's name and the kinds that its pictures name."""
    menu: list[tuple[str, set[str]]] = []
    for node in nodes(seen):
        is_name = node.role == "StaticText" and len(node.name) > 1 and not node.name.isdigit()
        if is_name:
            menu.append((node.name.strip(), set()))
        elif node.role == "image" and menu:
            menu[-1][1].add(node.name)
    return menu
