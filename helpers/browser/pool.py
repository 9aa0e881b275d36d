"""Worker processes, with a deadline for each request. One that hangs or dies is replaced."""

import os
import threading
from concurrent.futures import Future
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, NoReturn

import psutil

from helpers.browser.deadlines import wait_for_answer
from helpers.browser.options import PageRules
from helpers.browser.processes import descendants, kill, spawn, tree_cpu_seconds
from helpers.browser.variables import for_python

# Seconds for each kind of request, from when the worker has it. Where a busy machine leaves its
# processes little of the processor, they count in part (`wait_for_answer`).
DEADLINES = {"reset": 8.0, "step": 7.0, "close": 5.0}
START_SECONDS = 60.0  # until a worker runs
QUEUE_SECONDS = 30.0  # that a session waits for a place
# Requests that a worker answers side by side: while one waits for its page, another computes.
REQUESTS_AT_ONCE = 4
# Of a worker and all below it, looked at now and then. Pages that processes share count each time.
MAX_MEMORY = 6 << 30  # bytes
MAX_PROCESSES = 100
REQUESTS_BETWEEN_LOOKS = 500
DIED = "the browser's worker process died and was restarted"

Answer = dict[str, Any]  # the fields of an observation, or {"lost": why}, {"failed": why}


class InfrastructureError(Exception):
    """The episode is lost through no fault of the policy; the sentence says how."""


class NoPlaceError(RuntimeError):
    """All sessions are taken. One sentence with the next step."""


def default_workers() -> int:
    """About one per core, at most four, with 2 GB of memory for each."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return max(1, min(4, len(os.sched_getaffinity(0)), int(memory // 2)))


class Worker:
    """The parent's end of one worker process. May be called from several threads."""

    def __init__(self, page_port: int, directory: str, rules: PageRules | None = None) -> None:
        """Start the process. The task pages are served on ``page_port``; Chromium's profile goes
        into ``directory``; ``rules`` None: the course's."""
        self._page_port = page_port
        self._directory = directory
        self._rules = rules or PageRules()
        self._lock = threading.Lock()
        self._turns = threading.BoundedSemaphore(REQUESTS_AT_ONCE)
        self.generation = 0  # of the process: sessions of an older one have lost their page
        self.sessions = 0
        self.requests = 0
        self._start()

    def _start(self) -> None:
        self.generation += 1
        self._pipe, theirs = Pipe()
        self._process = spawn(
            "helpers.browser.worker",
            theirs.fileno(),
            self._page_port,
            self._rules.to_json(),
            pass_fds=[theirs.fileno()],
            stdout=2,
            env=for_python(TMPDIR=self._directory),  # Chromium's profile is removed with it
        )
        self.pid = self._process.pid
        theirs.close()
        self._ready: Future[Answer | None] = Future()
        # The number of a request (0: the start) and its answer; None where the process died.
        self._waiting: dict[int, Future[Answer | None]] = {0: self._ready}
        threading.Thread(
            target=_read_answers,
            args=(self._pipe, self._waiting),
            daemon=True,
            name="answers",
        ).start()

    def stop(self) -> None:
        """Kill the process and all below it."""
        kill(descendants(self.pid))
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _replace(self, why: str) -> NoReturn:
        """Start another process instead; it comes up while the caller is told ``why``."""
        self.stop()
        self._start()
        raise InfrastructureError(why)

    def _replace_once(self, generation: int, why: str) -> NoReturn:
        """`_replace`, unless another call has seen to it."""
        with self._lock:
            if self.generation == generation:
                self._replace(why)
        raise InfrastructureError(why)

    def _has_grown_too_large(self) -> bool:
        try:
            tree = descendants(self.pid)
            memory = sum(process.memory_info().rss for process in tree)
        except psutil.Error:  # one of them ended meanwhile: we look again soon
            return False
        return len(tree) > MAX_PROCESSES or memory > MAX_MEMORY

    def wait_ready(self) -> str:
        """Wait until Chromium runs. Returns a warning, mostly empty. RuntimeError with the worker's
        own sentence where it does not start."""
        try:
            answer = self._ready.result(START_SECONDS)
        except TimeoutError:
            raise RuntimeError("the worker does not start") from None
        if answer is None:
            raise RuntimeError("the worker ended while it started")
        if "failed" in answer:
            raise RuntimeError(answer["failed"])
        return answer["warning"]

    def call(self, generation: int | None, kind: str, *arguments: Any) -> tuple[int, Answer]:
        """One request: ``kind`` is "reset", "step" or "close", the first argument the session's
        number. Returns the generation that answered, and the answer.

        ``generation``: the one that holds the session's episode, None where any will do.
        `InfrastructureError` where the episode is lost."""
        with self._turns:
            sent_to, future = self._send(generation, (kind, *arguments))
            try:
                answer = wait_for_answer(
                    future, DEADLINES[kind], lambda: tree_cpu_seconds(self.pid)
                )
                why = DIED
            except TimeoutError:
                answer = None
                why = (
                    f"the browser did not finish the {kind} within {DEADLINES[kind]:.0f} s"
                    " and was restarted"
                )
            if answer is None:
                self._replace_once(sent_to, why)
            if "broken" in answer:
                self._replace_once(sent_to, answer["lost"])
            if "lost" in answer:
                raise InfrastructureError(answer["lost"])
            return sent_to, answer

    def _send(
        self, generation: int | None, request: tuple[Any, ...]
    ) -> tuple[int, "Future[Answer | None]"]:
        """Hand a request to the process. Returns that one's generation, and what will be the
        answer."""
        with self._lock:
            if generation not in (None, self.generation):
                raise InfrastructureError("the worker was restarted while the episode ran")
            try:
                self.wait_ready()
            except RuntimeError as error:
                self._replace(str(error))
            self.requests += 1
            if self.requests % REQUESTS_BETWEEN_LOOKS == 0 and self._has_grown_too_large():
                self._replace("the browser had grown too large and was restarted")
            answer: Future[Answer | None] = Future()
            self._waiting[self.requests] = answer
            try:
                self._pipe.send((self.requests, *request))
            except OSError:
                self._replace(DIED)
            return self.generation, answer


