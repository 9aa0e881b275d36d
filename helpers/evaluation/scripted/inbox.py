"""Scripts for an inbox: forward a message, answer it, delete it, mark it as important.

The goals of two of the tasks were written by many people. `read_order` reads them by rules, and not
all of them right: the audit says how often.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from helpers.browser.actions import format_action
from helpers.evaluation.scripted.page import (
    Node,
    click,
    fill,
    nameless,
    nodes,
    plain_texts,
    with_role,
)

if TYPE_CHECKING:  # importing OpenEnv's types takes seconds
    from helpers.browser.models import BrowserObservation

Action = Literal["delete", "mark", "reply", "forward"]

# ---- what is wanted ----

_DELETE = re.compile(
    r"delet|trash|remov|get rid|recycl|erase|discard|dispose|throw|\bbin\b|clear|don't want",
    re.IGNORECASE,
)
_MARK = re.compile(r"important|\bstar|favou?rite|priority|\bmark|\bflag", re.IGNORECASE)
# Words that begin with a capital letter and are no names, wherever they stand.
_NO_NAMES = {"I", "Email", "Primary", "Inbox", "Mail", "Reply", "Forward", "E", *calendar.day_name}
_CAPITALISED = re.compile(r"\b[A-Z][a-z]+(?:-[A-Z][a-z]+)?")
_MESSAGE = r"(?:e-?mail|message|mail|information|note|forward)"


@dataclass(frozen=True)
class Order:
    """What a goal asks for. ``sender`` of the message, ``to`` whom it is forwarded, ``text`` of the
    answer; "" where a goal has none."""

    action: Action
    sender: str
    to: str
    text: str


def read_order(goal: str) -> Order:
    """What a goal asks for. IndexError where no name is found in it."""
    texts = re.findall(r'"([^"]*)"', goal)
    words = re.sub(r'"[^"]*"', "", goal)
    names = _names(words)
    sender = _sender(words, names)
    others = [name for name in names if name != sender]
    if _DELETE.search(words):
        return Order("delete", sender, "", "")
    if _MARK.search(words):
        return Order("mark", sender, "", "")
    if texts:
        return Order("reply", sender, "", texts[-1])
    return Order("forward", sender, others[-1], "")


def _names(words: str) -> list[str]:
    """The names in a sentence.

    A word that begins it has a capital letter in any case: it is a name where what follows makes it
    one, or where there is no other.
    """
    found = [match for match in _CAPITALISED.finditer(words) if match[0] not in _NO_NAMES]
    begins = re.compile(r"(?:^|[.!?:]\s+)$")
    is_owner = re.compile(
        r"'s\b|s (?:last|latest)|,? (?:sent|wrote|needs|wants|must|is|has|should)\b"
    )
    names = []
    for match in found:
        at_the_start = begins.search(words[: match.start()]) is not None
        if not at_the_start or is_owner.match(words, match.end()):
            names.append(match[0])
    return list(dict.fromkeys(names)) or [match[0] for match in found]


def _sender(words: str, names: list[str]) -> str:
    """Whose message is meant: the likeliest of the names."""
    for pattern in (
        r"\b(?:from|by|of) (?:user |my friend )?{}\b",
        r"\b{} (?:sent|wrote|has sent|has written|emailed|gave)\b",
        rf"(?<!to )(?<!To )\b{{}}'?s (?:[\w-]+ ){{{{0,2}}}}{_MESSAGE}",
        rf"\bthe {{}} {_MESSAGE}",
        r"(?<!to )(?<!To )\b{}'?s\b",
    ):
        for name in names:
            if re.search(pattern.format(re.escape(name)), words, re.IGNORECASE):
                return name
    return names[0]


# ---- what is done ----


def inbox(seen: BrowserObservation, turn: int) -> str:
    """Does with a message what the goal asks for. A page with a field is a letter to be sent, one
    that says "to me" an open message, all others the list of messages."""
    order = read_order(seen.goal)
    fields = with_role(seen, "textbox")
    if fields:
        text = order.to if order.action == "forward" else order.text
        if fields[0].value != text:
            return fill(fields[0], text)
        return click(with_role(seen, "image")[1])  # back, and send
    if "to me" in plain_texts(seen):
        answer, forward = nameless(seen)
        return click(forward if order.action == "forward" else answer)
    return _on_the_list(seen, order)


def _on_the_list(seen: BrowserObservation, order: Order) -> str:
    """Clicks a message of the list, or a picture beside it."""
    message, trash, star = _message_from(seen, order.sender)
    places = {"delete": trash, "mark": star}
    return format_action("click", places.get(order.action, message))


def _message_from(seen: BrowserObservation, sender: str) -> tuple[str, str, str]:
    """The bids of a message and of its two pictures, trash and star.

    The message's own is the last one of an element without a name in front of the pictures.
    """
    lines = nodes(seen)
    place = lines.index(Node("", "StaticText", sender))
    trash, star = [node.bid for node in lines[place:] if node.role == "image"][:2]
    bids = [e.bid for e in nameless(seen)]
    return max((bid for bid in bids if int(bid) < int(trash)), key=int), trash, star
