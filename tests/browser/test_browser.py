"""The browser environment, with a real server and a real Chromium."""

import io
import json
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import numpy
import pytest
from patience import PATIENCE

from helpers.browser import (
    BrowserObservation,
    BrowserServerError,
    connect,
    launcher,
    list_tasks,
    start_browser_server,
)
from helpers.browser.chromium import find_chromium
from helpers.browser.openenv_parts import EnvClient, StepResult
from helpers.browser.wire import Wire

LARGE_TASKS = (
    "sign-agreement",
    "social-media-all",
    "order-food",
    "scroll-text",
    "email-inbox",
    "buy-ticket",
)


@pytest.fixture
def env(server):
    """One session of the file's own server."""
    with server.client() as client:
        yield client


def bid_of(observation, role, name=None):
    return next(e.bid for e in observation.elements if e.role == role and name in (None, e.name))


def quoted(goal):
    """The words that the goal puts in quotation marks."""
    return re.search(r'"(.*?)"', goal)[1]


def wanted_button(observation):
    return bid_of(observation, "button", quoted(observation.goal))


def same(a, b):
    """Two observations without the picture."""
    return a.model_dump(exclude={"screenshot"}) == b.model_dump(exclude={"screenshot"})


# ---- episodes ----


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_click_button_is_solved_by_the_button_that_the_goal_names(env, seed):
    start = env.reset("click-button", seed)
    assert (start.done, start.reward, start.ended, start.step) == (False, 0.0, "", 0)
    end = env.step(f"click('{wanted_button(start)}')")
    assert (end.done, end.ended, end.step) == (True, "solved", 1)
    assert (end.reward, end.raw_reward) == (1.0, 1.0)


def test_a_wrong_click_fails_the_episode(env):
    for seed in range(20):
        start = env.reset("click-button", seed)
        wanted = quoted(start.goal)
        wrong = [e.bid for e in start.elements if e.role == "button" and e.name != wanted]
        if wrong:
            break
    end = env.step(f"click('{wrong[0]}')")
    assert (end.done, end.reward, end.ended, end.infrastructure_error) == (True, 0.0, "failed", "")
    with pytest.raises(BrowserServerError, match="episode is over"):
        env.step("noop()")


def test_text_is_filled_in_and_keys_submit(env):
    start = env.reset("enter-text", 3)
    text = quoted(start.goal)
    field = bid_of(start, "textbox")
    filled = env.step(f"fill('{field}', '{text}')")
    assert next(e for e in filled.elements if e.bid == field).value == text
    assert filled.focused_bid == field
    assert f"value='{text}'" in filled.axtree_txt
    end = env.step(f"press('{bid_of(filled, 'button')}', 'Enter')")
    assert (end.reward, end.ended) == (1.0, "solved")


def test_strict_reward_is_not_raw_reward(env):
    """Submit at once: some boxes that should stay empty are empty, which the page counts."""
    for seed in range(30):
        start = env.reset("click-checkboxes", seed)
        if "select nothing" in start.goal.lower():
            continue
        end = env.step(f"click('{bid_of(start, 'button', 'Submit')}')")
        assert (end.done, end.reward, end.ended) == (True, 0.0, "failed")
        if end.raw_reward > 0:
            return
    pytest.fail("no seed with a part of the reward")


def test_book_flight_loads_and_its_fields_work(env):
    start = env.reset("book-flight", 1)
    assert start.goal.startswith("Book the ")
    fields = [e.bid for e in start.elements if e.role == "textbox"]
    assert len(fields) == 3
    seen = env.step(f"fill('{fields[0]}', 'AKN')")
    assert "AKN" in seen.axtree_txt
    assert not seen.error


@pytest.mark.parametrize(
    "action, reason",
    [
        ("I will click('13')", "one action"),
        ("goto('javascript:core.endEpisode(1)')", "no action 'goto'"),
        ("click(13)", "string"),
        ("click('13') click('14')", "not several"),
        ("", "one action"),
        ("__import__('os').system('true')", "no action '__import__'"),
        ("noop(60000)", "between"),
        ("click('13'" + " " * 5_000, "one action"),
    ],
)
def test_what_is_no_action_is_not_executed(env, action, reason):
    start = env.reset("click-test", 0)
    after = env.step(action)
    assert reason in after.error
    assert (after.last_action_error, after.done, after.reward) == (True, False, 0.0)
    before_it = {"error": "", "last_action_error": False, "step": 0}
    assert same(start, after.model_copy(update=before_it))
    assert env.step("click('13')").reward == 1.0


def test_an_action_that_the_page_refuses_tells_why(env):
    env.reset("click-test", 0)
    assert 'Could not find element with bid "999"' in env.step("click('999')").error
    hidden = env.step("click('2')")  # the <title>
    assert "not visible" in hidden.error
    assert len(hidden.error) < 300
    assert not hidden.done
    # BrowserGym's own limit, not the longer one for a slow machine.
    assert "Timeout 500ms" in env.step("press('13', 'NoSuchKey')").error


# ---- determinism ----


