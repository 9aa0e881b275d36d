"""A worker process: one Chromium that stays open, many sessions in it, and requests from the pool
over a pipe, several at a time."""

import os
import sys
import traceback
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from greenlet import greenlet

from helpers.browser.options import PageRules
from helpers.browser.pool import InfrastructureError
from helpers.browser.processes import exit_with_parent
from helpers.browser.variables import drop_all_but_browser
from helpers.settings.errors import first_line

if TYPE_CHECKING:
    from helpers.browser.kept_chromium import KeptChromium
    from helpers.browser.session import Session


class RequestHandler:
    """Answers the pool's requests: (number, kind, session, *arguments), where ``kind`` is a method
    of `Session`. The answer is (number, fields), or (number, {"lost": why})."""

    def __init__(self, connection: Connection, chromium: "KeptChromium") -> None:
        self._connection = connection
        self._chromium = chromium
        self._sessions: dict[int, Session] = {}

    def receive(self) -> None:
        """Take one request from the pipe and serve it in a greenlet of its own."""
        greenlet(self._serve).switch(*self._connection.recv())

    def _serve(self, number: int, kind: str, session: int, *arguments: Any) -> None:
        try:
            answer = self._answer(kind, session, *arguments)
        except Exception as error:
            answer = self._lost(error, session)
        self._connection.send((number, answer))

    def _lost(self, error: Exception, session: int) -> dict[str, Any]:
        """The answer for an episode that is lost, with "broken" where the whole browser is."""
        why = str(error)
        if not isinstance(error, InfrastructureError):
            traceback.print_exc()
            why = f"{type(error).__name__}: {first_line(error)[:200]}"
        if session in self._sessions and not self._sessions[session].draws():
            return {"lost": f"{why}; it drew nothing any more and was restarted", "broken": True}
        return {"lost": why}

    def _answer(self, kind: str, session: int, *arguments: Any) -> dict[str, Any]:
        from helpers.browser.session import Session  # imported by `main`, see there

        if session not in self._sessions:
            self._sessions[session] = Session(self._chromium)
        fields = getattr(self._sessions[session], kind)(*arguments)
        if kind == "close":
            del self._sessions[session]
        return fields or {}


def main(fd: int, page_port: int, rules: PageRules) -> None:
    """Serve requests from the pipe ``fd`` until the parent is gone. The first message is
    (0, {"ready": pid, "warning": sentence or ""}) or (0, {"failed": sentence})."""
    connection = Connection(fd)
    exit_with_parent(lambda: os._exit(0))
    try:
        # Imported here, so that a library that cannot be imported is told to the parent as well.
        from helpers.browser import private
        from helpers.browser.kept_chromium import KeptChromium

        drop_all_but_browser()
        private.apply_patches()
        chromium = KeptChromium(page_port, rules)
    except Exception as error:
        traceback.print_exc()
        cause = "" if isinstance(error, FileNotFoundError) else "Chromium did not start: "
        connection.send((0, {"failed": cause + first_line(error)}))
        return
    connection.send((0, {"ready": os.getpid(), "warning": chromium.warning}))
    handler = RequestHandler(connection, chromium)
    private.call_when_readable(chromium.playwright, fd, handler.receive)
    private.run_event_loop(chromium.playwright)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), PageRules.from_json(sys.argv[3]))
