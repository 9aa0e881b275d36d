"""The notebook's side: start a server, connect to one, reset and step."""

import atexit
import json
import os
import re
import secrets
import select
import shutil
import subprocess
import tempfile
import threading
import urllib.request
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from helpers.browser.models import BrowserAction, BrowserObservation, BrowserServerError, Element  # isort: skip
from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from openenv.core.env_server.types import State
from websockets.exceptions import ConnectionClosed

from helpers.browser.processes import descendants, first_line, kill, spawn

_TREE_LINE = re.compile(
    r"\s*\[(?P<bid>\w+)\] (?P<role>\w+) (?P<quote>['\"])(?P<name>.*?)(?P=quote)(?P<rest>.*)"
)


def _from_upstream(fields: dict[str, Any]) -> dict[str, Any]:
    """Fill in what an official BrowserGym server leaves out or hides in its metadata."""
    metadata = fields.get("metadata") or {}
    seen, info = metadata.get("browsergym_obs") or {}, metadata.get("browsergym_info") or {}
    fields["error"] = fields.get("error") or str(seen.get("last_action_error") or "")
    fields["focused_bid"] = str(seen.get("focused_element_bid") or "")
    raw = (info.get("task_info") or {}).get("RAW_REWARD_GLOBAL")
    if raw is not None:
        fields["raw_reward"] = float(raw)
        fields["reward"] = float(bool(fields.get("done")) and raw >= 1)
    if fields.get("done"):
        fields["ended"] = "solved" if (fields.get("reward") or 0) >= 1 else "failed"
    lines = map(
        _TREE_LINE.fullmatch, (fields.get("axtree_txt") or fields.get("text") or "").splitlines()
    )
    fields["elements"] = [
        Element(**m.groupdict(), focused="focused" in m["rest"]) for m in lines if m
    ]
    return fields


class _Wire(EnvClient[BrowserAction, BrowserObservation, State]):
    """OpenEnv's client with our types; reads our observations and upstream's."""

    def _step_payload(self, action: BrowserAction) -> dict[str, Any]:
        return action.model_dump()

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[BrowserObservation]:
        known = BrowserObservation.model_fields
        fields = {
            name: value
            for name, value in payload.get("observation", {}).items()
            if name in known and value is not None
        }
        fields |= {"done": bool(payload.get("done", False)), "reward": payload.get("reward")}
        if "ended" not in fields:
            fields = _from_upstream(fields)
        observation = BrowserObservation(**fields)
        return StepResult(observation=observation, reward=observation.reward, done=observation.done)

    def _parse_state(self, payload: dict[str, Any]) -> State:
        return State(**payload)


def _no_answer(where: str, reason: str) -> str:
    return f"No browser server answers at {where} ({reason}); start one with start_browser_server(), or check the address."


