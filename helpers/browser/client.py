"""A client: one session of a browser server, with `reset`, `step` and `close`.

A reply never gets to a call that it does not answer. A connection belongs to one call while that
call runs, and comes back with its reply; what ends otherwise (an interrupt, an exception, another
thread's `reset`) leaves the connection to be closed, and the next `reset` opens another.
"""

import os
import threading
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from typing_extensions import override
from websockets.exceptions import ConnectionClosed

from helpers.browser.connection import Connection
from helpers.browser.models import (
    MAX_ACTION,
    BrowserAction,
    BrowserObservation,
    BrowserServerError,
)
from helpers.browser.open_files import is_out_of_files, limit
from helpers.browser.wire import SEAT_FULL, RefusedRequest, Result, Wire, without_password
from helpers.settings.errors import first_line

MESSAGE_SECONDS = 120.0  # that one answer may take: a first reset may wait for a place
# For how long a server may still count a session that was given up, and is asked again.
RELEASE_SECONDS = 15.0
ASK_AGAIN_SECONDS = 0.25
ALL_TAKEN = "CAPACITY_REACHED"  # OpenEnv's code for a server that is full

CLOSED = "This client is closed; start_browser_server() starts a server with new ones."
NO_EPISODE = (
    "No episode is running, for the last call on this client did not come to its end; call reset()"
    " first."
)
BUSY = (
    "Another thread's call is running on this client, which plays one episode at a time; give each"
    " thread a client of its own."
)
REPLACED = (
    "Another thread has begun a new episode on this client while this call ran; give each thread a"
    " client of its own."
)


