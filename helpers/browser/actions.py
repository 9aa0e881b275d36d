"""The action set as data, and the one parser that turns an answer of the policy into an action.

The grammar is small enough to read in one breath, and nothing is ever evaluated::

    answer := ["Action:"] call                      # the whole answer, nothing before or after
    call   := name "(" [ value { "," value } ] ")"
    value  := 'text' | "text" | number | [ 'text', ... ]

BrowserGym's own parser accepts more (several calls, calls inside prose, ``goto``); a policy that is trained against a
loose parser learns to answer loosely, and ``goto('javascript:...')`` earns a reward without doing the task.
"""

import re
from dataclasses import dataclass
from typing import Any

KINDS = ("ok", "no_call", "unknown_action", "bad_arguments", "unknown_bid", "several_calls")
MAX_ANSWER = 4_000  # characters; a longer answer is no action
MAX_STRING = 1_000  # characters in one argument
MAX_WAIT_MS = 5_000
MAX_SCROLL_PX = 10_000


@dataclass(frozen=True)
class Param:
    """One parameter: ``type`` is bid, str, strs (one string or a list of them) or number; ``default`` None = required."""

    name: str
    type: str
    default: Any = None


@dataclass(frozen=True)
class ActionSpec:
    """One action of BrowserGym's MiniWoB subset, as the prompt shows it and as the parser checks it."""

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


@dataclass(frozen=True)
class ParsedAction:
    """What an answer was: ``kind`` is one of `KINDS`. Where it is "ok", ``action`` is the canonical string and ``name``
    and ``args`` are its parts; otherwise ``reason`` is the sentence that the policy is told."""

    kind: str
    action: str = ""
    reason: str = ""
    name: str = ""
    args: tuple[Any, ...] = ()

    @property
    def ok(self) -> bool:
        return self.kind == "ok"


_STRING = r"""'(?:[^'\\\n]|\\['"\\nt])*'|"(?:[^"\\\n]|\\['"\\nt])*\""""
_NUMBER = r"-?\d{1,9}(?:\.\d{1,6})?"
_LIST = rf"\[\s*(?:(?:{_STRING})\s*(?:,\s*(?:{_STRING})\s*)*)?\]"
_VALUE = re.compile(
    rf"\s*(?:(?P<string>{_STRING})|(?P<number>{_NUMBER})|(?P<list>{_LIST}))\s*", re.ASCII
)
_CALL = re.compile(r"(?:Action:\s*)?(?P<name>[A-Za-z_]\w*)\((?P<rest>.*)\)\Z", re.ASCII | re.DOTALL)
_CALL_START = re.compile(r"\b(" + "|".join(ACTIONS) + r")\(")
_ESCAPES = {"n": "\n", "t": "\t"}


def _unquote(literal: str) -> str:
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), literal[1:-1])


def _read_values(text: str) -> list[Any] | None:
    """Read "value, value, ..." to its very end; None where anything else is in it."""
    values: list[Any] = []
    at = 0
    while at < len(text) or values:
        match = _VALUE.match(text, at)
        if match is None:
            return None
        if match["string"] is not None:
            values.append(_unquote(match["string"]))
        elif match["number"] is not None:
            values.append(
                float(match["number"]) if "." in match["number"] else int(match["number"])
            )
        else:
            values.append([_unquote(item) for item in re.findall(_STRING, match["list"])])
        at = match.end()
        if at == len(text):
            return values
        if text[at] != ",":
            return None
        at += 1
    return values


def _check_value(param: Param, value: Any) -> str:
    """The sentence that says what is wrong with one argument, or an empty string."""
    if param.type == "bid":
        if not isinstance(value, str):
            return f"{param.name} is a string: write '{value}', with quotes"
        return (
            ""
            if re.fullmatch(r"[A-Za-z0-9]{1,16}", value)
            else f"{value[:20]!r} is no element number"
        )
    if param.type == "number":
        if isinstance(value, (str, list)):
            return f"{param.name} is a number, without quotes"
        limit = MAX_WAIT_MS if param.name == "wait_ms" else MAX_SCROLL_PX
        low = 0 if param.name == "wait_ms" else -limit
        return "" if low <= value <= limit else f"{param.name} must lie between {low} and {limit}"
    strings = value if isinstance(value, list) and param.type == "strs" else [value]
    if not strings or not all(isinstance(s, str) for s in strings):
        return f"{param.name} is a string, with quotes"
    return (
        ""
        if all(len(s) <= MAX_STRING for s in strings)
        else f"{param.name} is longer than {MAX_STRING} characters"
    )


def signature(name: str) -> str:
    """The call as the prompt shows it, e.g. ``fill(bid, value)``."""
    return f"{name}({', '.join(p.name for p in ACTIONS[name].params)})"


def format_action(name: str, *args: Any) -> str:
    """The canonical string of an action, e.g. ``click('13')``; `parse_action` reads it back to the same parts."""

    def quote(text: str) -> str:
        return (
            "'"
            + text.replace("\\", "\\\\")
            .replace("'", "\\'")
            .replace("\n", "\\n")
            .replace("\t", "\\t")
            + "'"
        )

    def show(value: Any) -> str:
        if isinstance(value, list):
            return "[" + ", ".join(map(quote, value)) + "]"
        return quote(value) if isinstance(value, str) else str(value)

    return f"{name}({', '.join(map(show, args))})"


def parse_action(text: str, bids: set[str] | frozenset[str] | None = None) -> ParsedAction:
    """Read one answer. Never raises, never evaluates, linear in the length of ``text``.

    ``bids``: the element numbers on the page; where given, an action on any other is "unknown_bid".
    """
    text = text.strip()
    if len(text) > MAX_ANSWER:
        return ParsedAction("no_call", reason=f"the answer is longer than {MAX_ANSWER} characters")
    calls = len(_CALL_START.findall(text))
    match = _CALL.match(text)
    values = _read_values(match["rest"].strip()) if match else None
    if match is None or (values is None and calls > 1):
        if calls > 1:
            return ParsedAction("several_calls", reason="answer with one action, not several")
        return ParsedAction(
            "no_call", reason="answer with one action and nothing else, such as click('13')"
        )
    name = match["name"]
    if name not in ACTIONS:
        return ParsedAction(
            "unknown_action",
            reason=f"there is no action {name[:30]!r}; use one of: {', '.join(ACTIONS)}",
        )
    params = ACTIONS[name].params
    if values is None:
        return ParsedAction(
            "bad_arguments", reason=f"the arguments of {signature(name)} cannot be read"
        )
    values += [p.default for p in params[len(values) :] if p.default is not None]
    if len(values) != len(params):
        return ParsedAction(
            "bad_arguments",
            reason=f"{signature(name)} takes {len(params)} arguments, not {len(values)}",
        )
    for param, value in zip(params, values, strict=True):
        if problem := _check_value(param, value):
            return ParsedAction("bad_arguments", reason=problem)
    for param, value in zip(params, values, strict=True):
        if param.type == "bid" and bids is not None and value not in bids:
            return ParsedAction("unknown_bid", reason=f"there is no element '{value}' on the page")
    return ParsedAction("ok", action=format_action(name, *values), name=name, args=tuple(values))
