"""What a browser server and everything below it use: memory, CPU time, file descriptors."""

import re
from collections import defaultdict

import psutil

from helpers.browser import BrowserServer
from helpers.browser.launcher import LocalServer
from helpers.browser.processes import cpu_seconds, descendants


def server_pid(server: BrowserServer) -> int:
    """The process at the top of a server's tree."""
    if not isinstance(server, LocalServer) or server._process is None:
        raise ValueError("The server is closed, or not on this machine.")
    return server._process.pid


def tree_usage(pid: int) -> dict[str, float]:
    """Megabytes (PSS: a shared page counts once), file descriptors, processes and zombies of a
    process and everything below it."""
    memory_mb = 0.0
    row = {"memory_mb": 0.0, "descriptors": 0, "processes": 0, "zombies": 0}
    for process in descendants(pid):
        try:
            row["zombies"] += process.status() == psutil.STATUS_ZOMBIE
            memory_mb += process.memory_full_info().pss / 1e6
            row["descriptors"] += process.num_fds()
            row["processes"] += 1
        except psutil.Error:  # it ended while we looked
            continue
    row["memory_mb"] = round(memory_mb, 1)
    return row


def cpu_seconds_by_kind(pid: int) -> dict[str, float]:
    """CPU seconds so far: our own (the client), and those of a server's tree by kind of process."""
    seconds: dict[str, float] = defaultdict(float)
    seconds["client"] = cpu_seconds(psutil.Process())
    for process in descendants(pid):
        kind = "server" if process.pid == pid else _kind(process)
        seconds[kind] += cpu_seconds(process)
    return seconds


def _kind(process: psutil.Process) -> str:
    """What a process below a server is: a worker, Playwright's driver, or a part of Chromium."""
    command = " ".join(process.cmdline())
    if "helpers.browser.worker" in command:
        return "worker"
    if "node" in process.name():
        return "playwright"
    part = re.search(r"--type=(\w+)", command)
    return f"chromium {part[1] if part else 'browser'}"
