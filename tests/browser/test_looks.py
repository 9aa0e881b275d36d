"""A look at the page leaves out what costs time and nobody reads; what is read is BrowserGym's."""

import browsergym.core.observation as stock
import pytest

from helpers.browser import private
from helpers.browser.options import Want

# Pages with fields, lists, drawings, tables, icons, what is out of view and what is hidden.
PAGES = ("choose-list", "click-pie", "read-table", "social-media", "email-inbox", "click-dialog")


@pytest.mark.parametrize("task", PAGES)
def test_boxes_are_those_of_a_snapshot_with_rectangles(session, task):
    session.reset(task, 3, Want(details=True))
    page = session.opened.extraction
    session.opened.page.evaluate("() => __course.markWithVisibility()")
    full = stock.extract_dom_snapshot(page, include_dom_rects=True)
    ours = private.dom_snapshot(page)
    read = stock.extract_dom_extra_properties(ours, scale_factor=1.5)
    assert read == stock.extract_dom_extra_properties(full, scale_factor=1.5)
    assert any(known["bbox"] for known in read.values())
    assert any(known["bbox"] is None for known in read.values())


@pytest.mark.parametrize("task", PAGES)
def test_a_policy_is_told_the_same_with_and_without_details(session, task):
    session.close()
    with_details = session.reset(task, 3, Want(details=True))
    assert with_details["details"]["extra_element_properties"]
    session.close()
    without = session.reset(task, 3)
    for field in ("text", "elements", "focused_bid", "goal"):
        assert without[field] == with_details[field]
