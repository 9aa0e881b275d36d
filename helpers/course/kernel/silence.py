"""A line that shows that a silent cell is at work."""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import dataclass
from typing import Any

from helpers.settings.language import say

PATIENCE = 10.0  # seconds of silence before the line is shown
TICK = 1.0  # seconds between two states of the line
OUTPUTS = (
    "stream",
    "display_data",
    "update_display_data",
    "execute_result",
    "error",
    "clear_output",
)


@dataclass(frozen=True)
class Message:
    """What ``session.send`` is called with. With these words it can be sent once more: that makes a
    message of its own, as front ends refuse one that they have seen."""

    stream: Any
    kind: str
    content: dict[str, Any]
    parent: Any = None
    ident: Any = None
    buffers: Any = None

    @property
    def display(self) -> str:
        """The number of the display that it makes or updates, where it has one."""
        return (self.content.get("transient") or {}).get("display_id") or ""


class SilenceLine:
    """Shows a line below a cell that has been silent for `PATIENCE` seconds, with a running clock.

    The line goes when the cell shows something, or ends: what stays below the cell is what it has
    shown, as if the line had never been there. A cell with an open `Progress` is not silent. One
    that makes a widget is left alone, as what it shows may belong to the widget.

    Everything that a cell shows is a message that the kernel's session sends, from whichever
    thread. So that is where the line stands: `_send` takes the place of the session's.
    """

    def __init__(self, shell: Any) -> None:
        """``shell``: IPython's, in a kernel."""
        self._publisher = shell.display_pub
        self._pass_on = shell.kernel.session.send
        self._lock = threading.RLock()
        self._begun = 0.0
        self._heard = 0.0  # when the cell has shown something, the last time
        self._shown: list[Message] = []  # what the cell has shown
        self._line = ""  # the number of the line's display; empty while there is no line
        self._ended = threading.Event()  # the cell that runs
        self._ended.set()
        shell.kernel.session.send = self._send

    def cell_begins(self, info: object) -> None:
        """Begin to listen; ``info`` is what IPython tells about the cell."""
        self.cell_ends(None)  # of the cell before, if it was not told
        self._ended = threading.Event()
        self._begun = self._heard = time.monotonic()
        threading.Thread(target=self._listen, args=[self._ended], daemon=True).start()

    def cell_ends(self, result: object) -> None:
        """Take the line away; ``result`` is what IPython tells about the cell."""
        with self._lock:
            self._ended.set()
            self._take_away()
            self._shown = []

    def _listen(self, ended: threading.Event) -> None:
        """Show the line, and have its clock run, until the cell ends."""
        while not ended.wait(min(TICK, PATIENCE)):
            with self._lock:
                if not ended.is_set() and time.monotonic() - self._heard >= PATIENCE:
                    self._show()

    def _show(self) -> None:
        """Show the line, or its next state."""
        from helpers.output import Progress, clock, work_at_hand

        if Progress.is_open(since=self._begun):
            return
        parts = [say("still at work"), work_at_hand(), clock(time.monotonic() - self._begun)]
        kind = "update_display_data" if self._line else "display_data"
        self._line = self._line or uuid.uuid4().hex
        # Not with display(), which waits for the thread that sends what was printed; and that one
        # may be waiting for the lock.
        self._say(
            kind,
            {
                "data": {"text/plain": " · ".join(part for part in parts if part)},
                "metadata": {},
                "transient": {"display_id": self._line},
            },
        )

    def _take_away(self) -> None:
        """Clear what is below the cell, and show it again without the line."""
        if not self._line:
            return
        self._line = ""
        self._say("clear_output", {"wait": bool(self._shown)})
        for one in self._shown:
            self._pass_on(one.stream, one.kind, one.content, one.parent, one.ident, one.buffers)

    def _say(self, kind: str, content: dict[str, Any]) -> None:
        """Send a message of our own about the cell that runs."""
        parent = self._publisher.parent_header
        self._pass_on(
            self._publisher.pub_socket, kind, content, parent, ident=self._publisher.topic
        )

    def _send(self, *arguments: Any, **named: Any) -> Any:
        """In the place of ``session.send``: take the line away before the cell shows something."""
        if not self._ended.is_set():
            with self._lock:
                self._hear(_message(*arguments, **named))
        return self._pass_on(*arguments, **named)

    def _hear(self, message: Message) -> None:
        """Take note of a message that is about to be sent."""
        if message.kind.startswith("comm_"):
            self.cell_ends(None)  # nobody listens to the rest of this cell
        elif message.kind in OUTPUTS:
            self._take_away()
            self._heard = time.monotonic()
            if message.kind == "update_display_data":  # of all updates the last counts
                self._shown = [one for one in self._shown if not _is_older(one, message)]
            self._shown.append(message)


def _is_older(one: Message, update: Message) -> bool:
    """Whether an update comes before another one of the same display."""
    return one.kind == update.kind and one.display == update.display


def _message(
    stream: Any,
    msg_or_type: Any,
    content: dict[str, Any] | None = None,
    parent: Any = None,
    ident: Any = None,
    buffers: Any = None,
    *_: Any,
    **__: Any,
) -> Message:
    """A call of ``session.send`` with whole messages or with their parts."""
    if not isinstance(msg_or_type, dict):
        return Message(stream, str(msg_or_type), content or {}, parent, ident, buffers)
    whole = msg_or_type
    return Message(
        stream,
        whole["msg_type"],
        whole["content"],
        whole["parent_header"],
        ident,
        buffers or whole.get("buffers"),
    )
