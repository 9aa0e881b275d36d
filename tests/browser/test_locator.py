"""What the machine's load does is not the policy's fault: no action fails because time ran out, and
none that may have reached the page is made twice.

A busy machine is played by the page, which counts what reaches it, and by time limits that are far
too short; so the tests do not depend on how busy the machine is.
"""

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from helpers.browser import locator, private
from helpers.browser.locator import CallLog, LoadTolerantLocator, split_keys
from helpers.browser.pool import InfrastructureError

LOG = """Locator.click: Timeout 500ms exceeded.
Call log:
waiting for get_by_test_id("13")
  -   locator resolved to <p bid="13">element is not visible</p>
  - fill("the dog intercepts pointer events")
  - attempting click action
  -   waiting for element to be visible, enabled and stable
  -   element is visible, enabled and stable
  -   scrolling into view if needed
  -   done scrolling
"""
PERFORMING = "  -   performing click action\n"
REFUSED = '  -   <div id="top">Top</div> intercepts pointer events\n'
DONE = "  -   click action done\n  -   waiting for scheduled navigations to finish\n"


def timeout(log):
    return PlaywrightTimeout(log)


@pytest.mark.parametrize(
    "rest, refusals, under_way, done",
    [
        ("", 0, False, False),
        (PERFORMING, 0, True, False),
        (PERFORMING + REFUSED, 1, False, False),
        (REFUSED + PERFORMING, 1, True, False),
        (PERFORMING + DONE, 0, True, True),
    ],
)
def test_the_log_says_what_became_of_a_click(rest, refusals, under_way, done):
    """The page's own words and the policy's, which the log quotes, are no refusals."""
    log = CallLog(timeout(LOG + rest))
    assert (len(log.refusals), log.under_way, log.done) == (refusals, under_way, done)


# ---- a page that takes its time ----


class SlowLocator:
    """A locator whose every action is cut off by its time limit once the action has begun, or
    before: what a busy machine makes of Playwright's."""

    def __init__(self, real, log, reaches_the_page, times=1):
        self.real = real
        self.page = real.page
        self.log = log
        self.reaches_the_page = reaches_the_page
        self.times = times

    def evaluate(self, *arguments):
        return self.real.evaluate(*arguments)

    def is_visible(self):
        return self.real.is_visible()

    def is_editable(self, **named):
        return self.real.is_editable(**named)

    def __getattr__(self, name):
        def act(*arguments, **named):
            if self.times == 0:
                return getattr(self.real, name)(*arguments, **named)
            self.times -= 1
            if self.reaches_the_page:
                getattr(self.real, name)(*arguments, **named)
            raise timeout(self.log)

        return act


@pytest.fixture
def button(session):
    """click-test's button, on a page that counts the clicks it gets."""
    session.close()
    session.reset("click-test", 0)
    page = session.opened.page
    page.evaluate("() => { clicks = 0; addEventListener('click', () => { clicks += 1; }, true); }")
    return private.find_element(page, "13")


def clicks_on(button):
    return button.page.evaluate("clicks")


@pytest.mark.parametrize("name, clicks", [("click", 1), ("dblclick", 2)])
def test_a_click_that_landed_is_no_failure_and_is_not_made_again(button, name, clicks):
    """The time was up after the click had reached the page, before Playwright knew."""
    slow = SlowLocator(button, LOG + PERFORMING, reaches_the_page=True)
    getattr(LoadTolerantLocator(slow), name)(timeout=500)
    assert clicks_on(button) == clicks


@pytest.mark.parametrize("name, clicks", [("click", 1), ("dblclick", 2)])
def test_a_click_that_was_not_begun_in_time_is_made(button, name, clicks):
    slow = SlowLocator(button, LOG, reaches_the_page=False)
    getattr(LoadTolerantLocator(slow), name)(timeout=500)
    assert clicks_on(button) == clicks


def test_a_click_whose_navigation_is_slow_is_done(button):
    slow = SlowLocator(button, LOG + PERFORMING + DONE, reaches_the_page=True)
    LoadTolerantLocator(slow).click(timeout=500)
    assert clicks_on(button) == 1


def test_a_refusal_that_was_seen_too_few_times_is_tried_again(button):
    """Playwright scrolls in four ways before it knows that a click cannot land; a busy machine
    does not get through them in time."""
    slow = SlowLocator(button, LOG + REFUSED, reaches_the_page=False)
    LoadTolerantLocator(slow).click(timeout=500)
    assert clicks_on(button) == 1


