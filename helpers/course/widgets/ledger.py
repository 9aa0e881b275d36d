"""Read the ledger of an episode: who wrote which token, and how likely it was."""

from html import escape
from itertools import groupby
from typing import Any

import ipywidgets as w

from helpers.course.widgets.live import show_live
from helpers.episodes.ledger import POLICY, Ledger

AUTHORS = {
    "prompt": "background:#e8e8e8",
    "policy": "background:#f6c667;text-decoration:underline solid",
    "environment": "background:#bfe3f7;text-decoration:underline dotted",
}  # in the order of `Ledger.owner`


def _token(text: str, token: int, who: int, logprob: float, written: bool) -> str:
    text = escape(text).replace("\n", "↵" if written else "↵<br>").replace(" ", "&nbsp;") or "∅"
    facts = [f"id {token}", *[f"logprob {logprob:.2f}"] * (who == POLICY)]
    mark = f'<span title="{", ".join(facts)}" style="{list(AUTHORS.values())[who]};color:black;margin-right:1px">{text}</span>'
    if not written:
        return f"{mark}<wbr>"
    below = "<br>".join(fact.split()[1] for fact in facts)
    return f'<span style="display:inline-block;vertical-align:top;margin:0 4px 4px 0">{mark}<br><small>{below}</small></span>'


def ledger_html(
    ledger: Ledger, tokenizer: Any, start: int = 0, end: int | None = None, written: bool = False
) -> str:
    """Tokens ``start`` to ``end`` of a ledger in the colours of their authors, as HTML. A token's id and logprob show when the
    pointer is on it; or they are ``written`` below it."""
    rows = list(zip(ledger.ids, ledger.owner, ledger.logprobs, strict=True))[start:end]
    spans = [
        _token(tokenizer.decode([token]), token, who, logprob, written)
        for token, who, logprob in rows
    ]
    counts = " · ".join(
        f'<span style="{style};color:black">&nbsp;{name}: {ledger.owner.count(i)} tokens&nbsp;</span>'
        for i, (name, style) in enumerate(AUTHORS.items())
    )
    skipped = f"<i>… {start} tokens …</i> " if start and not written else ""
    return (
        f'<p>{counts}</p><div style="font-family:monospace;font-size:12px;line-height:{1.2 if written else 1.7}">'
        f"{skipped}{''.join(spans)}</div>"
    )


def browse_ledger(ledger: Ledger, tokenizer: Any, size: int = 64) -> None:
    """Page through a ledger, one author's piece (at most ``size`` tokens) at a time, with id and logprob below each token."""
    pages, at = [], 0
    for who, run in groupby(ledger.owner):
        first, at = at, at + len(list(run))
        pages += [
            (list(AUTHORS)[who], start, min(start + size, at)) for start in range(first, at, size)
        ]
    number, piece = w.IntSlider(1, 1, max(1, len(pages)), description="page"), w.HTML()

    def draw(_: Any = None) -> None:
        author, start, end = pages[number.value - 1]
        piece.value = (
            f"<b>page {number.value} of {len(pages)}: tokens {start + 1} to {end}, written by the {author}</b>"
            + ledger_html(ledger, tokenizer, start, end, written=True)
        )

    def turn(pages_on: int) -> None:
        number.value += pages_on  # the slider keeps to its ends

    back, on = w.Button(description="previous"), w.Button(description="next")
    back.on_click(lambda _: turn(-1))
    on.on_click(lambda _: turn(1))
    number.observe(draw, "value")
    if pages:
        draw()
    show_live(
        w.VBox([w.HBox([number, back, on]), piece]),
        "Run this notebook to page through the ledger here, with id and logprob below each token.",
    )
