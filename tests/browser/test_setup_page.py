"""MiniWoB's set-up in a page that is kept: a task is waited for where it is not ready at once."""

import pytest
from playwright.sync_api import Page

# Ready when it has been asked for the fourth time.
LATE = """let asked = 0;
Object.defineProperty(window, "WOB_TASK_READY", {get: () => ++asked > 3, set: () => {}});"""


@pytest.fixture
def waits(monkeypatch):
    """The functions that Playwright was told to wait for."""
    waited = []
    wait = Page.wait_for_function

    def count(page, script, *arguments, **named):
        waited.append(script)
        return wait(page, script, *arguments, **named)

    monkeypatch.setattr(Page, "wait_for_function", count)
    return waited


def test_a_task_that_is_ready_is_not_waited_for(session, waits):
    session.close()
    # A new page, one that is loaded anew, and one that starts again as it stands.
    for task in ("click-test", "choose-date", "click-test", "click-test"):
        assert session.reset(task, 0)["task_info"]["TASK_READY"] is True
    assert waits == []


def test_a_task_that_is_not_ready_at_once_is_waited_for(session, waits):
    session.close()
    session.reset("click-test", 0)
    session.opened.context.add_init_script(LATE)
    start = session.reset("choose-date", 0)
    assert len(waits) == 1
    assert start["task_info"]["TASK_READY"] is True
    assert start["elements"]
    session.close()  # the context with the late page
