"""The container's command: the course's browser server on all addresses of the container, with a
token.

    BROWSER_SERVER_TOKEN=... python -m server.app

``PORT`` (8000), ``WORKERS`` (about one per core) and ``SESSIONS`` (64) come from the environment.
Who connects gives the token: ``connect(url, token=...)``, or, for clients that take nothing but an
address, ``https://any-name:TOKEN@host``. There is no server without one, not even behind the door
of a private Space: what opens that door is a header again, which such clients cannot send.

It ends, with an exit code that makes a platform start it again, where nothing answers any more.
"""

import os
import signal
import sys
import time

from helpers.browser import BrowserServerError, start_browser_server

DEFAULT_PORT = 8000
START_SECONDS = 180
SECONDS_BETWEEN_LOOKS = 10


def main() -> int:
    """Serve until SIGTERM. Returns the exit code."""
    token = os.environ.get("BROWSER_SERVER_TOKEN")
    if not token:
        print(
            "Set BROWSER_SERVER_TOKEN (a Space's secret): whoever reaches this port could use the"
            " browsers.",
            file=sys.stderr,
        )
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        serve(token)
    except BrowserServerError as error:
        print(error, file=sys.stderr)
    return 1


def serve(token: str) -> None:
    """Run the server. BrowserServerError where it does not start, or does not answer any more."""
    port = number("PORT") or DEFAULT_PORT
    with start_browser_server(
        workers=number("WORKERS"),
        sessions=number("SESSIONS"),
        port=port,
        timeout=START_SECONDS,
        host="0.0.0.0",
        token=token,
    ) as server:
        print(f"The browser server listens on port {port}.", flush=True)
        while True:
            server.stats()
            time.sleep(SECONDS_BETWEEN_LOOKS)


def number(variable: str) -> int:
    """A variable of the environment; 0, which means the default, where it is not set."""
    return int(os.environ.get(variable, 0))


if __name__ == "__main__":
    sys.exit(main())
