"""What an action, a page or a crash can break: nothing but its own episode, which says so and earns
no reward."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace
from urllib.error import HTTPError

import psutil
import pytest
from patience import PATIENCE

from benchmarks import faults, hostile_strings
from benchmarks.faults import chromium_mains
from helpers.browser import BrowserServerError, connect, start_browser_server
from helpers.browser import pool as pools
from helpers.browser.actions import EVERY_ACTION, parse_action
from helpers.browser.pool import InfrastructureError, WorkerPool
from helpers.browser.processes import descendants
from helpers.browser.task_pages import TaskPages
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.play import play_agent
from helpers.evaluation.agents import text_match_agent
from helpers.settings.paths import ROOT


@pytest.fixture
def env(server):
    """One session of the file's own server."""
    with server.client() as client:
        yield client


def solves(env, seed=0):
    seen = env.reset("click-button", seed)
    return env.step(text_match_agent(seen, 0)).reward == 1.0


def gone(processes):
    return not psutil.wait_procs(processes, timeout=PATIENCE)[1]


# ---- the browser, the worker, the server ----


def test_killed_chromium_is_no_reward(server, env):
    env.reset("click-test", 0)
    for process in chromium_mains(server):
        process.kill()
    end = env.step("click('13')")
    assert (end.ended, end.reward, end.done) == ("infrastructure_error", None, True)
    assert end.infrastructure_error
    assert solves(env)


def chromium_parts(server, part):
    """The processes of one kind of each Chromium below a server."""
    return [
        process
        for worker in server.stats()["workers"]
        for process in descendants(worker["pid"])
        if f"--type={part}" in process.cmdline()
    ]


def restarts(server):
    return sum(worker["restarts"] for worker in server.stats()["workers"])


@pytest.mark.slow
@pytest.mark.parametrize("action", ["click('13')", "scroll(0, 50)"])
def test_a_browser_that_draws_nothing_is_replaced_and_is_not_the_policys_failure(
    server, env, action
):
    """A click waits for frames, which its GPU process draws."""
    env.reset("click-test", 0)
    for process in chromium_parts(server, "gpu-process"):
        process.send_signal(signal.SIGSTOP)
    end = env.step(action)
    assert (end.ended, end.reward, end.error) == ("infrastructure_error", None, "")
    assert env.reset("click-test", 0).ended == ""
    assert env.step(action).ended == ("solved" if "click" in action else "")
    assert solves(env)


@pytest.mark.parametrize("action", ["click('13')", "press('13', 'a')", "noop(1)"])
def test_a_killed_renderer_is_noticed_and_its_worker_goes_on(server, env, action):
    """Not only by the deadline of the step, at which the worker is replaced."""
    env.reset("click-test", 0)
    before = restarts(server)
    for process in chromium_parts(server, "renderer"):
        process.kill()
    end = env.step(action)
    assert (end.ended, end.reward, end.error) == ("infrastructure_error", None, "")
    assert end.infrastructure_error == "the page's process crashed"
    assert solves(env)
    assert restarts(server) == before


def test_a_renderer_that_is_killed_between_two_episodes_costs_none(server, env):
    assert solves(env)
    before = restarts(server)
    for process in chromium_parts(server, "renderer"):
        process.kill()
    assert solves(env)
    assert restarts(server) == before


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_worker_that_dies_or_stops_is_no_reward_and_disturbs_no_other(server, how):
    # On different workers: the one with the fewest sessions is taken.
    with server.client() as one, server.client() as other:
        before = {worker["pid"]: worker["sessions"] for worker in server.stats()["workers"]}
        one.reset("click-test", 0)
        after = {worker["pid"]: worker["sessions"] for worker in server.stats()["workers"]}
        [mine] = [pid for pid in after if after[pid] > before[pid]]
        other.reset("click-test", 0)
        os.kill(mine, how)
        assert other.step("click('13')").reward == 1.0
        end = one.step("click('13')")
        assert (end.ended, end.reward) == ("infrastructure_error", None)
        assert solves(one)
        assert solves(other)
        stats = server.stats()
        lost = stats["infrastructure_errors"]
        assert lost > 0
        assert lost == round(stats["infrastructure_rate"] * stats["episodes"])


