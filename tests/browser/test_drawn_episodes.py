"""Episodes by chance are stock's, too: a recorded part of a draw, played again.

Stock takes six seconds an episode, so a test has no time for it: recordings/parity/drawn-1.jsonl.gz
holds what stock showed in the first episodes of the draw that drawn-1.json beside it counts, about
a hundred observations. drawn_on_places-1.jsonl.gz and its counts are the same for actions on places
of the picture. ``python -m benchmarks.parity --draw 100`` (``--places``) draws others.
"""

import json
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.drawn_actions import draw_action, draw_episode, draw_on_place
from benchmarks.drawn_alone import differing_episodes, play_alone
from benchmarks.drawn_episodes import KEPT_DRAW, Players, differences, kept_of
from benchmarks.parity import KNOWN_TO_DIFFER, NOT_COVERED
from benchmarks.recorded_episodes import read_golden
from helpers.browser import BrowserObservation, Element, list_tasks
from helpers.browser.actions import ACTIONS, EVERY_ACTION, PLACES, parse_action
from helpers.settings.paths import RECORDINGS

SESSIONS = 4
# Of them may differ: what the mouse hovers is drawn a frame later, and on a busy machine not yet.
PICTURES = 0.05


@pytest.mark.slow
@pytest.mark.parametrize("places", [False, True], ids=["elements", "places"])
def test_recorded_drawn_episodes_are_the_same_here(shared_server, places):
    """On a page of their own, with pictures and details, and after other episodes, mostly as a
    policy that reads text plays them."""
    recorded = read_golden(kept_of(places))
    covered = [episode for episode in recorded if episode["task"] not in NOT_COVERED]
    with ThreadPoolExecutor(SESSIONS) as threads:
        players = Players(shared_server, SESSIONS)

        def play(episode):
            drawn = draw_episode(episode["number"], KEPT_DRAW, places)
            runs = {
                "fresh": players.fresh(episode),
                "after others": players.after_others(episode, drawn),
            }
            return differences(episode, runs)

        played = list(threads.map(play, covered))
    compared = sum(each["compared"] for each in played)
    found = [
        (episode["task"], episode["seed"], each)
        for episode, differing in zip(covered, played, strict=True)
        for each in differing["ours"]
    ]
    assert [each for each in found if set(each[2]["fields"]) != {"screenshot"}] == []
    assert len(found) <= PICTURES * compared
    assert compared > 150


def test_every_recorded_difference_is_explained():
    """Its task cannot be compared or is known to differ, or the episode is equal each time when
    nothing runs beside it."""
    differing = differing_episodes(without=NOT_COVERED)
    alone = json.loads((RECORDINGS / "parity" / "alone.json").read_text())["episodes"]
    assert [{name: each[name] for name in differing[0]} for each in alone] == differing
    assert {each["known"] for each in alone if "first" in each} <= set(KNOWN_TO_DIFFER)


@pytest.mark.slow
def test_played_alone_an_episode_is_equal_or_says_how_it_differs():
    click, drag = [
        {"draw": "none", "task": "click-test", "seed": 1, "actions": [action]}
        for action in ("click('13')", "drag_and_drop('13', '999')")
    ]
    equal, differing = play_alone([click, drag], KNOWN_TO_DIFFER)
    assert equal == click | {"equal": equal["times"], "times": equal["times"]}
    assert equal["times"] > 1
    assert differing["equal"] == 0
    assert set(differing["first"]["fields"]) == {"screenshot"}
    assert differing["known"] == "drag_and_drop"


def test_the_same_number_is_the_same_episode():
    drawn = [draw_episode(number, KEPT_DRAW) for number in range(300)]
    again = [draw_episode(number, KEPT_DRAW) for number in range(300)]
    assert [each[:5] for each in drawn] == [each[:5] for each in again]
    assert [each[:2] for each in drawn] != [draw_episode(n, KEPT_DRAW + 1)[:2] for n in range(300)]
    assert len({each.task for each in drawn}) > 0.8 * len(list_tasks())
    assert {each.most for each in drawn} == set(range(1, 7))
    assert {each.scripted for each in drawn} == {True, False}


def test_drawn_actions_are_of_every_kind_and_in_the_action_set():
    """An action that no parser takes would compare two refusals."""
    page = [
        Element(bid="13", role="textbox"),
        Element(bid="14", role="combobox"),
        Element(bid="15", role="option", name="Côte d'Ivoire"),
        Element(bid="16", role="button", clickable=True, box=(480, 100, 60, 30)),
    ]
    seen = BrowserObservation(elements=page)
    draw = random.Random(0)
    drawn = [parse_action(draw_action(seen, draw)) for _ in range(1_000)]
    assert all(action.ok for action in drawn)
    assert {action.name for action in drawn} == set(ACTIONS)
    on_places = [parse_action(draw_on_place(seen, draw), None, EVERY_ACTION) for _ in range(300)]
    assert all(action.ok for action in on_places)
    assert {action.name for action in on_places} == set(PLACES)
