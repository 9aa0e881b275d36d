"""Sessions share nothing, and neither do the episodes of one session: not the clipboard, held keys
or buttons, undo, focus order, the place of the mouse, or what a page keeps."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import miniwob
import pytest

from benchmarks import reuse
from helpers.browser import list_tasks, start_browser_server
from helpers.browser.options import PageRules, chosen_in_place
from helpers.settings.paths import RECORDINGS


@pytest.fixture(scope="module")
def server():
    """One worker, so that all sessions are pages of one Chromium."""
    with start_browser_server(workers=1, timeout=120) as server:
        yield server


def bid_of(seen, *roles):
    return next(e.bid for e in seen.elements if e.role in roles)


def value_of(seen, bid):
    return next(e.value for e in seen.elements if e.bid == bid)


def write_and_copy(env, text):
    """Begins an episode, and copies a text in it; returns the field's bid."""
    field = bid_of(env.reset("enter-text", 1), "textbox")
    env.step(f"fill('{field}', '{text}')")
    env.step(f"press('{field}', 'Control+a')")
    env.step(f"press('{field}', 'Control+c')")
    return field


def paste(env, field):
    env.step(f"clear('{field}')")
    return value_of(env.step(f"press('{field}', 'Control+v')"), field)


# ---- the clipboard ----


def test_each_session_pastes_what_it_has_copied_itself(server):
    with server.client() as one, server.client() as other:
        field = write_and_copy(one, "mine")
        write_and_copy(other, "yours")
        assert [paste(one, field), paste(other, field)] == ["mine", "yours"]
        other.step(f"press('{field}', 'Control+a')")
        other.step(f"press('{field}', 'Shift+Delete')")  # this cuts, too
        assert [paste(one, field), paste(other, field)] == ["mine", "yours"]


def test_a_new_episode_has_nothing_to_paste(server):
    """On a page that is used again, on one that is loaded, and beside a session that copies."""
    with server.client() as one, server.client() as other:
        field = write_and_copy(one, "mine")
        one.reset("enter-text", 2)
        assert paste(one, field) == ""
        write_and_copy(one, "mine")
        write_and_copy(other, "yours")
        one.reset("focus-text", 1)
        one.reset("enter-text", 2)
        assert paste(one, field) == ""
        assert paste(other, field) == "yours"


def copy_and_paste(env, seed):
    """copy-paste's solution; returns the reward."""
    seen = env.reset("copy-paste", seed)
    boxes = [e for e in seen.elements if e.role == "textbox"]
    [source] = [e.bid for e in boxes if e.value]
    [target] = [e.bid for e in boxes if not e.value]
    for action in (
        f"press('{source}', 'Control+a')",
        f"press('{source}', 'Control+c')",
        f"press('{target}', 'Control+v')",
        f"click('{bid_of(seen, 'button')}')",
    ):
        seen = env.step(action)
    return seen.reward


def test_sessions_that_copy_and_paste_at_once_are_all_paid(server):
    def play_four(env):
        with env:
            return [copy_and_paste(env, seed) for seed in range(4)]

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(play_four, server.clients(4))) == [[1.0] * 4] * 4


def test_what_is_copied_with_its_looks_comes_back_with_them(session):
    """A page's own kinds of text, put away for another episode and put back."""
    from helpers.browser.clipboard import Clipboard

    session.reset("click-test", 0)
    shared = session._chromium.clipboard
    mine = Clipboard({"text/plain": "a b", "text/html": "<b>a</b> b"})
    yours = Clipboard()
    for own in (mine, yours):
        with shared.used_by(own):
            pass
    assert mine.contents == {"text/plain": "a b", "text/html": "<b>a</b> b"}
    with shared.used_by(mine):
        pass
    assert yours.contents in ({}, {"text/plain": ""})


# ---- the mouse ----


def test_a_drag_to_an_element_that_is_not_there_leaves_no_button_down(session):
    session.reset("click-test", 0)
    page = session.opened.page
    page.evaluate(
        "() => { held = 0; addEventListener('pointermove', e => { held = e.buttons; }); }"
    )
    failed = session.step("drag_and_drop('13', '999')")
    assert "999" in failed["error"]
    assert not failed["done"]  # to press and to release on one spot would be a click
    session.step("hover('13')")
    assert page.evaluate("held") == 0
    assert session.step("click('13')")["reward"] == 1.0


def test_a_drag_that_fails_ends_where_the_mouse_is(session):
    """The page has seen the button go down, so it must see it go up."""
    session.reset("click-test", 0)
    session.opened.page.evaluate(
        "() => { ups = 0; addEventListener('mouseup', () => { ups += 1; }); }"
    )
    session.step("drag_and_drop('13', '999')")
    assert session.opened.page.evaluate("ups") == 1
    session.step("drag_and_drop('999', '13')")  # nothing was pressed
    assert session.opened.page.evaluate("ups") == 1