def test_a_worker_that_died_between_two_episodes_costs_none(server):
    with server.client() as one, server.client() as other:
        assert solves(one)
        assert solves(other)
        for worker in server.stats()["workers"]:
            os.kill(worker["pid"], signal.SIGKILL)
        lost = server.stats()["infrastructure_errors"]
        assert solves(one)
        assert solves(other)
        assert server.stats()["infrastructure_errors"] == lost


@pytest.mark.slow
def test_a_killed_server_is_started_again_and_costs_only_the_running_episodes():
    with start_browser_server(workers=1, timeout=120) as server:
        clients = server.clients(3)
        old = descendants(server._process.pid)
        for client in clients[:2]:
            client.reset("click-test", 0)

        def pull_the_plug(seen, turn):
            if seen.seed == 3:
                server._process.kill()
            return text_match_agent(seen, turn)

        url = server.url
        specs = [EpisodeSpec("click-button", seed) for seed in range(12)]
        episodes = play_agent(pull_the_plug, specs, clients)
        lost = [episode for episode in episodes if episode.reward is None]
        assert 1 <= len(lost) <= 3
        assert {episode.ended for episode in lost} == {"infrastructure_error"}
        assert {episode.reward for episode in episodes if episode not in lost} == {1.0}
        assert server.url == url
        assert gone(old)


def test_nothing_is_left_after_close():
    server = start_browser_server(workers=1)
    client = server.client()
    client.reset("click-test", 0)
    processes = descendants(server._process.pid)
    assert len(processes) > 4
    directory = server._directory
    server.close()
    server.close()
    assert gone(processes)
    assert not directory.exists()
    with pytest.raises(BrowserServerError, match="start_browser_server"):
        client.reset("click-test", 0)


NOTEBOOK = """
import time
from helpers.browser import start_browser_server
server = start_browser_server(workers=1)
print(server._process.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.slow
def test_nothing_is_left_when_the_notebook_is_killed():
    parent = subprocess.Popen([sys.executable, "-c", NOTEBOOK], stdout=subprocess.PIPE, cwd=ROOT)
    server = psutil.Process(int(parent.stdout.readline()))
    processes = descendants(server.pid)
    assert len(processes) > 4
    directory = Path(server.cmdline()[-1])
    assert directory.exists()
    parent.kill()
    parent.wait()
    assert gone(processes)
    assert not directory.exists()


FORK = """
import os, sys
from helpers.browser import start_browser_server
server = start_browser_server(workers=1, timeout=120)
env = server.client()
env.reset("click-test", 0)
child = os.fork()
if not child:
    with server.client() as own:
        own.reset("click-test", 0)
        print(own.step("click('13')").reward, flush=True)
    server.close()
    sys.exit()  # with all that a process does at its end
