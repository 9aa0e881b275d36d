"""The action set as data, and the one parser that turns an answer of the policy into an action.

The grammar is small enough to read in one breath, and nothing is ever evaluated::

    answer := ["Action:"] call                      # the whole answer, nothing before or after
    call   := name "(" [ value { "," value } ] ")"
    value  := 'text' | "text" | number | [ 'text', ... ]

BrowserGym's own parser accepts more (several calls, calls inside prose, ``goto``). A policy that is
trained against a loose parser learns to answer loosely, and ``goto('javascript:...')`` earns a
reward without doing the task.
"""

import re
from collections.abc import Set
from dataclasses import dataclass
from typing import Literal

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
    """One action of BrowserGym's MiniWoB subset, as the prompt shows it and as the parser checks
    it."""

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


def signature(name: str) -> str:
    """The call as the prompt shows it, e.g. ``fill(bid, value)``."""
    return f"{name}({', '.join(param.name for param in ACTIONS[name].params)})"


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
_CALL_START = re.compile(r"\b(" + "|".join(ACTIONS) + r")\(")
_BID_FORM = re.compile(r"[A-Za-z0-9]{1,16}")
_ESCAPES = {"n": "\n", "t": "\t"}


def parse_action(text: str, bids: Set[str] | None = None) -> ParsedAction:
    """Read one answer. Never raises, never evaluates, linear in the length of ``text``.

    ``bids``: the element numbers on the page; where given, an action on any other is
    "unknown_bid".
    """
    text = text.strip()
    if len(text) > MAX_ANSWER:
        return ParsedAction("no_call", reason=f"the answer is longer than {MAX_ANSWER} characters")
    call = _CALL.match(text)
    values = _read_values(call["rest"].strip()) if call else None
    if values is None and len(_CALL_START.findall(text)) > 1:
        return ParsedAction("several_calls", reason="answer with one action, not several")
    if call is None:
        return ParsedAction(
            "no_call", reason="answer with one action and nothing else, such as click('13')"
        )
    if call["name"] not in ACTIONS:
        reason = f"there is no action {call['name'][:30]!r}; use one of: {', '.join(ACTIONS)}"
        return ParsedAction("unknown_action", reason=reason)
    return _check_call(call["name"], values, bids)


def _check_call(name: str, values: list[Value] | None, bids: Set[str] | None) -> ParsedAction:
    """A call of an action that exists, with the values that stand in it (None: they cannot be
    read)."""
    params = ACTIONS[name].params
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
    if any(len(string) > MAX_STRING for string in strings if isinstance(string, str)):
        return f"{param.name} is longer than {MAX_STRING} characters"
    return ""


def _check_bid(name: str, value: Value) -> str:
    if not isinstance(value, str):
        return f"{name} is a string: write '{value}', with quotes"
    if not _BID_FORM.fullmatch(value):
        return f"{value[:20]!r} is no element number"
    return ""


def _check_number(name: str, value: Value) -> str:
    if isinstance(value, str | list):
        return f"{name} is a number, without quotes"
    lowest, highest = -MAX_SCROLL_PX, MAX_SCROLL_PX
    if name == "wait_ms":
        lowest, highest = 0, MAX_WAIT_MS
    if not lowest <= value <= highest:
        return f"{name} must lie between {lowest} and {highest}"
    return ""
