"""The client is always in step: whatever ends a call, no reply gets to another one.

Against servers of the test's own, whose answers it can hold back or falsify."""

import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from in_python import run_script
from local_apps import serving_app
from patience import PATIENCE
from stop_button import Interrupted, raised_after

from helpers.browser import BrowserServerError, connect
from helpers.browser.connection import Connection
from helpers.browser.middleware import RequestIds
from helpers.browser.openenv_parts import Action, Environment, Observation, State, create_app
from helpers.browser.wire import ECHO_HEADER, RefusedRequest


class TextAction(Action):
    action_str: str


class PageObservation(Observation):
    """The fields of upstream's observation that the tests look at."""

    text: str = ""
    goal: str = ""
    url: str = ""


class Held(Environment):
    """Says which task it plays and what it was told; a step "wait" holds until `go_on` is set."""

    SUPPORTS_CONCURRENT_SESSIONS = True
    go_on = threading.Event()
    reached = threading.Event()
    open_sessions = 0

    def __init__(self):
        super().__init__()
        self.task = ""
        self.steps = 0

    def reset(self, seed=None, episode_id=None, task_name=None, **_):
        self.task = f"{task_name} {seed}"
        self.steps = 0
        return PageObservation(goal=self.task, text="reset", done=False, reward=0.0)

    def step(self, action, timeout_s=None, **_):
        if not self.task:
            raise ValueError("No episode is running; call reset() first.")
        self.steps += 1
        if action.action_str == "wait":
            self.reached.set()
            # Longer than a test waits for what must not wait for this step.
            assert self.go_on.wait(2 * PATIENCE)
        return PageObservation(goal=self.task, text=action.action_str, done=False, reward=0.0)

    @property
    def state(self):
        return State(step_count=self.steps)


@pytest.fixture(params=[True, False], ids=["our server", "upstream's"])
def address(request):
    """A server of either kind, with room for four sessions."""
    with held_server(request.param, 4) as url:
        yield url


@contextmanager
def held_server(echoes, sessions):
    """``echoes``: whether its replies say which request they answer."""
    Held.go_on.clear()
    Held.reached.clear()
    app = create_app(Held, TextAction, PageObservation, max_concurrent_envs=sessions)
    if echoes:
        app.add_middleware(RequestIds)
    with serving_app(app) as url:
        yield url
        Held.go_on.set()


def held_step(env):
    """What a step gives that is not answered before `Held.go_on` is set."""
    return env.step("wait").text


# ---- one thread ----


def test_an_interrupted_step_leaves_no_reply_behind(address):
    with connect(address) as env:
        assert env.reset("click-link", 1).goal == "click-link 1"
        with pytest.raises(Interrupted), raised_after(0.2):
            env.step("wait")
        with pytest.raises(BrowserServerError, match=r"call reset\(\) first"):
            env.step("click('1')")
        Held.go_on.set()
        assert env.reset("click-button", 2).goal == "click-button 2"
        assert env.step("click('3')").text == "click('3')"


def test_after_an_interrupt_a_server_with_one_session_is_asked_until_it_is_free():
    """An official container has one; the old session ends only when its step does."""
    with held_server(False, 1) as url, connect(url) as env:
        env.reset("click-link", 1)
        with pytest.raises(Interrupted), raised_after(0.2):
            env.step("wait")
        threading.Timer(1.0, Held.go_on.set).start()
        assert env.reset("click-button", 2).goal == "click-button 2"


def test_an_exception_of_any_kind_leaves_no_reply_behind(address):
    class Odd(Exception):
        pass

    with connect(address) as env:
        env.reset("click-link", 1)
        with pytest.raises(Odd), raised_after(0.2, Odd):
            env.step("wait")
        Held.go_on.set()
        assert env.reset("click-button", 2).goal == "click-button 2"


def test_a_refusal_is_a_reply_and_the_episode_goes_on(address):
    with connect(address) as env:
        with pytest.raises(BrowserServerError, match="No episode is running"):
            env.step("click('1')")
        env.reset("click-link", 1)
        assert env.step("click('1')").goal == "click-link 1"


# ---- replies that belong to something else ----


