"""Clients that others wrote, by their default calls, at a server of ours: they get what upstream's
server sends, or a sentence."""

import json
import os
import signal

import numpy
import pytest
import requests
from browsergym.utils.obs import prune_html
from openenv.core.env_server.mcp_types import Tool
from openenv.core.harness import StepEnvSessionAdapter
from patience import PATIENCE
from peer_client import OBSERVED, BrowserGymAction, BrowserGymEnv, act
from websockets.exceptions import ConnectionClosedError, InvalidStatus
from websockets.sync.client import connect as connect_socket

from helpers.browser import BrowserServerError, connect
from helpers.browser.actions import ACTIONS
from helpers.browser.dialects import Dialect

STOCK_SIZE = (321, 498, 3)
SMALL_SIZE = (214, 332, 3)


@pytest.fixture
def peer(server):
    """Upstream's client, which is told nothing but an address."""
    with BrowserGymEnv(base_url=server.url_with_token).sync() as client:
        yield client


def picture_of(result):
    """The picture as TRL's and OpenEnv's examples read it."""
    return numpy.array(result.observation.screenshot, dtype=numpy.uint8)


# ---- what comes back ----


def test_an_episode_by_default_calls(peer):
    first = peer.reset(task_name="enter-text", seed=1)
    assert (first.done, first.reward) == (False, 0.0)
    seen = first.observation
    assert picture_of(first).shape == STOCK_SIZE
    assert picture_of(first).std() > 10  # something is drawn
    assert seen.text == seen.axtree_txt
    assert "textbox" in seen.axtree_txt
    assert '<input bid="' in seen.pruned_html
    assert prune_html(seen.pruned_html) == seen.pruned_html
    wanted = seen.goal.split('"')[1]
    middle = act(peer, f"fill('{bid_of(first, 'textbox')}', '{wanted}')")
    assert not middle.done
    assert (picture_of(middle) != picture_of(first)).any()
    last = act(peer, f"click('{bid_of(first, 'button')}')")
    assert (last.done, last.reward) == (True, 1.0)
    assert picture_of(last).shape == STOCK_SIZE
    again = peer.reset(task_name="enter-text", seed=1)
    assert (picture_of(again) == picture_of(first)).all()


def bid_of(result, role):
    """The bid of the first element with this role."""
    line = next(line for line in result.observation.axtree_txt.splitlines() if f"] {role} " in line)
    return line.partition("[")[2].partition("]")[0]


def test_the_metadata_is_browsergyms(peer):
    first = peer.reset(task_name="click-test", seed=1)
    seen, info = (first.observation.metadata[f"browsergym_{name}"] for name in ("obs", "info"))
    assert set(seen) == OBSERVED
    assert seen["goal"] == first.observation.goal
    assert seen["goal_object"] == [{"type": "text", "text": seen["goal"]}]
    assert [message["role"] for message in seen["chat_messages"]] == ["assistant", "user"]
    assert seen["open_pages_urls"] == [seen["url"]]
    assert (seen["last_action"], seen["last_action_error"]) == ("", "")
    button = seen["extra_element_properties"][bid_of(first, "button")]
    assert set(button) == {"visibility", "bbox", "clickable", "set_of_marks"}
    assert (button["visibility"], button["clickable"]) == (1.0, True)
    x, y, width, height = (round(number) for number in button["bbox"])
    drawn = picture_of(first)[y : y + height, x : x + width]
    assert drawn.shape == (height, width, 3)  # the box lies on the picture
    assert drawn.std() > 10
    assert info["task_info"]["DONE_GLOBAL"] is False
    failed = act(peer, "click('99')").observation
    seen = failed.metadata["browsergym_obs"]
    assert seen["last_action"] == "click('99')"
    assert seen["last_action_error"] == failed.error
    assert failed.error == 'ValueError: Could not find element with bid "99"'
    solved = act(peer, "click('13')").observation
    task_info = solved.metadata["browsergym_info"]["task_info"]
    assert (task_info["DONE_GLOBAL"], task_info["RAW_REWARD_GLOBAL"]) == (True, 1)


def test_a_lost_episode_is_told_in_upstreams_fields(server, peer):
    """Its clients know neither ``ended`` nor ``infrastructure_error``."""
    peer.reset(task_name="click-test", seed=1)
    for worker in server.stats()["workers"]:
        os.kill(worker["pid"], signal.SIGKILL)
    lost = act(peer, "click('13')")
    assert (lost.done, lost.reward, lost.observation.last_action_error) == (True, None, True)
    assert lost.observation.error == "the browser's worker process died and was restarted"
    seen = lost.observation.metadata["browsergym_obs"]
    assert set(seen) == OBSERVED
    assert (seen["last_action"], seen["last_action_error"]) == (
        "click('13')",
        lost.observation.error,
    )
    peer.reset(task_name="click-test", seed=1)
    assert act(peer, "click('13')").reward == 1.0


