"""What a policy sees and earns here is what stock BrowserGym shows and pays: recorded episodes,
played again.

The record is recordings/parity/stock.jsonl.gz, made by ``python -m benchmarks.parity --stock``.
"""

import time

import pytest

from benchmarks.parity import NOT_COVERED, SEEDS, compare_all, play, read_golden, with_each
from helpers.browser import list_tasks
from helpers.browser import session as sessions
from helpers.browser.kept_chromium import ORIGIN
from helpers.browser.options import PageRules, chosen_in_place

# Two minutes on two cores: a change of the environment is tried with `make test`.
pytestmark = pytest.mark.slow

ANIMATED = ("click-collapsible", "click-menu", "use-autocomplete", "click-collapsible-2")


@pytest.fixture(scope="module")
def golden():
    return read_golden()


@pytest.fixture(scope="module")
def played(golden):
    """Every recorded episode, played here; the one before it in the same session is another of its
    task."""
    return compare_all(golden, before=0, workers=2, timeout=120)


def differences(results):
    found = []
    for task, rows in results.items():
        for episode, step, fields, _ in rows:
            if fields:
                found.append((task, episode["seed"], step, fields))
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
    assert differences(played) == []
    assert sum(len(rows) for rows in played.values()) > 900


def test_without_the_settling_rule_there_are_differences(golden):
    """The control: pages with animations and delays, read at once, are not what stock shows half a
    second later."""
    animated = [episode for episode in golden if episode["task"] in ANIMATED]
    at_once = compare_all(animated, workers=1, timeout=120, rules=PageRules(settle_ms=0))
    assert len(differences(at_once)) >= 3


def test_seed_and_actions_fix_what_is_seen_and_paid(golden, played):
    """In another server, after other episodes: all that we show, boxes and ends included."""
    first_seed = [episode for episode in golden if episode["seed"] == SEEDS[0]]
    again = compare_all(first_seed, before=1, workers=2, timeout=120)
    different = []
    for task, rows in again.items():
        before = [row for row in played[task] if row[0]["seed"] == SEEDS[0]]
        for (_, step, _, now), (_, _, _, then) in zip(rows, before, strict=True):
            now_fields = now.model_dump()
            for name, value in then.model_dump().items():
                if now_fields[name] != value:
                    different.append((task, step, name, value, now_fields[name]))
    assert different == []


def test_what_cannot_be_compared_is_fixed_by_seed_and_actions_too():
    """Also where the page follows a clock: pauses between the actions change nothing."""
    actions = {}

    def episode(env, task, pause):
        if task not in actions:
            actions[task] = ["noop(200)", *play(env, task, SEEDS[0])[1]]
        seen = [env.reset(task, SEEDS[0])]
        for action in actions[task]:
            if seen[-1].done:
                break
            time.sleep(pause)
            seen.append(env.step(action))
        return seen

    def at_once(env, task):
        return episode(env, task, pause=0.0)

    def with_pauses(env, task):
        return episode(env, task, pause=0.4)

    first = with_each(NOT_COVERED, at_once, workers=1, timeout=120)
    second = with_each(NOT_COVERED, with_pauses, workers=1, timeout=120)
    assert first == second
    assert all(len(seen) > 2 for seen in first.values())


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
    would be missing."""

    def listeners(task):
        session.opened.page.goto(f"{ORIGIN}/miniwob/{task}.html")
        cdp = session.opened.cdp
        found = cdp.send("Runtime.evaluate", {"expression": "document.querySelector('#wrap')"})
        which = {"objectId": found["result"]["objectId"], "depth": -1}
        return cdp.send("DOMDebugger.getEventListeners", which)["listeners"]

    session.reset("click-test", 1)
    copied = [task for task, how in chosen_in_place().items() if how == "copy"]
    assert copied
    assert [task for task in copied if listeners(task)] == []
    assert listeners("choose-date")  # which can be told by its listeners, and is loaded anew