def falsified(change):
    """An application that answers every request with ``change(request)``."""

    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                await send({"type": f"{message['type']}.complete"})
                if message["type"] == "lifespan.shutdown":
                    return
        await receive()
        headers = [(ECHO_HEADER.lower().encode(), b"1")]
        await send({"type": "websocket.accept", "headers": headers})
        while (message := await receive())["type"] == "websocket.receive":
            reply = {"type": "observation", "data": {"observation": {"goal": "another's"}}}
            reply |= change(json.loads(message["text"]))
            await send({"type": "websocket.send", "text": json.dumps(reply)})

    return app


def test_a_reply_counts_only_where_it_names_the_request():
    right = falsified(lambda request: {"id": request["id"]})
    with serving_app(right) as url, connect(url) as env:
        assert env.reset("click-link", 1).goal == "another's"
    for change in (lambda _: {}, lambda _: {"id": "7-1"}, lambda _: {"id": "1", "type": "error"}):
        with serving_app(falsified(change)) as url, connect(url) as env:
            lost = env.reset("click-link", 1)
            assert (lost.ended, lost.reward, lost.goal) == ("infrastructure_error", None, "")


def test_no_two_requests_have_the_same_id():
    seen = []

    def note(request):
        seen.append(request["id"])
        return {"id": request["id"]}

    with serving_app(falsified(note)) as url, connect(url) as env:
        for seed in range(5):
            env.reset("click-link", seed)
            env.step("noop()")
    assert len(set(seen)) == len(seen) == 10


# ---- several threads ----


def test_a_second_thread_may_not_step_while_a_call_runs(address):
    with connect(address) as env, ThreadPoolExecutor(1) as thread:
        env.reset("click-link", 1)
        first = thread.submit(held_step, env)
        assert Held.reached.wait(PATIENCE)
        with pytest.raises(BrowserServerError, match="give each thread a client of its own"):
            env.step("click('2')")
        Held.go_on.set()
        assert first.result() == "wait"
        assert env.step("click('3')").text == "click('3')"


def test_a_second_threads_reset_gets_its_own_page_and_the_first_call_is_told(address):
    """A call may still run in a thread of a pool that was stopped."""
    with connect(address) as env, ThreadPoolExecutor(1) as thread:
        env.reset("click-link", 1)
        first = thread.submit(held_step, env)
        assert Held.reached.wait(PATIENCE)
        assert env.reset("click-button", 2).goal == "click-button 2"
        with pytest.raises(BrowserServerError, match="begun a new episode on this client"):
            first.result(PATIENCE)
        Held.go_on.set()
        assert env.step("click('3')").goal == "click-button 2"


def test_threads_that_reset_one_client_get_what_they_asked_for_or_a_sentence(address):
    """And however often the system changes between them."""
    wrong, refused, right = [], [], []

    def ask_often(thread):
        for seed in range(100):
            task = f"task-{thread}"
            try:
                goal = env.reset(task, seed).goal
            except BrowserServerError as error:
                refused.append(str(error))
                continue
            (right if goal == f"{task} {seed}" else wrong).append(goal)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with connect(address) as env, ThreadPoolExecutor(3) as threads:
            list(threads.map(ask_often, range(3)))
            assert env.reset("click-button", 2).goal == "click-button 2"
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []
    assert right
    assert refused


@pytest.mark.parametrize(
    "meanwhile, said",
    [
        (lambda env: env.reset("click-button", 2), "begun a new episode on this client"),
        (lambda env: env.close(), "This client is closed"),
    ],
)
def test_a_refusal_that_comes_too_late_is_told_like_any_other_reply(
    address, monkeypatch, meanwhile, said
):
    """Another thread has had the client between the server's refusal and its arrival here."""
    real = Connection.call

    def call(connection, request):
        monkeypatch.setattr(Connection, "call", real)
        try:
            return real(connection, request)
        except RefusedRequest:
            thread.submit(meanwhile, env).result(PATIENCE)
            raise

    with connect(address) as env, ThreadPoolExecutor(1) as thread:
        monkeypatch.setattr(Connection, "call", call)
        with pytest.raises(BrowserServerError, match=said):
            env.step("refused, for no episode is running")