def test_a_click_that_nobody_ever_sees_is_the_machines_fault(button, monkeypatch):
    monkeypatch.setattr(locator, "PATIENCE_MS", 200)
    lost = SlowLocator(button, LOG + PERFORMING, reaches_the_page=False, times=9)
    with pytest.raises(InfrastructureError, match="click in time"):
        LoadTolerantLocator(lost).click(timeout=500)
    stuck = SlowLocator(button, LOG, reaches_the_page=False, times=9)
    with pytest.raises(InfrastructureError, match="click in time"):
        LoadTolerantLocator(stuck).click(timeout=500)
    assert clicks_on(button) == 0


class LateLocator(SlowLocator):
    """A locator whose mouse comes when Playwright's time is up and its guard is gone: it goes down
    on whatever lies there."""

    def __getattr__(self, name):
        def act(*arguments, **named):
            if self.times == 0:
                return getattr(self.real, name)(*arguments, **named)
            self.times -= 1
            box = self.real.bounding_box()
            self.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
            raise timeout(self.log)

        return act


COVER = """() => {
    const cover = document.createElement("div");
    cover.style.cssText = "position: fixed; inset: 0; z-index: 9999; display: none";
    cover.onclick = () => { covered += 1; };
    covered = 0;
    document.body.append(cover);
    addEventListener("mousemove", () => { cover.style.display = ""; }, {capture: true, once: true});
}"""


def test_a_late_click_never_hits_what_lies_above(button):
    """What covers the button appears under the mouse. The page keeps the click from it, and the
    policy is told that the click was refused."""
    button.page.evaluate(COVER)
    late = LateLocator(button, LOG + PERFORMING, reaches_the_page=True)
    with pytest.raises(PlaywrightTimeout, match="intercepts pointer events"):
        LoadTolerantLocator(late).click(timeout=500)
    assert button.page.evaluate("covered") == 0
    # Nothing is kept from the page any more.
    button.page.mouse.click(5, 5)
    assert button.page.evaluate("covered") == 1


def test_a_late_click_that_hits_is_made_once(button):
    late = LateLocator(button, LOG + PERFORMING, reaches_the_page=True)
    LoadTolerantLocator(late).click(timeout=500)
    assert clicks_on(button) == 1


@pytest.mark.parametrize("reaches", [True, False])
def test_a_key_is_pressed_once_or_the_episode_is_lost(session, reaches):
    """Playwright's log does not tell whether a key has been pressed."""
    start = session.reset("enter-text", 0)
    field = next(e["bid"] for e in start["elements"] if e["role"] == "textbox")
    real = private.find_element(session.opened.page, field)
    slow = SlowLocator(real, LOG, reaches_the_page=reaches)
    with pytest.raises(InfrastructureError, match="press in time"):
        LoadTolerantLocator(slow).press("a", timeout=500)
    assert real.input_value() == ("a" if reaches else "")


@pytest.fixture
def field(session):
    """enter-text's field, on a page of its own: no test's listeners are another's."""
    session.close()
    start = session.reset("enter-text", 0)
    bid = next(e["bid"] for e in start["elements"] if e["role"] == "textbox")
    return private.find_element(session.opened.page, bid)


def test_what_changes_nothing_a_second_time_is_tried_again(field):
    slow = SlowLocator(field, LOG, reaches_the_page=True)
    LoadTolerantLocator(slow).focus(timeout=500)
    assert field.evaluate("element => element === document.activeElement")
    assert slow.times == 0


def test_a_field_is_filled_once_or_the_episode_is_lost(field):
    """Playwright's log does not tell whether the text has reached the field."""
    for name, arguments in (("fill", ("abc",)), ("clear", ())):
        slow = SlowLocator(field, LOG, reaches_the_page=False, times=9)
        with pytest.raises(InfrastructureError, match=f"{name} in time"):
            getattr(LoadTolerantLocator(slow), name)(*arguments, timeout=500)
        assert slow.times == 8


# The page's own clock stands still; that of events does not.
BUSY = """const now = () => new Event("").timeStamp, end = now() + 700; while (now() < end);"""
POPUP = f"""element => element.addEventListener("focus", () => {{
    {BUSY}
    element.disabled = true;
}})"""


