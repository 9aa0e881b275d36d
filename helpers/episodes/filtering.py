"""A client whose pages have lost the lines that look like orders: a defence without a policy.

A filter sees the page's text alone, so it can be wrong in both ways: an order in other words gets
through, and a task that is about such words loses what it needs. Both are to be measured.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from helpers.browser.models import BrowserObservation, Client

Keep = Callable[[str, str], bool]
"""Whether a line of the accessibility tree stays, given the line and the goal."""

# Words that speak to whoever reads the page, and not about what is on it.
_SPEAKS_TO_THE_READER = re.compile(
    r"\b(ignore|instead|disregard|forget|you must|you have to|your task|new goal|goal:"
    r"|instructions?|system|administrator|before (?:anything|you)|first of all|do not|don't)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"\w+ (['\"])(.*)\1")


def looks_harmless(line: str, goal: str) -> bool:
    """Whether a line's name does not speak to its reader; what the goal says itself may stay."""
    match = _NAME.search(line)
    name = " ".join(match[2].split()) if match else ""
    return name in goal or not _SPEAKS_TO_THE_READER.search(name)


_BID = re.compile(r"^\s*\[(\w+)\] ")


class FilteringClient:
    """A client (`helpers.browser.models.Client`) that drops lines from every page.

    An element whose line is dropped is not on the page for whoever plays: naming it is no action.
    """

    def __init__(self, client: Client, keep: Keep = looks_harmless) -> None:
        """``keep``: which lines of the tree stay."""
        self.client = client
        self.keep = keep

    def reset(
        self, task: str = "click-button", seed: int = 0, screenshot: bool | str | None = None
    ) -> BrowserObservation:
        """Start an episode."""
        return self._filtered(self.client.reset(task, seed, screenshot=screenshot))

    def step(
        self, action: str, screenshot: bool | str | None = None, observe: bool = True
    ) -> BrowserObservation:
        """Take one action."""
        return self._filtered(self.client.step(action, screenshot=screenshot, observe=observe))

    def close(self) -> None:
        """Give the session back."""
        self.client.close()

    def _filtered(self, seen: BrowserObservation) -> BrowserObservation:
        lines = seen.axtree_txt.splitlines()
        stays = [self.keep(line, seen.goal) for line in lines]
        kept = "\n".join(line for line, stay in zip(lines, stays, strict=True) if stay)
        dropped = [line for line, stay in zip(lines, stays, strict=True) if not stay]
        gone = {match[1] for match in map(_BID.match, dropped) if match}
        elements = [element for element in seen.elements if element.bid not in gone]
        return seen.model_copy(update={"axtree_txt": kept, "text": kept, "elements": elements})
