"""What a policy sees and earns here is what stock BrowserGym shows and pays: recorded episodes,
played again.

The record is recordings/parity/stock.jsonl.gz, made by ``python -m benchmarks.parity --stock``.
"""

import json

import pytest

from benchmarks.comparison import changed_fields, compare_all
from benchmarks.drawing import DRAWN_BY, draw_alike, drawing
from benchmarks.parity import NOT_COVERED, SEEDS
from benchmarks.recorded_episodes import read_golden
from helpers.browser import list_tasks
from helpers.browser import session as sessions
from helpers.browser.kept_chromium import ORIGIN
from helpers.browser.options import PageRules, chosen_in_place

# Minutes on two cores: a change of the environment is tried with `make test`.
pytestmark = pytest.mark.slow

ANIMATED = ("click-collapsible", "click-menu", "use-autocomplete", "click-collapsible-2")
DRAWN = {"bbox", "visibility", "set_of_marks", "screenshot"}  # depend on fonts and on the browser
# Of the pictures: what the mouse hovers is drawn a frame later, and on a busy machine not yet. Of
# stock's own two recordings 5 of 992 differ by that.
HOVERING = 0.03
UNLIKE_AT_FIRST = 4  # tasks of 122
LOST_AT_FIRST = 8  # tasks, one for each session: those on a worker that is restarted


@pytest.fixture(scope="module")
def golden():
    return read_golden()


@pytest.fixture(scope="module")
def played(golden):
    """Every recorded episode, played here with pictures and details.

    What differs from stock is played once more: a picture resizes the page for a moment, and on a
    busy machine the mouse may be noticed to hover something else then. Without pictures that does
    not happen (`benchmarks.busy`)."""
    everything = {"before": 0, "everything": True, "timeout": 120}
    results = compare_all(golden, workers=2, **everything)
    unlike = {task for task, *_ in differences(results, but={"screenshot"})}
    return results | once_more(golden, unlike, UNLIKE_AT_FIRST, **everything)


def once_more(golden, tasks, most, **how):
    """The episodes of these tasks, ``most`` of them, played again with one worker."""
    assert len(tasks) <= most, tasks
    again = [episode for episode in golden if episode["task"] in tasks]
    return compare_all(again, workers=1, **how) if again else {}


def differences(results, fields=None, but=()):
    """(task, seed, step, {field: how}) of each observation that differs in these fields (None: in
    any), ``but`` for some."""
    found = []
    for task, rows in results.items():
        for row in rows:
            names = set(row.fields) - set(but)
            names = names if fields is None else names & set(fields)
            if names:
                how = {name: row.fields[name] for name in sorted(names)}
                found.append((task, row.episode["seed"], row.step, how))
    return found


def test_every_task_is_recorded_or_named_with_the_reason_why_not(golden):
    recorded = {}
    for episode in golden:
        recorded.setdefault(episode["task"], set()).add(episode["seed"])
    assert set(recorded) | set(NOT_COVERED) == set(list_tasks())
    assert not set(recorded) & set(NOT_COVERED)
    assert all(seeds == set(SEEDS) for seeds in recorded.values())
    assert set(recorded) >= chosen_in_place().keys()
    assert all(NOT_COVERED.values())


def test_every_recorded_observation_is_the_same_here(played):
    """All of it that does not depend on fonts: text, HTML, focus, errors, pay."""
    assert differences(played, but=DRAWN) == []
    assert sum(len(rows) for rows in played.values()) > 900


@pytest.mark.parametrize(
    ("other", "alike"),
    [
        ({}, True),
        ({"chromium": "156.0.8078.108"}, True),
        ({"chromium": "156.0.8079.79"}, False),
        ({"chromium": "157.0.8078.79"}, False),
        ({"widths": {"serif": 2.0}}, False),
    ],
)
def test_a_patch_of_chromium_draws_alike_and_another_release_need_not(other, alike):
    drawn = {"chromium": "156.0.8078.79", "widths": {"serif": 1.0}}
    assert draw_alike(drawn, drawn | other) == alike


