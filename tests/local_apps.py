"""An ASGI application, served in a thread of the test's own process."""

import threading
import time
from contextlib import contextmanager

import uvicorn


@contextmanager
def serving_app(app):
    """The address at which the application is served."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.05)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        server.force_exit = True
        thread.join(10)  # it is a daemon: one that stays disturbs nobody
