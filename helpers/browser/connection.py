"""A connection to a server, used from ordinary code that may be interrupted at any moment.

What is sent and received happens in a thread of its own, which no interrupt reaches; one event loop
there serves all connections of the process. Who asks waits for the answer at a queue. An interrupt
ends the waiting and nothing else: the request goes on, and its reply would be the next thing to be
read. So whoever does not come back with a reply gives the connection up (`Connection.give_up`).
"""

import asyncio
import os
import threading
import weakref
from collections.abc import Awaitable, Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from helpers.browser.wire import Wire

CLOSE_SECONDS = 2.0  # that `close` waits for the server's goodbye

T = TypeVar("T")
Answers = SimpleQueue[Any]  # gets one finished task, or an exception

# By process: a forked child has its parent's memory, but none of its threads.
_loops: dict[int, asyncio.AbstractEventLoop] = {}


def _event_loop() -> asyncio.AbstractEventLoop:
    """This process's loop, which runs. Without a lock, which an interrupt could leave locked: of
    two loops that are made at the same time one is stopped again."""
    process = os.getpid()
    if process not in _loops:
        new = asyncio.new_event_loop()
        threading.Thread(target=new.run_forever, name="browser-connections", daemon=True).start()
        if _loops.setdefault(process, new) is not new:
            new.call_soon_threadsafe(new.stop)
    return _loops[process]


class _Inside:
    """The part of a connection that lives in the loop's thread."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._running: asyncio.Task[Any] | None = None
        self._ending: asyncio.Task[None] | None = None

    def start(self, work: Callable[[Wire], Awaitable[Any]], answers: Answers) -> None:
        """Do the work, one after another; its task goes to ``answers`` when it has ended."""
        if self._ending is not None:
            answers.put(ConnectionError("the connection was given up"))
            return
        self._running = asyncio.ensure_future(_as_coroutine(work(self._wire)))
        self._running.add_done_callback(answers.put)

    def end(self, answers: Answers | None = None) -> None:
        """Stop what runs and close; twice is once."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end())
        if answers is not None:
            self._ending.add_done_callback(answers.put)

    async def _end(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        with suppress(Exception):  # the server may be gone, and the session with it
            await self._wire.close()


async def _as_coroutine(work: Awaitable[T]) -> T:
    return await work


class Connection:
    """One session of a server. Calls must not overlap, see `helpers.browser.client`."""

    def __init__(self, wire: Wire) -> None:
        """Not connected yet, see `open`."""
        self._loop = _event_loop()
        self._inside = _Inside(wire)
        # One that is lost from sight, as an interrupt can bring about, is closed as well.
        lost = weakref.finalize(self, _end_of_lost, os.getpid(), self._loop, self._inside)
        lost.atexit = False

    def open(self) -> None:
        """Connect. ConnectionError where nothing answers."""
        self.call(lambda wire: wire.open())

    def call(self, work: Callable[[Wire], Awaitable[T]]) -> T:
        """What ``work`` comes to. ConnectionError where the connection is given up meanwhile, and
        whatever ``work`` raises."""
        # A queue of C's own: an interrupt cannot leave it locked, as it can a future.
        answers: Answers = SimpleQueue()
        self._loop.call_soon_threadsafe(self._inside.start, work, answers)
        answer = answers.get()
        if isinstance(answer, Exception):
            raise answer
        if answer.cancelled():
            raise ConnectionError("the connection was given up")
        return answer.result()

    def give_up(self) -> None:
        """Close without waiting, whatever runs; the server ends the session as soon as it can."""
        self._loop.call_soon_threadsafe(self._inside.end)

    def close(self) -> None:
        """Close, and wait a moment for the server to have ended the session."""
        answers: Answers = SimpleQueue()
        self._loop.call_soon_threadsafe(self._inside.end, answers)
        with suppress(Empty):
            answers.get(timeout=CLOSE_SECONDS)


def _end_of_lost(process: int, loop: asyncio.AbstractEventLoop, inside: _Inside) -> None:
    if process == os.getpid():  # else it is a parent's, who goes on using it
        loop.call_soon_threadsafe(inside.end)