os.waitpid(child, 0)
print(env.step("click('13')").reward, flush=True)
server.close()
"""


def test_a_forked_child_uses_the_server_and_leaves_it_running():
    done = subprocess.run(
        [sys.executable, "-c", FORK], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.stdout.split() == ["1.0", "1.0"], done.stderr


def test_a_home_that_cannot_be_written_is_no_obstacle(monkeypatch):
    monkeypatch.setenv("HOME", "/proc/nowhere")
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    with start_browser_server(workers=1, timeout=120) as server, server.client() as client:
        assert solves(client)
        # Where /dev/shm is as small as a container's 64 MB, pages would crash: Chromium is told not
        # to use it.
        assert "--disable-dev-shm-usage" in chromium_mains(server)[0].cmdline()


# ---- pages that misbehave ----


@pytest.fixture
def misbehaving():
    """A function that starts a worker whose click-test page runs a script of ours; it returns reset
    and step."""
    with ExitStack() as stack:

        def start(script):
            return stack.enter_context(faults.misbehaving(script))

        yield start


def test_a_page_in_an_endless_loop_ends_its_episode_and_the_worker_comes_back(misbehaving):
    reset, step = misbehaving("document.addEventListener('mousedown', () => { while (true) {} })")
    reset()
    with pytest.raises(InfrastructureError, match="did not finish the step within 7 s"):
        step()
    assert reset("click-dialog")["goal"]


def test_a_session_that_waits_holds_up_no_other_of_its_worker():
    go_on = threading.Event()

    class Pages(TaskPages):
        def do_GET(self):
            if self.path.endswith("/click-dialog.html"):
                go_on.wait(6)
            super().do_GET()

    with faults.worker_on(Pages) as call, ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(call, "reset", 1, "click-dialog", 0)
        call("reset", 2, "click-test", 0)
        solved = call("step", 2, f"click('{hostile_strings.BUTTON}')")
        assert solved["reward"] == 1.0
        assert not waiting.done()
        go_on.set()
        assert waiting.result()["goal"]


@pytest.mark.parametrize(
    "dialog", ["alert('a')", "confirm('a')", "prompt('a')", "onbeforeunload = () => 'stay'"]
)
def test_a_dialog_blocks_nothing(misbehaving, dialog):
    # After the page's own handler: a dialog between press and release may swallow the click, as it
    # may for a person.
    reset, step = misbehaving(f"document.addEventListener('click', () => {{ {dialog} }})")
    assert reset()["goal"]
    assert step()["reward"] == 1.0
    assert reset()["goal"]


@pytest.mark.parametrize(
    "away",
    ["window.open('about:blank')", "location = 'http://example.com/'", "location = 'about:blank'"],
)
def test_a_page_that_goes_elsewhere_ends_its_episode_without_reward(misbehaving, away):
    reset, step = misbehaving(f"document.addEventListener('mousedown', () => {{ {away} }})")
    reset()
    seen = step()
    assert (seen["done"], seen["ended"], seen["reward"]) == (True, "left_page", 0.0)
    assert reset("click-dialog")["goal"]


CALL_EVERYWHERE = """
window.onmousedown = () => {
    for (const host of ['127.0.0.1', 'localhost', '[::1]', '2130706433']) {
        const url = '//' + host + ':PORT/';
        fetch('http:' + url, {mode: 'no-cors'}).catch(() => 0);
        new Image().src = 'http:' + url;
        navigator.sendBeacon('http:' + url, 'x');
        try { new WebSocket('ws:' + url); } catch (e) {}
        const frame = document.createElement('iframe');
        frame.src = 'http:' + url;
        document.body.append(frame);
        const link = document.createElement('link');
        link.rel = 'preconnect';
        link.href = 'http:' + url;
        document.head.append(link);
    }
    const peer = new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:DATAGRAMS'}]});
    peer.createDataChannel('x');
    peer.createOffer().then(offer => peer.setLocalDescription(offer));
}
"""


def test_a_page_reaches_nothing_but_the_task_pages(misbehaving):
    heard = []
    tcp = socket.socket()
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for listener in (tcp, udp):
        listener.bind(("127.0.0.1", 0))
        listener.settimeout(0.1)
    tcp.listen()
    port = tcp.getsockname()[1]
    datagrams = udp.getsockname()[1]
    stop = threading.Event()

    def listen():
        while not stop.is_set():
            with suppress(TimeoutError):
                heard.append(tcp.accept())
            with suppress(TimeoutError):
                heard.append(udp.recvfrom(100))

    thread = threading.Thread(target=listen)
    thread.start()
    script = CALL_EVERYWHERE.replace("PORT", str(port)).replace("DATAGRAMS", str(datagrams))
    reset, step = misbehaving(script)
    reset()
    step("hover('13')")
    step()
    time.sleep(1.5)
    stop.set()
    thread.join()
    assert heard == []
    # The listeners do hear what reaches them: the test can fail.
    for listener in (tcp, udp):
        listener.settimeout(5)
    socket.create_connection(("127.0.0.1", port)).close()
    assert tcp.accept()
    udp.sendto(b"x", udp.getsockname())
    assert udp.recvfrom(100)[0] == b"x"


# ---- actions ----


@pytest.fixture(scope="module")
def strings():
    return hostile_strings.fuzzed(10_000)


def test_no_string_breaks_the_parser_and_what_it_accepts_is_an_action(strings):
    parsed_strings = [parse_action(text, actions=EVERY_ACTION) for _, text in strings]
    accepted = [parsed for parsed in parsed_strings if parsed.ok]
    assert len({kind for kind, _ in strings}) == 13
    assert 100 < len(accepted) < 2_000
    for parsed in accepted:
        assert parsed.name in EVERY_ACTION
        assert parse_action(parsed.action, actions=EVERY_ACTION) == parsed
        # What BrowserGym's functions get are plain literals.
        for value in parsed.args:
            if type(value) is list:
                assert {type(item) for item in value} == {str}
            else:
                assert type(value) in (str, int, float)


def test_no_string_runs_code_or_earns_a_reward_without_the_click(env, strings):
    """What the server executes it has parsed itself: only an action on the one right button may be
    paid."""
    env.reset("click-test", 0)
    for _, text in strings[:1_500]:
        seen = env.step(text, observe=False)
        assert seen.ended in ("", "solved"), (text[:80], seen)
        assert seen.reward == 0.0 or hostile_strings.solves_click_test(text), text[:80]
        assert seen.url.startswith("http://miniwob.localhost/miniwob/click-test.html"), text[:80]
        if seen.done:
            env.reset("click-test", 0)
    assert not Path(hostile_strings.MARK).exists()
    assert solves(env)


def test_an_episode_has_an_end_even_for_who_only_waits(env):
    env.reset("click-test", 0)
    for _ in range(300):
        seen = env.step("noop(5000)", observe=False)
        if seen.done:
            break
    assert (seen.ended, seen.reward) == ("time_limit", 0.0)


# ---- who may come in ----


def status_of(url, headers):
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        return direct.open(urllib.request.Request(url, headers=headers), timeout=PATIENCE).status
    except HTTPError as error:
        return error.code


def test_only_who_knows_the_token_comes_in_and_no_web_page(server):
    with pytest.raises(BrowserServerError, match="wants its token"):
        connect(url=server.url)
    with pytest.raises(BrowserServerError, match="wants its token"):
        connect(url=server.url, token="guess")
    with connect(url=server.url, token=server.token) as client:
        assert client.reset("click-test", 0).goal
    known = {"Authorization": f"Bearer {server.token}"}
    from_a_page = known | {"Origin": "http://evil.example"}
    assert status_of(server.url + "/stats", {}) == 403
    assert status_of(server.url + "/stats", known) == 200
    assert status_of(server.url + "/stats", from_a_page) == 403
    assert server.token not in " ".join(server._process.args)


def asked_over_http(server, path, **fields):
    """The status and the sentence of what a POST is answered."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    body = json.dumps(fields).encode()
    try:
        answer = direct.open(
            urllib.request.Request(server.url + path, body, headers), timeout=PATIENCE
        )
    except HTTPError as error:
        answer = error
    return answer.status, json.load(answer)


