"""The task pages of the installed miniwob package, served on loopback for our Chromium alone."""

import http.server
import threading
from pathlib import Path
from typing import Any

import miniwob
from typing_extensions import override


class TaskPages(http.server.SimpleHTTPRequestHandler):
    """Serves miniwob's files over connections that are kept; Chromium keeps what it has read."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    # The pages declare no character set; without one unicode-test shows (and asks for) garbage.
    extensions_map = {
        ".html": "text/html; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".css": "text/css; charset=utf-8",
    }

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments, directory=str(Path(miniwob.__file__).parent / "html"))

    @override
    def end_headers(self) -> None:
        """The pages never change, so Chromium may keep them."""
        self.send_header("Cache-Control", "public, max-age=604800, immutable")
        super().end_headers()

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads a line for each file."""


def serve_task_pages(handler: type[TaskPages] = TaskPages) -> http.server.ThreadingHTTPServer:
    """Serve the pages from threads on a free port: the running server, whose ``server_port`` says
    which."""
    pages = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    pages.daemon_threads = True
    threading.Thread(target=pages.serve_forever, daemon=True, name="pages").start()
    return pages
