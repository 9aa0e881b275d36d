"""Elements that listen to clicks and have no name: how the lines of a page show them.

The accessibility tree leaves most of them out. A word in a text that is a link in all but name, a
row of an inbox, a square of a board: the tree has their texts at most, and no number. A policy that
reads the tree alone cannot act on them; the observation's elements have them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from helpers.browser.models import Element

# Roles whose first text is what a reader would call them by. A field's text is what it holds, and
# that of a list of tabs is its first tab's.
CALLED_BY_THEIR_TEXT = {"generic", "LabelText", "Section", "paragraph", "listitem"}
# Those that say how a page is built, and nothing else where they neither have a name nor listen.
STRUCTURE = {"table", "rowgroup", "row", "cell", "tablist", "menu"}


class Listeners:
    """Those of one page, while its lines are made from top to bottom."""

    def __init__(self, elements: Iterable[Element], in_tree: Collection[str]) -> None:
        """``in_tree``: the bids that have a line of the tree's own."""
        unnamed = [e for e in elements if not e.name]
        called = [e for e in unnamed if e.role in CALLED_BY_THEIR_TEXT]
        self._texts = {e.bid: e.text for e in called if e.bid in in_tree}
        self._left = [e for e in called if e.clickable and e.bid not in in_tree]
        self._useless = {e.bid for e in unnamed if not e.clickable and e.role in STRUCTURE}

    def can_do_without(self, bid: str | None) -> bool:
        """Whether an element of the tree tells nothing and takes nothing."""
        return bid in self._useless

    def text_in(self, bid: str | None) -> str:
        """The first text in an element of the tree that has no name; "" where it is none of
        these."""
        return self._texts.get(bid or "", "")

    def take(self, text: str) -> Element | None:
        """The element that a text of the tree belongs to; None where it is none's.

        Of elements within each other that begin with the same text the outermost has it.
        """
        for element in self._left:
            if element.text == text:
                self._left = [e for e in self._left if e.text != text or not _within(e, element)]
                return element
        return None

    def insert_others(self, lines: list[tuple[str | None, str]], shown: Iterable[Element]) -> None:
        """Put those without any text where they stand in the page. ``lines``: (bid, line) of what
        is shown, from top to bottom; bids are numbers in that order. Left out are those that lie
        within another element: clicking that one clicks them."""
        around = list(shown)
        for element in self._left:
            if element.text or not element.bid.isdigit():
                continue
            if not any(_within(element, other) for other in around if other is not element):
                before = (_is_before(bid, element.bid) for bid, _ in lines)
                place = max((i + 1 for i, is_before in enumerate(before) if is_before), default=0)
                lines.insert(place, (element.bid, line_of("", element.role, element.bid)))
                around.append(element)


def line_of(name: str, role: str, bid: str) -> str:
    """An element as the policy reads it."""
    return f'"{name}" {role} {bid}'


def _is_before(bid: str | None, other: str) -> bool:
    return bid is not None and bid.isdigit() and int(bid) < int(other)


def _within(inner: Element, outer: Element) -> bool:
    """Whether an element is drawn within another one, or as large."""
    if inner.box is None or outer.box is None:
        return inner.box is None
    return _covers(outer.box, inner.box)


def _covers(outer: Sequence[float], inner: Sequence[float]) -> bool:
    return (
        outer[0] <= inner[0]
        and outer[1] <= inner[1]
        and outer[0] + outer[2] >= inner[0] + inner[2]
        and outer[1] + outer[3] >= inner[1] + inner[3]
    )
