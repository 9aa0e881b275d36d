"""A clipboard for each episode, although Chromium has only one for all its pages.

Copying and pasting themselves are left to Chromium. While a session presses keys that may do
either, it has Chromium's clipboard to itself; before that, what another episode has in it is put
away, and what the session's own episode had copied is put back. An episode that was the last to use
the clipboard finds it as it left it, which costs nothing.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from playwright.sync_api import Browser, Page, Playwright
from playwright.sync_api import Error as PlaywrightError

from helpers.browser import private
from helpers.browser.pool import InfrastructureError
from helpers.settings.errors import first_line

# A page that no episode sees, whose field is pasted into: the events carry what the clipboard
# holds, each kind of text by its MIME type.
HELPER = "<body contenteditable autofocus></body>"
LISTEN = """() => {
    addEventListener("paste", event => {
        const data = event.clipboardData;
        const texts = [...data.types].filter(type => type !== "Files");
        window.pasted = Object.fromEntries(texts.map(type => [type, data.getData(type)]));
        event.preventDefault();
    });
    document.body.focus();
}"""
PASTED = "() => { const found = window.pasted; delete window.pasted; return found; }"
# With no text at all Chromium would keep what it has.
COPY = """contents => {
    addEventListener("copy", event => {
        const texts = Object.keys(contents).length ? contents : {"text/plain": ""};
        for (const [type, text] of Object.entries(texts)) event.clipboardData.setData(type, text);
        event.preventDefault();
    }, {once: true});
    return document.execCommand("copy");
}"""


class Chromium(Protocol):
    """What is needed of `helpers.browser.kept_chromium.KeptChromium`."""

    playwright: Playwright
    browser: Browser
    generation: int  # of the browser, which may be started again


@dataclass
class Clipboard:
    """What an episode has copied, while Chromium holds something else: texts by MIME type."""

    contents: dict[str, str] = field(default_factory=dict)
    wanted: bool = True  # False once the episode is over


class SharedClipboard:
    """Chromium's one clipboard, and whose turn it is to use it."""

    def __init__(self, chromium: Chromium) -> None:
        self._chromium = chromium
        self._turn = asyncio.Lock()
        self._in_chromium: Clipboard | None = None  # whose contents Chromium holds
        self._helper: Page | None = None
        self._generation = 0  # of the browser that the helper is a page of

    @contextmanager
    def used_by(self, own: Clipboard) -> Iterator[None]:
        """Chromium holds what ``own`` does, and nobody else uses its clipboard meanwhile.
        `InfrastructureError` where it cannot be handed over."""
        private.wait_for(self._chromium.playwright, self._turn.acquire())
        try:
            try:
                self._hand_over(own)
            except PlaywrightError as error:
                why = first_line(error)
                raise InfrastructureError(f"the clipboard was not handed over: {why}") from error
            yield
        finally:
            self._turn.release()

    def _hand_over(self, own: Clipboard) -> None:
        helper = self._open_helper()
        before = self._in_chromium
        if before is own:
            return
        self._in_chromium = None
        if before is not None and before.wanted:
            helper.keyboard.press("Control+v")
            before.contents = helper.evaluate(PASTED)
        helper.evaluate(COPY, own.contents)
        self._in_chromium = own

    def _open_helper(self) -> Page:
        """The helper's page, opened with the first use of the clipboard in this browser."""
        if self._helper is None or self._generation != self._chromium.generation:
            self._in_chromium = None  # a browser that was started again has lost it
            self._helper = self._chromium.browser.new_context().new_page()
            self._generation = self._chromium.generation
            self._helper.set_content(HELPER)
            self._helper.evaluate(LISTEN)
        return self._helper


def may_use_clipboard(keys: list[str]) -> bool:
    """Whether pressing ``keys`` together may copy, cut or paste, which no key does alone."""
    return len(keys) > 1
