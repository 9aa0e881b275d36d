"""The container's command: the course's browser server on all addresses of the container.

    BROWSER_SERVER_TOKEN=... python -m server.app

``PORT`` (8000), ``WORKERS`` (about one per core) and ``SESSIONS`` (64) come from the environment.
Who connects gives the token: ``connect(url, token=...)``. It ends, with an exit code that makes a
platform start it again, where nothing answers any more.
"""

import os
import signal
import sys
import time

from helpers.browser import BrowserServerError, start_browser_server


def main() -> int:
    """Serve until SIGTERM. Returns the exit code."""
    token = os.environ.get("BROWSER_SERVER_TOKEN")
    if not token:
        print(
            "Set BROWSER_SERVER_TOKEN (a Space's secret): whoever reaches this port could use the "
            "browsers.",
            file=sys.stderr,
        )
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    port, workers, sessions = (
        int(os.environ.get(name, 0)) for name in ("PORT", "WORKERS", "SESSIONS")
    )
    port = port or 8000
    try:
        with start_browser_server(
            workers, sessions, port, timeout=180, host="0.0.0.0", token=token
        ) as server:
            print(f"The browser server listens on port {port}.", flush=True)
            while server.stats():  # raises where nothing answers any more
                time.sleep(10)
    except BrowserServerError as error:
        print(error, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