def test_every_recorded_page_is_drawn_the_same_here(played, session):
    """Every element's box and visibility, and the pictures, pixel by pixel."""
    session.reset("click-test", 1)
    if not draw_alike(drawing(session.opened.page), json.loads(DRAWN_BY.read_text())):
        pytest.skip("another Chromium, or other fonts, than those of the record")
    assert differences(played, DRAWN - {"screenshot"}) == []
    pictures = sum(len(rows) for rows in played.values())
    assert len(differences(played, {"screenshot"})) <= HOVERING * pictures


def test_stock_hardly_differs_with_itself(golden):
    """What is set apart because stock was another the second time is too little to hide
    anything."""
    unsteady = [
        (episode["task"], name)
        for episode in golden
        for seen in episode["stock"]
        for name in seen.get("again", {})
    ]
    assert len([name for _, name in unsteady if name != "screenshot"]) < 15
    assert len([name for _, name in unsteady if name == "screenshot"]) < 15


def test_without_the_settling_rule_there_are_differences(golden):
    """The control: pages with animations and delays, read at once, are not what stock shows half a
    second later."""
    animated = [episode for episode in golden if episode["task"] in ANIMATED]
    at_once = compare_all(animated, workers=1, timeout=120, rules=PageRules(settle_ms=0))
    assert len(differences(at_once, but=DRAWN)) >= 3


def test_seed_and_actions_fix_what_is_seen_and_paid(golden, played):
    """In another server, after other episodes, without pictures and details: all that a policy
    that reads text is sent, boxes and ends included. What a machine that is too busy has cost is
    played once more."""
    first_seed = [episode for episode in golden if episode["seed"] == SEEDS[0]]
    after_others = {"before": 1, "timeout": 120}
    again = compare_all(first_seed, workers=2, **after_others)
    lost = {
        task for task, rows in again.items() if any(row.seen.infrastructure_error for row in rows)
    }
    again |= once_more(first_seed, lost, LOST_AT_FIRST, **after_others)
    different = []
    for task, rows in again.items():
        before = [row for row in played[task] if row.episode["seed"] == SEEDS[0]]
        for row, then in zip(rows, before, strict=True):
            changed = changed_fields(row.seen, then.seen)
            different += [(task, row.step, *found) for found in changed]
    assert different == []


def test_a_page_that_is_used_again_is_not_loaded_again(session, monkeypatch):
    """A start in place that fails on the page would be made good by loading it, and nobody would
    see."""
    monkeypatch.setattr(sessions, "CONTEXT_EPISODES", 10**6)

    def stays(task):
        session.reset(task, 1)
        session.opened.page.evaluate("window.stayed = true")
        session.reset(task, 2)
        return session.opened.page.evaluate("window.stayed")

    assert [task for task in chosen_in_place() if not stays(task)] == []


def test_only_elements_that_nobody_listens_to_are_copied(session):
    """A copy has no listeners; what a page attaches when it loads, and not when an episode starts,
    would be missing. Such a page is told to do so again."""

    def listeners(task):
        session.opened.page.goto(f"{ORIGIN}/miniwob/{task}.html")
        cdp = session.opened.cdp
        found = cdp.send("Runtime.evaluate", {"expression": "document.querySelector('#wrap')"})
        which = {"objectId": found["result"]["objectId"], "depth": -1}
        return cdp.send("DOMDebugger.getEventListeners", which)["listeners"]

    session.reset("click-test", 1)
    copied, remade = (
        [task for task, how in chosen_in_place().items() if how == wanted]
        for wanted in ("copy", "remake")
    )
    assert copied
    assert [task for task in copied if listeners(task)] == []
    assert "choose-date" in remade
    assert [task for task in remade if not listeners(task)] == []