class BrowserClient(AbstractContextManager):
    """One session of a browser server: `reset`, `step`, `close`. Use it from one thread at a time."""

    def __init__(self, reopen: Callable[[], Any], where: str, screenshot: bool = False):
        """``reopen`` connects, and connects again where the server was restarted."""
        self._wire, self._reopen, self._where, self._screenshot = (
            reopen(),
            reopen,
            where,
            screenshot,
        )
        self._head, self._step = {}, 0

    def reset(
        self, task: str = "click-button", seed: int = 0, screenshot: bool | None = None
    ) -> BrowserObservation:
        """Start an episode; the same task and seed give the same page. ``screenshot``: with a picture (None: as the client was
        made). BrowserServerError where there is no such task, no free session or no server."""
        self._head, self._step = {"task": task, "seed": seed}, 0
        picture = self._screenshot if screenshot is None else screenshot
        return self._read(self._call("reset", seed=seed, task_name=task, screenshot=bool(picture)))

    def step(
        self, action: str, screenshot: bool | None = None, observe: bool = True
    ) -> BrowserObservation:
        """Take one action, such as ``click('13')``. What is no action is not executed: the observation is the last one, with
        the reason in ``error``. Without ``observe`` the page is not read again: for a last turn, of which only the outcome
        counts. BrowserServerError where no episode is running."""
        self._step += 1
        picture = self._screenshot if screenshot is None else screenshot
        action = action.encode(errors="replace").decode()[
            :100_000
        ]  # what the wire takes; it is no action in any case
        request = BrowserAction(
            action_str=action, metadata={"screenshot": picture, "observe": observe}
        )
        return self._read(self._call("step", request))

    def _read(self, result: StepResult[BrowserObservation]) -> BrowserObservation:
        observation = result.observation
        # An official server names neither task nor step.
        return (
            observation
            if observation.task
            else observation.model_copy(update=self._head | {"step": self._step})
        )

    def _call(self, method: str, *arguments, again: bool = True, **named):
        if self._wire is None:
            raise BrowserServerError(
                "This client is closed; start_browser_server() starts a server with new ones."
            )
        try:
            return getattr(self._wire, method)(*arguments, **named)
        except (ConnectionClosed, OSError, TimeoutError):
            with suppress(Exception):
                self._wire.close()
            self._wire = self._reopen()
            if method == "reset" and again:
                return self._call(method, *arguments, again=False, **named)
            lost = BrowserObservation(
                done=True,
                reward=None,
                ended="infrastructure_error",
                step=self._step,
                **self._head,
                infrastructure_error="the browser server was lost while the episode ran",
            )
            return StepResult(observation=lost, done=True)
        except RuntimeError as error:
            message = re.sub(
                r"^Server error: (.*) \(code: \w+\)$", r"\1", str(error), flags=re.DOTALL
            )
            if "CAPACITY_REACHED" in str(error):
                message += "; close a client, or start the server with more sessions."
            raise BrowserServerError(message) from error

    def __exit__(self, *_):
        self.close()

    def close(self) -> None:
        """Give the session back. May be called twice."""
        wire, self._wire = self._wire, None
        if wire is not None:
            with suppress(Exception):  # the server may be gone already, and the session with it
                wire.close()


def _open(url: str, token: str | None) -> Any:
    """A connected `_Wire`; BrowserServerError where nothing answers."""
    headers = {"Authorization": f"Bearer {token}"} if token else None
    try:
        wire = _Wire(
            base_url=url, message_timeout_s=120.0, websocket_ping_interval_s=None, headers=headers
        ).sync()
        wire.connect()
    except Exception as error:
        reason = first_line(error)
        if "HTTP 403" in reason or "HTTP 401" in reason:
            raise BrowserServerError(
                f"The browser server at {url} wants its token: connect(url, token=server.token)."
            ) from error
        raise BrowserServerError(_no_answer(url, reason)) from error
    return wire


def connect(
    url: str | None = None,
    image: str | None = None,
    screenshot: bool = False,
    token: str | None = None,
) -> BrowserClient:
    """A client of a server that runs elsewhere: ``url`` of any OpenEnv BrowserGym server (ours, with its ``token``, or an
    official Space), or a Docker ``image`` of one, which is started. BrowserServerError where nothing answers."""
    if (url is None) == (image is None):
        raise BrowserServerError(
            "Give connect() either the url of a server or the name of a Docker image."
        )
    if url is not None:
        return BrowserClient(lambda: _open(url, token), url, screenshot)

    def start() -> Any:
        try:
            settings = {"BROWSERGYM_BENCHMARK": "miniwob", "BROWSERGYM_TASK_NAME": "click-test"}
            return _Wire.from_docker_image(image, env_vars=settings).sync()
        except Exception as error:
            raise BrowserServerError(
                f"The container {image!r} did not start ({first_line(error)}); does Docker run?"
            ) from error

    return BrowserClient(start, image, screenshot)


