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
    ours = private.dom_snapshot(page, shown=False)
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


class Messages(list):
    """Those that a session sends to Playwright's driver while this is entered."""

    def __init__(self, session):
        super().__init__()
        self.connection = session.opened.page._impl_obj._connection

    def __enter__(self):
        send = self.connection._send_message_to_server

        def note(channel, method, *arguments, **named):
            self.append(method)
            return send(channel, method, *arguments, **named)

        self.connection._send_message_to_server = note
        return self

    def __exit__(self, *_):
        del self.connection._send_message_to_server


def test_an_action_takes_seven_messages(session):
    """Each takes the time of five processes: the page's size, a look at the element, the click, the
    time that passes, the boxes, the tree, and the marks that are taken off."""
    session.close()
    session.reset("click-checkboxes", 0)
    with Messages(session) as first:
        session.step("click('15')")
    assert len(first) == 7
    with Messages(session) as second:
        session.step("click('17')")
    assert len(second) == 6  # the size is right by now


def test_a_look_waits_once(session):
    """Boxes, tree and marks: what comes back is waited for when all three have been sent."""
    session.close()
    session.reset("click-checkboxes", 0)
    with Messages(session) as messages:
        answered = []
        dispatch = messages.connection.dispatch

        def note(message):
            answered.append(len(messages))
            dispatch(message)

        messages.connection.dispatch = note
        session.step("noop()")
        del messages.connection.dispatch
    sent_in_all = len(messages)
    sent_before = sent_in_all - 3
    assert [sent for sent in answered if sent > sent_before] == [sent_in_all] * 3


def test_a_look_that_breaks_off_is_taken_again(session):
    session.close()
    before = session.reset("click-dialog", 0)
    session.opened.page.evaluate("""() => {
        const remove = Element.prototype.removeAttribute;
        Element.prototype.removeAttribute = function (name) {
            if (!name.startsWith("aria-")) return remove.call(this, name);
            Element.prototype.removeAttribute = remove;
            window.brokenOff = true;
            throw new Error("the marks are not all taken off");
        };
    }""")
    again = session.step("noop()")
    assert (again["text"], again["elements"]) == (before["text"], before["elements"])
    assert "browsergym_id_" not in session.opened.page.content()
    assert session.opened.page.evaluate("() => window.brokenOff")


def test_what_happens_after_a_look_is_seen_by_the_next(session):
    """What the page said of an action is of that moment alone."""
    session.close()
    session.reset("click-test", 0)
    page = session.opened.page
    assert not session.step("noop()")["done"]
    page.evaluate("() => { document.querySelector('button').remove(); core.endEpisode(1); }")
    seen = session.step("click('999')")
    assert (seen["done"], seen["reward"]) == (True, 1.0)
    assert "button" not in seen["text"]


def test_marks_that_nobody_has_looked_at_are_made_anew(session):
    """As where a document that was loading got in between."""
    session.close()
    before = session.reset("click-dialog", 0)
    session.opened.page.evaluate("() => __course.mark()")
    session.opened.page.evaluate("() => __course.mark()")
    again = session.step("noop()")
    assert (again["text"], again["elements"]) == (before["text"], before["elements"])
    html = session.opened.page.content()
    assert "browsergym_id_" not in html