@pytest.mark.parametrize("between", ["email-inbox", "click-test"])
def test_the_wheel_turns_where_a_new_episode_has_the_mouse(session, between):
    """Not where the last episode has left it: over a list, say, that would scroll."""

    def boxes(seen):
        return [element["box"] for element in seen["elements"]]

    session.close()
    session.reset("email-inbox", 1_000)
    fresh = boxes(session.step("scroll(0, 30)"))
    start = session.reset("email-inbox", 1_000)
    mail = next(e["bid"] for e in start["elements"] if e["role"] == "generic" and e["clickable"])
    session.step(f"hover('{mail}')")
    assert boxes(session.step("scroll(0, 30)")) != fresh
    if between != "email-inbox":
        session.reset(between, 0)
    session.reset("email-inbox", 1_000)
    assert boxes(session.step("scroll(0, 30)")) == fresh


# ---- what a page keeps ----


@pytest.mark.parametrize("how", ["keep", "copy", "remake"])
def test_nothing_of_the_last_episode_can_be_brought_back(session, how):
    """Neither by undoing nor by redoing, and not by many of them."""
    session.close()
    session._chromium.rules = PageRules(in_place={"enter-text": how})
    try:
        field = next(
            e["bid"] for e in session.reset("enter-text", 1)["elements"] if e["role"] == "textbox"
        )
        for action in ("fill('{}', 'left over')", "press('{}', 'End')", "press('{}', 'x')"):
            session.step(action.format(field))
        session.step(f"press('{field}', 'Control+z')")
        fresh = session.reset("enter-text", 2)
        for key in ("Control+z", "Control+y", "Control+Shift+z", "Control+z", "Control+z"):
            seen = session.step(f"press('{field}', '{key}')")
            assert "left over" not in seen["axtree_txt"]
        texts = [e for e in fresh["elements"] if e["role"] != "textbox"]
        assert [e for e in seen["elements"] if e["role"] != "textbox"] == texts
        # What this episode types can be undone as ever.
        session.step(f"fill('{field}', 'new')")
        undone = session.step(f"press('{field}', 'Control+z')")
        assert next(e["value"] for e in undone["elements"] if e["role"] == "textbox") == ""
    finally:
        session._chromium.rules = PageRules()
        session.close()


def test_no_task_page_stores_anything():
    """Storage, cookies and the window's name outlive a page; what a page does not write, no action
    can."""
    html = Path(miniwob.__file__).parent / "html"
    stores = re.compile(r"localStorage|sessionStorage|indexedDB|document\.cookie|window\.name\b")
    sources = [html / "miniwob" / f"{task}.html" for task in list_tasks()]
    scripts = set()
    for source in sources:
        for name in re.findall(r'src="([^"]+\.js)"', source.read_text(errors="replace")):
            scripts.add((source.parent / name).resolve())
    assert len(scripts) > 5
    found = [p.name for p in [*sources, *scripts] if stores.search(p.read_text(errors="replace"))]
    assert found == []


# ---- all of it, by what the next episode does ----

SAMPLE = (
    "enter-text",
    "email-inbox-star-reply",
    "click-scroll-list",
    "use-autocomplete",
    "use-colorwheel",
)


@pytest.mark.slow
def test_nothing_of_hostile_episodes_shows_in_the_next_one():
    """A sample of ``python -m benchmarks.reuse``."""
    assert set(SAMPLE) <= chosen_in_place().keys()
    assert [str(leak) for leak in reuse.audit(SAMPLE, workers=2, timeout=120)] == []


def test_the_recorded_audit_is_of_every_task_that_uses_a_page_again():
    recorded = json.loads((RECORDINGS / "reuse" / "result.json").read_text())
    assert (recorded["tasks"], recorded["leaks"]) == (len(chosen_in_place()), 0)


@pytest.mark.slow
def test_the_sample_would_find_a_page_that_is_used_again_as_it_is_not_to_be():
    """The control: the date picker of choose-date keeps what is chosen."""
    rules = PageRules(in_place={"choose-date": "keep"})
    leaks = reuse.audit(["choose-date"], rules=rules, kinds=["solution"], workers=1, timeout=120)
    assert {leak.task for leak in leaks} == {"choose-date"}


@pytest.mark.parametrize(("now_fresh", "found"), [("10:31", 0), ("10:30", 1)])
def test_what_a_fresh_page_shows_as_well_by_now_is_no_leak(monkeypatch, now_fresh, found):
    """A time picker begins at this minute: it is another one than when the audit began."""
    probe = next(iter(reuse.PROBES))
    monkeypatch.setattr(reuse, "PROBES", {probe: reuse.PROBES[probe]})
    minutes = iter(["10:30", now_fresh])
    monkeypatch.setattr(reuse, "play_fresh", lambda *_: ([], [{"text": next(minutes)}]))
    monkeypatch.setattr(reuse, "play_probe", lambda *_: ([], [{"text": "10:31"}]))
    monkeypatch.setattr(reuse, "play_hostile", lambda *_: [])
    server = SimpleNamespace(client=lambda: SimpleNamespace(close=lambda: None))
    assert len(reuse.leaks_of(server, [0], ["typing"], "enter-time")) == found
