"""Calls in threads beside the one that a stop button interrupts, at whatever moment it does.

`concurrent.futures` waits with locks that are written in Python. An interrupt between taking such
a lock and giving it back leaves it locked for good: the thread that wants to say that it is done
waits for the lock, and whoever waits for the thread waits for ever. The queues here are written in
C, and have no such moment.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, Self, TypeVar

T = TypeVar("T")

Ended = SimpleQueue["Call[Any]"]
"""Gets each call when it has ended."""


class Call(Generic[T]):
    """A call that another thread makes."""

    def __init__(self, function: Callable[[], T], ended: Ended) -> None:
        self._function = function
        self._ended = ended
        self._error: BaseException | None = None
        self._value: T

    def make(self) -> None:
        """Make it, in the thread that calls this, and put it into its queue."""
        try:
            self._value = self._function()
        except BaseException as error:  # whatever it is, it is for whoever wants the outcome
            self._error = error
        self._ended.put(self)

    def outcome(self) -> T:
        """What the call returned, once it has ended; raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._value


class Threads:
    """So many threads that make calls; the first that is free makes the next one.

    As a context manager they end with its block, when the calls that they were given have ended: an
    interrupt waits for those, a second one does not. Else they end when nobody uses them any more.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._calls: SimpleQueue[Call[Any] | None] = SimpleQueue()
        self._gone: SimpleQueue[None] = SimpleQueue()
        self._end = weakref.finalize(self, _end, self._calls, number)
        self._end.atexit = False
        # All before the first call: one that an interrupt keeps from starting has none to make.
        for _ in range(number):
            Thread(target=_work, args=[self._calls, self._gone], daemon=True).start()

    def start(self, function: Callable[[], T], ended: Ended) -> Call[T]:
        """Have a thread call the function; the call is put into ``ended`` when it has."""
        call = Call(function, ended)
        self._calls.put(call)
        return call

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._end()
        for _ in range(self._number):
            self._gone.get()


def _end(calls: SimpleQueue[Call[Any] | None], number: int) -> None:
    for _ in range(number):
        calls.put(None)


def _work(calls: SimpleQueue[Call[Any] | None], gone: SimpleQueue[None]) -> None:
    """What a thread does, until it is told to end."""
    while (call := calls.get()) is not None:
        call.make()
    gone.put(None)
