"""The action set as data, and the one parser that turns an answer of the policy into an action.

The grammar is small enough to read in one breath, and nothing is ever evaluated::

    answer := ["Action:"] call                      # the whole answer, nothing before or after
    call   := name "(" [ value { "," value } ] ")"
    value  := 'text' | "text" | number | [ 'text', ... ]

BrowserGym's own parser accepts more (several calls, calls inside prose, ``goto``). A policy that is
trained against a loose parser learns to answer loosely, and ``goto('javascript:...')`` earns a
reward without doing the task.

A policy that reads text names elements. One that sees a picture may name places in it instead: the
actions of `PLACES` are a set of its own, which a prompt may teach (`PromptConfig.actions`). Who is
taught none of them is refused them.
"""

import functools
import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Literal

from helpers.browser.options import PICTURE

Kind = Literal["ok", "no_call", "unknown_action", "bad_arguments", "unknown_bid", "several_calls"]
KINDS: tuple[Kind, ...] = (
    "ok",
    "no_call",
    "unknown_action",
    "bad_arguments",
    "unknown_bid",
    "several_calls",
)
Value = str | int | float | list[str]  # of one argument

MAX_ANSWER = 4_000  # characters; a longer answer is no action
MAX_STRING = 1_000  # characters in one argument
MAX_WAIT_MS = 5_000
MAX_SCROLL_PX = 10_000
MAX_TYPED = 200  # characters that are typed one by one


# ---- the actions ----


@dataclass(frozen=True)
class Param:
    """One parameter. ``type``: an element number, a string, a string or a list of strings, or a
    number. ``default`` None: it is required."""

    name: str
    type: Literal["bid", "str", "strs", "number"]
    default: Value | None = None


@dataclass(frozen=True)
class ActionSpec:
    """One action of BrowserGym's, as the prompt shows it and as the parser checks it."""

    params: tuple[Param, ...]
    doc: str
    example: str


_BID = Param("bid", "bid")
ACTIONS: dict[str, ActionSpec] = {
    "click": ActionSpec((_BID,), "click an element", "click('13')"),
    "fill": ActionSpec(
        (_BID, Param("value", "str")), "replace the text of a field", "fill('15', 'blue sky')"
    ),
    "press": ActionSpec(
        (_BID, Param("key_comb", "str")), "press a key on an element", "press('15', 'Enter')"
    ),
    "select_option": ActionSpec(
        (_BID, Param("options", "strs")),
        "choose in a drop-down list",
        "select_option('16', 'Peru')",
    ),
    "hover": ActionSpec((_BID,), "move the mouse over an element", "hover('13')"),
    "dblclick": ActionSpec((_BID,), "double-click an element", "dblclick('13')"),
    "clear": ActionSpec((_BID,), "empty a field", "clear('15')"),
    "focus": ActionSpec((_BID,), "focus an element", "focus('15')"),
    "drag_and_drop": ActionSpec(
        (Param("from_bid", "bid"), Param("to_bid", "bid")),
        "drag one element onto another",
        "drag_and_drop('13', '14')",
    ),
    "scroll": ActionSpec(
        (Param("delta_x", "number"), Param("delta_y", "number")),
        "scroll the page, in pixels",
        "scroll(0, 200)",
    ),
    "noop": ActionSpec((Param("wait_ms", "number", 500),), "wait", "noop(500)"),
}

