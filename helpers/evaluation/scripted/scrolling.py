"""Scripts for text areas that have to be scrolled: with keys, or with the wheel of the mouse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from helpers.browser.actions import format_action
from helpers.evaluation.scripted.page import (
    click,
    fill,
    first_quoted,
    hover,
    press,
    quoted,
    submit,
    with_name,
    with_role,
)

if TYPE_CHECKING:  # importing OpenEnv's types takes seconds
    from helpers.browser.models import BrowserObservation

TO_THE_END = 5_000  # pixels, more than the longest agreement has


def to_top_or_bottom(seen: BrowserObservation, turn: int) -> str:
    """Goes to the beginning or the end of the text with a key, then hands in."""
    if turn > 0:
        return submit(seen)
    key = "Control+Home" if "to the top" in seen.goal else "Control+End"
    return press(with_role(seen, "textbox")[0], key)


def agreement(seen: BrowserObservation, turn: int) -> str:
    """Scrolls through the agreement, which takes no keys, types the name, presses the button that
    the goal names last."""
    if not quoted(seen):
        return click(with_name(seen, "Cancel", "button"))
    area, name = with_role(seen, "textbox")
    if turn == 0:
        return hover(area)
    if turn == 1:
        return format_action("scroll", 0, TO_THE_END)
    if not name.value:
        return fill(name, first_quoted(seen))
    return click(with_name(seen, quoted(seen)[-1], "button"))