class ClosedAtExit:
    """What a ``with`` block closes at its end, however it ends."""

    def close(self) -> None:
        """Give back what is held. May be called twice."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Call:
    """A `reset` or `step` while it runs, and the connection that it has meanwhile."""

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.over = False
        self.replaced = False  # by another thread's reset

    def give_up(self) -> None:
        """Close its connection: nobody knows what would be read from it next."""
        if self.connection is not None:
            self.connection.give_up()


class BrowserClient(ClosedAtExit):
    """One session of a browser server: `reset`, `step`, `close`. One thread at a time may use it:
    of two calls at once one is refused. A forked child begins with `reset`, which gives it a
    session of its own."""

    def __init__(
        self,
        reopen: Callable[[], Connection],
        screenshot: bool | str = False,
        release: Callable[[], object] | None = None,
    ) -> None:
        """``reopen`` connects, now and after a connection was lost; with ``screenshot`` every
        observation has a picture unless the call says otherwise; `close` calls ``release``."""
        self._reopen = reopen
        self._screenshot = screenshot
        self._release = release
        self._task = ""
        self._seed: int | None = None
        self._step = 0
        # Held for moments, never while something is waited for. An interrupt cannot leave it
        # locked: between a lock's own `with` and its block Python looks for none.
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._closed = False
        self._running: _Call | None = None  # the last call
        self._owner = object()  # of the last episode: who may go on with it, or begin another
        self._given_up_at = -RELEASE_SECONDS
        self._connection: Connection | None = reopen()  # while no call runs

    def reset(
        self,
        task: str = "click-button",
        seed: int = 0,
        screenshot: bool | str | None = None,
        details: bool = False,
    ) -> BrowserObservation:
        """Start an episode; the same task and seed give the same page. ``screenshot``: with a
        picture of 498 x 321 pixels, as stock BrowserGym shows the page, "small" for one of 332 x
        214 (None: as the client was made). ``details``: with all else that stock tells. A call
        that another thread makes meanwhile on this client fails. BrowserServerError where there is
        no such task, no free session or no server."""
        return self._reset(self._new_owner(), task, seed, screenshot, details)

    def _reset(
        self, owner: object, task: str, seed: int, screenshot: bool | str | None, details: bool
    ) -> BrowserObservation:
        picture = self._screenshot if screenshot is None else screenshot
        request = {"seed": seed, "task_name": task, "screenshot": picture, "details": details}
        result = self._begin_episode(lambda wire: wire.reset(**request), owner)
        self._task = task
        self._seed = seed
        self._step = 0
        return self._observation(result)

    def step(
        self,
        action: str,
        screenshot: bool | str | None = None,
        observe: bool = True,
        details: bool = False,
    ) -> BrowserObservation:
        """Take one action, such as ``click('13')``. What is no action is not executed: the
        observation is the last one, with the reason in ``error``. Without ``observe`` the page is
        not read again: for a last turn, of which only the outcome counts. ``screenshot`` and
        ``details`` as in `reset`. BrowserServerError where no episode is running, or another
        thread's call is."""
        return self._take_step(self._owner, action, screenshot, observe, details)

    def _take_step(
        self,
        owner: object,
        action: str,
        screenshot: bool | str | None,
        observe: bool,
        details: bool,
    ) -> BrowserObservation:
        picture = self._screenshot if screenshot is None else screenshot
        # What the wire takes; a longer text, or one that is not UTF-8, is no action in any case.
        text = action.encode(errors="replace").decode()[:MAX_ACTION]
        wanted = {"screenshot": picture, "observe": observe, "details": details}
        request = BrowserAction(action_str=text, metadata=wanted)
        result = self._ask(lambda wire: wire.step(request), owner, begins=False)
        self._step += 1
        return self._observation(result)

    def hold(self) -> "HeldClient":
        """This client for one rollout, whose threads may outlive it: they can neither begin nor go
        on with anything once the client has been reset or held again."""
        return HeldClient(self, self._new_owner())

    def _new_owner(self) -> object:
        self._know_own_process()
        with self._lock:
            self._owner = object()
            return self._owner

    # ---- one call and its reply ----

    def _begin_episode(
        self, request: Callable[[Wire], Awaitable[Result]], owner: object
    ) -> Result | None:
        """The reply to a reset. On a connection that broke no episode has begun that could be lost,
        so it is asked a second time; and again for a while where the server is full and a session
        that this client has given up may be the reason."""
        while True:
            try:
                result = self._ask(request, owner, begins=True)
                return result or self._ask(request, owner, begins=True)
            except BrowserServerError as error:
                cause = error.__cause__
                full = isinstance(cause, RefusedRequest) and cause.code in (ALL_TAKEN, SEAT_FULL)
                if not full or time.monotonic() > self._given_up_at + RELEASE_SECONDS:
                    raise
            time.sleep(ASK_AGAIN_SECONDS)

    def _ask(
        self, request: Callable[[Wire], Awaitable[Result]], owner: object, begins: bool
    ) -> Result | None:
        """The reply to this request, None where the connection broke. ``begins``: whether it begins
        an episode, on a new connection if need be."""
        call = _Call()
        try:
            self._take_connection(call, owner, begins)
            if call.connection is None:
                call.connection = self._reopen()
            return self._reply(call, call.connection, request)
        except RefusedRequest as error:
            raise BrowserServerError(_said_by_server(error)) from error
        except BaseException as error:
            self._drop_connection(call)
            if self._closed or call.replaced:
                raise BrowserServerError(REPLACED if call.replaced else CLOSED) from error
            if isinstance(error, ConnectionClosed | OSError | TimeoutError):
                return None
            raise
        finally:
            call.over = True  # a plain assignment, which no interrupt can come before

    def _take_connection(self, call: _Call, owner: object, begins: bool) -> None:
        """Hand the connection to the call, if there is one. BrowserServerError where the call
        cannot be made."""
        self._know_own_process()
        with self._lock:
            if self._closed:
                raise BrowserServerError(CLOSED)
            if owner is not self._owner:
                raise BrowserServerError(REPLACED)
            last = self._running
            if last is not None and not last.over:
                if not begins:
                    raise BrowserServerError(BUSY)
                last.replaced = True
                last.give_up()
            if self._connection is None and not begins:
                raise BrowserServerError(NO_EPISODE)
            call.connection = self._connection
            self._connection = None
            self._running = call

    def _reply(
        self, call: _Call, connection: Connection, request: Callable[[Wire], Awaitable[Result]]
    ) -> Result:
        """The reply to the call. A refusal is one as well, and leaves the connection free."""
        try:
            result = connection.call(request)
        except RefusedRequest:
            self._put_back_connection(call)
            raise
        self._put_back_connection(call)
        return result

    def _put_back_connection(self, call: _Call) -> None:
        """The call has its reply, so the connection is free for the next one."""
        with self._lock:
            if self._closed or call.replaced:
                raise ConnectionError("the connection was given up")
            self._connection = call.connection

    def _drop_connection(self, call: _Call) -> None:
        """The call has ended without a reply."""
        with self._lock:
            if call.connection is None:
                return
            self._given_up_at = time.monotonic()
            if self._connection is call.connection:
                self._connection = None
        call.give_up()

    def _know_own_process(self) -> None:
        """In a forked child all connections are the parent's, and the lock may be held by a thread
        that is not there."""
        if self._process != os.getpid():
            self._lock = threading.Lock()
            self._connection = None
            self._running = None
            self._process = os.getpid()

    def _observation(self, result: Result | None) -> BrowserObservation:
        """The observation in a result; None: the one of a lost episode."""
        if result is None:
            return BrowserObservation(
                task=self._task,
                seed=self._seed,
                step=self._step,
                done=True,
                reward=None,
                ended="infrastructure_error",
                infrastructure_error="the browser server was lost while the episode ran",
            )
        seen = result.observation
        if seen.task:
            return seen
        # An official server names neither task nor step.
        episode = {"task": self._task, "seed": self._seed, "step": self._step}
        return seen.model_copy(update=episode)

    @override
    def close(self) -> None:
        """Give the session back. May be called twice. A call that is running fails."""
        connection = self.close_soon()
        if connection is not None:
            connection.close()
        release = self._release
        self._release = None
        if release is not None:
            release()

    def close_soon(self) -> Connection | None:
        """`close` without waiting for the server's goodbye. Returns the connection that is being
        closed, None where there is none."""
        self._know_own_process()
        with self._lock:
            self._closed = True
            connection = self._connection
            self._connection = None
            running = self._running
        if running is not None and not running.over:
            running.give_up()
        if connection is not None:
            connection.give_up()
        return connection


