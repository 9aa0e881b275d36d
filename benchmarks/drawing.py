"""How this machine draws a page: pictures and boxes of two machines can be compared only where it
is the same."""

from typing import Any

from playwright.sync_api import Page

from helpers.settings.paths import RECORDINGS

DRAWN_BY = RECORDINGS / "parity" / "drawn_by.json"  # the machine that made the record
SAMPLE = "Submit 0123456789 — Whether it is the same"
FONTS = ("sans-serif", "serif", "monospace", "Arial", "Helvetica", "Times New Roman", "Courier New")
WIDTHS = """([text, fonts]) => {
  const draw = document.createElement("canvas").getContext("2d");
  return Object.fromEntries(fonts.map(font => {
    draw.font = `16px "${font}", ${font}`;
    return [font, draw.measureText(text).width];
  }));
}"""


def drawing(page: Page) -> dict[str, Any]:
    """The browser's version, and how wide a line is in the fonts that pages ask for."""
    browser = page.context.browser
    return {
        "chromium": browser.version if browser else "",
        "widths": page.evaluate(WIDTHS, [SAMPLE, list(FONTS)]),
    }


def draw_alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether what two machines draw can be compared: one release of Chromium, and equal widths.

    The fourth number of a version is a patch, which mends faults and draws alike: 156.0.8078.108
    showed all 1,001 observations that were recorded with 156.0.8078.79.
    """
    releases = {drawn["chromium"].rpartition(".")[0] for drawn in (one, other)}
    return len(releases) == 1 and one["widths"] == other["widths"]
