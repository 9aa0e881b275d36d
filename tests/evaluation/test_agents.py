"""Agents without a model: what they answer, and that a script that fails costs a turn, not the
run."""

from typing import get_args

import pytest

from helpers.browser.models import BrowserObservation, Element
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.play import play_agent
from helpers.evaluation.agents import (
    first_button_agent,
    noop_on_error,
    random_agent,
    text_match_agent,
)
from helpers.evaluation.baselines import AGENTS
from helpers.evaluation.scripted import SCRIPTS
from scripts.evaluate import AgentName

BUTTONS = [
    Element(bid="11", role="RootWebArea", name="Ok"),
    Element(bid="12", role="button", name="no", clickable=True),
    Element(bid="13", role="button", name="Ok", clickable=True),
]
FORM = [
    Element(bid="14", role="textbox"),
    Element(bid="15", role="textbox"),
    Element(bid="16", role="button", name="Login", clickable=True),
]


def page(goal, elements, **fields):
    return BrowserObservation(goal=goal, elements=elements, task="click-test", seed=1, **fields)


def test_random_clicks_are_fixed_by_seed_page_and_turn():
    seen = page("", BUTTONS)
    clicks = [random_agent(0)(seen, turn) for turn in range(20)]
    assert set(clicks) == {"click('12')", "click('13')"}
    assert clicks == [random_agent(0)(seen, turn) for turn in range(20)]
    assert clicks != [random_agent(1)(seen, turn) for turn in range(20)]


def test_the_first_button_is_pressed_whatever_the_goal():
    assert first_button_agent(page('Click "Ok".', BUTTONS), 0) == "click('12')"


@pytest.mark.parametrize("agent", [random_agent(), first_button_agent, text_match_agent])
def test_an_empty_page_is_waited_for(agent):
    assert agent(page("Do something.", []), 0) == "noop(500)"


@pytest.mark.parametrize(
    ("goal", "elements", "turn", "action"),
    [
        ('Click the "Ok" button.', BUTTONS, 0, "click('13')"),
        ('Click the "NO" button.', BUTTONS, 0, "click('12')"),
        ("Press ok, please.", BUTTONS, 0, "click('13')"),
        ('Enter "joe" and "pass".', FORM, 0, "fill('14', 'joe')"),
        ('Enter "joe" and "pass".', FORM, 1, "fill('15', 'pass')"),
        ('Enter "joe" and "pass".', FORM, 2, "click('16')"),
        ("Do something.", BUTTONS, 0, "click('12')"),
    ],
)
def test_text_match_does_what_the_goal_names(goal, elements, turn, action):
    assert text_match_agent(page(goal, elements), turn) == action


@pytest.mark.parametrize(
    "error", [AttributeError, IndexError, KeyError, LookupError, TypeError, ValueError]
)
def test_an_agent_that_fails_waits(error):
    def fails_at_first(seen, turn):
        if turn == 0:
            raise error("nothing like that on this page")
        return "click('13')"

    agent = noop_on_error(fails_at_first)
    assert agent(page("", BUTTONS), 0) == "noop(500)"
    assert agent(page("", BUTTONS), 1) == "click('13')"


def test_a_script_on_a_page_that_it_does_not_expect_waits():
    seen = page("Click the first thing.", BUTTONS)
    for name, script in SCRIPTS.items():
        assert isinstance(noop_on_error(script)(seen, 0), str), name


def test_a_script_that_fails_loses_its_turn_and_not_the_run(browsers):
    def script(seen, turn):
        if seen.seed == 0 and turn == 0:
            raise LookupError("there is no such button")
        return text_match_agent(seen, turn)

    pages = [EpisodeSpec("click-test", seed) for seed in range(2)]
    failed, fine = play_agent(noop_on_error(script), pages, browsers, max_turns=3)
    assert [turn.answer for turn in failed.turns] == ["noop(500)", fine.turns[0].answer]
    assert failed.solved
    assert len(fine.turns) == 1
    assert fine.solved


def test_the_command_knows_the_agents():
    assert get_args(AgentName) == tuple(AGENTS)


def test_the_oracle_matches_texts_where_there_is_no_script():
    seen = page('Click the "Ok" button.', BUTTONS).model_copy(update={"task": "bisect-angle"})
    assert seen.task not in SCRIPTS
    assert AGENTS["oracle"](seen, 0) == "click('13')"
