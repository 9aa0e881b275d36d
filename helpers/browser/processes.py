"""Process trees: end with the parent, and leave nothing behind."""

import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def spawn(module: str, *arguments, **popen) -> subprocess.Popen:
    """Start ``python -m module`` in a session of its own (a Ctrl-C in the notebook must not reach it), with a pipe as its stdin
    by which it notices that we are gone."""
    environment = dict(popen.pop("env", os.environ))
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), environment.get("PYTHONPATH")]))
    return subprocess.Popen([sys.executable, "-m", module, *map(str, arguments)], stdin=subprocess.PIPE,
                            start_new_session=True, env=environment, **popen)


def exit_with_parent(stop) -> None:
    """Call ``stop`` in a thread as soon as the parent closes our stdin or dies.

    Not PR_SET_PDEATHSIG: that signal comes when the *thread* that started us ends, and servers are started from any. The pid is
    watched too, for a parent whose forked children still hold the other end of the pipe.
    """
    parent = os.getppid()

    def watch():
        while os.getppid() == parent:
            if select.select([0], [], [], 0.5)[0] and not os.read(0, 4096):
                break
        stop()

    threading.Thread(target=watch, daemon=True, name="watch-parent").start()


def descendants(pid: int) -> list[int]:
    """``pid`` and everything below it, from /proc; to be collected before killing, for orphans change their parent."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path("/proc", entry, "stat").read_bytes()
            except OSError:
                continue
            children.setdefault(int(stat.rpartition(b")")[2].split()[1]), []).append(int(entry))
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        todo.extend(children.get(found[-1], []))
    return found


def kill(pids: list[int]) -> None:
    """SIGKILL to each, whoever is still there."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of what killed children leave (PR_SET_CHILD_SUBREAPER), so that `reap` can bury it: in a container the
    first process often does not, and every killed browser would leave zombies for ever."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def reap(seconds: float = 1.0) -> None:
    """Collect children that have ended, until there are none or ``seconds`` are over."""
    end = time.monotonic() + seconds
    with suppress(ChildProcessError):
        while time.monotonic() < end:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.02)