class HeldClient:
    """A client as one rollout has it, see `BrowserClient.hold`. Its calls are the client's;
    BrowserServerError once somebody else has the client."""

    def __init__(self, client: BrowserClient, owner: object) -> None:
        self._client = client
        self._owner = owner

    def reset(
        self,
        task: str = "click-button",
        seed: int = 0,
        screenshot: bool | str | None = None,
        details: bool = False,
    ) -> BrowserObservation:
        """`BrowserClient.reset`."""
        return self._client._reset(self._owner, task, seed, screenshot, details)

    def step(
        self,
        action: str,
        screenshot: bool | str | None = None,
        observe: bool = True,
        details: bool = False,
    ) -> BrowserObservation:
        """`BrowserClient.step`."""
        return self._client._take_step(self._owner, action, screenshot, observe, details)

    def close(self) -> None:
        """`BrowserClient.close`."""
        self._client.close()


def _said_by_server(error: RefusedRequest) -> str:
    """The server's sentence, with the next step where it is full."""
    if error.code == ALL_TAKEN:
        return f"{error}; close a client, or start the server with more sessions."
    return str(error)


# ---- connecting ----


def connect(
    url: str | None = None,
    image: str | None = None,
    screenshot: bool | str = False,
    token: str | None = None,
) -> BrowserClient:
    """A client of a server that runs elsewhere: ``url`` of any OpenEnv BrowserGym server (ours,
    with its ``token``, or an official Space), or a Docker ``image`` of one, which is started.
    BrowserServerError where nothing answers."""
    if url is not None and image is None:
        return BrowserClient(lambda: open_connection(url, token), screenshot)
    if image is not None and url is None:
        address, stop = _start_container(image)
        return BrowserClient(lambda: open_connection(address, None), screenshot, release=stop)
    raise BrowserServerError(
        "Give connect() either the url of a server or the name of a Docker image."
    )


def open_connection(url: str, token: str | None) -> Connection:
    """A connection to the server at ``url``. BrowserServerError where nothing answers."""
    headers = {"Authorization": f"Bearer {token}"} if token else None
    connection = None
    try:
        wire = Wire(
            base_url=url,
            message_timeout_s=MESSAGE_SECONDS,
            websocket_ping_interval_s=None,  # the system asks whether the other side is there
            headers=headers,
        )
        connection = Connection(wire)
        connection.open()
    except Exception as error:
        raise BrowserServerError(without_password(_why_no_connection(url, error))) from error
    except BaseException:  # an interrupt
        if connection is not None:
            connection.give_up()
        raise
    return connection


def _why_no_connection(url: str, error: Exception) -> str:
    """One sentence for what kept a connection from being opened."""
    reason = first_line(error)
    if "HTTP 403" in reason or "HTTP 401" in reason:
        return f"The browser server at {url} wants its token: connect(url, token=server.token)."
    if is_out_of_files(error):
        return (
            f"This process has as many files open as it may ({limit()}), and each client"
            " needs one: raise the limit with `ulimit -n 4096`, or close some clients."
        )
    return no_answer(url, reason)


def no_answer(where: str, reason: str) -> str:
    """The sentence for a server that cannot be reached."""
    return (
        f"No browser server answers at {where} ({reason}); start one with start_browser_server(),"
        " or check the address."
    )


def _start_container(image: str) -> tuple[str, Callable[[], object]]:
    """Start an official BrowserGym container: its address, and what stops it."""
    settings = {"BROWSERGYM_BENCHMARK": "miniwob", "BROWSERGYM_TASK_NAME": "click-test"}
    try:
        client = Wire.from_docker_image(image, env_vars=settings).sync()
        client.disconnect()  # its session is for the client that is made next
    except Exception as error:
        raise BrowserServerError(
            f"The container {image!r} did not start ({first_line(error)}); does Docker run?"
        ) from error
    return str(client.base_url), client.close
