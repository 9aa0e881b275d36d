"""The page has the size that it has in stock BrowserGym, and pays what stock pays."""

import numpy

from helpers.browser.options import Want
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