def test_what_needs_a_session_says_so_over_plain_http(server):
    status, answer = asked_over_http(server, "/step", action={"action_str": "click('13')"})
    assert status == 409
    assert "No episode is running" in answer["detail"]
    assert "each request is a session of its own; connect to /ws" in answer["detail"]
    status, answer = asked_over_http(server, "/reset", task_name="click-buton")
    assert status == 409
    assert "did you mean click-button" in answer["detail"]
    status, answer = asked_over_http(server, "/reset", task_name="click-test")
    assert status == 200
    assert answer["observation"]["goal"] == "Click the button."


def test_another_address_needs_a_token_of_ones_own():
    with pytest.raises(BrowserServerError, match="token"):
        start_browser_server(host="0.0.0.0")


@pytest.mark.slow
def test_one_more_session_than_there_are_waits_for_its_turn():
    with start_browser_server(workers=1, sessions=1, timeout=120) as server:
        first, second = server.clients(2)
        first.reset("click-test", 0)
        got = []

        def wait_for_a_place():
            got.append(second.reset("click-test", 1))

        waiting = threading.Thread(target=wait_for_a_place)
        waiting.start()
        waiting.join(1.5)
        assert waiting.is_alive()
        assert not got
        first.close()
        waiting.join(PATIENCE)
        assert got[0].goal
        one_too_many = server.clients(2)[-1]
        full = "close a client, or start the server with more sessions"
        with pytest.raises(BrowserServerError, match=full):
            one_too_many.reset("click-test", 0)


def test_the_queue_ends_in_one_sentence(monkeypatch):
    monkeypatch.setattr(pools, "QUEUE_SECONDS", 0.2)
    pool = WorkerPool(0, 1, 0, "")
    pool.workers = [SimpleNamespace(sessions=1)]
    with pytest.raises(RuntimeError, match="All 1 browser sessions are taken"):
        pool.take_place()


def test_the_system_asks_after_clients_that_fell_silent(server, env):
    """Keep-alive probes start after 20 s: /proc shows the timer (2) of the connection and when it
    runs out, in hundredths of a second."""
    port = int(server.url.rsplit(":", 1)[1])
    timers = []
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, _, timer, *_ = line.split()
        if int(local.split(":")[1], 16) == port and state == "01":
            timers.append(timer.split(":"))
    assert timers
    for kind, when in timers:
        assert kind == "02"
        assert int(when, 16) <= 2_100