def test_a_reset_that_asks_again_gives_way_to_a_later_one():
    """It waits for a session of a full server while another thread resets the client."""
    with held_server(False, 1) as url, connect(url) as env, ThreadPoolExecutor(2) as threads:
        env.reset("click-link", 1)
        with pytest.raises(Interrupted), raised_after(0.2):
            env.step("wait")
        earlier = threads.submit(env.reset, "login-user", 5)
        time.sleep(0.5)
        later = threads.submit(env.reset, "click-button", 2)
        with pytest.raises(BrowserServerError, match="begun a new episode on this client"):
            earlier.result(PATIENCE)
        Held.go_on.set()
        assert later.result(PATIENCE).goal == "click-button 2"
        assert env.step("click('3')").goal == "click-button 2"


@pytest.mark.parametrize("taken", ["reset", "held"])
def test_a_rollout_that_no_longer_has_the_client_cannot_disturb_the_next(address, taken):
    with connect(address) as env:
        stopped = env.hold()
        assert stopped.reset("click-link", 1).goal == "click-link 1"
        assert stopped.step("click('3')").goal == "click-link 1"
        plays = env.hold() if taken == "held" else env
        plays.reset("click-button", 2)
        for call in (lambda: stopped.reset("login-user", 5), lambda: stopped.step("click('4')")):
            with pytest.raises(BrowserServerError, match="begun a new episode on this client"):
                call()
        assert plays.step("click('3')").goal == "click-button 2"


def test_closing_ends_a_call_that_another_thread_makes(address):
    with connect(address) as env, ThreadPoolExecutor(1) as thread:
        env.reset("click-link", 1)
        first = thread.submit(held_step, env)
        assert Held.reached.wait(PATIENCE)
        env.close()
        with pytest.raises(BrowserServerError, match="This client is closed"):
            first.result(PATIENCE)
        with pytest.raises(BrowserServerError, match="This client is closed"):
            env.reset("click-link", 1)


def test_all_connections_of_a_process_share_one_thread(address):
    with connect(address) as one, connect(address) as two:
        one.reset("click-link", 1)
        two.reset("click-link", 2)
        names = [thread.name for thread in threading.enumerate()]
        assert names.count("browser-connections") == 1


# ---- a forked child ----

FORK = """
import os, sys
from helpers.browser import BrowserServerError, connect
env = connect(sys.argv[1])
said = [env.reset("click-link", 1).goal]
read, write = os.pipe()
child = os.fork()
if not child:
    try:
        said = ["no refusal"]
        try:
            env.step("noop()")
        except BrowserServerError as error:
            said = [str(error)]
        for seed in range(20):
            said.append(env.reset("child", seed).goal + " " + env.step(str(seed)).text)
        env.close()
    except BaseException as error:
        said.append(repr(error))
    os.write(write, "\\n".join(said).encode())
    sys.exit()  # with all that a process does at its end
for step in range(40):
    seen = env.step(str(step))
    said.append(seen.goal + " " + seen.text)
os.waitpid(child, 0)
said.append(env.step("after").text)
os.close(write)
print("\\n".join(said))
print("---")
print(os.read(read, 65536).decode())
"""


def test_a_forked_child_and_its_parent_hear_only_their_own(address):
    said = run_script(FORK, address)
    parent, child = (part.strip().splitlines() for part in said.split("---"))
    steps = [f"click-link 1 {step}" for step in range(40)]
    assert parent == ["click-link 1", *steps, "after"]
    assert "call reset() first" in child[0]
    assert child[1:] == [f"child {seed} {seed}" for seed in range(20)]


def test_a_connection_that_is_lost_from_sight_is_closed(address):
    from helpers.browser.client import open_connection

    connections = [open_connection(address, None) for _ in range(4)]
    with pytest.raises(BrowserServerError, match="close a client"):
        connect(address).reset("click-link", 1)
    del connections
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            with connect(address) as env:
                assert env.reset("click-link", 1).goal == "click-link 1"
            return
        except BrowserServerError:
            time.sleep(0.1)
    pytest.fail("the sessions were not given back")
