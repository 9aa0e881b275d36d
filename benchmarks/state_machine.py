"""A state machine of several sessions on one server: hypothesis draws resets, steps, kills, stops,
interrupts, closes and reconnects, and after each the server is held against a model of what must be
so. ``benchmarks.faults --machine`` runs it for minutes, tests/browser/test_state_machine.py for
seconds.

What must be so: each observation is of the task, the seed and the step that were asked for; only
the right action is paid, and it always is; an episode is lost only where something was broken since
it began, and then it has no reward; a call out of turn is refused with a sentence; when all
sessions are closed, the server holds as many descriptors as at the start, and every process below
it belongs to a worker that is in use.
"""

import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import ClassVar

import psutil
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from typing_extensions import override

from benchmarks.process_usage import server_pid
from helpers.browser import (
    BrowserClient,
    BrowserObservation,
    BrowserServer,
    BrowserServerError,
    start_browser_server,
)
from helpers.browser.processes import descendants
from helpers.evaluation.scripted import SCRIPTS

MAX_CLIENTS = 4
SETTLE_SECONDS = 15.0  # until what was closed or killed is gone
# Tasks whose scripted solution is one action, which nothing else on the page does.
TASKS = ("click-test", "click-button", "click-dialog", "focus-text")
# What pays on none of them: actions that do nothing, that fail, and answers that are none.
IDLE = (
    *("noop(0)", "noop(300)", "scroll(0, 15)", "hover('999')", "fill('999', 'x')"),
    *("drag_and_drop('999', '13')", "press('0', 'Control+c')", "press('0', 'Control+enter')"),
    *("click('13'", "", "Action:", "goto('about:blank')", "click('13'); click('13')", "\ud800"),
)

which = st.integers(0, MAX_CLIENTS - 1)
seeds = st.integers(0, 50)
delays = st.floats(0.0005, 0.12)  # seconds after which a call is interrupted


@dataclass
class Session:
    """A client, and what the model knows of it."""

    client: BrowserClient
    task: str = ""  # of the episode; "" before the first
    seed: int = 0
    step: int = 0
    seen: BrowserObservation | None = None  # the last observation; None where a call was cut short
    over: bool = False
    shaken: bool = False  # something was broken since the episode began


# ---- what breaks things ----


def kill_worker(worker: psutil.Process) -> None:
    """Kill a worker process."""
    worker.kill()


def stop_worker(worker: psutil.Process) -> None:
    """Let a worker process stand still."""
    worker.suspend()


def _chromium(worker: psutil.Process, renderer: bool) -> Iterator[psutil.Process]:
    for process in descendants(worker.pid):
        with suppress(psutil.Error):
            command = " ".join(process.cmdline())
            is_renderer = "--type=renderer" in command
            is_main = "chrom" in process.name() and "--type=" not in command
            if is_renderer if renderer else is_main:
                yield process


def kill_chromium(worker: psutil.Process) -> None:
    """Kill a worker's Chromium."""
    for process in _chromium(worker, renderer=False):
        process.kill()


def kill_renderer(worker: psutil.Process) -> None:
    """Kill the process that draws a worker's pages."""
    for process in _chromium(worker, renderer=True):
        process.kill()


def stop_renderer(worker: psutil.Process) -> None:
    """Let the process that draws a worker's pages stand still."""
    for process in _chromium(worker, renderer=True):
        process.suspend()


