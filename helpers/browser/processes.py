"""Process trees: end with the parent, and leave nothing behind."""

import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
from contextlib import suppress

import psutil

from helpers.settings.paths import ROOT


def spawn(module: str, *arguments, **popen) -> subprocess.Popen:
    """Start ``python -m module`` in a session of its own (a Ctrl-C in the notebook must not reach it), with a pipe as its stdin
    by which it notices that we are gone."""
    environment = dict(popen.pop("env", os.environ))
    environment["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(ROOT), environment.get("PYTHONPATH")])
    )
    return subprocess.Popen(
        [sys.executable, "-m", module, *map(str, arguments)],
        stdin=subprocess.PIPE,
        start_new_session=True,
        env=environment,
        **popen,
    )


def exit_with_parent(stop) -> None:
    """Call ``stop`` in a thread as soon as the parent closes our stdin or dies. Not PR_SET_PDEATHSIG: that signal comes when the
    *thread* that started us ends. The pid is watched too: forked children of the parent may hold the pipe's other end."""
    parent = os.getppid()

    def watch():
        while os.getppid() == parent:
            if select.select([0], [], [], 0.5)[0] and not os.read(0, 4096):
                break
        stop()

    threading.Thread(target=watch, daemon=True, name="watch-parent").start()


def descendants(pid: int) -> list[psutil.Process]:
    """``pid`` and everything below it; to be collected before killing, for orphans change their parent."""
    with suppress(psutil.NoSuchProcess):
        return [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return []


def kill(processes: list[psutil.Process]) -> None:
    """SIGKILL to each, whoever is still there (and is still the same: a pid may be another's by now)."""
    for process in processes:
        with suppress(psutil.Error):
            process.kill()


def adopt_orphans() -> None:
    """Become the parent of what killed children leave (PR_SET_CHILD_SUBREAPER), and have the system bury it: in a container the
    first process often does not, and every killed browser would leave zombies for ever."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def first_line(error: Exception) -> str:
    """What an error says, in one line: its name where it says nothing."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
