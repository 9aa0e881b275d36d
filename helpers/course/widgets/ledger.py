"""Read the ledger of an episode: who wrote which token, and how likely it was."""

from __future__ import annotations

from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

import ipywidgets as w

from helpers.course.widgets.live import show_live
from helpers.episodes.ledger import ENVIRONMENT, POLICY, PROMPT, Ledger
from helpers.settings.language import say

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


STYLES = {  # how a token looks, by its author
    PROMPT: "background:#e8e8e8",
    POLICY: "background:#f6c667;text-decoration:underline solid",
    ENVIRONMENT: "background:#bfe3f7;text-decoration:underline dotted",
}


def _authors() -> dict[int, str]:
    """The names of those who may write a token."""
    return {PROMPT: say("prompt"), POLICY: say("policy"), ENVIRONMENT: say("environment")}


def ledger_html(
    ledger: Ledger,
    tokenizer: PreTrainedTokenizerBase,
    start: int = 0,
    end: int | None = None,
    written: bool = False,
) -> str:
    """Tokens ``start`` to ``end`` of a ledger in the colours of their authors, as HTML.

    A token's id and logprob show when the pointer is on it; or they are ``written`` below it.
    """
    rows = list(zip(ledger.ids, ledger.owner, ledger.logprobs, strict=True))[start:end]
    tokens = [
        _token_html(str(tokenizer.decode([token])), token, owner, logprob, written)
        for token, owner, logprob in rows
    ]
    legend = " · ".join(
        f'<span style="{STYLES[owner]};color:black">&nbsp;'
        f"{say('{name}: {n} tokens', name=name, n=ledger.owner.count(owner))}&nbsp;</span>"
        for owner, name in _authors().items()
    )
    skipped = say("… {n} tokens …", n=start)
    skipped = f"<i>{skipped}</i> " if start and not written else ""
    height = 1.2 if written else 1.7
    style = f"font-family:monospace;font-size:12px;line-height:{height}"
    return f'<p>{legend}</p><div style="{style}">{skipped}{"".join(tokens)}</div>'


def browse_ledger(ledger: Ledger, tokenizer: PreTrainedTokenizerBase, size: int = 64) -> None:
    """Page through a ledger, with id and logprob below each token.

    A page is one author's piece, or ``size`` tokens of it where it is longer.
    """
    pages = _pages(ledger, size)
    number = w.IntSlider(1, 1, max(1, len(pages)), description=say("page number"))
    piece = w.HTML()
    back = w.Button(description=say("previous"))
    on = w.Button(description=say("next"))

    def draw(_: object = None) -> None:
        owner, start, end = pages[number.value - 1]
        title = say(
            "page {page} of {pages}: tokens {start} to {end}, written by the {author}",
            page=number.value,
            pages=len(pages),
            start=start + 1,
            end=end,
            author=_authors()[owner],
        )
        tokens = ledger_html(ledger, tokenizer, start, end, written=True)
        piece.value = f"<b>{title}</b>{tokens}"

    def turn_back(_: w.Button) -> None:
        number.value -= 1  # the slider keeps to its ends

    def turn_on(_: w.Button) -> None:
        number.value += 1

    back.on_click(turn_back)
    on.on_click(turn_on)
    number.observe(draw, "value")
    if pages:
        draw()
    show_live(
        w.VBox([w.HBox([number, back, on]), piece]),
        say(
            "Run this notebook to page through the ledger here, with id and logprob below each "
            "token."
        ),
    )


def _token_html(text: str, token: int, owner: int, logprob: float, written: bool) -> str:
    """One token in its author's colour, with its facts in a title or written below it."""
    newline = "↵" if written else "↵<br>"
    visible = escape(text).replace("\n", newline).replace(" ", "&nbsp;") or "∅"
    facts = {"id": str(token)}
    if owner == POLICY:
        facts["logprob"] = f"{logprob:.2f}"
    title = ", ".join(f"{name} {value}" for name, value in facts.items())
    style = f"{STYLES[owner]};color:black;margin-right:1px"
    mark = f'<span title="{title}" style="{style}">{visible}</span>'
    if not written:
        return f"{mark}<wbr>"
    below = "<br>".join(facts.values())
    block = "display:inline-block;vertical-align:top;margin:0 4px 4px 0"
    return f'<span style="{block}">{mark}<br><small>{below}</small></span>'


def _pages(ledger: Ledger, size: int) -> list[tuple[int, int, int]]:
    """Owner, first token and end of each page."""
    pages = []
    start = 0
    for owner, piece in groupby(ledger.owner):
        end = start + len(list(piece))
        pages += [(owner, first, min(first + size, end)) for first in range(start, end, size)]
        start = end
    return pages
