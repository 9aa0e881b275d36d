"""The page has the size that it has in stock BrowserGym, and pays what stock pays."""

import numpy
import pytest

from helpers.browser.options import SCALE, Want
from helpers.browser.viewport import Viewport
from helpers.evaluation.scripted import SCRIPTS

SIZE = "() => [innerWidth, innerHeight, devicePixelRatio]"
BELOW = "buy-ticket"  # its last button stands below the first 214 pixels


def visibility(seen, bid):
    return seen.details["extra_element_properties"][bid]["visibility"]


def test_actions_are_taken_on_a_page_of_800_x_600(session):
    for _ in range(2):  # the second on the same page, in place
        session.reset("click-button", 1)
        session.step("noop()")
        assert session.opened.page.evaluate(SIZE) == [800, 600, 1]
        session.step("noop()", Want(picture="stock"))
        session.step("noop()")
        assert session.opened.page.evaluate(SIZE) == [800, 600, 1]


def test_an_action_waits_for_the_size_of_its_page(session, monkeypatch):
    """The browser says that the size is set before the page has it."""
    at_action = []

    def seen_by(action):
        at_action.append(session.opened.page.evaluate(SIZE))
        return ""

    monkeypatch.setattr(session, "_act", seen_by)
    for seed in range(10):
        session.reset("click-button", seed)
        session.step("noop()")
    assert at_action == [[800, 600, 1]] * 10


def test_a_task_is_set_up_on_a_page_of_332_x_214(session):
    """Also on a page that another episode has left at 800 x 600."""
    for task in ("click-button", "click-button", "click-link"):
        session.reset(task, 1)
        session.opened.page.evaluate("() => { window.seen = []; }")
        session.opened.context.add_init_script("window.atStart = [innerWidth, innerHeight]")
    session.reset("click-test", 1)
    assert session.opened.page.evaluate("() => window.atStart") == [332, 214]


@pytest.fixture
def sizes(session, monkeypatch):
    """Of the page, at each look."""
    seen = []
    look = session._look

    def noting(want):
        seen.append(session.opened.page.evaluate(SIZE)[:2])
        return look(want)

    monkeypatch.setattr(session, "_look", noting)
    return seen


def test_only_what_shows_its_size_is_looked_at_first_as_small_as_in_stock(session, sizes):
    small, large = [332, 214], [800, 600]
    session.close()
    session.reset("click-button", 1)  # a new page
    session.reset("click-button", 2)  # the same page from here on
    session.reset("click-button", 3, Want(details=True))
    session.reset("click-button", 4, Want(picture="stock"))
    session.reset("text-editor", 1)
    session.reset("text-editor", 2)
    assert sizes == [small, large, small, small, small, small]


IN_PLACE = ("buy-ticket", "choose-list", "click-dialog", "email-inbox", "text-editor", "read-table")


@pytest.mark.parametrize("task", IN_PLACE)
def test_a_policy_is_told_the_same_of_a_page_that_stays_large(session, task):
    """As of one that is as small as stock's, where an episode starts again in place."""

    def told(want):
        session.reset(task, 1)
        seen = session.reset(task, 2, want)
        return [seen[field] for field in ("text", "elements", "focused_bid")]

    assert told(Want()) == told(Want(details=True))


def test_what_is_below_the_first_picture_is_hidden_at_first_and_seen_then(env):
    first = env.reset(BELOW, 1, details=True)
    button = next(e for e in reversed(first.elements) if e.role == "button")
    assert button.box[1] > 321  # pixels of the picture, whose height this is
    assert visibility(first, button.bid) == 0
    assert visibility(env.step("noop()", details=True), button.bid) == 1


def test_boxes_are_pixels_of_the_picture(env):
    """The first button stands out from the white page: a frame of it is grey, what is around it is
    not."""
    seen = env.reset("click-test", 1, screenshot=True)
    x, y, width, height = next(e for e in seen.elements if e.role == "button").box
    picture = numpy.asarray(seen.image()).astype(int)
    inside = picture[round(y) + 3, round(x) + 6 : round(x + width) - 6]
    outside = picture[round(y) + 3, round(x + width) + 3 : round(x + width) + 20]
    assert inside.max() < 250 < outside.min()


