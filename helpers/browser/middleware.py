"""What stands between the network and OpenEnv's app: who may come in, replies that say which
request they answer, and a sentence for what cannot be done without a session.

These are ASGI applications around another, see https://asgi.readthedocs.io.
"""

import asyncio
import base64
import json
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, PlainTextResponse

from helpers.browser.seats import Seat, Seats
from helpers.browser.wire import ECHO_HEADER, REFUSED_HEADER, SEAT_FULL

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY_VIOLATION = 1008  # as RFC 6455 numbers the reasons for which a WebSocket is closed
PLACE_SECONDS = 3.0  # that a seat waits for a session of its own to end
LOOK_SECONDS = 0.1
NO_TOKEN = "This browser server wants its token"
NO_SUCH_TOKEN = "This browser server knows no such token"
FROM_A_PAGE = "This browser server serves no web page: send no Origin header."


class TokenGuard:
    """Lets in who knows the token, and no web page: a page that is open in some browser of this
    machine reaches loopback too, and its Origin header says so.

    The token comes in the header Authorization: as ``Bearer TOKEN``, or as the password of HTTP's
    Basic. The latter is for clients that take an address and nothing else, such as upstream's in
    TRL's examples: of http://any-name:TOKEN@host:port they make that very header, so the token goes
    where a Bearer's goes. In the path or in the query of an address it is not looked for: both
    stand in a request's first line, which servers and proxies on the way write down.

    Whoever was let in stands as ``seat`` in the connection's state, and a seat of a room gets no
    more sessions than its share."""

    def __init__(self, app: App, seats: Seats) -> None:
        self._app = app
        self._seats = seats

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection, as ASGI asks."""
        headers = dict(scope.get("headers", ()))
        given = _token_in(headers.get(b"authorization", b""))
        name = self._seats.name_of(given)
        from_a_page = b"origin" in headers
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif name is not None and not from_a_page:
            scope.setdefault("state", {})["seat"] = name
            await self._let_in(self._seats[name], scope, receive, send)
        elif scope["type"] == "http":
            sentence = FROM_A_PAGE if from_a_page else _why_no_token(given)
            await PlainTextResponse(f"{sentence}\n", 403)(scope, receive, send)
        elif from_a_page:
            await receive()
            # Before it is accepted, which the page sees as HTTP 403.
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})
        else:
            await receive()
            await _say_and_close(_why_no_token(given), send, "TOKEN_WANTED", REFUSED_HEADER)

    async def _let_in(self, seat: Seat, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a connection of somebody who knows a token. A WebSocket is a session."""
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
        elif not await _has_place(seat):
            await receive()
            await _say_and_close(_why_full(seat), send, SEAT_FULL)
        else:
            seat.enter()
            try:
                await self._app(scope, receive, send)
            finally:
                seat.leave()


def _token_in(authorization: bytes) -> bytes:
    """The token that the header Authorization holds, empty where it holds none."""
    scheme, _, value = authorization.partition(b" ")
    if scheme.lower() == b"bearer":
        return value.strip()
    if scheme.lower() == b"basic":
        with suppress(ValueError):  # not Base64
            return base64.b64decode(value.strip(), validate=True).partition(b":")[2]
    return b""


def _why_no_token(given: bytes) -> str:
    """The sentence for a token that is none, or another's."""
    return (
        f"{NO_SUCH_TOKEN if given else NO_TOKEN}: give its address as"
        " http://any-name:TOKEN@host:port (whoever started it has that as server.url_with_token),"
        " or send the header Authorization: Bearer TOKEN."
    )


async def _has_place(seat: Seat) -> bool:
    """Whether a seat may open one session more. One that it has just closed may take the server a
    moment to end."""
    for _ in range(round(PLACE_SECONDS / LOOK_SECONDS)):
        if not seat.is_full:
            return True
        await asyncio.sleep(LOOK_SECONDS)
    return not seat.is_full


def _why_full(seat: Seat) -> str:
    """The sentence for a seat that has its share."""
    return (
        f"This seat has all of its {seat.limit} browser sessions: close some, as the last cell of a"
        " notebook or Restart Kernel does."
    )


async def _say_and_close(sentence: str, send: Send, code: str, header: str = "") -> None:
    """Refuse a WebSocket in words. What is refused before it is accepted reads "HTTP 403" in
    upstream's client, whatever the answer holds; an error in OpenEnv's own form it shows whole. To
    a client of ours ``header`` says at once that it is refused."""
    headers = [(header.lower().encode(), b"1")] if header else []
    await send({"type": "websocket.accept", "headers": headers})
    error = {"type": "error", "data": {"message": sentence, "code": code}}
    await send({"type": "websocket.send", "text": json.dumps(error)})
    reason = sentence.partition(":")[0]
    await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": reason})


class RequestIds:
    """Repeats in each reply the id of the request that it answers. A client that sends no ids, such
    as upstream's, gets none.

    OpenEnv answers the messages of a WebSocket one after another, each with one reply, and refuses
    a message with an id: it is taken out before, and put in afterwards."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection, as ASGI asks."""
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        unanswered: deque[Any] = deque()  # ids, None where a request has none

        async def receive_without_id() -> Message:
            message = await receive()
            if message["type"] == "websocket.receive" and message.get("text"):
                text, number = _without_id(message["text"])
                unanswered.append(number)
                return {**message, "text": text}
            return message

        async def send_with_id(message: Message) -> None:
            if message["type"] == "websocket.accept":
                headers = [*message.get("headers", ()), (ECHO_HEADER.lower().encode(), b"1")]
                message = {**message, "headers": headers}
            # A session that cannot begin is refused before it has read a request.
            elif message["type"] == "websocket.send" and message.get("text") and unanswered:
                number = unanswered.popleft()
                if number is not None:
                    message = {**message, "text": _with_id(message["text"], number)}
            await send(message)

        await self._app(scope, receive_without_id, send_with_id)


def _without_id(text: str) -> tuple[str, Any]:
    """A request as OpenEnv reads it, and its id, None where it has none."""
    try:
        request = json.loads(text)
    except ValueError:  # OpenEnv says so
        return text, None
    if not isinstance(request, dict) or "id" not in request:
        return text, None
    number = request.pop("id")
    return json.dumps(request), number


def _with_id(text: str, number: Any) -> str:
    """A reply, which is a JSON object with something in it, with one field more."""
    return f'{text[:-1]},"id":{json.dumps(number)}}}'


class Refusal(ValueError):
    """What a session does not do. The sentence goes to the client."""


async def refuse_over_http(_: Request, error: Exception) -> JSONResponse:
    """The answer to a request over plain HTTP that a session refuses. OpenEnv gives each such
    request a session of its own, so a step there never has an episode."""
    sentence = (
        f"{error} Over plain HTTP each request is a session of its own; connect to /ws, as"
        " helpers.browser.connect(url, token=...) does."
    )
    return JSONResponse({"detail": sentence}, status_code=409)
