"""A client: one session of a browser server, with `reset`, `step` and `close`."""

import re
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Protocol, Self

from typing_extensions import override
from websockets.exceptions import ConnectionClosed

from helpers.browser.models import (
    MAX_ACTION,
    BrowserAction,
    BrowserObservation,
    BrowserServerError,
    Element,
)
from helpers.browser.openenv_parts import EnvClient, State, StepResult
from helpers.browser.processes import first_line

MESSAGE_SECONDS = 120.0  # that one answer may take: a first reset may wait for a place
# A line of the tree's text, such as "[13] button 'Click Me!', focused".
_TREE_LINE = re.compile(
    r"\s*\[(?P<bid>\w+)\] (?P<role>\w+) (?P<quote>['\"])(?P<name>.*?)(?P=quote)(?P<rest>.*)"
)
_SERVER_ERROR = re.compile(r"Server error: (.*) \(code: \w+\)", re.DOTALL)

Result = StepResult[BrowserObservation]


# ---- the wire ----


class Wire(EnvClient[BrowserAction, BrowserObservation, State]):
    """OpenEnv's client with our types; reads our observations and upstream's."""

    @override
    def _step_payload(self, action: BrowserAction) -> dict[str, Any]:
        return action.model_dump()

    @override
    def _parse_result(self, payload: dict[str, Any]) -> Result:
        known = BrowserObservation.model_fields
        fields = {
            name: value
            for name, value in payload.get("observation", {}).items()
            if name in known and value is not None
        }
        fields["done"] = bool(payload.get("done", False))
        fields["reward"] = payload.get("reward")
        if "ended" not in fields:
            fields = _fields_from_upstream(fields)
        observation = BrowserObservation(**fields)
        return StepResult(observation=observation, reward=observation.reward, done=observation.done)

    @override
    def _parse_state(self, payload: dict[str, Any]) -> State:
        return State(**payload)


class SyncWire(Protocol):
    """What OpenEnv's ``EnvClient.sync()`` returns, as far as it is used here."""

    def connect(self) -> Any:
        """Open the connection."""
        ...

    def reset(self, **named: Any) -> Result:
        """Start an episode; ``named`` is what the server's `reset` takes."""
        ...

    def step(self, action: BrowserAction) -> Result:
        """Take one action."""
        ...

    def close(self) -> None:
        """End the session and close the connection."""
        ...


def _fields_from_upstream(fields: dict[str, Any]) -> dict[str, Any]:
    """Fill in what an official BrowserGym server leaves out or hides in its metadata."""
    metadata = fields.get("metadata") or {}
    seen = metadata.get("browsergym_obs") or {}
    info = metadata.get("browsergym_info") or {}
    raw_reward = (info.get("task_info") or {}).get("RAW_REWARD_GLOBAL")
    filled = dict(fields)
    filled["error"] = fields.get("error") or str(seen.get("last_action_error") or "")
    filled["focused_bid"] = str(seen.get("focused_element_bid") or "")
    if raw_reward is not None:
        filled["raw_reward"] = float(raw_reward)
        filled["reward"] = float(bool(fields.get("done")) and raw_reward >= 1)
    if fields.get("done"):
        filled["ended"] = "solved" if (filled.get("reward") or 0) >= 1 else "failed"
    filled["elements"] = _elements_of(fields.get("axtree_txt") or fields.get("text") or "")
    return filled


def _elements_of(tree: str) -> list[Element]:
    """The elements that the tree's text names, one a line; it has no boxes."""
    found = []
    for line in tree.splitlines():
        if match := _TREE_LINE.fullmatch(line):
            bid, role, name = match["bid"], match["role"], match["name"]
            found.append(Element(bid=bid, role=role, name=name, focused="focused" in match["rest"]))
    return found


# ---- the client ----


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


