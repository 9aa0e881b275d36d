"""Plays episodes in stock BrowserGym, from a process that has no stock BrowserGym in it."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from typing_extensions import override

from helpers.browser.client import ClosedAtExit
from helpers.settings.paths import ROOT

PlannedEpisode = list[Any]  # [task, seed, [action, ...]]
Plan = list[PlannedEpisode]
StockEpisode = list[dict[str, Any]]  # what stock showed: after the reset, and after each action

GIVE_UP_S = 180  # on one episode: stock waits for ever where a page hangs


class StockProcess:
    """A process of `benchmarks.stock_browsergym`: one episode after another."""

    def __init__(self, details: bool = False) -> None:
        self._words = ["details"] if details else []
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.stock_browsergym", *self._words],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            start_new_session=True,  # so that its children can be ended with it
        )

    def wait_until_ready(self) -> None:
        """Until stock BrowserGym has been imported."""
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "READY\n", "stock BrowserGym did not start"

    def play(self, episode: PlannedEpisode) -> StockEpisode:
        """What stock shows, and nothing where it cannot play the episode or takes too long; then
        the process is another one."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        give_up = threading.Timer(GIVE_UP_S, self.close)
        give_up.start()
        try:
            stdin.write(json.dumps(episode) + "\n")
            stdin.flush()
            for line in stdout:  # BrowserGym and the tasks may print, too
                if line.startswith("RESULT "):
                    return json.loads(line.removeprefix("RESULT "))
        except BrokenPipeError:
            pass
        finally:
            give_up.cancel()
        self.close()
        self._start()
        self.wait_until_ready()
        return []

    def close(self) -> None:
        """End it and its browsers."""
        if self._process.poll() is None:  # else its number may be another one's by now
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class StockPool(ClosedAtExit):
    """Several processes, each of which takes the next episode when it is done with one."""

    def __init__(self, processes: int, details: bool = True) -> None:
        """``details``: whether all that stock shows is asked for; else what it costs."""
        self._idle: queue.Queue[StockProcess] = queue.Queue()
        self._all = [StockProcess(details) for _ in range(processes)]
        self._threads = ThreadPoolExecutor(processes)
        for process in self._all:
            process.wait_until_ready()
            self._idle.put(process)

    @override
    def close(self) -> None:
        """End the processes, whatever they are at."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in self._all:
            process.close()

    def play(self, episode: PlannedEpisode) -> StockEpisode:
        """What stock shows, from the next process that is idle."""
        process = self._idle.get()
        try:
            return process.play(episode)
        finally:
            self._idle.put(process)

    def for_each(
        self,
        episodes: Iterable[PlannedEpisode],
        then: Callable[[PlannedEpisode, StockEpisode], None],
    ) -> None:
        """Play them all; ``then`` gets each with what stock showed, as soon as it is played, from
        several threads at once."""

        def work(episode: PlannedEpisode) -> None:
            then(episode, self.play(episode))

        for played in [self._threads.submit(work, episode) for episode in episodes]:
            played.result()


def play_in_stock(plans: Sequence[Plan]) -> tuple[list[list[StockEpisode]], float]:
    """Play one plan per process, all at once.

    Returns the episodes of each plan, and the seconds from the start signal to the last answer: the
    start of Python is not counted.
    """
    processes = [StockProcess() for _ in plans]
    for process in processes:
        process.wait_until_ready()

    def play(process: StockProcess, plan: Plan) -> list[StockEpisode]:
        return [process.play(episode) for episode in plan]

    started = time.perf_counter()
    with ThreadPoolExecutor(len(plans)) as threads:
        answers = list(threads.map(play, processes, plans))
    seconds = time.perf_counter() - started
    for process in processes:
        process.close()
    return answers, seconds