class BrowserServer(AbstractContextManager):
    """A running server. Leave its ``with`` block, or call `close`, and nothing of it is left; it also ends with us. One that
    was killed is started again when a client needs it; the episodes that were running are lost."""

    def __init__(
        self, workers: int, sessions: int, port: int, timeout: float, host: str, token: str
    ):
        self.token, self._timeout, self._arguments = token, timeout, (workers, sessions)
        self._clients: weakref.WeakSet[BrowserClient] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._process: subprocess.Popen | None = None
        self._start(host, port)
        atexit.register(self.close)

    def _start(self, host: str, port: int) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="browser-server-"))
        log = self._directory / "server.log"
        with log.open("wb") as file:  # not our stderr: in a notebook it has no file descriptor
            process = spawn(
                "helpers.browser.server",
                host,
                port,
                *self._arguments,
                self._directory,
                stdout=subprocess.PIPE,
                stderr=file,
                env=os.environ | {"BROWSER_SERVER_TOKEN": self.token},
            )  # not in argv, which all can read
        readable = select.select([process.stdout], [], [], self._timeout)[0]
        line = process.stdout.readline() if readable else b""
        answer = json.loads(line) if line else {}
        if "port" in answer:
            self._process, self._address = process, (host, answer["port"])
            self.url = f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{answer['port']}"
            return
        said = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        _end(process, self._directory)
        if "failed" in answer:
            raise BrowserServerError(answer["failed"])
        raise BrowserServerError(
            f"The browser server ended while it started: {said[-1] if said else 'it said nothing'}."
            if readable
            else f"The browser server was not ready within {self._timeout:.0f} s; try fewer workers or more time."
        )

    def _reopen(self) -> Any:
        """A new connection; the server is started again, at its old address, where its process has ended."""
        process = self._process
        with suppress(BrowserServerError):
            return _open(self.url, self.token)
        with self._lock, suppress(subprocess.TimeoutExpired):
            if (
                process is not None and self._process is process
            ):  # else another client has started it again
                process.wait(2)  # its sockets close before it counts as ended
                _end(process, self._directory)
                self._start(*self._address)
        return _open(self.url, self.token)

    def client(self, screenshot: bool = False) -> BrowserClient:
        """A new session; with ``screenshot`` every observation has a picture unless the call says otherwise."""
        client = BrowserClient(self._reopen, self.url, screenshot)
        self._clients.add(client)
        return client

    def clients(self, n: int, screenshot: bool = False) -> list[BrowserClient]:
        """``n`` sessions, to be stepped in parallel from ``n`` threads."""
        return [self.client(screenshot) for _ in range(n)]

    def stats(self) -> dict[str, Any]:
        """Worker pids, sessions, requests, restarts, and infrastructure failures with their rate per episode."""
        direct = urllib.request.build_opener(
            urllib.request.ProxyHandler({})
        )  # no proxy: it is on this machine
        direct.addheaders = [("Authorization", f"Bearer {self.token}")]
        try:
            with direct.open(self.url + "/stats", timeout=10) as file:
                return json.load(file)
        except OSError as error:
            raise BrowserServerError(_no_answer(self.url, type(error).__name__)) from error

    def __exit__(self, *_):
        self.close()

    def close(self) -> None:
        """Stop the server, its workers and its browsers, and remove their files. May be called twice."""
        with self._lock:
            if self._process is None:
                return
            process, self._process = self._process, None
        atexit.unregister(self.close)
        for client in list(self._clients):
            client.close()
        _end(process, self._directory)


def _end(process: subprocess.Popen, directory: Path) -> None:
    """Ask by closing its stdin; then kill whatever of its tree is left, and remove its files."""
    tree = descendants(process.pid)
    process.stdin.close()
    process.stdout.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(5)
    kill(tree + descendants(process.pid))
    process.wait()
    shutil.rmtree(directory, ignore_errors=True)


def start_browser_server(
    workers: int | None = None,
    sessions: int | None = None,
    port: int = 0,
    timeout: float = 60,
    host: str = "127.0.0.1",
    token: str | None = None,
) -> BrowserServer:
    """Start a browser server on this machine and wait until its browsers run.

    ``workers``: processes with one Chromium each (None: about one per core, at most four). ``sessions``: how many clients they
    share (None: 64); as many again wait in a queue. ``port``: 0 takes a free one. ``timeout``: seconds to wait for it.
    ``host``: loopback, unless you name another address and a ``token`` of your own with it (else it is drawn). Raises
    BrowserServerError, one sentence, where it does not start: no Chromium, port busy, too slow."""
    if token is None and host != "127.0.0.1":
        raise BrowserServerError(
            f"Whoever reaches {host} could use the browsers: give start_browser_server() a token as well."
        )
    return BrowserServer(
        workers or 0, sessions or 64, port, timeout, host, token or secrets.token_urlsafe(16)
    )
