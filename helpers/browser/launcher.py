"""A browser server on this machine: start it, take clients of it, stop it."""

import atexit
import json
import os
import re
import secrets
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import warnings
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from typing_extensions import override

from helpers.browser.client import BrowserClient, open_connection
from helpers.browser.connection import Connection
from helpers.browser.models import BrowserServerError
from helpers.browser.options import PageRules, ServerOptions
from helpers.browser.processes import descendants, kill, spawn
from helpers.browser.remote import BrowserServer, servers_elsewhere
from helpers.browser.seats import Access
from helpers.browser.variables import for_python

DEFAULT_SESSIONS = 64
END_SECONDS = 5.0  # that a server gets to end by itself before it is killed
# What Playwright's driver writes into the log, mostly last, when its worker has ended before it.
END_OF_DRIVER = re.compile(r"^(?:node:|/)\S+:\d+\n.*?^Node\.js v\S+\n?", re.MULTILINE | re.DOTALL)


class LocalServer(BrowserServer):
    """A server that we have started. Leave its ``with`` block, or call `close`, and nothing of it
    is left; it also ends with us. One that was killed is started again when a client needs it; the
    episodes that were running are lost."""

    def __init__(self, options: ServerOptions, timeout: float, access: Access) -> None:
        """Start it, see `start_browser_server`. Each process gets a directory of its own."""
        self.token = access.token
        self._access = access
        self._options = options
        self._timeout = timeout
        self._clients: weakref.WeakSet[BrowserClient] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()  # a forked child may use the server, but neither start nor end it
        self._start()
        atexit.register(self.close)

    def _start(self) -> None:
        directory = Path(tempfile.mkdtemp(prefix="browser-server-"))
        options = replace(self._options, directory=str(directory))
        # Not our stderr: in a notebook it has no file descriptor.
        with (directory / "server.log").open("w+b") as log:
            process = spawn(
                "helpers.browser.server",
                *options.arguments(),
                stdout=subprocess.PIPE,
                stderr=log,
                env=for_python(),
            )
            try:
                _tell(process, self._access)
                line = _first_output(process, self._timeout)
            except BaseException:  # an interrupt
                _end(process, directory)
                raise
            answer = json.loads(line) if line else {}
            if "port" not in answer:
                _end(process, directory)
                raise BrowserServerError(self._why_not_started(answer, line, _last_line(log)))
        self._process = process
        self._directory = directory
        # When it is started again, its clients look for it at this address.
        self._options = replace(options, port=answer["port"])
        host = "127.0.0.1" if options.host == "0.0.0.0" else options.host
        self.url = f"http://{host}:{answer['port']}"
        if answer.get("warning"):
            warnings.warn(answer["warning"], stacklevel=2)

    def _why_not_started(self, answer: dict[str, Any], line: bytes | None, last_words: str) -> str:
        if "failed" in answer:
            return answer["failed"]
        if line is None:
            return (
                f"The browser server was not ready within {self._timeout:.0f} s; try fewer workers"
                " or more time."
            )
        return f"The browser server ended while it started: {last_words or 'it said nothing'}."

    def _reopen(self) -> Connection:
        """A new connection; the server is started again, at its old address, where its process has
        ended."""
        process = self._process
        with suppress(BrowserServerError):
            return open_connection(self.url, self.token)
        with self._lock, suppress(subprocess.TimeoutExpired):
            # If it is another process, another client has started it again.
            is_ours = self._owner == os.getpid()
            if process is not None and self._process is process and is_ours:
                process.wait(2)  # its sockets close before it counts as ended
                _end(process, self._directory)
                self._start()
        return open_connection(self.url, self.token)

    @override
    def client(self, screenshot: bool = False) -> BrowserClient:
        client = BrowserClient(self._reopen, screenshot)
        self._clients.add(client)
        return client

    @override
    def kill_browsers(self) -> None:
        for worker in self.stats()["workers"]:
            os.kill(worker["pid"], signal.SIGKILL)

    @override
    def close(self) -> None:
        """Stop the server, its workers and its browsers, and remove their files. May be called
        twice."""
        if self._owner != os.getpid():
            return
        with self._lock:
            process = self._process
            self._process = None
        if process is None:
            return
        atexit.unregister(self.close)
        for client in list(self._clients):
            client.close_soon()
        _end(process, self._directory)