def test_a_picture_changes_nothing_of_what_is_seen_later(env):
    """Stock resizes the page for each, so the page is told twice."""
    told = {}
    for picture in (False, True, "small"):
        env.reset("email-inbox", 3, screenshot=picture)
        env.step("scroll(0, 40)", screenshot=picture)
        seen = env.step("noop()", screenshot=False)
        told[picture] = [(e.bid, e.box, e.name) for e in seen.elements]
    assert told[False] == told[True] == told["small"]


def test_a_link_to_a_fragment_earns_nothing_in_stock(env):
    """A search is solved here; in stock the episode ends with the link, unpaid."""
    script = SCRIPTS["search-engine"]
    seen = env.reset("search-engine", 1000)
    turn = 0
    while not seen.done:
        seen = env.step(script(seen, turn))
        turn += 1
    assert (seen.reward, seen.stock_reward) == (1.0, 0.0)
    seen = env.reset("click-test", 0)
    seen = env.step(SCRIPTS["click-test"](seen, 0))
    assert (seen.reward, seen.stock_reward) == (1.0, 1.0)


HEAR = """() => {
    window.heard = [];
    for (const type of ["mouseover", "mouseout", "mouseenter", "mouseleave"])
        document.addEventListener(type, event => heard.push(type), {capture: true});
}"""


def test_the_page_does_not_hear_what_the_mouse_is_over_in_a_picture(session, monkeypatch):
    """On a slow machine the size of a picture lasts long enough for the browser to look where the
    mouse is then."""
    resize = Viewport._override

    def resize_and_move(viewport, scale):
        resize(viewport, scale)
        session.opened.page.mouse.move(150, 150)

    session.reset("click-tab-2", 1)
    tab = next(e for e in session.step("noop()")["elements"] if e["name"] == "Tab #2")
    session.step(f"click('{tab['bid']}')")
    page = session.opened.page
    page.evaluate(HEAR)
    with monkeypatch.context() as patches:
        patches.setattr(Viewport, "_override", resize_and_move)
        session.step("noop()", Want(picture="stock"))
    assert page.evaluate("heard") == []
    session.step(f"click('{tab['bid']}')")
    assert page.evaluate("heard") != []


def test_a_picture_in_which_the_mouse_is_over_something_else_is_taken_again(session, monkeypatch):
    """On a busy machine it may show what lies under the mouse in a page of the picture's size."""
    resize, resize_back = Viewport._override, Viewport.for_acting
    moved = []

    def move(button, by):
        left, top, width, height = button["box"]
        session.opened.page.mouse.move(left / SCALE + width / SCALE / 2 + by, top / SCALE + 5)

    pictures = []
    for busy in (False, True):
        seen = session.reset("click-button", 1)
        button = next(e for e in seen["elements"] if e["role"] == "button")
        session.step(f"hover('{button['bid']}')")

        def resize_slowly(viewport, scale, button=button):
            resize(viewport, scale)
            if not moved:
                move(button, by=300)
                moved.append(scale)

        def resize_back_then(viewport, button=button):
            resize_back(viewport)
            move(button, by=0)

        with monkeypatch.context() as patches:
            if busy:
                patches.setattr(Viewport, "_override", resize_slowly)
                patches.setattr(Viewport, "for_acting", resize_back_then)
            pictures.append(session.step("noop()", Want(picture="stock"))["screenshot"])
    assert moved == [1.5]
    assert pictures[0] == pictures[1]


def test_the_focus_is_the_same_whatever_a_look_asks_for(session):
    """text-editor watches its elements, and takes the focus back when they are marked. Stock asks
    for the focused element after that: draw 1, episode 452."""
    focused = []
    for want in (Want(), Want(picture="stock"), Want(details=True)):
        session.reset("text-editor", 449922)
        session.step("click('101')", want)
        focused.append(session.step("drag_and_drop('97', '95')", want)["focused_bid"])
    assert focused == ["100"] * 3
