"""What long work shows, in a notebook, on a terminal or in a file: a table, a line, a clock."""

import io
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol
from weakref import WeakSet

from rich.console import Console
from rich.table import Table
from tqdm import tqdm
from typing_extensions import override

from helpers.settings.language import say

LIVE_INTERVAL = 0.5  # seconds between two states of a line that is overwritten
FILE_INTERVAL = 30.0  # seconds between two lines in a file, where none can be overwritten


def clock(seconds: float) -> str:
    """Minutes and seconds, rounded to the second: 125.4 -> "2:05"."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


def percent(rate: float, low: float, high: float, sign: str = " %") -> str:
    """A share and its interval, such as "71 % [64, 76]".

    Without a ``sign`` it is for a column whose heading has one.
    """
    return f"{100 * rate:.0f}{sign} [{100 * low:.0f}, {100 * high:.0f}]"


def percent_of(share: Mapping[str, float]) -> str:
    """`percent` of what `helpers.evaluation.statistics.share` returns."""
    return percent(share["rate"], share["low"], share["high"])


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows under their headings as plain text, one line each.

    The first column is aligned left, the others right; every value is shown as ``str(value)``.
    """
    grid = Table(box=None, pad_edge=False)
    for i, heading in enumerate(columns):
        grid.add_column(heading, justify="right" if i else "left", no_wrap=True)
    for row in rows:
        grid.add_row(*[str(value) for value in row])
    text = io.StringIO()
    console = Console(
        file=text, width=1_000, color_system=None, markup=False, emoji=False, highlight=False
    )
    console.print(grid)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


_works: list[Callable[[], str]] = []  # what says how far each work is, the innermost last


@contextmanager
def at_work(how_far: Callable[[], str]) -> Iterator[None]:
    """Have long work say what it is at, where nothing else is shown for it.

    ``how_far``: called from another thread while the work goes on, such as ``"3 of 8 episodes"``.
    Nothing is shown by this alone: in a notebook `helpers.course.kernel` asks `work_at_hand` when a
    cell has been silent for long.
    """
    _works.append(how_far)
    try:
        yield
    finally:
        _works.remove(how_far)


def work_at_hand() -> str:
    """What the innermost work says that goes on; an empty string where none does."""
    return _works[-1]() if _works else ""


class Progress(tqdm):
    """One line that says how far long work is: done, of how many, a remark, elapsed, time left.

    Use it as a context manager, and call `reach` with the steps done so far. In a notebook the line
    is one display that is replaced, on a terminal it is overwritten, in a file it is written anew
    every half minute. Its last state stays.
    """

    _open: ClassVar[WeakSet["Progress"]] = WeakSet()  # in a notebook

    def __init__(self, total: int, what: str, initial: int = 0) -> None:
        """``total``: steps in all; ``what``: their name, such as "episodes"; ``initial``: how many
        of them an earlier run has done."""
        self._remark = ""
        self.opened = time.monotonic()
        self._cell = _notebook_display()
        self._overwrites = self._cell is None and sys.stdout.isatty()
        can_change = self._cell is not None or self._overwrites
        columns, rows = shutil.get_terminal_size()  # tqdm finds none where a terminal has no size
        super().__init__(
            total=total,
            desc=what,
            initial=initial,
            file=sys.stdout,
            mininterval=LIVE_INTERVAL if can_change else FILE_INTERVAL,
            ncols=columns,
            nrows=rows,
            miniters=0,  # the interval alone decides when the line is drawn
            gui=not self._overwrites,  # tqdm's word for: do not write to the terminal yourself
        )
        if self._cell is not None and not self.disable:  # TQDM_DISABLE=1 silences it
            self.display()
            self._open.add(self)

    @classmethod
    def is_open(cls, since: float) -> bool:
        """Whether a notebook shows a line that is not closed, and was opened after a time of
        ``time.monotonic``. (What was stopped may have left one open.)"""
        return any(line.opened >= since for line in list(cls._open))

    def reach(self, done: int, remark: str = "") -> None:
        """Say that ``done`` steps are done; the remark stands until the next one."""
        self._remark = remark
        self.update(done - self.n)

    @override
    def __str__(self) -> str:
        elapsed = self.format_dict["elapsed"]
        here = self.n - self.initial  # steps of this run, where it went on from an earlier one
        done = say("{what} {done} of {all}", what=self.desc, done=self.n, all=self.total)
        parts = [done, self._remark, clock(elapsed)]
        if here and self.n < self.total:
            left = clock(elapsed / here * (self.total - self.n))
            parts.append(say("{time} left", time=left))
        return " · ".join(part for part in parts if part)

    @override
    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Draw the line; tqdm calls this as often as its interval allows."""
        line = str(self) if msg is None else msg
        if self._overwrites:  # a line that wraps could not be overwritten
            super().display(line[: shutil.get_terminal_size().columns - 1], pos)
        elif self._cell is not None:
            self._cell.update({"text/plain": line}, raw=True)
        else:
            print(line, file=self.fp, flush=True)

    @override
    def close(self) -> None:
        """Draw the last state."""
        if not self.disable and not self._overwrites:  # on a terminal tqdm itself does so
            is_in_the_file = self._cell is None and self.n == self.last_print_n
            if not is_in_the_file:
                self.display()
        self._open.discard(self)
        super().close()


_draw_bar = tqdm.__init__


def hide_other_bars() -> None:
    """Switch off the progress bars of all other libraries; `Progress` stays. Safe to call twice.

    tqdm draws them all, but not every one has a setting: vLLM's for the CUDA graphs that it
    captures and the kernels that it compiles ask nobody. So they end where every bar begins.
    """
    tqdm.__init__ = _init_hidden  # pyright: ignore[reportAttributeAccessIssue]


def _init_hidden(bar: tqdm, *arguments: Any, **settings: Any) -> None:
    """In the place of ``tqdm.__init__``: a bar that is not the course's own draws nothing."""
    if not isinstance(bar, Progress):
        settings["disable"] = True
    _draw_bar(bar, *arguments, **settings)


class _Cell(Protocol):
    """A display of a notebook that can be replaced: IPython's DisplayHandle."""

    def update(self, obj: object, **options: bool) -> None: ...


def _notebook_display() -> _Cell | None:
    """A new display below the cell that runs; None outside of a notebook."""
    if "IPython" not in sys.modules:  # a kernel has loaded it; a command need not
        return None
    from IPython.core.getipython import get_ipython
    from IPython.display import display

    if getattr(get_ipython(), "kernel", None) is None:
        return None
    return display({"text/plain": ""}, raw=True, display_id=True)
