"""What the prompt teaches exists: every action is executed by a real browser, and the page shows
that it was."""

import on_a_page
import pytest
from on_a_page import by_bid, first

from helpers.browser.actions import ACTIONS, format_action, parse_action


@pytest.fixture(scope="module")
def env(shared_server):
    with shared_server.client() as client:
        yield client


def do(env, name, *args):
    assert parse_action(format_action(name, *args)).ok
    return on_a_page.do(env, name, *args)


def click(env):
    box = first(env.reset("click-checkboxes", 1_000), "checkbox")
    assert by_bid(do(env, "click", box.bid), box.bid).value == "true"


def fill(env):
    field = first(env.reset("enter-text", 1_000), "textbox")
    assert by_bid(do(env, "fill", field.bid, "it's 5"), field.bid).value == "it's 5"


def clear(env):
    field = first(env.reset("enter-text", 1_000), "textbox")
    do(env, "fill", field.bid, "abc")
    assert by_bid(do(env, "clear", field.bid), field.bid).value == ""


def press(env):
    field = first(env.reset("enter-text", 1_000), "textbox")
    do(env, "fill", field.bid, "ab")
    assert by_bid(do(env, "press", field.bid, "Backspace"), field.bid).value == "a"


def focus(env):
    field = first(env.reset("enter-text", 1_000), "textbox")
    assert do(env, "focus", field.bid).focused_bid == field.bid


def select_option(env):
    seen = env.reset("choose-list", 1_000)
    options = [e.name for e in seen.elements if e.role == "option"]
    combobox = first(seen, "combobox")
    assert (
        by_bid(do(env, "select_option", combobox.bid, options[-1]), combobox.bid).value
        == options[-1]
    )


def select_option_with_a_list(env):
    seen = env.reset("click-scroll-list", 1_000)
    wanted = [e.name for e in seen.elements if e.role == "option"][:2]
    after = do(env, "select_option", first(seen, "listbox").bid, wanted)
    assert [e.name for e in after.elements if e.role == "option" and e.value == "true"] == wanted


def hover(env):
    seen = env.reset("click-button", 1_000)
    assert not do(env, "hover", first(seen, "button").bid).done


def dblclick(env):
    box = first(env.reset("click-checkboxes", 1_000), "checkbox")
    assert by_bid(do(env, "dblclick", box.bid), box.bid).value == "false"  # on and off again


def drag_and_drop(env):
    seen = env.reset("drag-items", 1_000)
    items = [e.bid for e in seen.elements if e.role == "listitem"]
    moved = do(env, "drag_and_drop", items[-1], items[0])
    assert [e.bid for e in moved.elements if e.role == "listitem"] == [items[-1], *items[:-1]]


def scroll(env):
    mail = next(
        e for e in env.reset("email-inbox", 1_000).elements if e.role == "generic" and e.clickable
    )
    do(env, "hover", mail.bid)  # the wheel turns where the mouse is
    assert by_bid(do(env, "scroll", 0, 30), mail.bid).box[1] < mail.box[1]
    again = env.reset("email-inbox", 1_000)
    assert by_bid(again, mail.bid).box == mail.box  # an episode starts at the top


def noop(env):
    seen = env.reset("click-button", 1_000)
    assert do(env, "noop", 500).axtree_txt == seen.axtree_txt


DONE = (
    click,
    fill,
    clear,
    press,
    focus,
    select_option,
    select_option_with_a_list,
    hover,
    dblclick,
    drag_and_drop,
    scroll,
    noop,
)


def test_no_action_is_left_out():
    assert {call.__name__ for call in DONE} >= set(ACTIONS)


@pytest.mark.parametrize("act", DONE, ids=lambda call: call.__name__)
def test_every_action_works_in_a_real_browser(env, act):
    act(env)


def test_an_action_outside_the_set_is_not_executed(env):
    before = env.reset("click-button", 1_000)
    for answer in (
        "goto('javascript:core.endEpisode(1)')",
        "click('13'); click('15')",
        "__import__('os').system('true')",
    ):
        after = env.step(answer)
        assert after.last_action_error
        assert after.error == parse_action(answer).reason
        assert (after.axtree_txt, after.done, after.reward) == (before.axtree_txt, False, 0.0)


def two_buttons(seen):
    """The wanted one and the other."""
    one, two = [element for element in seen.elements if element.role == "button"]
    return one, two


def middle_is_under(one, other):
    x, y, width, height = one.box
    left, top, other_width, other_height = other.box
    middle_x = x + width / 2
    middle_y = y + height / 2
    return left < middle_x < left + other_width and top < middle_y < top + other_height


def test_a_button_under_another_is_refused_with_the_reason_and_the_page_goes_on(env):
    """What lies on top takes the click in a real browser too; nobody may be paid or punished for
    guessing where."""
    covered = free = None
    for seed in range(60):
        if middle_is_under(*two_buttons(env.reset("click-test-2", seed))):
            covered = seed
        else:
            free = seed
        if covered is not None and free is not None:
            break
    one, two = two_buttons(env.reset("click-test-2", covered))
    refused = env.step(format_action("click", one.bid))
    assert "intercepts pointer events" in refused.error
    assert not refused.done
    assert env.step(format_action("click", two.bid)).ended == "failed"
    one, _ = two_buttons(env.reset("click-test-2", free))
    assert env.step(format_action("click", one.bid)).ended == "solved"


# ---- what moves with the next frames has moved when the page is looked at ----


@pytest.mark.parametrize(
    "task, seed, actions, moves",
    [
        ("click-scroll-list", 11, ["press('13', 'S')"], "option"),  # a list box, to what is chosen
        ("daily-calendar", 11, ["click('91')", "press('0', 'ArrowDown')"], "generic"),
        ("social-media", 1, ["hover('25')", "hover('13')", "hover('25')"], None),  # an icon
    ],
)
def test_boxes_are_those_of_a_page_that_stands_still(session, task, seed, actions, moves):
    """Half a second later, when stock looks, they are the same."""
    session.close()
    before = session.reset(task, seed)
    for action in actions:
        seen = session.step(action)
        assert not seen["error"]
    session.opened.page.wait_for_timeout(500)
    later = session.step("noop(0)")
    assert boxes(seen) == boxes(later)
    if moves:
        assert boxes(seen) != boxes(before)


def boxes(seen):
    return {element["bid"]: element["box"] for element in seen["elements"]}
