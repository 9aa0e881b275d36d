"""The stop button, pressed at random moments while a real browser plays: what comes afterwards is
what was asked for, and nothing is left over."""

import ctypes
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from queue import Empty

import psutil
import pytest
from jupyter_client.manager import KernelManager
from patience import PATIENCE
from stop_button import Interrupted, on_alarm

from helpers.browser import BrowserServerError, start_browser_server
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.play import play_agent
from helpers.episodes.running import RunningEpisode
from helpers.evaluation.agents import text_match_agent
from helpers.settings.paths import ROOT

pytestmark = pytest.mark.slow

ASKED = [("click-button", 7), ("click-link", 3), ("login-user", 5), ("click-tab", 1)]


@pytest.fixture
def stop_button():
    """A function ``press(seconds)`` that interrupts the main thread so much later, and with
    ``again`` a second time so much after that. ``press(0)`` takes it back."""
    left = 0

    def stop(*_):
        nonlocal left
        left -= 1
        if not left:
            signal.setitimer(signal.ITIMER_REAL, 0)
        raise Interrupted

    def press(seconds, again=0.0):
        nonlocal left
        left = 2 if again else 1
        signal.setitimer(signal.ITIMER_REAL, seconds, again)

    with on_alarm(stop):
        yield press


def was_interrupted(press, seconds, call):
    """Whether the call was, that many seconds after it began."""
    try:
        press(seconds)
        call()
        press(0)
    except Interrupted:
        return True
    return False


@pytest.fixture(scope="module")
def goals(server):
    """The goal of each task and seed, from a client that nobody disturbs."""
    with server.client() as env:
        return {asked: env.reset(*asked).goal for asked in ASKED}


def moment(generator):
    """Some are short, for what happens before the request is sent."""
    return generator.choice([generator.uniform(1e-6, 1e-3), generator.uniform(1e-3, 0.05)])


def settles(value, wanted):
    """Whether ``value()`` becomes what is wanted."""
    deadline = time.monotonic() + PATIENCE
    while value() != wanted and time.monotonic() < deadline:
        time.sleep(0.1)
    return value() == wanted


def expect_page(seen, asked, goals):
    assert (seen.task, seen.seed, seen.goal) == (*asked, goals[asked])


def test_interrupts_at_random_moments_put_no_reply_in_the_wrong_place(server, goals, stop_button):
    generator = random.Random(0)
    interrupted = 0
    with server.client() as env:
        env.reset(*ASKED[0])
        files = psutil.Process().num_fds()
        threads = threading.active_count()
        for _ in range(70):
            asked, other = generator.choices(ASKED, k=2)
            start = env.reset(*asked)
            expect_page(start, asked, goals)
            assert (start.step, start.done) == (0, False)
            calls = [lambda: env.step("noop(1)"), lambda other=other: env.reset(*other)]
            interrupted += was_interrupted(stop_button, moment(generator), generator.choice(calls))
            try:
                seen = env.step("noop(2)")
            except BrowserServerError as error:
                assert "call reset() first" in str(error)
            else:  # it came before the call had begun, or after it had its reply
                assert (seen.task, seen.seed) in (asked, other)
                expect_page(seen, (seen.task, seen.seed), goals)
                assert seen.step in (1, 2)
        assert interrupted > 23
        env.reset(*ASKED[0])
        assert settles(lambda: server.stats()["sessions"], 1)
        assert settles(lambda: psutil.Process().num_fds(), files)
        assert threading.active_count() == threads


def test_interrupts_while_clients_are_made_leave_no_connection(server, goals, stop_button):
    generator = random.Random(1)
    server.client().close()
    files = psutil.Process().num_fds()
    interrupted = 0
    for _ in range(100):
        interrupted += was_interrupted(
            stop_button, generator.uniform(1e-5, 6e-3), lambda: server.client().close()
        )
    assert interrupted > 20
    assert settles(lambda: psutil.Process().num_fds(), files)
    with server.client() as env:
        expect_page(env.reset(*ASKED[1]), ASKED[1], goals)


def test_an_exception_thrown_into_a_thread_puts_no_reply_in_the_wrong_place(server, goals):
    """As some debuggers and time limits do."""
    generator = random.Random(2)
    thrown = []

    def throw(thread):
        error = ctypes.py_object(Interrupted)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), error)

    def play(env):
        for _ in range(40):
            asked, other = generator.choices(ASKED, k=2)
            expect_page(env.reset(*asked), asked, goals)
            timer = threading.Timer(moment(generator), throw, [threading.get_ident()])
            try:
                timer.start()
                env.reset(*other)
                timer.join()
                time.sleep(0.01)
            except Interrupted as error:
                thrown.append(error)
            timer.join()

    with server.client() as env:
        thread = threading.Thread(target=play, args=[env])
        thread.start()
        thread.join(PATIENCE)
        assert len(thrown) == 40
        expect_page(env.reset(*ASKED[2]), ASKED[2], goals)


# ---- episodes that are played in a pool of threads ----