_PLACE = (Param("x", "number"), Param("y", "number"))
PLACES: dict[str, ActionSpec] = {
    "mouse_click": ActionSpec(_PLACE, "click a place of the picture", "mouse_click(120, 150)"),
    "mouse_dblclick": ActionSpec(
        _PLACE, "double-click a place of the picture", "mouse_dblclick(120, 150)"
    ),
    "mouse_move": ActionSpec(
        _PLACE, "move the mouse to a place of the picture", "mouse_move(120, 150)"
    ),
    "mouse_drag_and_drop": ActionSpec(
        tuple(Param(name, "number") for name in ("from_x", "from_y", "to_x", "to_y")),
        "drag from one place of the picture to another",
        "mouse_drag_and_drop(60, 150, 120, 150)",
    ),
    "keyboard_press": ActionSpec(
        (Param("key", "str"),), "press a key where the focus is", "keyboard_press('Enter')"
    ),
    "keyboard_type": ActionSpec(
        (Param("text", "str"),), "type a text where the focus is", "keyboard_type('blue sky')"
    ),
}
"""BrowserGym's actions on places, in pixels of the picture that stock takes (498 x 321, one and a
half for one of the page's): the same numbers mean the same place there and here.

Of BrowserGym's set "coord" those are left out that leave a button or a key down between two actions
(mouse_down, mouse_up, keyboard_down, keyboard_up: no task needs them beside a drag), that repeat
others (scroll_at is mouse_move and scroll, keyboard_insert_text types without keys), and
mouse_upload_file, which no task asks for."""

EVERY_ACTION = ACTIONS | PLACES


def actions_beside(taught: Iterable[str]) -> Mapping[str, ActionSpec]:
    """The actions that are accepted of a policy whose prompt teaches these: all those on elements,
    and all on places where one of them is taught."""
    return EVERY_ACTION if PLACES.keys() & set(taught) else ACTIONS


def signature(name: str) -> str:
    """The call as the prompt shows it, e.g. ``fill(bid, value)``."""
    return f"{name}({', '.join(param.name for param in EVERY_ACTION[name].params)})"


def format_action(name: str, *args: Value) -> str:
    """The canonical string of an action, e.g. ``click('13')``; `parse_action` reads it back to the
    same parts."""
    return f"{name}({', '.join(_literal(value) for value in args)})"


def _literal(value: Value) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_quoted(text) for text in value) + "]"
    if isinstance(value, str):
        return _quoted(value)
    return str(value)


def _quoted(text: str) -> str:
    text = text.replace("\\", "\\\\").replace("'", "\\'")
    text = text.replace("\n", "\\n").replace("\t", "\\t")
    return f"'{text}'"


# ---- the parser ----


