"""Scripts for links that are words of a running text, behind tabs and sections or not.

The tree shows such a link as a piece of text without a bid; the list of elements has its bid and no
name. Both are in the order of the page: what has to be found is which of the pieces are links.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from helpers.episodes.play import Agent
from helpers.evaluation.scripted.page import (
    click,
    first_quoted,
    nameless,
    plain_texts,
    with_role,
)

if TYPE_CHECKING:  # importing OpenEnv's types takes seconds
    from helpers.browser.models import BrowserObservation, Element


def _link(seen: BrowserObservation) -> Element | None:
    """The link that the goal has in quotes; None where the page as it is now does not show it."""
    texts, links, wanted = plain_texts(seen), nameless(seen), first_quoted(seen)
    ranks = Counter(
        rank
        for places in _readings(texts, len(links))
        for rank, place in enumerate(places)
        if texts[place] == wanted
    )
    return links[ranks.most_common(1)[0][0]] if ranks else None


def _readings(texts: list[str], links: int) -> Iterator[tuple[int, ...]]:
    """Each way in which so many of the texts can be links, as their places: a link is one word, and
    two pieces of plain text never follow each other."""
    words = [place for place, text in enumerate(texts) if text and " " not in text]
    for chosen in itertools.combinations(words, links):
        plain = set(range(len(texts))) - set(chosen)
        if not any(place + 1 in plain for place in plain):
            yield chosen


def in_text(seen: BrowserObservation, turn: int) -> str:
    """Clicks the link that the goal names."""
    return click(_link(seen))


def behind(role: str, first_is_open: bool) -> Agent:
    """Clicks the link that the goal names, and until it is shown opens one tab after another.

    ``role``: of what opens a tab. ``first_is_open``: when the episode begins.
    """

    def act(seen: BrowserObservation, turn: int) -> str:
        link = _link(seen)
        if link:
            return click(link)
        tabs = with_role(seen, role)
        return click(tabs[(turn + first_is_open) % len(tabs)])

    return act
