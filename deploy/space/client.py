"""The client: ``connect(url, token=...)`` gives one session with `reset`, `step` and `close`."""

from helpers.browser import BrowserClient, connect

__all__ = ["BrowserClient", "connect"]
