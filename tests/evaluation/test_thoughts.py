"""What scripts say before they act, on pages that are written down here and on real ones."""

import random

import pytest

from helpers.browser.actions import parse_action
from helpers.episodes.config import EpisodeSpec, RolloutConfig
from helpers.episodes.play import play
from helpers.episodes.players import ScriptPlayer
from helpers.episodes.tasks import train_seeds
from helpers.evaluation.scripted import SCRIPTS
from helpers.evaluation.scripted.thoughts import REASONS, Look, thought_of
from helpers.learning.warm_up import script_for
from helpers.policy.prompts import PromptConfig, system_prompt

TICKETS = [
    "Duration:",
    "5h 12m",
    '"Book for $900" button 21',
    "Duration:",
    "12h 3m",
    '"Book for $1000" button 29',
]
BOXES = [
    "\"Ab\" checkbox 18 checked='false'",
    "\"cD\" checkbox 21 focused checked='true'",
    "\"eF\" checkbox 24 checked='false'",
    '"Submit" button 27',
]
POSTS = [
    "Ann",
    "@ann",
    "Lorem.",
    '"" image 19',
    '"" image 20',
    '"" image 21',
    '"" image 22',
    "Bob",
    "@bob",
    "Ipsum.",
    '"" image 29',
    '"" image 30',
    '"" image 31',
    '"" image 32',
    "Ann",
    "@ann",
    "Dolor.",
    '"" image 39',
    '"" image 40',
    '"" image 41',
    '"" image 42',
    '"Submit" button 44',
]
ALL_POSTS = 'Click the "Like" button on all posts by @ann and then click Submit.'
FIELD = ['"" textbox 14', '"Submit" button 15']


@pytest.mark.parametrize(
    ("task", "goal", "lines", "answer", "thought"),
    [
        ("click-button", "Click it.", ['"Ok" button 13'], "click('13')", '"Ok" button 13'),
        (
            "login-user",
            "Log in.",
            ["Username", '"" textbox 16'],
            "fill('16', 'x')",
            'Username "" textbox 16',
        ),
        (
            "buy-ticket",
            "Buy the ticket with the longest duration.",
            TICKETS,
            "click('29')",
            '5h 12m, 12h 3m: 12h 3m | "Book for $1000" button 29',
        ),
        (
            "buy-ticket",
            "Buy the ticket with the cheapest cost.",
            TICKETS,
            "click('21')",
            '900, 1000: 900 | "Book for $900" button 21',
        ),
        (
            "click-checkboxes",
            "Select cD, eF and click Submit.",
            BOXES,
            "click('24')",
            'after cD | "eF" checkbox 24',
        ),
        (
            "click-checkboxes",
            "Select cD and click Submit.",
            BOXES,
            "click('27')",
            'after cD no more | "Submit" button 27',
        ),
        (
            "social-media-all",
            ALL_POSTS,
            POSTS,
            "click('41')",
            '@ann 2, after 21: Dolor. Like 3 | "" image 41',
        ),
        (
            "social-media-all",
            ALL_POSTS,
            POSTS,
            "click('44')",
            '@ann no more, after 41 | "Submit" button 44',
        ),
        (
            "find-word",
            "Find the 2nd word in the paragraph.",
            ["Et, sed at.", *FIELD],
            "fill('14', 'sed')",
            '1 Et 2 sed | "" textbox 14',
        ),
        (
            "simple-algebra",
            "Solve for x.",
            ["6 - x = 63", "x =", *FIELD],
            "fill('14', '-57')",
            'x = 6 - 63 = -57 | "" textbox 14',
        ),
        (
            "enter-time",
            "Enter 2:54 PM as the time and press submit.",
            FIELD,
            "fill('14', '14:54')",
            '2:54 PM is 14:54 | "" textbox 14',
        ),
        (
            "stock-market",
            "Buy BQK when the price is less than $69.00.",
            ["$70.10"],
            "noop(500)",
            "$70.10 less than $69.00 no",
        ),
        # A reason that does not fit the page is left out.
        ("stock-market", "Buy BQK.", ['"Buy" button 22'], "click('22')", '"Buy" button 22'),
        (
            "drag-items",
            "Drag Ann to the top.",
            ['"Bo" listitem 18', '"Ann" listitem 21'],
            "drag_and_drop('21', '18')",
            '2 to 1 | "Ann" listitem 21 to "Bo" listitem 18',
        ),
    ],
)
def test_a_thought_says_why_and_ends_with_the_element(task, goal, lines, answer, thought):
    assert thought_of(task, Look(goal, lines, parse_action(answer))) == thought


def test_every_task_with_a_reason_has_a_script():
    assert set(REASONS) <= set(SCRIPTS)


def test_on_real_pages_a_thought_is_one_line_and_the_action_the_next(browsers, policy):
    prompt = PromptConfig(examples=(), listeners=True, thoughts=True)
    config = RolloutConfig(max_turns=16, max_tokens=256, max_length=6_000, prompt=prompt)
    tasks = random.Random(0).sample(sorted(REASONS), 6)
    pages = [EpisodeSpec(task, train_seeds(task)[0]) for task in (*tasks, "click-menu")]
    episodes = play(pages, browsers, ScriptPlayer(script_for(config), policy.tokenizer), config)
    for episode in episodes:
        for turn in episode.turns:
            thought, action = turn.answer.split("\n")
            assert turn.parsed.action == action
            bid = str(turn.parsed.args[0])
            if any(f" {bid} " in f"{line} " for line in turn.page):
                assert f" {bid}" in thought, episode.task
            assert turn.answer in policy.tokenizer.decode(episode.ledger.ids)
    assert sum(episode.solved for episode in episodes) > len(episodes) / 2


def test_a_prompt_asks_for_thoughts_only_where_they_are_wanted():
    assert "Reply with one action only." in system_prompt(PromptConfig())
    assert "Reply with a line of thought" in system_prompt(PromptConfig(thoughts=True))
