"""A script for a text editor: it selects with keys, then gives a style or a colour."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from helpers.evaluation.scripted.page import click, find, nameless, press, submit, with_role

if TYPE_CHECKING:  # importing OpenEnv's types takes seconds
    from helpers.browser.models import BrowserObservation, Element

STYLE_KEYS = {"bold": "Control+b", "italics": "Control+i", "underlined": "Control+u"}
COLOURS = ("black", "red", "orange", "yellow", "green", "blue", "purple")  # as the editor has them
PICKER = 1  # place of what opens the colours among the elements without a name; they follow it
START, ON, ON_SELECTING = "Control+Home", "Control+ArrowRight", "Control+Shift+ArrowRight"


def style(seen: BrowserObservation, turn: int) -> str:
    """Clicks a tool, selects all or the word that the goal names, styles or colours it, hands in.

    The tool's click puts the cursor into the editor, which a policy's page has no number for. There
    it stays when keys are pressed on what opens the colours, which takes none of its own.
    """
    word, kind, name = find(
        r"(?:text |make |give )(\S+) the (style|color) (\w+)", seen.goal
    ).groups()
    keys = ["Control+a"] if word == "everything" else _keys_to(word, _text(seen).split())
    if kind == "style":
        keys.append(STYLE_KEYS[name])
    if turn == 0:
        return click(with_role(seen, "button")[0])
    if turn <= len(keys):
        return press(nameless(seen)[PICKER], keys[turn - 1])
    if kind == "style" or turn > len(keys) + 2:
        return submit(seen)
    return click(_of_picker(seen, name, is_open=turn == len(keys) + 2))


def _text(seen: BrowserObservation) -> str:
    """What the editor holds, without the mark of its cursor, which has no width."""
    held = next(e.value for e in seen.elements if e.role == "generic" and e.value)
    return held.replace("\ufeff", "")


def _keys_to(word: str, words: list[str]) -> list[str]:
    """The keys that select a word. A key goes to the end of letters or of the signs behind them."""
    before = words[: words.index(word)]
    return [START, *[ON] * sum(map(_parts, before)), *[ON_SELECTING] * _parts(word)]


def _parts(word: str) -> int:
    """ "nunc" is one part, "nunc,." are two."""
    return len(re.findall(r"\w+|[^\w\s]+", word))


def _of_picker(seen: BrowserObservation, colour: str, is_open: bool) -> Element:
    """What opens the colours, or the colour itself once they are open."""
    return nameless(seen)[PICKER + 1 + COLOURS.index(colour) if is_open else PICKER]