def test_a_field_that_its_own_focus_disables_has_not_refused(field):
    """As login-user-popup's does. A try that ended while the page was at it, and a second one after
    it, told the policy that the field was not enabled: it was when the policy filled it."""
    field.evaluate(POPUP)
    LoadTolerantLocator(field).fill("abc", timeout=500)
    assert field.is_disabled()
    with pytest.raises(PlaywrightTimeout, match="element is not enabled"):
        LoadTolerantLocator(field).fill("abc", timeout=500)


def test_tab_goes_on_from_a_field_that_its_own_focus_disables(session):
    """Such a field loses the focus with the next frame. A key that came before that was lost, or
    not, as the machine was busy or not."""
    for _ in range(5):
        session.reset("login-user-popup", 2)
        seen = session.step("press('19', 'Tab')")
        _, ok, cancel = (e for e in seen["elements"] if e["role"] == "button")
        assert (ok["name"], cancel["name"]) == ("OK", "Cancel")  # the popup's
        assert seen["focused_bid"] == ok["bid"]


def list_of_choices(session):
    """choose-list's list: its bid, its locator, and the last of its options."""
    start = session.reset("choose-list", 1)
    bid = next(e["bid"] for e in start["elements"] if e["role"] == "combobox")
    options = [e["name"] for e in start["elements"] if e["role"] == "option"]
    return bid, private.find_element(session.opened.page, bid), options[-1]


def test_options_are_chosen_once(session):
    """The page hears of a choice once, however long it takes over it."""
    _, listed, wanted = list_of_choices(session)
    listed.evaluate(
        f"""element => {{ changes = 0; element.addEventListener("change", () => {{
            changes += 1;
            {BUSY}
        }}); }}"""
    )
    LoadTolerantLocator(listed).select_option(wanted, timeout=500)
    assert listed.page.evaluate("changes") == 1
    for missing in ("Nowhere", ["Nowhere"]):
        with pytest.raises(PlaywrightTimeout, match="did not find some options"):
            LoadTolerantLocator(listed).select_option(missing, timeout=500)


# ---- a refusal is the end of it ----

LONG_ENOUGH_MS = 1_500  # for a try that Playwright makes when the time is up


@pytest.fixture
def half_a_second_late(monkeypatch):
    """The time is up while Playwright waits for its sixth try, half a second long."""
    monkeypatch.setattr(locator, "REFUSAL_LIMITS", (350,))


@pytest.mark.usefixtures("half_a_second_late")
def test_a_field_that_refused_is_not_touched_when_it_is_enabled_again(field):
    """As by the start of another episode on the page: the focus came to a field of login-user-popup
    there, and its popup with it."""
    for name, arguments in (("fill", ("abc",)), ("clear", ())):
        field.evaluate("element => { element.value = 'before'; element.disabled = true; }")
        with pytest.raises(PlaywrightTimeout, match=rf"^Locator.{name}: [^\n]+exceeded") as refused:
            getattr(LoadTolerantLocator(field), name)(*arguments, timeout=500)
        assert CallLog(refused.value).refusals[0] == "element is not enabled"
        field.evaluate("element => { element.disabled = false; }")
        field.page.wait_for_timeout(LONG_ENOUGH_MS)
        assert field.input_value() == "before"
        assert not field.evaluate("element => element === document.activeElement")


@pytest.mark.usefixtures("half_a_second_late")
def test_a_list_that_refused_is_not_set_when_it_is_enabled_again(session):
    _, listed, wanted = list_of_choices(session)
    before = listed.input_value()
    listed.evaluate("element => { element.disabled = true; }")
    with pytest.raises(PlaywrightTimeout, match="element is not enabled"):
        LoadTolerantLocator(listed).select_option(wanted, timeout=500)
    listed.evaluate("element => { element.disabled = false; }")
    listed.page.wait_for_timeout(LONG_ENOUGH_MS)
    assert listed.input_value() == before


@pytest.mark.parametrize("seen_before", [True, False], ids=["blocked", "not known"])
def test_a_refused_click_moves_nothing_any_more(session, monkeypatch, seen_before):
    """The list of daily-calendar is where another episode's start puts it, and stays there, and so
    does the mouse."""
    if not seen_before:
        monkeypatch.setattr(locator, "LOOK", "() => ({blocked: false})")
    session.reset("daily-calendar", 1)
    session.step("click('107')")
    page = session.opened.page
    covered = private.find_element(page, "17")
    with pytest.raises(PlaywrightTimeout, match="intercepts pointer events"):
        LoadTolerantLocator(covered).click(timeout=500)
    moved = """() => {
        moves = 0;
        for (const kind of ["scroll", "pointermove"]) {
            addEventListener(kind, () => { moves += 1; }, {capture: true});
        }
    }"""
    page.evaluate(moved)
    page.wait_for_timeout(LONG_ENOUGH_MS)
    assert page.evaluate("moves") == 0


