"""A worker process: one warm Chromium, many sessions, requests from the pool over a pipe, several at a time."""

import os
import sys
import traceback
from multiprocessing.connection import Connection

from greenlet import greenlet

from helpers.browser.pool import InfrastructureError
from helpers.browser.processes import exit_with_parent, first_line


def main(fd: int, page_port: int) -> None:
    connection = Connection(fd)
    exit_with_parent(lambda: os._exit(0))
    try:
        from helpers.browser.warm import Session, Warm

        warm = Warm(page_port)
    except Exception as error:
        traceback.print_exc()
        cause = "" if isinstance(error, FileNotFoundError) else "Chromium did not start: "
        return connection.send((0, {"failed": cause + first_line(error)}))
    connection.send((0, {"ready": os.getpid()}))
    sessions: dict[int, Session] = {}

    def serve(number: int, kind: str, session: int, *arguments) -> None:
        try:
            answer = getattr(sessions.setdefault(session, Session(warm)), kind)(*arguments) or {}
            if kind == "close":
                del sessions[session]
        except InfrastructureError as lost:
            answer = {"lost": str(lost)}
        except Exception as error:
            traceback.print_exc()
            answer = {"lost": f"{type(error).__name__}: {first_line(error)[:200]}"}
        connection.send((number, answer))

    # In greenlets, since Playwright hands over to its event loop while it waits: one session's waiting is another's time.
    warm.playwright._loop.add_reader(fd, lambda: greenlet(serve).switch(*connection.recv()))
    warm.playwright._dispatcher_fiber.switch()  # for ever


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
