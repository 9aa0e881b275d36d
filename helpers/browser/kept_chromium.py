"""One Chromium that stays open, for the sessions of a worker."""

import asyncio

from browsergym.core.constants import BROWSERGYM_ID_ATTRIBUTE
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from helpers.browser import private
from helpers.browser.chromium import find_chromium, task_flags
from helpers.browser.clipboard import SharedClipboard
from helpers.browser.options import PageRules
from helpers.browser.sandbox import launch_sandboxed
from helpers.browser.viewport import SETUP

ORIGIN = "http://miniwob.localhost"  # a name, no port: the same address and text in every run
DEFAULT_TIMEOUT_MS = 5_000  # MiniWoB's own, for what has no time limit of its own


class KeptChromium:
    """One Chromium and the sessions in it. They may take turns in greenlets, but not in threads:
    Playwright is bound to one."""

    def __init__(self, page_port: int, rules: PageRules | None = None) -> None:
        """Start Chromium. Its only pages are those that a server of ours serves on ``page_port``.
        FileNotFoundError where there is no Chromium, Playwright's error where it does not start."""
        self.rules = rules or PageRules()
        self.generation = 0  # of the browser, counted from 1: contexts of an older one are gone
        self._flags = task_flags(ORIGIN.removeprefix("http://"), page_port)
        self._page_script = private.page_script()
        self._starting = asyncio.Lock()
        self.playwright = sync_playwright().start()
        # Before the first locator: BrowserGym's functions find elements by their bid.
        self.playwright.selectors.set_test_id_attribute(BROWSERGYM_ID_ATTRIBUTE)
        self.browser = self._launch()
        self.clipboard = SharedClipboard(self)

    def _launch(self) -> Browser:
        self.generation += 1

        def launch(sandbox: bool) -> Browser:
            return self.playwright.chromium.launch(
                executable_path=find_chromium(),
                headless=True,
                args=self._flags,
                ignore_default_args=["--hide-scrollbars"],  # they belong to the picture
                chromium_sandbox=sandbox,
            )

        browser, self.warning = launch_sandboxed(launch)
        return browser

    def is_connected(self) -> bool:
        """Whether Chromium still runs."""
        return self.browser.is_connected()

    def new_context(self) -> BrowserContext:
        """A new browser context; Chromium is started again where it died."""
        # Two sessions may notice at once that it died: only the first starts it again.
        private.wait_for(self.playwright, self._starting.acquire())
        try:
            if not self.is_connected():
                self.browser = self._launch()
        finally:
            self._starting.release()
        context = self.browser.new_context(viewport=SETUP, accept_downloads=False)
        context.set_default_timeout(DEFAULT_TIMEOUT_MS)
        context.add_init_script(self._page_script)
        return context

    def close(self) -> None:
        """Stop Chromium and Playwright. A worker process has no need of it: it is killed."""
        self.browser.close()
        self.playwright.stop()
