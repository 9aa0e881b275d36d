"""The server process: OpenEnv's FastAPI and WebSocket server, the task pages, and the pool of workers behind them. It prints one
line of JSON, {"port": ...} or {"failed": sentence}, and ends with its parent."""

import difflib
import hmac
import http.server
import json
import os
import random
import shutil
import socket
import sys
import threading
import traceback
from pathlib import Path

from helpers.browser.models import BrowserAction, BrowserObservation, list_tasks  # isort: skip
import miniwob
import uvicorn
from fastapi.responses import PlainTextResponse
from openenv.core.env_server import ConcurrencyConfig, Environment, State, create_app

from helpers.browser.actions import MAX_ANSWER
from helpers.browser.pool import InfrastructureError, Worker, WorkerPool, default_workers
from helpers.browser.processes import adopt_orphans, exit_with_parent, first_line

IDLE = 900.0  # seconds without a message after which a session gives its page back; a reset takes a new one


class BrowserEnvironment(Environment):
    """One client's environment; all of them share the pool."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, pool: WorkerPool):
        super().__init__()
        self._pool, self._want, self._pixels = pool, (), False
        self._worker: Worker | None = None
        self._generation: int | None = (
            None  # of the worker's process, which holds the page of the running episode
        )
        self._last: BrowserObservation | None = None

    def reset(self, seed=None, episode_id=None, task_name=None, screenshot=False, **_):
        """Start an episode. ``screenshot``: True, or "pixels" for upstream's lists."""
        task = str(task_name or "click-test").removeprefix("browsergym/").removeprefix("miniwob.")
        if task not in list_tasks():
            close = difflib.get_close_matches(task, list_tasks(), n=3, cutoff=0.5)
            raise ValueError(
                f"There is no MiniWoB task {task[:60]!r}"
                + (
                    f"; did you mean {', '.join(close)}?"
                    if close
                    else "; list_tasks() names them all."
                )
            )
        if isinstance(seed, bool) or not isinstance(seed, int | None):
            raise ValueError(f"The seed must be a whole number, not {str(seed)[:40]!r}.")
        seed = random.randrange(2**31) if seed is None else seed % 2**32
        self._last, self._generation, self._pixels = None, None, screenshot == "pixels"
        self._want = ("screenshot",) if screenshot else ()
        self._worker = self._worker or self._pool.place()
        self._last = self._ask(
            {"task": task, "seed": seed, "step": 0}, "reset", task, seed, self._want
        )
        return self._last

    def step(self, action: BrowserAction, timeout_s=None, **_) -> BrowserObservation:
        """Take one action; it is parsed here again, whatever the client did."""
        if self._last is None:
            raise ValueError("No episode is running; call reset() first.")
        if self._last.done:
            raise ValueError(
                f"The episode is over (ended: {self._last.ended}); call reset() first."
            )
        want = (
            ("screenshot",) if action.metadata.get("screenshot", "screenshot" in self._want) else ()
        )
        want = want if want or action.metadata.get("observe", True) else ("outcome",)
        known = {name: getattr(self._last, name) for name in ("task", "seed", "goal", "url")}
        self._last = self._ask(
            known | {"step": self._last.step + 1}, "step", action.action_str[: MAX_ANSWER + 1], want
        )
        return self._last

    def _ask(self, known: dict, kind: str, *arguments, again: bool = True) -> BrowserObservation:
        self._pool.episodes += kind == "reset" and again
        try:
            self._generation, fields = self._worker.call(
                self._generation, kind, id(self), *arguments
            )
            return BrowserObservation(**fields, pixels=self._pixels)
        except (
            InfrastructureError
        ) as error:  # a typed result: neither an exception to the trainer nor a reward of 0
            if kind == "reset" and again:  # an episode that has not begun is not lost
                return self._ask(known, kind, *arguments, again=False)
            self._pool.failures += 1
            return BrowserObservation(
                **known, done=True, ended="infrastructure_error", infrastructure_error=str(error)
            )

    @property
    def state(self) -> State:
        last = self._last or BrowserObservation()
        return State(
            step_count=last.step,
            benchmark="miniwob",
            task_name=last.task,
            goal=last.goal,
            current_url=last.url,
            cum_reward=last.reward or 0.0,
        )

    def close(self) -> None:
        worker, self._worker, self._last = self._worker, None, None
        if worker is not None:
            self._pool.leave(worker, id(self))