@dataclass(frozen=True)
class ParsedAction:
    """What an answer was: ``kind`` is one of `KINDS`. Where it is "ok", ``action`` is the canonical
    string and ``name`` and ``args`` are its parts; otherwise ``reason`` is the sentence that the
    policy is told."""

    kind: Kind
    action: str = ""
    reason: str = ""
    name: str = ""
    args: tuple[Value, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the answer was an action."""
        return self.kind == "ok"


_STRING = r"""'(?:[^'\\\n]|\\['"\\nt])*'|"(?:[^"\\\n]|\\['"\\nt])*\""""
_NUMBER = r"-?\d{1,9}(?:\.\d{1,6})?"
_LIST = rf"\[\s*(?:(?:{_STRING})\s*(?:,\s*(?:{_STRING})\s*)*)?\]"
_VALUE = re.compile(
    rf"\s*(?:(?P<string>{_STRING})|(?P<number>{_NUMBER})|(?P<list>{_LIST}))\s*", re.ASCII
)
_CALL = re.compile(r"(?:Action:\s*)?(?P<name>[A-Za-z_]\w*)\((?P<rest>.*)\)\Z", re.ASCII | re.DOTALL)
_BID_FORM = re.compile(r"[A-Za-z0-9]{1,16}")
_ESCAPES = {"n": "\n", "t": "\t"}


def parse_action(
    text: str, bids: Set[str] | None = None, actions: Mapping[str, ActionSpec] = ACTIONS
) -> ParsedAction:
    """Read one answer. Never raises, never evaluates, linear in the length of ``text``.

    ``bids``: the element numbers on the page; where given, an action on any other is
    "unknown_bid". ``actions``: those that are accepted, see `actions_beside`.
    """
    text = text.strip()
    if len(text) > MAX_ANSWER:
        return ParsedAction("no_call", reason=f"the answer is longer than {MAX_ANSWER} characters")
    call = _CALL.match(text)
    values = _read_values(call["rest"].strip()) if call else None
    if values is None and len(_call_start(tuple(actions)).findall(text)) > 1:
        return ParsedAction("several_calls", reason="answer with one action, not several")
    if call is None:
        return ParsedAction(
            "no_call", reason="answer with one action and nothing else, such as click('13')"
        )
    if call["name"] not in actions:
        reason = f"there is no action {call['name'][:30]!r}; use one of: {', '.join(actions)}"
        return ParsedAction("unknown_action", reason=reason)
    return _check_call(call["name"], values, bids)


@functools.cache
def _call_start(names: tuple[str, ...]) -> re.Pattern[str]:
    """The beginning of a call of any of these actions."""
    return re.compile(r"\b(" + "|".join(names) + r")\(")


def _check_call(name: str, values: list[Value] | None, bids: Set[str] | None) -> ParsedAction:
    """A call of an action that exists, with the values that stand in it (None: they cannot be
    read)."""
    params = EVERY_ACTION[name].params
    if values is None:
        reason = f"the arguments of {signature(name)} cannot be read"
        return ParsedAction("bad_arguments", reason=reason)
    defaults = [param.default for param in params[len(values) :] if param.default is not None]
    values = values + defaults
    if len(values) != len(params):
        reason = f"{signature(name)} takes {len(params)} arguments, not {len(values)}"
        return ParsedAction("bad_arguments", reason=reason)
    for param, value in zip(params, values, strict=True):
        if problem := _check_value(param, value):
            return ParsedAction("bad_arguments", reason=problem)
    for param, value in zip(params, values, strict=True):
        if param.type == "bid" and bids is not None and value not in bids:
            return ParsedAction("unknown_bid", reason=f"there is no element '{value}' on the page")
    return ParsedAction("ok", action=format_action(name, *values), name=name, args=tuple(values))


def _read_values(text: str) -> list[Value] | None:
    """Read "value, value, ..." to its very end; None where anything else is in it."""
    values: list[Value] = []
    at = 0
    while at < len(text) or values:
        match = _VALUE.match(text, at)
        if match is None:
            return None
        values.append(_value_of(match))
        at = match.end()
        if at == len(text):
            return values
        if text[at] != ",":
            return None
        at += 1
    return values


def _value_of(match: re.Match[str]) -> Value:
    if match["string"] is not None:
        return _unquoted(match["string"])
    if match["number"] is not None:
        return float(match["number"]) if "." in match["number"] else int(match["number"])
    return [_unquoted(item) for item in re.findall(_STRING, match["list"])]


def _unquoted(literal: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), literal[1:-1])


def _check_value(param: Param, value: Value) -> str:
    """The sentence that says what is wrong with one argument, or an empty string."""
    if param.type == "bid":
        return _check_bid(param.name, value)
    if param.type == "number":
        return _check_number(param.name, value)
    strings = value if isinstance(value, list) and param.type == "strs" else [value]
    if not strings or not all(isinstance(string, str) for string in strings):
        return f"{param.name} is a string, with quotes"
    longest = MAX_TYPED if param.name == "text" else MAX_STRING
    if any(len(string) > longest for string in strings if isinstance(string, str)):
        return f"{param.name} is longer than {longest} characters"
    return ""


def _check_bid(name: str, value: Value) -> str:
    if not isinstance(value, str):
        return f"{name} is a string: write '{value}', with quotes"
    if not _BID_FORM.fullmatch(value):
        return f"{value[:20]!r} is no element number"
    return ""


_WIDTH, _HEIGHT = PICTURE
_LIMITS = {
    "wait_ms": (0, MAX_WAIT_MS),
    **dict.fromkeys(("delta_x", "delta_y"), (-MAX_SCROLL_PX, MAX_SCROLL_PX)),
    **dict.fromkeys(("x", "from_x", "to_x"), (0, _WIDTH)),
    **dict.fromkeys(("y", "from_y", "to_y"), (0, _HEIGHT)),
}


def _check_number(name: str, value: Value) -> str:
    if isinstance(value, str | list):
        return f"{name} is a number, without quotes"
    lowest, highest = _LIMITS[name]
    if not lowest <= value <= highest:
        return f"{name} must lie between {lowest} and {highest}"
    return ""
