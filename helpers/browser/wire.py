"""OpenEnv's client with our types: what it sends, and how it reads the replies of our servers and
of upstream's.

Each request to a server of ours has an id, which the reply repeats (`helpers.browser.middleware`),
so that no reply can be taken for the answer to another request. A server that does not repeat it
says so by leaving a header out when the connection is opened; there the order alone must do, and
`helpers.browser.connection` gives up a connection on which it may be broken.
"""

import itertools
import json
import os
import re
from contextlib import suppress
from typing import Any

from typing_extensions import override
from websockets.exceptions import ConnectionClosed

from helpers.browser.models import BrowserAction, BrowserObservation, Element
from helpers.browser.openenv_parts import EnvClient, State, StepResult

ECHO_HEADER = "X-Echoes-Request-Id"  # of a server that repeats the id of each request
REFUSED_HEADER = "X-Refused"  # of a server that opens the connection only to say why it does not
SEAT_FULL = "SEAT_FULL"  # code of the refusal of a session beyond a seat's share
# A line of the tree's text, such as "[13] button 'Click Me!', focused".
_TREE_LINE = re.compile(
    r"\s*\[(?P<bid>\w+)\] (?P<role>\w+) (?P<quote>['\"])(?P<name>.*?)(?P=quote)(?P<rest>.*)"
)

Result = StepResult[BrowserObservation]


class RefusedRequest(Exception):
    """The server's own words for why it does not do what it was asked for, and a code."""

    def __init__(self, said: str, code: str) -> None:
        super().__init__(said)
        self.code = code


class Wire(EnvClient[BrowserAction, BrowserObservation, State]):
    """One WebSocket, which is one session. Unlike OpenEnv's it is not opened again by itself: the
    new one would be another session, in which the episode is not."""

    def __init__(self, **named: Any) -> None:
        """``named``: what OpenEnv's client takes."""
        super().__init__(**named)
        self._numbers = itertools.count(1)
        self._echoes = False  # whether the server repeats the ids

    async def open(self) -> None:
        """Connect. ConnectionError where nothing answers, or who answers does not let us in."""
        await self.connect()
        response = self._ws.response if self._ws is not None else None
        headers = {} if response is None else response.headers
        if REFUSED_HEADER in headers:
            raise ConnectionError("HTTP 403")  # what other servers say
        self._echoes = ECHO_HEADER in headers

    @override
    async def _send_and_receive(self, message: dict[str, Any]) -> dict[str, Any]:
        """The server's reply to this message. `RefusedRequest` where it refuses; ConnectionError
        where the connection is lost or a reply belongs to something else."""
        if self._ws is None:
            raise ConnectionError("the connection is closed")
        wanted = None
        if self._echoes:
            # With the process in it: the ids of a forked child are others.
            wanted = f"{os.getpid()}-{next(self._numbers)}"
            message = message | {"id": wanted}
        # A session that is refused is told why, and closed; the reason may wait to be read.
        with suppress(ConnectionClosed):
            await self._ws.send(json.dumps(message))
        reply = await self._receive()
        refused = reply.get("type") == "error"
        # A session that the server cannot begin is refused before it has read a request.
        if reply.get("id") != wanted and not (refused and "id" not in reply):
            raise ConnectionError("the server's reply belongs to another request")
        if refused:
            said = reply.get("data", {})
            raise RefusedRequest(str(said.get("message", "")), str(said.get("code", "")))
        return reply

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


def without_password(text: str) -> str:
    """The text with no user and no password in its addresses, where a token may stand."""
    return re.sub(r"://[^/@\s]*@", "://", text)


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
        filled["stock_reward"] = fields.get("reward")
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