def test_playing_goes_on_with_the_same_clients_after_the_stop_button(server, stop_button):
    generator = random.Random(3)
    clients = server.clients(4)
    specs = [EpisodeSpec("click-button", seed) for seed in range(8)]
    alone = [episode.goal for episode in play_agent(text_match_agent, specs, clients)]
    interrupted = 0
    try:
        for _ in range(9):
            interrupted += was_stopped_twice(
                stop_button,
                generator.uniform(1e-4, 0.15),
                lambda: play_agent(text_match_agent, specs, clients),
            )
            episodes = play_agent(text_match_agent, specs, clients)
            assert [episode.goal for episode in episodes] == alone
            assert [episode.reward for episode in episodes] == [1.0] * len(specs)
    finally:
        for client in clients:
            client.close()
    assert interrupted > 3


def test_a_thread_that_a_stopped_rollout_left_behind_does_not_disturb_the_next(server, monkeypatch):
    """It was given its page to load, and comes to it when the next rollout plays already."""
    load_page = RunningEpisode.reset
    handed_over = threading.Semaphore(0)
    begin = threading.Event()

    def load_late(running):
        handed_over.release()
        assert begin.wait(PATIENCE)
        load_page(running)

    def answer(observation, turn):
        begin.set()
        with pytest.raises(BrowserServerError, match="begun a new episode on this client"):
            stopped.result(PATIENCE)
        return text_match_agent(observation, turn)

    with ThreadPoolExecutor(1) as thread:
        clients = server.clients(2)
        monkeypatch.setattr(RunningEpisode, "reset", load_late)
        other_pages = [EpisodeSpec("click-link", 3)] * 2
        stopped = thread.submit(play_agent, text_match_agent, other_pages, clients)
        assert all(handed_over.acquire(timeout=PATIENCE) for _ in clients)
        monkeypatch.setattr(RunningEpisode, "reset", load_page)
        episodes = play_agent(answer, [EpisodeSpec("click-button", n) for n in (1, 2)], clients)
        assert [episode.reward for episode in episodes] == [1.0, 1.0]
        for client in clients:
            client.close()


def was_stopped_twice(press, seconds, call):
    """Whether the call was interrupted. The second time it may not even wait any more for the
    threads that are at work."""
    try:
        try:
            press(seconds, again=0.003)
            call()
            press(0)
        except Interrupted:
            time.sleep(0.05)  # the second comes now, if it did not come before
            return True
    except Interrupted:
        return True
    except RuntimeError as error:  # Python's own, of a lock that it was about to take back
        assert "release unlocked lock" in str(error)
        return True
    return False


# ---- a kernel and its own stop button ----


class Kernel:
    """A Jupyter kernel, spoken to as a notebook does."""

    def __init__(self):
        self.manager = KernelManager()
        self.manager.start_kernel(cwd=str(ROOT))
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=PATIENCE)

    def start(self, code):
        """Run a cell; returns its number."""
        return self.client.execute(code)

    def finish(self, cell):
        """Wait for the cell. Returns what it printed, and the name of its error."""
        printed, error = "", ""
        while True:
            message = self.client.get_iopub_msg(timeout=PATIENCE)
            if message["parent_header"].get("msg_id") != cell:
                continue
            content = message["content"]
            if message["msg_type"] == "stream" and content["name"] == "stdout":
                printed += content["text"]
            elif message["msg_type"] == "error":
                error = content["ename"]
            elif message["msg_type"] == "status" and content["execution_state"] == "idle":
                return printed.strip(), error

    def run(self, code):
        """What a cell prints that must not fail."""
        printed, error = self.finish(self.start(code))
        assert error == ""
        return printed

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def kernel():
    kernel = Kernel()
    yield kernel
    kernel.close()


KERNEL_START = """
from helpers.browser import start_browser_server
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.play import play_agent
from helpers.evaluation.agents import text_match_agent
server = start_browser_server(workers=1, timeout=120)
env = server.client()
clients = server.clients(2)
specs = [EpisodeSpec("click-button", seed) for seed in range(4)]
def play():
    episodes = play_agent(text_match_agent, specs, clients)
    return [(e.task, e.seed, e.goal, e.reward) for e in episodes]
alone = play()
print(env.reset("click-link", 3).goal)
"""
ENDLESS = ["while True: env.step('noop(1)')", "while True: env.reset('login-user', 5)"]


def test_in_a_kernel_the_next_cell_gets_what_it_asks_for(kernel):
    generator = random.Random(4)
    goal = kernel.run(KERNEL_START)
    assert goal
    for _ in range(12):
        code = generator.choice([*ENDLESS, "while True: play()"])
        cell = kernel.start(f"env.reset('click-button', 7)\nprint('begun', flush=True)\n{code}")
        time.sleep(0.3 + generator.uniform(0, 0.1))
        kernel.manager.interrupt_kernel()
        said, raised = kernel.finish(cell)
        assert raised == "KeyboardInterrupt"
        assert said in ("begun", "")  # a busy machine is interrupted in the reset already
        seen = kernel.run("o = env.reset('click-link', 3); print(o.task, o.seed, o.step, o.goal)")
        assert seen == f"click-link 3 0 {goal}"
        assert kernel.run("print(play() == alone)") == "True"
    assert kernel.run("server.close()") == ""
    with pytest.raises(Empty):
        kernel.client.get_iopub_msg(timeout=0.2)


def test_an_interrupt_while_the_server_starts_leaves_nothing(stop_button):
    me = psutil.Process()
    before = set(me.children(recursive=True))
    for seconds in (0.05, 0.5, 1.5):
        assert was_interrupted(stop_button, seconds, lambda: start_browser_server(workers=1))
        assert settles(lambda: set(me.children(recursive=True)) - before, set())