def test_the_seed_fixes_the_page(server, env):
    with server.client() as other:
        for task in ("click-button", "login-user", "click-shape"):
            assert same(env.reset(task, 5), other.reset(task, 5))
    assert env.reset("click-button", 5).axtree_txt != env.reset("click-button", 6).axtree_txt


def watch_stock_market(client, pause):
    client.reset("stock-market", 4)
    seen = []
    for _ in range(3):
        time.sleep(pause)
        seen.append(client.step("noop(200)"))
    return seen


def test_pages_driven_by_timers_are_deterministic(server, env):
    """The page's clock moves only with actions: a slow policy sees what a fast one sees."""
    with server.client() as other:
        fast = watch_stock_market(env, pause=0.0)
        slow = watch_stock_market(other, pause=0.7)
    assert all(same(one, two) for one, two in zip(fast, slow, strict=True))
    assert fast[0].axtree_txt != fast[2].axtree_txt


# ---- pictures ----


def test_the_box_of_a_bid_contains_its_pixels(env):
    start = env.reset("click-button", 2, screenshot=True)
    picture = numpy.asarray(start.image()).astype(int)
    assert picture.shape == (321, 498, 3)
    assert start.screenshot.startswith(b"\x89PNG")
    box = next(e for e in start.elements if e.role == "button").box
    x, y, width, height = [round(number) for number in box]
    button = picture[y : y + height, x : x + width]
    # Inside the border: the grey of a button, which the white page has nowhere else.
    edge = button[2, 4:-4]
    assert (edge.std(axis=0) < 8).all()
    assert 200 < edge.mean() < 250
    outside = picture[y + height // 2, x + width + 2]
    assert outside.min() > 250
    assert env.step("noop()", screenshot=False).screenshot is None


def test_a_picture_comes_when_asked_for(env):
    assert env.reset("click-test", 0).screenshot is None
    assert env.step("noop()", screenshot=True).image().size == (498, 321)
    assert env.step("no action", screenshot="small").image().size == (332, 214)
    with pytest.raises(BrowserServerError, match="no picture 'large'; screenshot is True"):
        env.step("noop()", screenshot="large")
    with pytest.raises(ValueError, match="screenshot=True"):
        env.step("noop()").image()


# ---- many sessions ----


def test_sessions_run_in_parallel_and_do_not_disturb_each_other(server):
    envs = server.clients(8)

    def play(index):
        ends = []
        for seed in (index, index + 100):
            start = envs[index].reset("click-button", seed)
            ends.append(envs[index].step(f"click('{wanted_button(start)}')"))
        return ends

    try:
        with ThreadPoolExecutor(8) as threads:
            ends = [end for both in threads.map(play, range(8)) for end in both]
        assert [end.ended for end in ends] == ["solved"] * 16
        assert [w["sessions"] for w in server.stats()["workers"]] == [4, 4]
    finally:
        for client in envs:
            client.close()


def test_a_closed_client_gives_its_session_back():
    # A server of its own: no other test's session is on its way out here.
    with start_browser_server(workers=1) as server:
        assert server.stats()["sessions"] == 0
        client = server.client()
        client.reset("click-test", 0)
        assert server.stats()["sessions"] == 1
        client.close()
        client.close()
        deadline = time.time() + PATIENCE
        while server.stats()["sessions"] and time.time() < deadline:
            time.sleep(0.1)
        assert server.stats()["sessions"] == 0


def test_an_outcome_without_a_look_at_the_page(env):
    before = env.reset("click-button", 5)
    after = env.step(f"click('{wanted_button(before)}')", observe=False)
    assert (after.done, after.reward, after.ended) == (True, 1.0, "solved")
    assert after.axtree_txt == before.axtree_txt


# ---- the wire ----


class UpstreamClient(EnvClient):
    """What an upstream BrowserGym client sends and reads."""

    def _step_payload(self, action):
        return {"action_str": action, "metadata": {}}

    def _parse_result(self, payload):
        return StepResult(payload["observation"], payload.get("reward"), payload.get("done", False))

    def _parse_state(self, payload):
        return payload


def test_an_upstream_client_can_talk_to_our_server(server):
    with UpstreamClient(
        base_url=server.url, headers={"Authorization": f"Bearer {server.token}"}
    ).sync() as client:
        seen = client.reset(seed=1, task_name="click-test", screenshot="pixels").observation
        assert seen["goal"] == "Click the button."
        assert "button 'Click Me!'" in seen["axtree_txt"]
        assert seen["axtree_txt"] == seen["text"]
        assert numpy.asarray(seen["screenshot"]).shape == (321, 498, 3)
        assert seen["last_action_error"] is False
        assert client.state()["task_name"] == "click-test"
        result = client.step("click('13')")
        assert (result.reward, result.done) == (1.0, True)


def test_our_client_reads_an_upstream_answer():
    result = Wire(base_url="http://localhost:1")._parse_result(
        {
            "reward": 1.0,
            "done": True,
            "observation": {
                "text": "[13] button 'Click Me!', focused",
                "goal": "g",
                "url": "u",
                "screenshot": [[[255, 0, 0]]],
                "error": "",
                "last_action_error": True,
                "unknown": 1,
                "metadata": {
                    "browsergym_obs": {
                        "last_action_error": "ValueError: no",
                        "focused_element_bid": "13",
                    },
                    "browsergym_info": {"task_info": {"RAW_REWARD_GLOBAL": 0.4}},
                },
            },
        }
    )
    seen = result.observation
    assert seen.error == "ValueError: no"
    assert seen.image().getpixel((0, 0)) == (255, 0, 0)
    assert (seen.reward, seen.raw_reward, seen.ended) == (0.0, 0.4, "failed")
    assert [(e.bid, e.role, e.name, e.focused) for e in seen.elements] == [
        ("13", "button", "Click Me!", True)
    ]


@contextmanager
def counted(port):
    """An address that leads to ``port``, and a list that grows by the size of every piece that
    comes back."""
    listener = socket.create_server(("127.0.0.1", 0))
    sizes = []

    def pump(source, target, noted):
        with suppress(OSError):
            while piece := source.recv(65_536):
                noted.append(len(piece))
                target.sendall(piece)

    def serve():
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", port))
                for ends in ((near, far, []), (far, near, sizes)):
                    threading.Thread(target=pump, args=ends, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", sizes
    finally:
        listener.close()


def test_observations_are_small_on_the_wire(server):
    """Also those of the tasks with the longest texts and the largest pictures: the socket
    compresses what it sends."""
    port = int(server.url.rpartition(":")[2])
    with counted(port) as (url, sizes), connect(url, token=server.token) as client:
        for task in LARGE_TASKS:
            for picture, limit in ((False, 8_000), (True, 27_000)):
                sizes.clear()
                seen = client.reset(task, 0, screenshot=picture)
                assert 0 < sum(sizes) <= limit, (task, picture)
                assert (seen.screenshot is not None) == picture


def test_an_observation_survives_the_wire():
    before = BrowserObservation(goal="g", screenshot=b"\x89PNG", reward=None, done=True)
    assert BrowserObservation(**json.loads(before.model_dump_json())) == before


# ---- errors in one sentence ----


def test_unknown_task(env):
    with pytest.raises(
        BrowserServerError, match=r"no MiniWoB task 'click-buton'; did you mean .*click-button"
    ):
        env.reset("click-buton", 0)
    assert env.reset("click-test", 0).goal  # the session is still good
    assert "book-flight" in list_tasks()
    assert len(list_tasks()) > 100


def test_no_episode(env):
    with pytest.raises(BrowserServerError, match="reset"):
        env.step("click('13')")


def test_no_server():
    with pytest.raises(
        BrowserServerError, match="No browser server answers at http://127.0.0.1:9 .*start_browser"
    ):
        connect(url="http://127.0.0.1:9")
    with pytest.raises(BrowserServerError, match="either"):
        connect()


def test_port_is_busy(server):
    port = int(server.url.rsplit(":", 1)[1])
    with pytest.raises(BrowserServerError, match=f"Port {port} cannot be used"):
        start_browser_server(workers=1, port=port)


@pytest.mark.parametrize("answers", (True, False))
def test_a_server_that_removed_its_log_still_says_why(monkeypatch, answers):
    """Whether it is gone when its launcher asks is chance; here it is, and without ``answers``
    the log alone holds the reason."""
    monkeypatch.setenv("COURSE_CHROMIUM", "/nowhere/chromium")
    first_output = launcher._first_output

    def first_output_of_the_ended(process, seconds):
        line = first_output(process, seconds)
        process.wait(PATIENCE)
        return line if answers else b""

    monkeypatch.setattr(launcher, "_first_output", first_output_of_the_ended)
    with pytest.raises(BrowserServerError, match="COURSE_CHROMIUM .*make setup") as refused:
        start_browser_server(workers=1)
    assert ("ended while it started" in str(refused.value)) is not answers


def test_the_reason_is_not_what_the_driver_says_of_its_own_end():
    """It loses its worker, which is told to stop once the server knows the reason."""
    reason = "RuntimeError: COURSE_CHROMIUM names no file: run make setup."
    driver = (
        "node:events:497\n      throw er; // Unhandled 'error' event\n      ^\n\n"
        "Error: write EPIPE\n    at Socket._write (node:net:61:18)\n"
        "  errno: -32,\n  syscall: 'write'\n}\n\nNode.js v20.12.2\n"
    )
    for text in (f"{reason}\n", f"{reason}\n{driver}", f"{driver}{driver}{reason}\n"):
        assert launcher._last_line(io.BytesIO(text.encode())) == reason
    assert launcher._last_line(io.BytesIO(driver.encode())) == ""


def test_no_chromium(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_CHROMIUM", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="make setup"):
        find_chromium()
    with pytest.raises(BrowserServerError, match="COURSE_CHROMIUM .*make setup"):
        start_browser_server(workers=1)
    monkeypatch.delenv("COURSE_CHROMIUM")
    stub = tmp_path / "chromium-browser"
    stub.write_text('#!/bin/sh\nexec /snap/bin/chromium "$@"\n')
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="snap stub"):
        find_chromium()
