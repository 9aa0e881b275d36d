"""OpenEnv's BrowserGym environment, fast enough to train on.

    with start_browser_server(workers=2) as server:
        env = server.client()
        observation = env.reset("click-button", seed=7)
        observation = env.step("click('13')")

The browser lives in other processes, because Playwright's synchronous API cannot run in a notebook kernel:
    client --WebSocket--> OpenEnv server (FastAPI, loopback) --pipe--> worker processes, one warm Chromium each
"""

import importlib

_WHERE = {
    "start_browser_server": "client",
    "connect": "client",
    "BrowserServer": "client",
    "BrowserClient": "client",
    "list_tasks": "models",
    "BrowserObservation": "models",
    "Element": "models",
    "BrowserServerError": "models",
}
__all__ = list(_WHERE)


def __getattr__(name):
    # Lazy: a worker process imports this package too, and must not pay four seconds for OpenEnv's server.
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
