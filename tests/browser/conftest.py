"""A session without the server and the worker around it."""

import inspect
import traceback

import pytest
from playwright._impl._connection import Connection


@pytest.fixture(scope="module")
def session():
    """One whose page a test can look at. It runs in the test's own process, so nothing here may
    run an asyncio loop at the same time."""
    from helpers.browser import private
    from helpers.browser.kept_chromium import KeptChromium
    from helpers.browser.session import Session
    from helpers.browser.task_pages import serve_task_pages

    with pytest.MonkeyPatch.context() as patches:
        # As in a worker; below pytest's stack each call of Playwright takes ten times as long
        # without. Each is set to what it is, so that it is put back at the end.
        patches.setattr(inspect, "stack", inspect.stack)
        patches.setattr(traceback, "extract_stack", traceback.extract_stack)
        original = Connection._replace_guids_with_channels
        patches.setattr(Connection, "_replace_guids_with_channels", original)
        private.apply_patches()
        pages = serve_task_pages()
        chromium = KeptChromium(pages.server_port)
        yield Session(chromium)
        chromium.close()
        pages.shutdown()
