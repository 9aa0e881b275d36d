"""The server process: OpenEnv's FastAPI and WebSocket server, the task pages, and the pool of
workers behind them. It prints one line of JSON, {"port": ...} or {"failed": sentence}, and ends
with its parent."""

import json
import os
import random
import shutil
import socket
import sys
import traceback
from typing import Any, NoReturn
from uuid import uuid4

import uvicorn
from fastapi import FastAPI, Request
from typing_extensions import override

from helpers.browser.actions import MAX_ANSWER
from helpers.browser.dialects import Dialect
from helpers.browser.middleware import Refusal, RequestIds, TokenGuard, refuse_over_http
from helpers.browser.models import BrowserAction, BrowserObservation, list_tasks, no_such_task
from helpers.browser.open_files import raise_limit, why_too_few
from helpers.browser.openenv_parts import ConcurrencyConfig, Environment, State, create_app
from helpers.browser.options import ServerOptions
from helpers.browser.orders import base_task, order_in
from helpers.browser.pool import (
    InfrastructureError,
    NoPlaceError,
    Worker,
    WorkerPool,
    default_workers,
)
from helpers.browser.processes import adopt_orphans, exit_with_parent
from helpers.browser.seats import Access, Seats
from helpers.browser.task_pages import serve_task_pages
from helpers.settings.errors import first_line

# Seconds without a message after which a session gives its page back; a reset takes a new one.
IDLE_SECONDS = 900.0
DEFAULT_TASK = "click-test"
NO_OBSERVATION = BrowserObservation()


class BrowserEnvironment(Environment[BrowserAction, BrowserObservation, State]):
    """One client's environment; all of them share the pool."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, pool: WorkerPool) -> None:
        super().__init__()
        self._pool = pool
        self._dialect = Dialect()
        self._episode_id = ""
        self._worker: Worker | None = None
        # Of the worker's process, which holds the page of the running episode.
        self._generation: int | None = None
        self._last: BrowserObservation | None = None

    @override
    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        task_name: str | None = None,
        screenshot: bool | str | None = None,
        details: bool | None = None,
        **_: Any,
    ) -> BrowserObservation:
        """Start an episode. ``screenshot``: True, "small" or False. A reset that does not speak of
        ``details`` is upstream's, and gets all that upstream's server would send, with a picture
        unless ``screenshot`` is False (`helpers.browser.dialects` says why). Refusal where there is
        no such task or no such picture."""
        task = _task_called(str(task_name or DEFAULT_TASK))
        if isinstance(seed, bool) or not isinstance(seed, int | None):
            raise Refusal(f"The seed must be a whole number, not {str(seed)[:40]!r}.")
        seed = random.randrange(2**31) if seed is None else seed % 2**32
        self._dialect = Dialect.of_reset(screenshot, details)
        self._last = None
        self._generation = None
        self._episode_id = str(episode_id or uuid4())
        if self._worker is None:
            self._worker = self._pool.take_place()
        self._last = self._start_episode(self._worker, task, seed)
        return self._last

    def _start_episode(self, worker: Worker, task: str, seed: int) -> BrowserObservation:
        """An episode that has not begun is not lost: it is tried a second time."""
        self._pool.episodes += 1
        request = ("reset", task, seed, self._dialect.want({}))
        try:
            return self._ask(worker, *request)
        except InfrastructureError:
            pass
        try:
            return self._ask(worker, *request)
        except InfrastructureError as error:
            return self._lost(error, "", task=task, seed=seed, step=0)

    @override
    def step(
        self, action: BrowserAction, timeout_s: float | None = None, **_: Any
    ) -> BrowserObservation:
        """Take one action; it is parsed here again, whatever the client did. Refusal where no
        episode is running."""
        last = self._last
        if last is None or self._worker is None:
            raise Refusal("No episode is running; call reset() first.")
        if last.done:
            raise Refusal(f"The episode is over (ended: {last.ended}); call reset() first.")
        want = self._dialect.want(action.metadata)
        text = action.action_str[: MAX_ANSWER + 1]
        try:
            self._last = self._ask(self._worker, "step", text, want)
        except InfrastructureError as error:
            self._last = self._lost(
                error,
                text,
                task=last.task,
                seed=last.seed,
                goal=last.goal,
                url=last.url,
                step=last.step + 1,
            )
        return self._last

    def _ask(self, worker: Worker, kind: str, *arguments: Any) -> BrowserObservation:
        """The worker's answer to one request of this session."""
        self._generation, fields = worker.call(self._generation, kind, id(self), *arguments)
        return self._dialect.observation(fields, arguments[0] if kind == "step" else "")

    def _lost(
        self, error: InfrastructureError, last_action: str, **known: Any
    ) -> BrowserObservation:
        """A typed result: neither an exception to the trainer nor a reward of 0."""
        self._pool.failures += 1
        known |= {"done": True, "ended": "infrastructure_error", "infrastructure_error": str(error)}
        return self._dialect.observation(known, last_action)

    @property
    @override
    def state(self) -> State:
        """The fields of upstream's state."""
        last = self._last or NO_OBSERVATION
        fields = {
            "episode_id": self._episode_id or None,
            "step_count": last.step,
            "benchmark": "miniwob",
            "task_name": last.task,
            "goal": last.goal,
            "current_url": last.url,
            "cum_reward": last.reward or 0.0,
        }
        return State(**fields)

    @override
    def close(self) -> None:
        """Give the place in the pool back."""
        worker = self._worker
        self._worker = None
        self._last = None
        if worker is not None:
            self._pool.give_place_back(worker, id(self))


