"""Scripts for the tasks of a social network: posts by users, each with the same row of buttons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from helpers.browser.actions import format_action
from helpers.evaluation.scripted.page import (
    click,
    find,
    first_quoted,
    nodes,
    submit,
    with_role,
)

if TYPE_CHECKING:  # importing OpenEnv's types takes seconds
    from helpers.browser.models import BrowserObservation

# The buttons are pictures without a name: what they do is known by their place.
ROW = ("Reply", "Retweet", "Like", "Share")  # a post that has a menu has it in the place of Share
MENU_PLACE = 3
MENU = ("Share via DM", "Copy link to Tweet", "Embed Tweet", "Mute", "Block", "Report")


def _rows_of(seen: BrowserObservation, user: str) -> list[list[str]]:
    """The bids of the buttons of each post by a user."""
    rows: list[list[str]] = []
    row: list[str] = []
    for node in nodes(seen):
        if node.role == "StaticText" and node.name.startswith("@"):
            row = []
            if node.name == user:
                rows.append(row)
        elif node.role == "image" and node.bid:
            row.append(node.bid)
    return rows


def one_post(seen: BrowserObservation, turn: int) -> str:
    """Clicks a button of a post by the goal's user; some are in a menu that opens first."""
    button = first_quoted(seen)
    row = _rows_of(seen, find(r"@\w+", seen.goal)[0])[0]
    if button in ROW:
        return format_action("click", row[ROW.index(button)])
    items = with_role(seen, "listitem")
    if items:
        return click(items[MENU.index(button)])
    return format_action("click", row[MENU_PLACE])


def several_posts(seen: BrowserObservation, turn: int) -> str:
    """Clicks a button on all posts by the goal's user, or on as many as the goal says, one a turn,
    then hands in."""
    user, place = find(r"by (@\w+)", seen.goal)[1], ROW.index(first_quoted(seen))
    bids = [row[place] for row in _rows_of(seen, user)]
    number = find(r"on (all|\d+) posts?", seen.goal)[1]
    if number != "all":
        bids = bids[: int(number)]
    return format_action("click", bids[turn]) if turn < len(bids) else submit(seen)