def test_a_page_that_was_not_read_has_all_keys():
    """An episode that ends on another page ends unseen."""
    fields = {"goal": "g", "url": "about:blank", "done": True, "ended": "left_page", "details": {}}
    fields["task_info"] = {"error": "invalid url, terminating task"}
    seen = Dialect.of_reset(None, None).observation(fields, "click('13')")
    told = seen.metadata["browsergym_obs"]
    assert set(told) == OBSERVED
    assert (told["url"], told["goal"], told["last_action"]) == ("about:blank", "g", "click('13')")
    assert seen.metadata["browsergym_info"]["task_info"]["error"].startswith("invalid url")


def test_whoever_speaks_of_pictures_gets_what_they_say(peer):
    sizes = {True: STOCK_SIZE, None: STOCK_SIZE, "pixels": STOCK_SIZE, "small": SMALL_SIZE}
    for said, size in sizes.items():
        assert picture_of(peer.reset(task_name="click-test", screenshot=said)).shape == size
    assert picture_of(act(peer, "noop(1)")).shape == SMALL_SIZE
    seen = peer.reset(task_name="click-test", screenshot=False).observation
    assert seen.screenshot is None
    assert seen.pruned_html
    assert set(seen.metadata["browsergym_obs"]) == OBSERVED
    with pytest.raises(RuntimeError, match="There is no picture 'large'; screenshot is True, 'sm"):
        peer.reset(task_name="click-test", screenshot="large")


def test_our_own_client_gets_what_it_asks_for_and_no_more(server):
    with connect(server.url_with_token) as client:
        seen = client.reset("click-test", 1)
        assert (seen.screenshot, seen.pruned_html, seen.metadata) == (None, "", {})
        seen = client.step("noop(1)", screenshot=True)
        assert seen.screenshot.startswith(b"\x89PNG")
        assert seen.metadata == {}


def test_the_state_is_upstreams(peer):
    peer.reset(task_name="click-test", seed=1, episode_id="mine", screenshot=False)
    act(peer, "noop(1)")
    state = peer.state()
    assert (state.episode_id, state.step_count) == ("mine", 1)
    assert (state.benchmark, state.task_name) == ("miniwob", "click-test")
    assert state.current_url.endswith("/miniwob/click-test.html")
    assert (state.goal, state.cum_reward) == ("Click the button.", 0.0)
    peer.reset(task_name="click-test", seed=1)
    assert peer.state().episode_id not in (None, "", "mine")


def test_a_bare_reset_over_plain_http_has_a_picture_too(server):
    answer = requests.post(f"{server.url_with_token}/reset", json={}, timeout=PATIENCE).json()
    seen = answer["observation"]
    assert numpy.array(seen["screenshot"]).shape == STOCK_SIZE
    assert set(seen["metadata"]["browsergym_obs"]) == OBSERVED


# ---- what is no action ----


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("send_keys('Enter')", "there is no action 'send_keys'; use one of: click, fill, press, "),
        ("goto('http://example.com')", "there is no action 'goto'; use one of: click, "),
        ("scroll('down')", "scroll(delta_x, delta_y) takes 2 arguments, not 1"),
        ("click(13)", "bid is a string: write '13', with quotes"),
        ("click('13')\nclick('13')", "answer with one action, not several"),
        ("I click the button.", "answer with one action and nothing else, such as click('13')"),
        ("", "answer with one action and nothing else, such as click('13')"),
    ],
)
def test_what_is_no_action_is_told_what_is_one(peer, text, sentence):
    """Upstream executes none of them either, but for several at once; of why it says nothing in
    ``error``."""
    before = peer.reset(task_name="click-test", seed=1, screenshot=False)
    after = act(peer, text)
    seen = after.observation
    assert (after.done, after.reward, seen.last_action_error) == (False, 0.0, True)
    assert seen.error.startswith(sentence)
    assert seen.metadata["browsergym_obs"]["last_action_error"] == seen.error
    assert seen.axtree_txt == before.observation.axtree_txt
    assert act(peer, "click('13')").reward == 1.0


