"""Actions on places of the picture: what the parser takes, that each works in a real browser, and
that only a policy that was taught them has them."""

import pytest
from on_a_page import by_bid, do, first

from helpers.browser.actions import (
    ACTIONS,
    EVERY_ACTION,
    MAX_TYPED,
    PLACES,
    actions_beside,
    format_action,
    parse_action,
)
from helpers.browser.options import PICTURE
from helpers.episodes.config import EpisodeSpec, RolloutConfig
from helpers.episodes.running import RunningEpisode
from helpers.policy.prompts import PromptConfig, system_prompt


@pytest.fixture(scope="module")
def env(shared_server):
    with shared_server.client() as client:
        yield client


def middle(element):
    """In the numbers of an action, which are those of the boxes."""
    x, y, width, height = element.box
    return round(x + width / 2, 1), round(y + height / 2, 1)


# ---- the parser ----


@pytest.mark.parametrize("name", PLACES)
def test_every_example_is_an_action_in_its_canonical_form(name):
    parsed = parse_action(PLACES[name].example, actions=EVERY_ACTION)
    assert (parsed.kind, parsed.name, parsed.action) == ("ok", name, PLACES[name].example)


@pytest.mark.parametrize(
    "answer, reason",
    [
        ("mouse_click(499, 10)", "x must lie between 0 and 498"),
        ("mouse_click(10, -1)", "y must lie between 0 and 321"),
        ("mouse_drag_and_drop(0, 0, 0, 321.5)", "to_y must lie between 0 and 321"),
        ("mouse_click('13')", "mouse_click(x, y) takes 2 arguments, not 1"),
        ("mouse_click('1', 2)", "x is a number, without quotes"),
        ("mouse_click(1, 2, 'right')", "mouse_click(x, y) takes 2 arguments, not 3"),
        (f"keyboard_type('{'a' * (MAX_TYPED + 1)}')", "text is longer than 200 characters"),
        ("keyboard_press(13)", "key is a string, with quotes"),
        ("mouse_click(1, 2) mouse_click(3, 4)", "answer with one action, not several"),
    ],
)
def test_what_is_no_place_is_one_sentence(answer, reason):
    assert parse_action(answer, actions=EVERY_ACTION).reason == reason


def test_who_is_not_taught_places_has_none():
    """Its prompt, its actions and its errors are what they are without them."""
    assert actions_beside(PromptConfig().actions) is ACTIONS
    assert actions_beside(("click", "mouse_click")) is EVERY_ACTION
    refused = parse_action("mouse_click(1, 2)")
    assert refused.kind == "unknown_action"
    assert refused.reason.endswith(f"use one of: {', '.join(ACTIONS)}")
    assert "mouse" not in system_prompt()
    assert "mouse_click(x, y): click" in system_prompt(PromptConfig(actions=("mouse_click",)))


# ---- in a browser ----


def mouse_click(env):
    box = first(env.reset("click-checkboxes", 1_000), "checkbox")
    assert by_bid(do(env, "mouse_click", *middle(box)), box.bid).value == "true"


def mouse_dblclick(env):
    box = first(env.reset("click-checkboxes", 1_000), "checkbox")
    assert by_bid(do(env, "mouse_dblclick", *middle(box)), box.bid).value == "false"


def mouse_move(env):
    """The wheel turns where the mouse is."""
    seen = env.reset("email-inbox", 1_000)
    mail = next(e for e in seen.elements if e.role == "generic" and e.clickable)
    do(env, "mouse_move", *middle(mail))
    assert by_bid(do(env, "scroll", 0, 30), mail.bid).box[1] < mail.box[1]


def mouse_drag_and_drop(env):
    items = [e for e in env.reset("drag-items", 1_000).elements if e.role == "listitem"]
    moved = do(env, "mouse_drag_and_drop", *middle(items[-1]), *middle(items[0]))
    bids = [e.bid for e in items]
    assert [e.bid for e in moved.elements if e.role == "listitem"] == [bids[-1], *bids[:-1]]


def keyboard_type(env):
    field = first(env.reset("enter-text", 1_000), "textbox")
    do(env, "mouse_click", *middle(field))
    assert by_bid(do(env, "keyboard_type", "it's 5"), field.bid).value == "it's 5"


def keyboard_press(env):
    field = first(env.reset("enter-text", 1_000), "textbox")
    do(env, "mouse_click", *middle(field))
    do(env, "keyboard_type", "ab")
    assert by_bid(do(env, "keyboard_press", "Backspace"), field.bid).value == "a"


DONE = (
    mouse_click,
    mouse_dblclick,
    mouse_move,
    mouse_drag_and_drop,
    keyboard_type,
    keyboard_press,
)


def test_no_action_is_left_out():
    assert {call.__name__ for call in DONE} == set(PLACES)


@pytest.mark.parametrize("act", DONE, ids=lambda call: call.__name__)
def test_every_action_works_in_a_real_browser(env, act):
    act(env)


def test_a_click_on_a_drawing_that_text_cannot_name_solves_its_task(env):
    """The middle of a coloured box, in pixels of stock's picture whatever picture is taken."""
    for picture in (False, True, "small"):
        seen = env.reset("click-color", 7, screenshot=picture)
        colour = seen.goal.split()[3]
        paid = []
        for place in ((73, 154), (166, 154), (73, 250), (166, 250)):
            env.reset("click-color", 7, screenshot=picture)
            paid.append(env.step(format_action("mouse_click", *place)).reward)
        assert sorted(paid) == [0.0, 0.0, 0.0, 1.0], colour


def test_a_place_outside_of_the_picture_is_refused_and_the_episode_goes_on(env):
    before = env.reset("click-color", 7)
    width, _ = PICTURE
    refused = env.step(f"mouse_click({width + 1}, 100)")
    assert refused.error == "x must lie between 0 and 498"
    assert (refused.axtree_txt, refused.done) == (before.axtree_txt, False)


def test_a_key_that_does_not_exist_leaves_none_down(env):
    field = first(env.reset("enter-text", 1_000), "textbox")
    do(env, "mouse_click", *middle(field))
    assert "Unknown key" in env.step("keyboard_press('Control+Nosuch')").error
    assert by_bid(do(env, "keyboard_type", "a"), field.bid).value == "a"


@pytest.mark.parametrize("taught, ended", [("mouse_click", ""), ("click", "turn_limit")])
def test_an_episode_takes_places_only_from_who_was_taught_them(env, taught, ended):
    config = RolloutConfig(max_turns=2, prompt=PromptConfig(actions=(taught,)))
    running = RunningEpisode.of(EpisodeSpec("click-color", 7), env, config)
    running.reset()
    running.act("mouse_click(2, 200)")  # beside the boxes: nothing happens
    parsed = running.episode.turns[0].parsed
    assert parsed.kind == ("ok" if taught == "mouse_click" else "unknown_action")