def _read_answers(pipe: Connection, waiting: "dict[int, Future[Answer | None]]") -> None:
    """Hand each answer that comes through the pipe to who waits for it; to all that still wait, at
    the pipe's end, that there will be none."""
    with suppress(EOFError, OSError):
        while True:
            number, answer = pipe.recv()
            waiting.pop(number).set_result(answer)
    while waiting:
        _, future = waiting.popitem()
        future.set_result(None)
    pipe.close()


class WorkerPool:
    """Some worker processes and the sessions that share them."""

    def __init__(
        self,
        workers: int,
        sessions: int,
        page_port: int,
        directory: str,
        rules: PageRules | None = None,
    ) -> None:
        """Start ``workers`` processes for up to ``sessions`` sessions; see `Worker`."""
        self.session_limit = sessions
        self.episodes = 0
        self.failures = 0
        self._places = threading.Condition()
        self.workers = [Worker(page_port, directory, rules) for _ in range(workers)]

    def _has_place(self) -> bool:
        return sum(worker.sessions for worker in self.workers) < self.session_limit

    def take_place(self) -> Worker:
        """The worker with the fewest sessions, which has one more now. Waits for a place where all
        are taken; NoPlaceError where none comes free."""
        with self._places:
            if not self._places.wait_for(self._has_place, QUEUE_SECONDS):
                raise NoPlaceError(
                    f"All {self.session_limit} browser sessions are taken, for"
                    f" {QUEUE_SECONDS:.0f} s now; close one, or start the server with"
                    f" start_browser_server(sessions={2 * self.session_limit})."
                )
            worker = min(self.workers, key=lambda worker: worker.sessions)
            worker.sessions += 1
            return worker

    def give_place_back(self, worker: Worker, session: int) -> None:
        """The session ends: its place and its browser context are free."""
        with self._places:
            worker.sessions -= 1
            self._places.notify()
        with suppress(InfrastructureError, OSError):
            worker.call(None, "close", session)

    def stats(self) -> dict[str, Any]:
        """What `BrowserServer.stats` shows."""
        return {
            "workers": [
                {
                    "pid": worker.pid,
                    "sessions": worker.sessions,
                    "requests": worker.requests,
                    "restarts": worker.generation - 1,
                }
                for worker in self.workers
            ],
            "sessions": sum(worker.sessions for worker in self.workers),
            "session_limit": self.session_limit,
            "episodes": self.episodes,
            "infrastructure_errors": self.failures,
            "infrastructure_rate": self.failures / max(1, self.episodes),
        }
