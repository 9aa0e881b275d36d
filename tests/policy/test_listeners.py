"""Elements that only listen to clicks, in the lines that a policy reads."""

import re

import pytest

from helpers.browser.actions import ACTIONS
from helpers.browser.models import Element
from helpers.episodes.config import EpisodeSpec, RolloutConfig
from helpers.episodes.play import play
from helpers.episodes.players import ScriptPlayer
from helpers.episodes.tasks import train_seeds
from helpers.evaluation.scripted import SCRIPTS
from helpers.learning.arms.needs import ROOM
from helpers.learning.warm_up import script_of
from helpers.policy.prompts import PromptConfig, observation_text, page_lines

TREE = """RootWebArea 'Some Task'
\tStaticText 'See'
\tStaticText 'Felicia'
\tStaticText 'or'
\tStaticText 'nobody'
\t[20] row ''
\t\t[21] cell ''
\t\t\t[22] textbox ''
\t[30] listitem ''
\t\tStaticText 'Rex'
\tStaticText 'Submit'
"""
LISTENERS = [
    Element(bid="13", role="generic", text="Felicia", clickable=True, box=(0, 0, 100, 20)),
    Element(bid="14", role="generic", text="Felicia", clickable=True, box=(5, 5, 20, 10)),
    Element(bid="20", role="row", box=(0, 30, 100, 20)),
    Element(bid="21", role="cell", box=(0, 30, 100, 20)),
    Element(bid="22", role="textbox", text="typed", clickable=True, box=(0, 30, 100, 20)),
    Element(bid="25", role="generic", clickable=True, box=(0, 60, 10, 10)),
    Element(bid="30", role="listitem", text="Rex", clickable=True, box=(0, 80, 100, 20)),
    Element(bid="31", role="generic", clickable=True, box=(0, 82, 10, 10)),
    Element(bid="40", role="generic", text="Submit", clickable=True, box=(0, 110, 50, 20)),
    Element(bid="41", role="generic", text="hidden", clickable=True, box=(0, 150, 50, 20)),
]


def test_what_listens_stands_where_its_text_stands_and_where_it_has_none_in_the_pages_order():
    assert page_lines(TREE, 'Click on "Felicia".', elements=LISTENERS) == [
        "See",
        '"Felicia" generic 13',  # the one within it, 14, is clicked with it
        "or",
        "nobody",
        '"" textbox 22',  # its row and cell say nothing; its text is what it holds
        '"" generic 25',
        '"Rex" listitem 30',  # and so is the one within it, 31
        '"Submit" generic 40',
    ]


def test_without_free_text_they_keep_their_names():
    lines = page_lines(TREE, free_text=False, elements=LISTENERS)
    assert '"Felicia" generic 13' in lines
    assert "See" not in lines


def test_a_text_that_the_goal_names_is_shown_and_the_goal_itself_is_not():
    tree = "\tStaticText '@amet'\n\tStaticText 'For the user @amet'"
    assert page_lines(tree, "For the user @amet", elements=LISTENERS[:1]) == ["@amet"]


def test_no_page_is_told_otherwise_unless_it_is_asked_for(browsers):
    seen = browsers[0].reset("click-link", 1_000)
    asked = observation_text(seen, PromptConfig(listeners=True))
    assert re.search(r'^"\S+" generic \d+$', asked, re.MULTILINE)
    assert "generic" not in observation_text(seen, PromptConfig())


@pytest.mark.slow
def test_every_script_acts_on_what_a_policy_is_shown(browsers, policy):
    """The number of each element that a script names stands in the page that it was shown to."""
    prompt = PromptConfig(examples=(), listeners=True)
    config = RolloutConfig(ROOM.max_turns, ROOM.max_tokens, max_length=3_000, prompt=prompt)
    pages = [EpisodeSpec(task, train_seeds(task)[0]) for task in SCRIPTS]
    episodes = play(pages, browsers, ScriptPlayer(script_of, policy.tokenizer), config)
    hidden = {
        (episode.task, turn.answer)
        for episode in episodes
        for turn in episode.turns
        if turn.parsed.ok
        for bid in _named(turn.parsed)
        if not _shows(turn.page, bid)
    }
    assert hidden == set()
    assert sum(len(episode.turns) for episode in episodes) > 2 * len(SCRIPTS)


def _named(parsed):
    """The elements that an action names."""
    params = ACTIONS[parsed.name].params
    return [arg for param, arg in zip(params, parsed.args, strict=False) if param.type == "bid"]


def _shows(page, bid):
    return any(re.search(rf'" \w+ {bid}( |$)', line) for line in page)