def _first_output(process: "subprocess.Popen[bytes]", seconds: float) -> bytes | None:
    """The process's first line, empty where it ended without one, None where it took too long."""
    if process.stdout is None:
        raise ValueError("the process was started without a pipe for what it says")
    readable = select.select([process.stdout], [], [], seconds)[0]
    return process.stdout.readline() if readable else None


def _tell(process: "subprocess.Popen[bytes]", access: Access) -> None:
    """Write the tokens to the process's stdin: what is on its command line or in its environment
    could be read by others."""
    if process.stdin is None:
        raise ValueError("the process was started without a pipe as its stdin")
    with suppress(BrokenPipeError):  # it has ended, and its log says why
        process.stdin.write(f"{access.to_json()}\n".encode())
        process.stdin.flush()


def _last_line(log: BinaryIO) -> str:
    """What an ended process said last. The open file is asked, and not its path: a server removes
    its directory when it ends, and may have done so by now."""
    log.seek(0)
    text = END_OF_DRIVER.sub("", log.read().decode(errors="replace"))
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _end(process: "subprocess.Popen[bytes]", directory: Path) -> None:
    """Ask by closing its stdin; then kill whatever of its tree is left, and remove its files."""
    # One that has been waited for has no pid any more: another process may have it.
    tree = descendants(process.pid) if process.poll() is None else []
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):  # what was not read any more
                pipe.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(END_SECONDS)
    if process.returncode is None:
        tree += descendants(process.pid)
    kill(tree)
    process.wait()
    shutil.rmtree(directory, ignore_errors=True)


def default_sessions() -> int:
    """64, or as many as ``COURSE_CLIENTS`` asks for where that is more."""
    asked = os.environ.get("COURSE_CLIENTS", "")
    return max(DEFAULT_SESSIONS, int(asked) if asked.isdigit() else 0)


def start_browser_server(
    workers: int | None = None,
    sessions: int | None = None,
    port: int = 0,
    timeout: float = 60,
    host: str = "127.0.0.1",
    token: str | None = None,
    rules: PageRules | None = None,
    seats: Mapping[str, str] | None = None,
    sessions_per_seat: int = DEFAULT_SESSIONS,
) -> BrowserServer:
    """Start a browser server on this machine and wait until its browsers run. Where
    ``COURSE_SERVERS`` names servers that run already, as a room's does, it is those that you get,
    unless ``host`` or ``rules`` ask for one of your own.

    ``workers``: processes with one Chromium each (None: about one per core, at most four).
    ``sessions``: how many clients they share (None: `default_sessions`); as many again wait in a
    queue. ``port``: 0 takes a free one. ``timeout``: seconds to wait for it. ``host``: loopback,
    unless you name another address and a ``token`` of your own with it (else it is drawn).
    ``rules``: how pages are treated, for measurements; None is the course's environment.
    ``seats``: for a room, the token of each seat by its name, with which it may have
    ``sessions_per_seat``. Raises BrowserServerError, one sentence, where it does not start: no
    Chromium, port busy, too slow."""
    elsewhere = servers_elsewhere()
    if elsewhere is not None and rules is None and host == "127.0.0.1":
        return elsewhere
    if token is None and host != "127.0.0.1":
        raise BrowserServerError(
            f"Whoever reaches {host} could use the browsers: give start_browser_server() a token as"
            " well."
        )
    options = ServerOptions(
        host=host,
        port=port,
        workers=workers or 0,
        sessions=sessions or default_sessions(),
        rules=rules or PageRules(),
        directory="",
    )
    access = Access(token or secrets.token_urlsafe(16), seats or {}, sessions_per_seat)
    return LocalServer(options, timeout, access)
