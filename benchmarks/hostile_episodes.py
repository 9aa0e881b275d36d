"""Episodes that leave as much behind as an episode can, and what would show it in the next one."""

import random
from collections.abc import Callable

from helpers.browser import BrowserObservation
from helpers.browser.actions import EVERY_ACTION, MAX_TYPED, Param, Value, format_action
from helpers.browser.models import Element
from helpers.evaluation.scripted import SCRIPTS

Player = Callable[[BrowserObservation, int, random.Random], str | None]  # None: no more actions
Probe = Callable[[BrowserObservation, int], str | None]

TURNS = 8  # of a hostile episode, at most
LEFT_OVER = "left over"
FILL = ""  # no key
DOCUMENT = "0"  # the bid of <html>, which takes no focus: a key goes to whatever has it
NOWHERE = "999"
FIELD_ROLES = ("textbox", "searchbox", "spinbutton", "combobox", "listbox", "Date", "InputTime")
KEYS = (
    *("a", "q", "1", " ", "Enter", "Escape", "Tab", "Shift+Tab", "Backspace", "Delete", "Insert"),
    *("ArrowLeft", "ArrowDown", "Home", "End", "PageDown", "F7", "CapsLock", "ContextMenu"),
    *("Control+a", "Control+c", "Control+x", "Control+v", "Control+z", "Control+y"),
    *("Shift+Insert", "Control+Insert", "Shift+Delete", "Control+Shift+ArrowLeft"),
    *("Control+b", "Control+Enter", "Control++", "Control+-", "Control+0", "Alt+ArrowLeft"),
    *("Shift+ArrowDown", "Control+enter", "Control+Nosuch", "Shift+", "Meta+a", "Control+Shift"),
)
TEXTS = (LEFT_OVER, "", "12", "03/04/2017", "<b>x</b>", "aA😀é", "x" * 300, "a\nb\tc")


# ---- what leaves something behind ----


def typing(seen: BrowserObservation, turn: int, draw: random.Random) -> str | None:
    """Fills, selects, copies, cuts, overwrites."""
    bid = draw.choice(_bids(_fields(seen)) or _bids(seen.elements) or [DOCUMENT])
    letter = draw.choice(_first_letters(seen))
    keys = (FILL, "Control+a", "Control+c", letter, FILL, "Insert", "Control+x", letter)
    if keys[turn] == FILL:
        return format_action("fill", bid, LEFT_OVER)
    return format_action("press", bid, keys[turn])


def mousing(seen: BrowserObservation, turn: int, draw: random.Random) -> str | None:
    """Clicks, hovers, turns the wheel, and begins drags that never end."""
    bids = _bids([e for e in seen.elements if e.clickable]) or _bids(seen.elements) or [DOCUMENT]
    bid = draw.choice(bids)
    kinds = (
        format_action("hover", bid),
        format_action("scroll", 0, draw.choice([15, 40, 200])),
        format_action("drag_and_drop", bid, NOWHERE),
        format_action("drag_and_drop", bid, draw.choice(bids)),
        format_action("dblclick", bid),
        format_action("click", bid),
    )
    return draw.choice(kinds)


def grammar(seen: BrowserObservation, turn: int, draw: random.Random) -> str | None:
    """Any call that the grammar has."""
    name = draw.choice(list(EVERY_ACTION))
    params = EVERY_ACTION[name].params
    return format_action(name, *[_value(param, seen, draw) for param in params])


def solution(seen: BrowserObservation, turn: int, draw: random.Random) -> str | None:
    """What the scripted solution does, often cut short; where there is none, clicks."""
    if turn and draw.random() < 0.15:
        return None
    if seen.task not in SCRIPTS:
        return format_action("click", draw.choice(_bids(seen.elements) or [DOCUMENT]))
    return script(seen, turn)


HOSTILE: dict[str, Player] = {
    "typing": typing,
    "mousing": mousing,
    "grammar": grammar,
    "solution": solution,
}


def _value(param: Param, seen: BrowserObservation, draw: random.Random) -> Value:
    if param.type == "bid":
        return draw.choice([*_bids(seen.elements), DOCUMENT, NOWHERE])
    if param.type == "number":
        if param.name.startswith("delta"):
            return draw.choice([-200, -15, 0, 15])
        return draw.choice([0, 20, 150, 300.5])  # milliseconds, or pixels of the picture
    if param.type == "strs":
        options = [e.name for e in seen.elements if e.role == "option" and e.name]
        return draw.sample(options, min(len(options), draw.randint(1, 2))) or LEFT_OVER
    if param.name in ("key_comb", "key"):
        return draw.choice(KEYS)
    return draw.choice(TEXTS)[: MAX_TYPED if param.name == "text" else None]


def _first_letters(seen: BrowserObservation) -> list[str]:
    """Letters that choose something in a list; "q" where there is none."""
    names = [element.name for element in seen.elements if element.role == "option"]
    return [name[0] for name in names if name[:1].isalpha()] or ["q"]


def _fields(seen: BrowserObservation) -> list[Element]:
    return [element for element in seen.elements if element.role in FIELD_ROLES]


def _bids(elements: list[Element]) -> list[str]:
    return [element.bid for element in elements]


# ---- what would show it ----


def backwards(seen: BrowserObservation, turn: int) -> str | None:
    """Where Shift+Tab goes from the start, and what a key does there."""
    return _press_on(DOCUMENT, ("Shift+Tab", "Shift+Tab", "q", " "), turn)


def forwards(seen: BrowserObservation, turn: int) -> str | None:
    """The same with Tab; then the wheel, where the mouse is."""
    keys = ("Tab", "Tab", "ArrowDown", "q", "Control+v")
    if turn >= len(keys):
        turns = (format_action("scroll", 0, 25), format_action("scroll", 0, -10))
        return dict(enumerate(turns, len(keys))).get(turn)
    return _press_on(DOCUMENT, keys, turn)


def wheel(seen: BrowserObservation, turn: int) -> str | None:
    """The wheel, then the arrows, before anything else."""
    if turn == 0:
        return format_action("scroll", 0, 25)
    return _press_on(DOCUMENT, ("ArrowDown", "Control+a"), turn - 1)


def edits(seen: BrowserObservation, turn: int) -> str | None:
    """What undo, redo and paste bring into a field, and where typing goes in it."""
    bid = (_bids(_fields(seen)) or [DOCUMENT])[-1]
    letter = _first_letters(seen)[-1]
    keys = (
        "Control+z",
        "Control+y",
        "Control+v",
        letter,
        "ArrowLeft",
        "w",
        "Control+z",
        "Control+z",
    )
    return _press_on(bid, keys, turn)


def script(seen: BrowserObservation, turn: int) -> str | None:
    """The scripted solution, where there is one."""
    try:
        return SCRIPTS[seen.task](seen, turn)
    except (LookupError, ValueError):  # no script, or it has no word for this page
        return None


PROBES: dict[str, Probe] = {
    "Shift+Tab": backwards,
    "Tab": forwards,
    "wheel": wheel,
    "undo and paste": edits,
    "script": script,
}


def _press_on(bid: str, keys: tuple[str, ...], turn: int) -> str | None:
    return format_action("press", bid, keys[turn]) if turn < len(keys) else None