class BrowserClient(ClosedAtExit):
    """One session of a browser server: `reset`, `step`, `close`. Use it from one thread at a
    time."""

    def __init__(self, reopen: Callable[[], SyncWire], where: str, screenshot: bool = False):
        """``reopen`` connects to ``where``, and connects again where the server was restarted;
        with ``screenshot`` every observation has a picture unless the call says otherwise."""
        self._reopen = reopen
        self._where = where
        self._screenshot = screenshot
        self._task = ""
        self._seed: int | None = None
        self._step = 0
        self._wire: SyncWire | None = reopen()

    def reset(
        self, task: str = "click-button", seed: int = 0, screenshot: bool | None = None
    ) -> BrowserObservation:
        """Start an episode; the same task and seed give the same page. ``screenshot``: with a
        picture (None: as the client was made). BrowserServerError where there is no such task, no
        free session or no server."""
        self._task = task
        self._seed = seed
        self._step = 0
        picture = self._screenshot if screenshot is None else screenshot
        request = {"seed": seed, "task_name": task, "screenshot": bool(picture)}
        result = self._call(lambda wire: wire.reset(**request))
        if result is None:  # on a new connection, for no episode has begun that could be lost
            result = self._call(lambda wire: wire.reset(**request))
        return self._observation(result)

    def step(
        self, action: str, screenshot: bool | None = None, observe: bool = True
    ) -> BrowserObservation:
        """Take one action, such as ``click('13')``. What is no action is not executed: the
        observation is the last one, with the reason in ``error``. Without ``observe`` the page is
        not read again: for a last turn, of which only the outcome counts. BrowserServerError where
        no episode is running."""
        self._step += 1
        picture = self._screenshot if screenshot is None else screenshot
        # What the wire takes; a longer text, or one that is not UTF-8, is no action in any case.
        text = action.encode(errors="replace").decode()[:MAX_ACTION]
        request = BrowserAction(
            action_str=text, metadata={"screenshot": picture, "observe": observe}
        )
        return self._observation(self._call(lambda wire: wire.step(request)))

    def _call(self, request: Callable[[SyncWire], Result]) -> Result | None:
        """The server's answer, None where the connection broke; there is a new one then."""
        if self._wire is None:
            raise BrowserServerError(
                "This client is closed; start_browser_server() starts a server with new ones."
            )
        try:
            return request(self._wire)
        except RuntimeError as error:
            raise BrowserServerError(_said_by_server(error)) from error
        except (ConnectionClosed, OSError, TimeoutError):
            with suppress(Exception):
                self._wire.close()
        self._wire = self._reopen()
        return None

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
        """Give the session back. May be called twice."""
        wire = self._wire
        self._wire = None
        if wire is not None:
            with suppress(Exception):  # the server may be gone already, and the session with it
                wire.close()


def _said_by_server(error: RuntimeError) -> str:
    """The server's sentence without OpenEnv's words around it, with the next step where it is
    full."""
    said = str(error)
    match = _SERVER_ERROR.fullmatch(said)
    sentence = match[1] if match else said
    if "CAPACITY_REACHED" in said:
        sentence += "; close a client, or start the server with more sessions."
    return sentence


# ---- connecting ----


def connect(
    url: str | None = None,
    image: str | None = None,
    screenshot: bool = False,
    token: str | None = None,
) -> BrowserClient:
    """A client of a server that runs elsewhere: ``url`` of any OpenEnv BrowserGym server (ours,
    with its ``token``, or an official Space), or a Docker ``image`` of one, which is started.
    BrowserServerError where nothing answers."""
    if url is not None and image is None:
        return BrowserClient(lambda: open_wire(url, token), url, screenshot)
    if image is not None and url is None:
        return BrowserClient(lambda: _start_container(image), image, screenshot)
    raise BrowserServerError(
        "Give connect() either the url of a server or the name of a Docker image."
    )


def open_wire(url: str, token: str | None) -> SyncWire:
    """A connection to the server at ``url``. BrowserServerError where nothing answers."""
    headers = {"Authorization": f"Bearer {token}"} if token else None
    try:
        wire = Wire(
            base_url=url,
            message_timeout_s=MESSAGE_SECONDS,
            websocket_ping_interval_s=None,  # the system asks whether the other side is there
            headers=headers,
        ).sync()
        wire.connect()
    except Exception as error:
        reason = first_line(error)
        if "HTTP 403" in reason or "HTTP 401" in reason:
            raise BrowserServerError(
                f"The browser server at {url} wants its token: connect(url, token=server.token)."
            ) from error
        raise BrowserServerError(no_answer(url, reason)) from error
    return wire


def no_answer(where: str, reason: str) -> str:
    """The sentence for a server that cannot be reached."""
    return (
        f"No browser server answers at {where} ({reason}); start one with start_browser_server(),"
        " or check the address."
    )


def _start_container(image: str) -> SyncWire:
    """A connection to an official BrowserGym container, which is started."""
    settings = {"BROWSERGYM_BENCHMARK": "miniwob", "BROWSERGYM_TASK_NAME": "click-test"}
    try:
        return Wire.from_docker_image(image, env_vars=settings).sync()
    except Exception as error:
        raise BrowserServerError(
            f"The container {image!r} did not start ({first_line(error)}); does Docker run?"
        ) from error
