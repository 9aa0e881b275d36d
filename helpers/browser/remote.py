"""A browser server as its users see it, and one that runs elsewhere: a room's, or those of
``COURSE_SERVERS``."""

import itertools
import json
import os
import time
import urllib.request
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit, urlunsplit

from typing_extensions import override

from helpers.browser.client import BrowserClient, ClosedAtExit, connect, no_answer
from helpers.browser.models import BrowserServerError
from helpers.settings.names import split_names

PLACE_SECONDS = 1.0
NOT_KILLED = (
    "These browsers run elsewhere and serve others, too: none is killed. What follows a kill stands"
    " in the committed output."
)


class BrowserServer(ClosedAtExit):
    """A running server: take clients of it, ask how it is, close it."""

    url = ""
    token = ""

    def client(self, screenshot: bool = False) -> BrowserClient:
        """A new session; with ``screenshot`` every observation has a picture unless the call says
        otherwise."""
        raise NotImplementedError

    def clients(self, n: int, screenshot: bool = False) -> list[BrowserClient]:
        """``n`` sessions, to be stepped in parallel from ``n`` threads."""
        return [self.client(screenshot) for _ in range(n)]

    def kill_browsers(self) -> None:
        """Kill its browser processes without a word, as a machine that is short of memory does."""
        raise NotImplementedError

    @property
    def url_with_token(self) -> str:
        """The address for a client that takes nothing else, such as upstream's: with the token in
        it, which the client sends as a header (`helpers.browser.middleware.TokenGuard`)."""
        return self.url.replace("://", f"://browser:{quote(self.token, safe='')}@", 1)

    def stats(self) -> dict[str, Any]:
        """Worker pids, sessions, requests, restarts, and infrastructure failures with their rate
        per episode. BrowserServerError where nothing answers."""
        return json.loads(self._ask("/stats"))

    def say(self, sentence: str) -> None:
        """Tell a room's server what its teacher shall read of this seat. BrowserServerError where
        nothing answers."""
        self._ask("/say?" + urlencode({"said": sentence}), data=b"")

    def _ask(self, path: str, data: bytes | None = None) -> bytes:
        """The body of the answer to one request; a POST where there is ``data``."""
        # No proxy: it is on this machine, or in this room.
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        direct.addheaders = [("Authorization", f"Bearer {self.token}")]
        try:
            with direct.open(self.url + path, data=data, timeout=10) as file:
                return file.read()
        except OSError as error:
            raise BrowserServerError(no_answer(self.url, type(error).__name__)) from error


class RemoteServers(BrowserServer):
    """One or several servers that somebody else has started; their clients are taken in turn."""

    def __init__(self, urls: Sequence[str], token: str = "") -> None:
        """``urls``: http://any-name:TOKEN@host:port, or without a token, which is then ``token``.
        BrowserServerError where one is no address."""
        servers = [_without_token(url) for url in urls]
        self._turns = itertools.cycle((url, own or token) for url, own in servers)
        self._clients: list[BrowserClient] = []
        self.url, own = servers[0]
        self.token = own or token

    @override
    def client(self, screenshot: bool = False) -> BrowserClient:
        url, token = next(self._turns)
        client = connect(url, screenshot=screenshot, token=token or None)
        self._clients.append(client)
        return client

    @override
    def clients(self, n: int, screenshot: bool = False) -> list[BrowserClient]:
        """``n`` sessions; on a seat of a room no more than its share has left, with a sentence."""
        name, free = self._share_left()
        if name and free < n:
            time.sleep(PLACE_SECONDS)  # those of a notebook that was just closed come free
            _, free = self._share_left()
        if name and free < n:
            print(f"Seat {name} has {free} browser sessions left, so {free} play, not {n}.")
            n = free
        return super().clients(n, screenshot)

    def _share_left(self) -> tuple[str, int]:
        """The name of our seat, empty where it is none, and how many sessions it has left; at least
        one, which then says why it cannot be had."""
        room = self.stats()
        if "seat" not in room:
            return "", 0
        return room["seat"], max(1, room["sessions_per_seat"] - room["sessions_of_seat"])

    @override
    def kill_browsers(self) -> None:
        """Say that it does not: they are not ours."""
        print(NOT_KILLED)

    @override
    def close(self) -> None:
        """Close the clients; the servers go on."""
        while self._clients:
            self._clients.pop().close()


def servers_elsewhere() -> RemoteServers | None:
    """The servers of ``COURSE_SERVERS`` (addresses with commas; a token that is in none of them is
    ``COURSE_SERVER_TOKEN``), None where the variable is empty. BrowserServerError where one is no
    address."""
    urls = [url for url in split_names(os.environ.get("COURSE_SERVERS", "")) if url]
    return RemoteServers(urls, os.environ.get("COURSE_SERVER_TOKEN", "")) if urls else None


def _without_token(url: str) -> tuple[str, str]:
    """An address, and the token that stood in it; an empty one where there is none."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https", "ws", "wss") or not parts.hostname:
        raise BrowserServerError(
            f"COURSE_SERVERS names {url!r}, which is no address: write http://name:TOKEN@host:port."
        )
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=place)).rstrip("/"), unquote(parts.password or "")