# ---- an element with a bid is asked in one message ----


class NeverAsked(SlowLocator):
    """A locator that may act, but is asked nothing of its element."""

    def __init__(self, real):
        super().__init__(real, LOG, reaches_the_page=True, times=0)

    def evaluate(self, *arguments):
        raise AssertionError("the locator was asked, which takes eight messages")


def test_what_an_action_has_to_know_of_a_bid_is_asked_of_the_page(session, button):
    LoadTolerantLocator(NeverAsked(button), "13").click(timeout=500)
    assert clicks_on(button) == 1
    bid, listed, wanted = list_of_choices(session)
    LoadTolerantLocator(NeverAsked(listed), bid).select_option(wanted, timeout=500)
    assert listed.evaluate("list => list.selectedOptions[0].label") == wanted


def test_a_bid_that_two_elements_have_is_refused_in_playwrights_words(session, button):
    """A page may copy what has been marked, with its bid."""
    button.evaluate("element => element.after(element.cloneNode(true))")
    refused = session.step("click('13')")
    assert "strict mode violation" in refused["error"]
    assert clicks_on(button) == 0


def test_an_icon_out_of_view_is_drawn_before_it_is_clicked(session):
    """It is another picture under the mouse, and has no width until that one is drawn."""
    session.reset("social-media-some", 0)
    page = session.opened.page
    icon = page.locator("span.like").last
    bid = icon.get_attribute("bid")
    assert icon.evaluate("e => __course.changesUnderMouse(e)")
    assert icon.bounding_box()["y"] > 300  # the list of posts shows 200 pixels of itself
    page.evaluate("() => { hit = []; addEventListener('click', e => hit.push(e.target), true); }")
    assert session.step(f"click('{bid}')")["error"] == ""
    assert page.evaluate("() => hit.map(element => element.getAttribute('bid'))") == [bid]


# ---- the place of the page after a refusal ----


def place_after_refusal(session, limit, monkeypatch):
    """Where daily-calendar has scrolled to after a click that something covers, found out only
    while the click is made: its boxes depended on how many tries the machine got through."""
    monkeypatch.setattr(locator, "MOUSE_LIMITS", ((limit, 1), (1_500, 1)))
    session.reset("daily-calendar", 1)
    session.step("click('107')")
    refused = session.step("click('17')")
    assert "intercepts pointer events" in refused["error"]
    return [element["box"] for element in refused["elements"]]


def test_a_refused_click_leaves_the_page_in_the_same_place_at_every_speed(session, monkeypatch):
    places = [
        place_after_refusal(session, limit, monkeypatch) for limit in (1, 60, 300, 900, 1_600)
    ]
    assert places == [places[0]] * 5


# ---- keys ----


def test_keys_are_split_as_playwright_splits_them():
    assert split_keys("a") == ["a"]
    assert split_keys("Control+Shift+T") == ["Control", "Shift", "T"]
    assert split_keys("Control++") == ["Control", "+"]
    assert split_keys("+") == ["+"]
    assert split_keys("") == [""]


def test_the_known_keys_are_playwrights(session):
    session.reset("click-test", 0)
    keyboard = session.opened.page.keyboard
    for key in sorted(private.known_keys() - {"ControlOrMeta"}):
        keyboard.up(key)  # raises where there is no such key
    session.opened.page.keyboard.up("ControlOrMeta")
    for key in ("enter", "NoSuchKey", "é", ""):
        assert key not in private.known_keys()
        with pytest.raises(Exception, match="Unknown key"):
            keyboard.up(key)


def test_a_key_that_does_not_exist_leaves_none_held_down(session):
    """After "Control+enter" Control stayed down, and later letters were shortcuts."""
    start = session.reset("enter-text", 0)
    field = next(e["bid"] for e in start["elements"] if e["role"] == "textbox")
    assert "Timeout 500ms" in session.step(f"press('{field}', 'Control+enter')")["error"]
    session.step(f"press('{field}', 'a')")
    assert private.find_element(session.opened.page, field).input_value() == "a"
