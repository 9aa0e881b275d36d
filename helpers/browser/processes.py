"""Process trees: they end with their parent, and leave nothing behind."""

import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import IO

import psutil

from helpers.settings.paths import ROOT

PR_SET_CHILD_SUBREAPER = 36  # of prctl, see linux/prctl.h


def spawn(
    module: str,
    *arguments: object,
    env: dict[str, str] | None = None,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
    pass_fds: Sequence[int] = (),
) -> "subprocess.Popen[bytes]":
    """Start ``python -m module`` in a session of its own (a Ctrl-C in the notebook must not reach
    it), with a pipe as its stdin by which it notices that we are gone."""
    environment = dict(os.environ if env is None else env)
    paths = [str(ROOT), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    return subprocess.Popen(
        [sys.executable, "-m", module, *[str(argument) for argument in arguments]],
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        pass_fds=pass_fds,
        env=environment,
        start_new_session=True,
    )


def exit_with_parent(stop: Callable[[], object]) -> None:
    """Call ``stop`` in a thread as soon as the parent closes our stdin or dies.

    Not PR_SET_PDEATHSIG: that signal comes when the *thread* that started us ends. The pid is
    watched too, for forked children of the parent may hold the pipe's other end."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            readable = select.select([0], [], [], 0.5)[0]
            if readable and not os.read(0, 4096):
                break
        stop()

    threading.Thread(target=watch, daemon=True, name="watch-parent").start()


def descendants(pid: int) -> list[psutil.Process]:
    """``pid`` and everything below it; to be collected before killing, for orphans change their
    parent."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


def cpu_seconds(process: psutil.Process) -> float:
    """What a process has used of the processor until now. Raises psutil.Error where it has
    ended."""
    times = process.cpu_times()
    return times.user + times.system


def tree_cpu_seconds(pid: int) -> float:
    """What ``pid`` and all processes below it have used of the processor until now; those that
    have ended meanwhile do not count any more."""
    used = 0.0
    for process in descendants(pid):
        with suppress(psutil.Error):
            used += cpu_seconds(process)
    return used


def kill(processes: Iterable[psutil.Process]) -> None:
    """SIGKILL to each, whoever is still there (and is still the same: a pid may be another's by
    now)."""
    for process in processes:
        with suppress(psutil.Error):
            process.kill()


def adopt_orphans() -> None:
    """Become the parent of what killed children leave, and have the system bury it: in a container
    the first process often does not, and every killed browser would leave zombies for ever."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
