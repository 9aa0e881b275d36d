"""A script for a calendar of one day: it draws an event with the mouse, names it, creates it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from helpers.evaluation.scripted.dragging import drag
from helpers.evaluation.scripted.page import (
    click,
    fill,
    find,
    first_quoted,
    nameless,
    plain_texts,
    with_name,
    with_role,
)

if TYPE_CHECKING:  # importing OpenEnv's types takes seconds
    from helpers.browser.models import BrowserObservation

# Half hours of the day at which the event may begin. There are other events, and the tree does not
# say when: none from 10 to 12 and from 4 to 6, one somewhere from noon to 4. One that is in the way
# takes the mouse, so that the page refuses the action.
BEGINNINGS = {"8AM and 12PM": (20,), "12PM and 4PM": (24, 29), "4PM and 8PM": (32,)}
HALF_HOURS = {"30 mins": 1, "0.5 hours": 1, "60 mins": 2, "1 hour": 2, "90 mins": 3, "1.5 hours": 3}


def create_event(seen: BrowserObservation, turn: int) -> str:
    """Draws an event as long as the goal wants it, clicks it, names it, creates it."""
    fields = with_role(seen, "textbox")
    if fields and not fields[0].value:
        return fill(fields[0], first_quoted(seen))
    if fields:
        return click(with_name(seen, "Create", "button"))
    cells = nameless(seen)
    if "New event" in plain_texts(seen):
        return click(cells[-1])
    length, window = find(r"Create an? (.*) event named .* between (.*)\.", seen.goal).groups()
    beginnings = BEGINNINGS[window]
    begin = beginnings[turn % len(beginnings)]
    return drag(cells[begin], cells[begin + HALF_HOURS[length] - 1])
