"""The server process: OpenEnv's FastAPI and WebSocket server, the task pages, and the pool of workers behind them.

Started by `start_browser_server`; prints one line of JSON, {"port": ...} or {"failed": sentence}, and ends with its parent.
"""

import difflib
import functools
import http.server
import json
import mimetypes
import os
import random
import shutil
import socket
import sys
import threading
import traceback
from pathlib import Path

import miniwob
import uvicorn
from openenv.core.env_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import ConcurrencyConfig, State

from helpers.browser.models import BrowserAction, BrowserObservation, list_tasks
from helpers.browser.pool import InfrastructureError, PoolSession, WorkerPool, default_workers
from helpers.browser.processes import adopt_orphans, exit_with_parent

IDLE = 900.0  # seconds without a message after which a session gives its page back; a reset takes a new one


class BrowserEnvironment(Environment):
    """One client's environment; all of them share the pool."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, pool: WorkerPool):
        super().__init__()
        self._pool = pool
        self._session: PoolSession | None = None
        self._last: BrowserObservation | None = None
        self._want: tuple = ()
        self._pixels = False

    def reset(self, seed=None, episode_id=None, task_name=None, screenshot=False, **_):
        """Start an episode. ``screenshot``: True, or "pixels" for upstream's lists."""
        task = str(task_name or "click-test").removeprefix("browsergym/").removeprefix("miniwob.")
        if task not in list_tasks():
            close = difflib.get_close_matches(task, list_tasks(), n=3, cutoff=0.5)
            raise ValueError(f"There is no MiniWoB task {task[:60]!r}" +
                             (f"; did you mean {', '.join(close)}?" if close else "; list_tasks() names them all."))
        if isinstance(seed, bool) or not isinstance(seed, int | None):
            raise ValueError(f"The seed must be a whole number, not {str(seed)[:40]!r}.")
        seed = random.randrange(2**31) if seed is None else seed % 2**32
        self._last = None
        self._pixels = screenshot == "pixels"
        self._want = ("screenshot",) if screenshot else ()
        if self._session is None:
            self._session = PoolSession(self._pool)
        self._last = self._ask({"task": task, "seed": seed, "step": 0}, self._session.reset, task, seed, self._want)
        return self._last

    def step(self, action: BrowserAction, timeout_s=None, **_) -> BrowserObservation:
        """Take one action; it is parsed here again, whatever the client did."""
        if self._last is None or self._session is None:
            raise ValueError("No episode is running; call reset() first.")
        if self._last.done:
            raise ValueError(f"The episode is over (ended: {self._last.ended}); call reset() first.")
        want = ("screenshot",) if action.metadata.get("screenshot", "screenshot" in self._want) else ()
        want = want if want or action.metadata.get("observe", True) else ("outcome",)
        known = {name: getattr(self._last, name) for name in ("task", "seed", "goal", "url")}
        self._last = self._ask(known | {"step": self._last.step + 1}, self._session.step, action.action_str, want)
        return self._last

    def _ask(self, known: dict, call, *arguments) -> BrowserObservation:
        try:
            return BrowserObservation(**call(*arguments), pixels=self._pixels)
        except InfrastructureError as error:  # a typed result: neither an exception to the trainer nor a reward of 0
            return BrowserObservation(**known, done=True, reward=None, ended="infrastructure_error",
                                      infrastructure_error=str(error))

    @property
    def state(self) -> State:
        last = self._last or BrowserObservation()
        return State(step_count=last.step, benchmark="miniwob", task_name=last.task, goal=last.goal,
                     current_url=last.url, cum_reward=last.reward or 0.0)

    def close(self) -> None:
        session, self._session, self._last = self._session, None, None
        if session is not None:
            session.close()


class _Pages(http.server.BaseHTTPRequestHandler):
    """The task pages of the installed miniwob package, from memory, over kept connections."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    root = Path(miniwob.__file__).parent / "html"

    @classmethod
    @functools.cache
    def read(cls, path: str) -> tuple[bytes, str] | None:
        file = (cls.root / path.lstrip("/")).resolve()
        if not (file.is_relative_to(cls.root.resolve()) and file.is_file()):
            return None
        # The pages declare no character set; without one unicode-test shows (and asks for) garbage.
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        return file.read_bytes(), kind + ("; charset=utf-8" if kind.startswith("text/") else "")

    def do_GET(self):
        found = self.read(self.path.split("?")[0])
        body, kind = found or (b"not found", "text/plain")
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "public, max-age=604800, immutable" if found else "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main() -> None:
    port, workers, sessions = map(int, sys.argv[1:4])
    directory = sys.argv[4]  # for Chromium's profiles and the log
    say, sys.stdout = sys.stdout, sys.stderr  # one line is the protocol; whatever libraries print goes to the log

    def answer(**fields):
        print(json.dumps(fields), file=say, flush=True)

    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))  # loopback only: there is no authentication
    except OSError as error:
        return answer(failed=f"Port {port} cannot be used ({error.strerror}); choose another, or 0 for a free one.")
    pages = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    pages.daemon_threads = True
    threading.Thread(target=pages.serve_forever, daemon=True, name="pages").start()
    adopt_orphans()
    pool = WorkerPool(workers or default_workers(), sessions, pages.server_port, directory)

    def stop():
        pool.stop()
        shutil.rmtree(directory, ignore_errors=True)  # a parent that was killed cannot
        os._exit(0)  # nothing to save, and open sockets or busy threads must not keep us

    exit_with_parent(stop)
    try:
        pool.wait_ready()
        app = create_app(lambda: BrowserEnvironment(pool), BrowserAction, BrowserObservation, env_name="browsergym_env",
                         concurrency_config=ConcurrencyConfig(max_concurrent_envs=sessions, session_timeout=IDLE))
        app.add_api_route("/stats", pool.stats)
        # A kernel that computes may not answer a ping for minutes; the end of the connection shows a dead client.
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="websockets", ws_ping_interval=None))
        listener.listen(256)
        answer(port=listener.getsockname()[1])
        server.run(sockets=[listener])
    except Exception as error:
        traceback.print_exc()
        answer(failed=str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__)
    finally:
        stop()


if __name__ == "__main__":
    main()
