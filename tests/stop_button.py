"""Alarms that interrupt the main thread, as the stop button of a notebook does."""

import signal
from contextlib import contextmanager


class Interrupted(KeyboardInterrupt):
    """The stop button, told apart from a real Ctrl-C."""


@contextmanager
def on_alarm(act):
    """Within the block an alarm calls ``act``, with whatever a signal's handler is given."""
    before = signal.signal(signal.SIGALRM, act)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def raised_after(seconds, error=Interrupted):
    """Raise the error in the block, which has to be in the main thread, after so many seconds."""

    def stop(*_):
        raise error

    with on_alarm(stop):
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
