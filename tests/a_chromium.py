"""The Chromium of this machine, for tests that look at pages of files or of a local server."""

from contextlib import contextmanager

from helpers.browser.chromium import find_chromium


@contextmanager
def a_chromium():
    """A browser without a window, until the block ends."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        yield browser
        browser.close()
