"""Worker processes, with a deadline for each request. A worker that hangs or dies is replaced."""

import os
import threading
from concurrent.futures import Future
from contextlib import suppress
from multiprocessing import Pipe

import psutil

from helpers.browser.processes import descendants, kill, spawn

DEADLINES = {
    "reset": 8.0,
    "step": 7.0,
    "close": 5.0,
}  # seconds, from when the worker has the request
MOST_MEMORY, MOST_PROCESSES = (
    6 << 30,
    100,
)  # of a worker and all below it: bytes (shared pages counted each time), and how many
START_DEADLINE, QUEUE = (
    60.0,
    30.0,
)  # seconds until a worker runs, and that a session waits for a place
AT_ONCE = (
    4  # requests that a worker answers side by side: while one waits for its page, another computes
)
DIED = "the browser's worker process died and was restarted"


class InfrastructureError(Exception):
    """The episode is lost through no fault of the policy; the sentence says how."""


def default_workers() -> int:
    """About one per core, at most four, with 2 GB of memory for each."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return max(1, min(4, len(os.sched_getaffinity(0)), int(memory // 2)))


class Worker:
    """The parent's end of one worker process."""

    def __init__(self, page_port: int, directory: str):
        self._page_port, self._directory = page_port, directory
        self._lock, self._turns = threading.Lock(), threading.BoundedSemaphore(AT_ONCE)
        self.generation = self.sessions = self.requests = (
            0  # generation: of the process; an older one's sessions lost their page
        )
        self._start()

    def _start(self) -> None:
        self.generation += 1
        self._pipe, theirs = Pipe()
        # Chromium's profile goes into our directory, so that it is removed with it.
        self._process = spawn(
            "helpers.browser.worker",
            theirs.fileno(),
            self._page_port,
            pass_fds=[theirs.fileno()],
            stdout=2,
            env=dict(os.environ, TMPDIR=self._directory),
        )
        self.pid = self._process.pid
        theirs.close()
        self._ready = Future()
        self._waiting = {
            0: self._ready
        }  # number of a request (0: the start) -> its answer, None where the process died
        threading.Thread(
            target=self._read, args=(self._pipe, self._waiting), daemon=True, name="answers"
        ).start()

    def _read(self, pipe, waiting: dict[int, Future]) -> None:
        with suppress(EOFError, OSError):
            while True:
                number, answer = pipe.recv()
                waiting.pop(number).set_result(answer)
        while waiting:
            waiting.popitem()[1].set_result(None)
        pipe.close()

    def stop(self) -> None:
        """Kill the process and all below it."""
        kill(descendants(self.pid))
        self._process.wait()
        self._process.stdin.close()

    def _replace(self, why: str):
        self.stop()
        self._start()  # comes up while the caller is told
        raise InfrastructureError(why)

    def _too_large(self) -> bool:
        with suppress(psutil.Error):  # one of them ended meanwhile: we look again soon
            tree = descendants(self.pid)
            return (
                len(tree) > MOST_PROCESSES
                or sum(process.memory_info().rss for process in tree) > MOST_MEMORY
            )
        return False

    def wait_ready(self) -> None:
        """Wait until Chromium runs. RuntimeError with the worker's own sentence where it does not."""
        answer = {"failed": "the worker does not start"}
        with suppress(TimeoutError):
            answer = self._ready.result(START_DEADLINE) or {
                "failed": "the worker ended while it started"
            }
        if "failed" in answer:
            raise RuntimeError(answer["failed"])

    def _send(self, generation: int | None, request: tuple) -> tuple[int, Future]:
        """Hand a request to the process; returns that one's generation and what will be the answer."""
        with self._lock:
            if generation not in (None, self.generation):
                raise InfrastructureError("the worker was restarted while the episode ran")
            try:
                self.wait_ready()
            except RuntimeError as error:
                self._replace(str(error))
            self.requests += 1
            if self.requests % 500 == 0 and self._too_large():
                self._replace("the browser had grown too large and was restarted")
            answer = self._waiting[self.requests] = Future()
            try:
                self._pipe.send((self.requests, *request))
            except OSError:
                self._replace(DIED)
            return self.generation, answer

    def call(self, generation: int | None, kind: str, *arguments) -> tuple[int, dict]:
        """One request; returns the generation that answered and the answer. ``generation``: the one that holds the session's
        episode, None where any will do. InfrastructureError where the episode is lost."""
        with self._turns:
            sent_to, future = self._send(generation, (kind, *arguments))
            answer, why = (
                None,
                f"the browser did not finish the {kind} within {DEADLINES[kind]:.0f} s and was restarted",
            )
            with suppress(TimeoutError):
                answer, why = future.result(DEADLINES[kind]), DIED
            if answer is None:
                with self._lock:
                    if self.generation == sent_to:  # else another call has seen to it
                        self._replace(why)
                raise InfrastructureError(why)
            if "lost" in answer:
                raise InfrastructureError(answer["lost"])
            return sent_to, answer


class WorkerPool:
    """``workers`` processes that share up to ``sessions`` sessions."""

    def __init__(self, workers: int, sessions: int, page_port: int, directory: str):
        self.episodes, self.failures, self.limit = 0, 0, sessions
        self._places = threading.Condition()
        self.workers = [Worker(page_port, directory) for _ in range(workers)]

    def place(self) -> Worker:
        """The worker with the fewest sessions; waits for a place where all are taken."""
        with self._places:
            if not self._places.wait_for(
                lambda: sum(w.sessions for w in self.workers) < self.limit, QUEUE
            ):
                raise RuntimeError(
                    f"All {self.limit} browser sessions are taken, for {QUEUE:.0f} s now; close one, or start the "
                    f"server with start_browser_server(sessions={2 * self.limit})."
                )
            worker = min(self.workers, key=lambda w: w.sessions)
            worker.sessions += 1
            return worker

    def leave(self, worker: Worker, session: int) -> None:
        """Give a place back, and its browser context."""
        with self._places:
            worker.sessions -= 1
            self._places.notify()
        with suppress(InfrastructureError, OSError):
            worker.call(None, "close", session)

    def stats(self) -> dict:
        return {
            "workers": [
                {
                    "pid": w.pid,
                    "sessions": w.sessions,
                    "requests": w.requests,
                    "restarts": w.generation - 1,
                }
                for w in self.workers
            ],
            "sessions": sum(w.sessions for w in self.workers),
            "session_limit": self.limit,
            "episodes": self.episodes,
            "infrastructure_errors": self.failures,
            "infrastructure_rate": self.failures / max(1, self.episodes),
        }
