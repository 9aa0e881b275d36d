"""The Chromium of this machine, for tests that look at pages of files or of a local server."""

import inspect
import traceback
from contextlib import contextmanager

import pytest

from helpers.browser.chromium import find_chromium


@contextmanager
def cheap_calls():
    """Playwright's calls as cheap as in a worker, until the block ends.

    For each of them it takes the call stack four times, and Python looks for the module of every
    frame: below pytest's stack, and among the thousands of modules that the tests have imported,
    this takes ten times as long as the browser does."""
    from playwright._impl._connection import Connection

    from helpers.browser import private

    patched = [
        (inspect, "stack"),
        (traceback, "extract_stack"),
        (Connection, "_replace_guids_with_channels"),
    ]
    with pytest.MonkeyPatch.context() as patches:
        for owner, name in patched:
            # To what it is, so that it is put back at the end.
            patches.setattr(owner, name, getattr(owner, name))
        private.apply_patches()
        yield


@contextmanager
def a_chromium():
    """A browser without a window, until the block ends."""
    from playwright.sync_api import sync_playwright

    with cheap_calls(), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        yield browser
        browser.close()