KILLS = (kill_worker, kill_chromium, kill_renderer)
STOPS = (stop_worker, stop_renderer)  # noticed only when a deadline has passed


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """What a notebook's stop button does, once, so many seconds from now."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _wait_until(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + SETTLE_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


# ---- the machine ----


class BrowserMachine(RuleBasedStateMachine):
    """Sessions on `server`, which a subclass names; see the module."""

    server: ClassVar[BrowserServer]
    descriptors: ClassVar[int]  # of the server, with no session open
    faults: ClassVar[tuple[Callable[[psutil.Process], None], ...]] = KILLS
    counts: ClassVar[Counter[str]]

    def __init__(self) -> None:
        super().__init__()
        self.sessions: list[Session] = []

    def _session(self, number: int) -> Session:
        return self.sessions[number % len(self.sessions)]

    # ---- coming and going ----

    @initialize()
    def begin(self) -> None:
        """There is always a session."""
        self.sessions.append(Session(self.server.client()))

    @precondition(lambda self: len(self.sessions) < MAX_CLIENTS)
    @rule()
    def connect(self) -> None:
        """One session more."""
        self.counts["connects"] += 1
        self.sessions.append(Session(self.server.client()))

    @rule(number=which)
    def reconnect(self, number: int) -> None:
        """A session is closed, which may be said twice and is final; another takes its place."""
        session = self._session(number)
        self.counts["reconnects"] += 1
        session.client.close()
        session.client.close()
        self._is_refused(lambda: session.client.step("noop(0)"))
        self.sessions[self.sessions.index(session)] = Session(self.server.client())

    # ---- playing ----

    @rule(number=which, task=st.sampled_from(TASKS), seed=seeds)
    def reset(self, number: int, task: str, seed: int) -> None:
        """An episode begins, whatever was before."""
        session = self._session(number)
        self.counts["resets"] += 1
        seen = session.client.reset(task, seed)
        session.task, session.seed, session.step = task, seed, 0
        self._check(session, seen)
        session.shaken = False
        assert seen.done or seen.goal

    @rule(number=which, action=st.sampled_from(IDLE))
    def step_idle(self, number: int, action: str) -> None:
        """A step that must not be paid."""
        seen = self._step(self._session(number), action)
        assert seen is None or not seen.reward, (action, seen)

    @rule(number=which)
    def step_right(self, number: int) -> None:
        """The step that must be paid."""
        session = self._session(number)
        if session.seen is None or session.over:
            self._step(session, "noop(0)")
            return
        seen = self._step(session, SCRIPTS[session.task](session.seen, 0) or "")
        assert seen is not None
        if seen.ended != "infrastructure_error":
            assert (seen.reward, seen.ended) == (1.0, "solved"), seen

    def _step(self, session: Session, action: str) -> BrowserObservation | None:
        """What a step shows; None where none could be taken, which was said."""
        self.counts["steps"] += 1
        if session.seen is None or session.over:
            self._is_refused(lambda: session.client.step(action))
            return None
        seen = session.client.step(action)
        session.step += 1
        self._check(session, seen)
        return seen

    def _check(self, session: Session, seen: BrowserObservation) -> None:
        asked = (session.task, session.seed, session.step)
        assert (seen.task, seen.seed, seen.step) == asked, (asked, seen)
        lost = seen.ended == "infrastructure_error"
        assert lost == (seen.reward is None) == bool(seen.infrastructure_error), seen
        assert seen.done == bool(seen.ended), seen
        if lost:
            self.counts["lost"] += 1
            assert session.shaken, ("lost without a reason", seen)
        session.seen = seen
        session.over = seen.done

    def _is_refused(self, call: Callable[[], object]) -> None:
        try:
            seen = call()
        except BrowserServerError as error:
            assert str(error).strip()
            return
        raise AssertionError(f"This call was out of turn, and was answered: {seen}")

    # ---- breaking ----

    @rule(number=which, draw=st.randoms(use_true_random=False))
    def break_something(self, number: int, draw: random.Random) -> None:
        """A process is killed, or stands still."""
        workers = self.server.stats()["workers"]
        fault = draw.choice(self.faults)
        self.counts[fault.__name__] += 1
        with suppress(psutil.NoSuchProcess):  # it is being replaced just now
            fault(psutil.Process(workers[number % len(workers)]["pid"]))
        for session in self.sessions:
            session.shaken = True

    @rule(number=which, task=st.sampled_from(TASKS), seed=seeds, after=delays, again=st.booleans())
    def interrupt(self, number: int, task: str, seed: int, after: float, again: bool) -> None:
        """The stop button, while a session resets or steps. Until its next reset it shows
        nothing of that episode."""
        session = self._session(number)
        self.counts["interrupts"] += 1
        playing = session.seen is not None and not session.over and again
        with suppress(KeyboardInterrupt), interrupted_after(after):
            if playing:
                session.client.step("noop(300)")
            else:
                session.client.reset(task, seed)
            time.sleep(1)  # the interrupt comes in any case
        # Whether the call was answered nobody knows; so only a reset may follow.
        session.seen = None
        self.reset(number, task, seed + 1)

    # ---- always ----

    @invariant()
    def as_many_sessions_as_clients(self) -> None:
        """A closed session gives its place back."""
        taken = len(self.sessions)
        assert _wait_until(lambda: self.server.stats()["sessions"] <= taken)

    @override
    def teardown(self) -> None:
        """Nothing of the sessions is left."""
        for session in self.sessions:
            session.client.close()
        assert _wait_until(lambda: self.server.stats()["sessions"] == 0), self.server.stats()
        root = psutil.Process(server_pid(self.server))
        assert _wait_until(lambda: root.num_fds() <= self.descriptors), (
            f"{root.num_fds()} descriptors, {self.descriptors} at the start"
        )
        assert _wait_until(lambda: not self._strays(root)), self._strays(root)

    def _strays(self, root: psutil.Process) -> list[psutil.Process]:
        """Processes below the server that belong to no worker."""
        workers = [worker["pid"] for worker in self.server.stats()["workers"]]
        owned = {root.pid, *(p.pid for pid in workers for p in descendants(pid))}
        return [process for process in descendants(root.pid) if process.pid not in owned]


# ---- running it ----


def run_machine(
    server: BrowserServer,
    examples: int,
    steps: int,
    stops: bool = False,
    repeatable: bool = False,
) -> Counter[str]:
    """Run ``examples`` of up to ``steps`` rules each; returns what was done, how often. Raises
    AssertionError, with the rules that led there, where the model does not hold.

    ``stops``: processes also stand still, which takes seconds each. ``repeatable``: the same rules
    in every run.
    """

    class Machine(BrowserMachine):
        descriptors = _descriptors_at_rest(server)
        faults = (*KILLS, *STOPS) if stops else KILLS
        counts = Counter()

    Machine.server = server
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=repeatable,
            database=None,
            deadline=None,
            phases=[Phase.generate],  # a server is not as it was, so nothing can be made smaller
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
    return Machine.counts


def _descriptors_at_rest(server: BrowserServer) -> int:
    """The server's descriptors when it has been used and no session is open."""
    clients = server.clients(MAX_CLIENTS)
    for client in clients:
        client.reset("click-test", 0)
    for client in clients:
        client.close()
    _wait_until(lambda: server.stats()["sessions"] == 0)
    time.sleep(0.5)
    return psutil.Process(server_pid(server)).num_fds()


def run_for(minutes: float) -> Counter[str]:
    """Run the machine on a server of its own until the time is over, with a line after each
    ten examples; returns what was done, how often."""
    counts: Counter[str] = Counter()
    started = time.monotonic()
    passed = 0.0
    with start_browser_server(workers=2, timeout=120) as server:
        while passed < 60 * minutes:
            counts += run_machine(server, examples=10, steps=30, stops=True)
            passed = time.monotonic() - started
            done = ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in counts.items())
            print(f"{passed / 60:.1f} min: {done}", flush=True)
    return counts