def _task_called(name: str) -> str:
    """The task, with or without upstream's prefixes and an order. Refusal names those that are
    close, or says what an order looks like."""
    task = name.removeprefix("browsergym/").removeprefix("miniwob.")
    if base_task(task) not in list_tasks():
        raise Refusal(no_such_task(base_task(task)))
    try:
        order_in(task)
    except ValueError as error:
        raise Refusal(str(error)) from None
    return task


def main(options: ServerOptions) -> None:
    """Serve until the parent is gone."""
    # One line is the protocol; whatever libraries print goes to the log.
    protocol = sys.stdout
    sys.stdout = sys.stderr

    def answer(**fields: object) -> None:
        print(json.dumps(fields), file=protocol, flush=True)

    seats = Seats(Access.from_json(_first_line_of_stdin()))
    raise_limit()
    if sentence := why_too_few(options.sessions):
        answer(failed=sentence)
        return
    try:
        listener = _bind(options.host, options.port)
    except OSError as error:
        answer(
            failed=f"Port {options.port} cannot be used ({error.strerror}); choose another, or 0"
            " for a free one."
        )
        return
    adopt_orphans()
    pool = WorkerPool(
        options.workers or default_workers(),
        options.sessions,
        serve_task_pages().server_port,
        options.directory,
        options.rules,
    )

    def stop() -> NoReturn:
        for worker in pool.workers:
            worker.stop()
        # A parent that was killed cannot remove it.
        shutil.rmtree(options.directory, ignore_errors=True)
        # Nothing to save, and open sockets or busy threads must not keep us.
        os._exit(0)

    exit_with_parent(stop)
    try:
        warnings = {worker.wait_ready() for worker in pool.workers}
        server = _web_server(pool, options.sessions, seats)
        listener.listen(256)
        answer(port=listener.getsockname()[1], warning=" ".join(sorted(warnings)).strip())
        server.run(sockets=[listener])
    except Exception as error:
        traceback.print_exc()
        answer(failed=first_line(error))
    finally:
        stop()


def _first_line_of_stdin() -> str:
    """Who may come in. There is nothing else on stdin: see `exit_with_parent`."""
    line = b""
    while not line.endswith(b"\n") and (piece := os.read(0, 1)):
        line += piece
    return line.decode().strip()


def _bind(host: str, port: int) -> socket.socket:
    """A socket on this address, not listening yet. OSError where the port is taken.

    A client that vanished without a word is noticed within a minute. The system answers for one
    that is merely busy, which a ping of the WebSocket would not: a kernel that computes may not
    answer that for minutes."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 20)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    listener.bind((host, port))
    return listener


def _web_server(pool: WorkerPool, sessions: int, seats: Seats) -> uvicorn.Server:
    """OpenEnv's app around the pool, which only who knows a token may talk to."""
    limits = ConcurrencyConfig(max_concurrent_envs=2 * sessions, session_timeout=IDLE_SECONDS)
    app = create_app(
        lambda: BrowserEnvironment(pool),
        BrowserAction,
        BrowserObservation,
        env_name="warm_browsergym_env",
        concurrency_config=limits,
    )
    _add_routes(app, pool, seats)
    for refusal in (Refusal, NoPlaceError):
        app.add_exception_handler(refusal, refuse_over_http)
    app.add_middleware(RequestIds)
    app.add_middleware(TokenGuard, seats=seats)
    return uvicorn.Server(
        uvicorn.Config(app, log_level="warning", ws="websockets", ws_ping_interval=None)
    )


def _add_routes(app: FastAPI, pool: WorkerPool, seats: Seats) -> None:
    """What the server says of itself, and what the seats of a room say of themselves."""

    def stats(request: Request) -> dict[str, Any]:
        """The pool's numbers; to the owner also the table of the seats."""
        name = request.scope["state"]["seat"]
        if name:
            seat = seats[name]
            share = {"sessions_of_seat": seat.sessions, "sessions_per_seat": seat.limit}
            return pool.stats() | {"seat": name} | share
        return pool.stats() | {"seats": seats.table()}

    def say(request: Request, said: str) -> None:
        """A sentence about the seat that sends it."""
        seats.say(request.scope["state"]["seat"], said)

    app.add_api_route("/stats", stats)
    app.add_api_route("/say", say, methods=["POST"])


if __name__ == "__main__":
    main(ServerOptions.read(sys.argv[1:]))
