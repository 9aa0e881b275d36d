"""What a policy sees and earns here is what stock BrowserGym shows and pays: recorded episodes, played again.

The record is recordings/parity/stock.jsonl.gz, made by ``python -m benchmarks.parity --stock``.
"""

import threading
import time
from http.server import ThreadingHTTPServer

import pytest

from benchmarks.parity import NOT_COVERED, SEEDS, compare_all, play, read_golden, with_each
from helpers.browser import list_tasks, warm
from helpers.browser.server import _Pages
from helpers.browser.warm import IN_PLACE, ORIGIN, Session, Warm


@pytest.fixture(scope="module")
def golden():
    return read_golden()


@pytest.fixture(scope="module")
def played(golden):
    """Every recorded episode, played here; the one before it in the same session is another of its task."""
    return compare_all(golden, before=0, workers=2, timeout=120)


@pytest.fixture(scope="module")
def session():
    """A session without the server and the worker around it, so that a test can look at its page."""
    pages = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    threading.Thread(target=pages.serve_forever, daemon=True).start()
    browser = Warm(pages.server_port)
    yield Session(browser)
    browser.browser.close()
    browser.playwright.stop()
    pages.shutdown()


def differences(results):
    return [
        (task, episode["seed"], step, fields)
        for task, rows in results.items()
        for episode, step, fields, _ in rows
        if fields
    ]


def test_every_task_is_recorded_or_named_with_the_reason_why_not(golden):
    recorded = {}
    for episode in golden:
        recorded.setdefault(episode["task"], set()).add(episode["seed"])
    assert set(recorded) | set(NOT_COVERED) == set(list_tasks()) and not set(recorded) & set(
        NOT_COVERED
    )
    assert all(seeds == set(SEEDS) for seeds in recorded.values())
    assert set(recorded) >= IN_PLACE.keys() and all(NOT_COVERED.values())


def test_every_recorded_observation_is_the_same_here(played):
    assert differences(played) == []
    assert sum(map(len, played.values())) > 900


def test_without_the_settling_rule_there_are_differences(golden, monkeypatch):
    """The control: pages with animations and delays, read at once, are not what stock shows half a second later."""
    monkeypatch.setenv("PARITY_SETTLE_MS", "0")
    slow = [
        e
        for e in golden
        if e["task"]
        in ("click-collapsible", "click-menu", "use-autocomplete", "click-collapsible-2")
    ]
    assert len(differences(compare_all(slow, workers=1, timeout=120))) >= 3


def test_seed_and_actions_fix_what_is_seen_and_paid(golden, played):
    """In another server, after other episodes: all that we show, boxes and ends included."""
    again = compare_all(
        [e for e in golden if e["seed"] == SEEDS[0]], before=1, workers=2, timeout=120
    )
    different = []
    for task, rows in again.items():
        pairs = zip(rows, [row for row in played[task] if row[0]["seed"] == SEEDS[0]], strict=True)
        for (_, step, _, there), (_, _, _, here) in pairs:
            there, here = there.model_dump(), here.model_dump()
            different += [
                (task, step, name, here[name], there[name])
                for name in here
                if here[name] != there[name]
            ]
    assert different == []


def test_what_cannot_be_compared_is_fixed_by_seed_and_actions_too():
    """Also where the page follows a clock: pauses between the actions change nothing."""
    actions = {}

    def episode(env, task, pause):
        if task not in actions:
            actions[task] = ["noop(200)", *play(env, task, SEEDS[0])[1]]
        seen = [env.reset(task, SEEDS[0])]
        for action in actions[task]:
            time.sleep(pause)
            seen += [] if seen[-1].done else [env.step(action)]
        return seen

    first, second = (
        with_each(
            NOT_COVERED,
            lambda env, task, pause=pause: episode(env, task, pause),
            workers=1,
            timeout=120,
        )
        for pause in (0.0, 0.4)
    )
    assert first == second and all(len(seen) > 2 for seen in first.values())


def test_a_page_that_is_used_again_is_not_loaded_again(session, monkeypatch):
    """A start in place that fails on the page would be made good by loading it, and nobody would see."""
    monkeypatch.setattr(warm, "CONTEXT_EPISODES", 10**6)

    def stays(task):
        session.reset(task, 1)
        session.page.evaluate("window.stayed = true")
        session.reset(task, 2)
        return session.page.evaluate("window.stayed")

    assert [task for task in IN_PLACE if not stays(task)] == []


def test_only_elements_that_nobody_listens_to_are_copied(session):
    """A copy has no listeners; what a page attaches when it loads, and not when an episode starts, would be missing."""

    def listeners(task):
        session.page.goto(f"{ORIGIN}/miniwob/{task}.html")
        found = session.cdp.send(
            "Runtime.evaluate", {"expression": "document.querySelector('#wrap')"}
        )["result"]["objectId"]
        return session.cdp.send("DOMDebugger.getEventListeners", {"objectId": found, "depth": -1})[
            "listeners"
        ]

    session.reset("click-test", 1)
    copied = [task for task, how in IN_PLACE.items() if how == "copy"]
    assert copied and [task for task in copied if listeners(task)] == []
    assert listeners("choose-date")  # which can be told by its listeners, and is loaded anew
