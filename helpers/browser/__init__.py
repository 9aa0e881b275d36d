"""OpenEnv's BrowserGym environment, fast enough to train on: what comes in is a task, a seed and
actions as text; what goes out is a `BrowserObservation` after each. Open client.py first, then
session.py, in which an action becomes what the page says to it.

    with start_browser_server(workers=2) as server:
        env = server.client()
        observation = env.reset("click-button", seed=7)
        observation = env.step("click('13')")

The browser lives in other processes, because Playwright's synchronous API cannot run in a notebook
kernel:

    client --WebSocket--> OpenEnv server (FastAPI, loopback) --pipe--> workers, one Chromium each

client.py asks through connection.py and wire.py. launcher.py starts server.py, whose pool.py starts
worker.py, in which kept_chromium.py holds the browser and session.py plays the episodes. What
clients that others wrote are told stands in dialects.py. remote.py is a server that runs elsewhere,
seats.py a server's users.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from helpers.browser.client import BrowserClient, connect
    from helpers.browser.launcher import start_browser_server
    from helpers.browser.models import (
        BrowserObservation,
        BrowserServerError,
        Client,
        Element,
        list_tasks,
    )
    from helpers.browser.remote import BrowserServer

_MODULES = {
    "BrowserClient": "client",
    "BrowserObservation": "models",
    "BrowserServer": "remote",
    "BrowserServerError": "models",
    "Client": "models",
    "Element": "models",
    "connect": "client",
    "list_tasks": "models",
    "start_browser_server": "launcher",
}
__all__ = [
    "BrowserClient",
    "BrowserObservation",
    "BrowserServer",
    "BrowserServerError",
    "Client",
    "Element",
    "connect",
    "list_tasks",
    "start_browser_server",
]


def __getattr__(name: str) -> Any:
    # Lazy: a worker process imports this package too, and must not pay for OpenEnv's server.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
