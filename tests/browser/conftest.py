"""A session without the server and the worker around it."""

import pytest
from a_chromium import cheap_calls


@pytest.fixture(scope="module")
def session():
    """One whose page a test can look at. It runs in the test's own process, so nothing here may
    run an asyncio loop at the same time."""
    from helpers.browser.kept_chromium import KeptChromium
    from helpers.browser.session import Session
    from helpers.browser.task_pages import serve_task_pages

    with cheap_calls():
        pages = serve_task_pages()
        chromium = KeptChromium(pages.server_port)
        yield Session(chromium)
        chromium.close()
        pages.shutdown()
