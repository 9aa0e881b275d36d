"""Deadlines for processes on a machine that may be busy: a second counts only as far as they had
the processor."""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from time import monotonic
from typing import TypeVar

Answer = TypeVar("Answer")

LOOK_SECONDS = 1.0  # between two looks at what the processes have used
IDLE = 0.05  # of a processor: who uses less wants none
# Times the deadline by the clock, however little of the processor there was: less than the 60 s
# that OpenEnv's own client waits for an answer.
MOST = 6.0


def wait_for_answer(
    answer: "Future[Answer]",
    seconds: float,
    used: Callable[[], float],
    look_every: float = LOOK_SECONDS,
) -> Answer:
    """The answer of processes that have used ``used()`` seconds of the processor until now.
    TimeoutError where it has not come when ``seconds`` are counted, or ``MOST`` times as many have
    passed.

    Time counts whole while the processes compute on a processor of their own, which an endless loop
    does, and while they want none, as one that hangs; where others leave them a tenth of it, a
    tenth of the time counts. Most answers come before the first look, which costs 10 ms.
    """
    ends = monotonic() + MOST * seconds
    counted = look_every  # the first look has nothing to compare with
    with suppress(TimeoutError):
        return answer.result(look_every)
    before = used(), monotonic()
    while counted < seconds and monotonic() < ends:
        with suppress(TimeoutError):
            return answer.result(look_every)
        now = used(), monotonic()
        passed = now[1] - before[1]
        share = (now[0] - before[0]) / passed  # below 0 where one that used much has ended
        counted += passed if share < IDLE else passed * min(1.0, share)
        before = now
    raise TimeoutError