class _Pages(http.server.SimpleHTTPRequestHandler):
    """The task pages of the installed miniwob package, over kept connections; Chromium keeps what it has read."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    # The pages declare no character set; without one unicode-test shows (and asks for) garbage.
    extensions_map = {
        f".{name}": f"text/{kind}; charset=utf-8"
        for name, kind in (("html", "html"), ("js", "javascript"), ("css", "css"))
    }

    def __init__(self, *arguments):
        super().__init__(*arguments, directory=str(Path(miniwob.__file__).parent / "html"))

    def end_headers(self):
        self.send_header("Cache-Control", "public, max-age=604800, immutable")
        super().end_headers()

    def log_message(self, *_):
        pass


class _Guard:
    """Lets in who knows the token, and no web page: a page that is open in some browser of this machine reaches loopback too,
    and its Origin header says so."""

    def __init__(self, app, token: str):
        self.app, self.secret = app, f"Bearer {token}".encode()

    async def __call__(self, scope, receive, send):
        headers = dict(scope.get("headers", ()))
        known = hmac.compare_digest(headers.get(b"authorization", b""), self.secret)
        if scope["type"] == "lifespan" or (known and b"origin" not in headers):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})  # before it is accepted: HTTP 403
        else:
            await PlainTextResponse(
                "This browser server wants its token, and no Origin header.\n", 403
            )(scope, receive, send)


def main() -> None:
    host, directory = (
        sys.argv[1],
        sys.argv[5],
    )  # the directory is for Chromium's profiles and the log
    port, workers, sessions = map(int, sys.argv[2:5])
    say, sys.stdout = (
        sys.stdout,
        sys.stderr,
    )  # one line is the protocol; whatever libraries print goes to the log

    def answer(**fields):
        print(json.dumps(fields), file=say, flush=True)

    listener = socket.socket()
    # A client that vanished without a word is noticed within a minute. The system answers for one that is merely busy, which a
    # ping of the WebSocket would not: a kernel that computes may not answer that for minutes.
    for level, option, value in (
        (socket.SOL_SOCKET, socket.SO_REUSEADDR, 1),
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 20),
        (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
        (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    ):
        listener.setsockopt(level, option, value)
    try:
        listener.bind((host, port))
    except OSError as error:
        return answer(
            failed=f"Port {port} cannot be used ({error.strerror}); choose another, or 0 for a free one."
        )
    pages = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    pages.daemon_threads = True
    threading.Thread(target=pages.serve_forever, daemon=True, name="pages").start()
    adopt_orphans()
    pool = WorkerPool(workers or default_workers(), sessions, pages.server_port, directory)

    def stop():
        for worker in pool.workers:
            worker.stop()
        shutil.rmtree(directory, ignore_errors=True)  # a parent that was killed cannot
        os._exit(0)  # nothing to save, and open sockets or busy threads must not keep us

    exit_with_parent(stop)
    try:
        for worker in pool.workers:
            worker.wait_ready()
        app = create_app(
            lambda: BrowserEnvironment(pool),
            BrowserAction,
            BrowserObservation,
            env_name="browsergym_env",
            concurrency_config=ConcurrencyConfig(
                max_concurrent_envs=2 * sessions, session_timeout=IDLE
            ),
        )
        app.add_api_route("/stats", pool.stats)
        app.add_middleware(_Guard, token=os.environ["BROWSER_SERVER_TOKEN"])
        server = uvicorn.Server(
            uvicorn.Config(app, log_level="warning", ws="websockets", ws_ping_interval=None)
        )
        listener.listen(256)
        answer(port=listener.getsockname()[1])
        server.run(sockets=[listener])
    except Exception as error:
        traceback.print_exc()
        answer(failed=first_line(error))
    finally:
        stop()


if __name__ == "__main__":
    main()
