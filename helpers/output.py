"""What long work shows: a table, one line of progress, a clock. The same in a notebook and in a
terminal."""

import io
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from tqdm import tqdm

LOG_INTERVAL = (
    30.0  # seconds between two lines of progress in a file, where none can be overwritten
)
LIVE_INTERVAL = 0.5  # the same on a terminal or in a notebook


def clock(seconds: float) -> str:
    """Minutes and seconds, rounded to the second: 125.4 -> "2:05"."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows under their headings as plain text, one line each.

    The first column is aligned left, the others right; every value is shown as ``str(value)``.
    """
    grid = Table(box=None, pad_edge=False)
    for i, heading in enumerate(columns):
        grid.add_column(heading, justify="right" if i else "left", no_wrap=True)
    for row in rows:
        grid.add_row(*[str(value) for value in row])
    text = io.StringIO()
    Console(file=text, width=1_000, color_system=None, markup=False, highlight=False).print(grid)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


class Progress(tqdm):
    """One line that says how far long work is: done, of how many, a remark, elapsed, time left.

    ``total``: steps in all; ``what``: their name, such as "episodes". Use it as a context manager;
    `reach` is called with the steps done so far. In a notebook the line is one display that is
    replaced; in a file it is written every half minute.
    """

    def __init__(self, total: int, what: str, initial: int = 0):
        self._remark = ""
        self._handle = _notebook_display()
        live = self._handle is not None or sys.stdout.isatty()
        super().__init__(
            total=total,
            desc=what,
            initial=initial,
            file=sys.stdout,
            mininterval=LIVE_INTERVAL if live else LOG_INTERVAL,
        )

    def reach(self, done: int, remark: str = "") -> None:
        """Say that ``done`` steps are done; the remark stands until the next one."""
        self._remark = remark
        self.update(done - self.n)

    def __str__(self) -> str:
        elapsed = self.format_dict["elapsed"]
        here = self.n - self.initial  # steps of this run, where it went on from an earlier one
        parts = [f"{self.desc} {self.n} of {self.total}", self._remark, clock(elapsed)]
        if here and self.n < self.total:
            parts.append(f"{clock(elapsed / here * (self.total - self.n))} left")
        return " · ".join(part for part in parts if part)

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Draw the line; tqdm calls this as often as its interval allows."""
        if self._handle is None:
            super().display(msg, pos)
        else:
            self._handle.update({"text/plain": str(self) if msg is None else msg}, raw=True)


def _notebook_display() -> Any:
    """A display of a notebook that can be replaced; None outside of one."""
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        return None
    if getattr(get_ipython(), "kernel", None) is None:
        return None
    return display({"text/plain": ""}, raw=True, display_id=True)