def test_the_tools_of_upstreams_harness(server):
    """``BrowserGymSessionFactory`` offers five; the two that BrowserGym does not have are told what
    exists."""
    written = {
        "click": lambda bid: f"click({json.dumps(bid)})",
        "send_keys": lambda text: f"send_keys({json.dumps(text)})",
        "scroll": lambda direction: f"scroll({json.dumps(direction)})",
        "noop": lambda: "noop()",
    }
    session = StepEnvSessionAdapter(
        client=BrowserGymEnv(base_url=server.url_with_token).sync(),
        task="click-test",
        seed=3,
        tool_specs=[Tool(name=name, description="", input_schema={}) for name in written],
        action_builder=lambda name, said: BrowserGymAction(action_str=written[name](**said)),
        initial_messages_builder=lambda result, task: [
            {"role": "user", "content": result.observation.goal}
        ],
        tool_result_builder=lambda name, said, result, state: result,
        verify_builder=lambda transcript, final, last, state: last,
        reset_kwargs={"task_name": "click-test"},
    )

    def call(name, **said):
        return session.call_tool(name, said)

    assert session.initial_messages()[0]["content"] == "Click the button."
    typed = call("send_keys", text="Enter")
    assert not typed.done
    for name in ACTIONS:
        assert name in typed.observation.error
    assert call("scroll", direction="down").observation.error.startswith("scroll(delta_x, delta_y)")
    assert call("noop").observation.error == ""
    clicked = call("click", bid="13")
    assert (clicked.done, clicked.reward) == (True, 1.0)
    session.close()


def test_what_cannot_be_done_is_one_sentence(peer):
    with pytest.raises(RuntimeError, match="No episode is running; call reset"):
        act(peer, "click('13')")
    with pytest.raises(RuntimeError, match="no MiniWoB task 'click-buton'; did you mean click-but"):
        peer.reset(task_name="click-buton")
    with pytest.raises(RuntimeError, match="The seed must be a whole number, not 'seven'"):
        peer.reset(task_name="click-test", seed="seven")
    peer.reset(task_name="click-test", seed=1, screenshot=False)
    act(peer, "click('13')")
    with pytest.raises(RuntimeError, match=r"The episode is over \(ended: solved\); call reset"):
        act(peer, "click('13')")
    assert not peer.reset(task_name="click-test", seed=2, screenshot=False).done


# ---- who may come in ----


def with_token(server, token):
    return server.url.replace("://", f"://me:{token}@")


def test_upstreams_client_without_the_token_is_told_what_to_do(server):
    before = server.stats()["episodes"]
    for url, why in (
        (server.url, "This browser server wants its token"),
        (with_token(server, "guess"), "This browser server knows no such token"),
        (with_token(server, ""), "This browser server wants its token"),
    ):
        with BrowserGymEnv(base_url=url).sync() as client:
            with pytest.raises((RuntimeError, ConnectionError), match=why) as caught:
                client.reset(task_name="click-test")
            if isinstance(caught.value, RuntimeError):
                assert "http://any-name:TOKEN@host:port" in str(caught.value)
    assert server.stats()["episodes"] == before


def test_a_token_in_an_address_is_not_repeated_in_a_sentence(server):
    for url in ("http://me:secret@127.0.0.1:1", with_token(server, "secret")):
        with pytest.raises(BrowserServerError, match="http://127.0.0.1:") as caught:
            connect(url)
        assert "secret" not in str(caught.value)


def test_the_token_counts_in_the_header_and_nowhere_else(server):
    """What stands in a request's first line is written down by servers and proxies on the way."""
    for path in (f"/stats?token={server.token}", f"/{server.token}/stats", "/stats"):
        answer = requests.get(server.url + path, timeout=PATIENCE)
        assert answer.status_code == 403
        assert "wants its token" in answer.text
    answer = requests.get(with_token(server, server.token) + "/stats", timeout=PATIENCE)
    assert answer.status_code == 200
    bearer = {"Authorization": f"bearer {server.token}"}
    assert requests.get(server.url + "/stats", headers=bearer, timeout=PATIENCE).status_code == 200
    for header in (
        server.token,
        f"Basic {server.token}",
        "Basic ====",
        "Basic",
        "Bearer",
        "Bearer ",
    ):
        wrong = {"Authorization": header}
        answer = requests.get(server.url + "/stats", headers=wrong, timeout=PATIENCE)
        assert answer.status_code == 403


def test_a_web_page_does_not_come_in_with_the_token_either(server):
    url = with_token(server, server.token)
    for origin in ("http://evil.example", "null", server.url):
        answer = requests.get(url + "/stats", headers={"Origin": origin}, timeout=PATIENCE)
        assert answer.status_code == 403
        with pytest.raises(InvalidStatus, match="403"):
            connect_socket(f"{url.replace('http', 'ws')}/ws", origin=origin)


def test_nothing_that_a_stranger_sends_is_read(server):
    with connect_socket(f"{server.url.replace('http', 'ws')}/ws") as socket:
        before = server.stats()["episodes"]
        refused = json.loads(socket.recv())
        assert refused["type"] == "error"
        with pytest.raises(ConnectionClosedError, match="1008.* wants its token"):
            socket.recv()
        assert server.stats()["episodes"] == before
