"""What stands between the network and OpenEnv's app: who may come in, replies that say which
request they answer, and a sentence for what cannot be done without a session.

These are ASGI applications around another, see https://asgi.readthedocs.io.
"""

import hmac
import json
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, PlainTextResponse

from helpers.browser.wire import ECHO_HEADER

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class TokenGuard:
    """Lets in who knows the token, and no web page: a page that is open in some browser of this
    machine reaches loopback too, and its Origin header says so."""

    def __init__(self, app: App, token: str) -> None:
        self._app = app
        self._secret = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection, as ASGI asks."""
        headers = dict(scope.get("headers", ()))
        known = hmac.compare_digest(headers.get(b"authorization", b""), self._secret)
        if scope["type"] == "lifespan" or (known and b"origin" not in headers):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            # Before it is accepted, which the client sees as HTTP 403.
            await send({"type": "websocket.close", "code": 1008})
        else:
            refusal = "This browser server wants its token, and no Origin header.\n"
            await PlainTextResponse(refusal, 403)(scope, receive, send)


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
