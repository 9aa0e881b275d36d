"""A worker process: one warm Chromium, many sessions, one request at a time from the pool over a pipe."""

import os
import sys
import threading
import traceback
from multiprocessing.connection import Connection

from helpers.browser.processes import exit_with_parent, first_line


def main(fd: int, page_port: int) -> None:
    connection = Connection(fd)
    exit_with_parent(lambda: os._exit(0))
    try:
        from helpers.browser.warm import Lost, Session, Warm

        warm = Warm(page_port)
    except Exception as error:
        traceback.print_exc()
        cause = "" if isinstance(error, FileNotFoundError) else "Chromium did not start: "
        return connection.send({"failed": cause + first_line(error)})
    connection.send({"ready": os.getpid()})
    sessions: dict[int, Session] = {}
    while True:
        kind, session_id, *arguments = connection.recv()
        try:
            answer = getattr(sessions.setdefault(session_id, Session(warm)), kind)(*arguments) or {}
            if kind == "close":
                del sessions[session_id]
        except Lost as lost:
            answer = {"lost": str(lost)}
        except Exception as error:
            traceback.print_exc()
            answer = {"lost": f"{type(error).__name__}: {first_line(error)[:200]}"}
        connection.send(answer)


if __name__ == "__main__":
    threading.current_thread().name = "worker"
    main(int(sys.argv[1]), int(sys.argv[2]))
