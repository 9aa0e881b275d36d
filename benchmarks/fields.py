"""What two observations of the same moment have in common, field by field: ours and stock
BrowserGym's, as `benchmarks.stock_browsergym` describes it."""

import difflib
import re
from typing import Any

from benchmarks.pictures import VISIBLE, differing_share, read_picture
from helpers.browser import BrowserObservation

# What a policy that reads text is sent.
TEXT_FIELDS = (
    "goal",
    "axtree_txt",
    "bids",
    "clickable",
    "focused_bid",
    "error",
    "url",
    "bbox",
    "reward",
    "raw_reward",
    "done",
)
# What comes with pictures and details.
DETAIL_FIELDS = ("visibility", "set_of_marks", "pruned_html", "screenshot")
FIELDS = (*TEXT_FIELDS, *DETAIL_FIELDS)
PAY = ("reward", "raw_reward", "done")

Differences = dict[str, str]  # field -> how it differs, in a few words


def without_port(text: str) -> str:
    """A text in which the address of the task pages is the same on every server."""
    return re.sub(r"http://(127\.0\.0\.1:\d+|miniwob\.localhost)/", "http://host/", text)


def differences_of(seen: BrowserObservation, stock: dict[str, Any]) -> Differences:
    """The fields in which our observation differs from stock's, and how. Of pictures and details
    only what was asked for, here and there, is compared."""
    if seen.infrastructure_error:
        return {"infrastructure_error": seen.infrastructure_error}
    found = _pay(seen, stock)
    if seen.ended == "left_page" and stock["left"]:
        return found  # the page is not the task's any more; ours is not read
    ours, theirs = _text(seen, stock)
    if seen.details:
        mine, others = _details(seen, stock)
        ours |= mine
        theirs |= others
    for name, value in ours.items():
        if value != theirs[name]:
            found[name] = explain(value, theirs[name])
    if seen.screenshot and "screenshot" in stock:
        share = differing_share(read_picture(seen.screenshot), stock["screenshot"])
        if share:
            found["screenshot"] = f"{share:.2%} of the pixels differ by more than {VISIBLE}"
    return found


def _pay(seen: BrowserObservation, stock: dict[str, Any]) -> Differences:
    """What the episode has earned so far. Stock pays nothing once a link to "#" was clicked, and
    ends the episode; we go by the page."""
    if only_a_fragment(stock):
        return {}
    ours = {
        "reward": float(seen.done and (seen.raw_reward or 0) > 0),
        "raw_reward": seen.raw_reward,
        "done": seen.done,
    }
    return {name: explain(ours[name], stock[name]) for name in PAY if ours[name] != stock[name]}


def only_a_fragment(stock: dict[str, Any]) -> bool:
    """Whether stock ended the episode because a link to "#" was clicked."""
    return (
        stock["left"].startswith("invalid url")
        and "#" in stock["url"]
        and "/miniwob/" in stock["url"]
    )


def _text(seen: BrowserObservation, stock: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Our text and elements, and stock's, in the same terms.

    Stock lists the bids of the whole document, we those that a policy may act on: they have to be
    among stock's, with the same flag and box. Of an error stock's record keeps the first line, to
    which we add the page's reason.
    """
    own = {e.bid for e in seen.elements}
    known = own & set(stock["bids"])
    said = stock["error"]
    same_error = bool(said) and seen.error.startswith(said)
    ours = {
        "goal": seen.goal,
        "axtree_txt": without_port(seen.axtree_txt),
        "bids": sorted(own),
        "clickable": sorted(e.bid for e in seen.elements if e.clickable),
        "focused_bid": seen.focused_bid,
        "error": said if same_error else seen.error,
        "url": without_port(seen.url),
        "bbox": {e.bid: list(e.box) if e.box else None for e in seen.elements},
    }
    theirs = {
        "goal": stock["goal"],
        "axtree_txt": without_port(stock["axtree_txt"]),
        "bids": sorted(known),
        "clickable": sorted(own & set(stock["clickable"])),
        "focused_bid": stock["focused_bid"],
        "error": said,
        "url": without_port(stock["url"]),
        "bbox": {bid: _rounded(stock["bbox"].get(bid)) for bid in ours["bbox"]},
    }
    return ours, theirs


def _rounded(box: list[float] | None) -> list[float] | None:
    """A box as our elements have it."""
    return [round(number, 1) for number in box] if box else None


def _details(
    seen: BrowserObservation, stock: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What stock tells of every element of the document, and its HTML: ours and stock's."""
    properties = seen.details["extra_element_properties"].items()
    ours = {
        "bids": sorted(bid for bid, _ in properties),
        "clickable": sorted(bid for bid, known in properties if known["clickable"]),
        "bbox": {bid: known["bbox"] for bid, known in properties},
        "visibility": {bid: known["visibility"] for bid, known in properties},
        "set_of_marks": sorted(bid for bid, known in properties if known["set_of_marks"]),
        "pruned_html": without_port(seen.pruned_html),
    }
    theirs = {name: stock[name] for name in ours}
    theirs["pruned_html"] = without_port(stock["pruned_html"])
    return ours, theirs


def explain(ours: Any, theirs: Any, most: int = 300) -> str:
    """How two values differ, in at most so many characters."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        bids = [bid for bid in {**ours, **theirs} if ours.get(bid) != theirs.get(bid)]
        shown = [f"{bid}: {ours.get(bid)}, stock {theirs.get(bid)}" for bid in bids]
        return f"{len(bids)} differ; {'; '.join(shown)}"[:most]
    if isinstance(ours, list) and isinstance(theirs, list):
        added = [each for each in ours if each not in theirs]
        missing = [each for each in theirs if each not in ours]
        return f"{added} here alone, {missing} in stock alone"[:most]
    if isinstance(ours, str) and isinstance(theirs, str) and "\n" in ours + theirs:
        lines = difflib.unified_diff(theirs.split("\n"), ours.split("\n"), n=0, lineterm="")
        changed = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
        return " | ".join(" ".join(line.split()) for line in changed)[:most]
    return f"{ours!r}, stock {theirs!r}"[:most]
