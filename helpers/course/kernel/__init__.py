"""How a kernel of the course speaks to a reader: an extension of IPython.

A cell that is silent for long shows that it works, a cell whose names are not there yet says what
to run first, and a cell that was stopped leaves one line. `make setup` has every kernel of .venv
load it (``etc/ipython/ipython_kernel_config.py``, `at_start`), so that it is there before any cell
has run; elsewhere, as on Colab, the set-up cell does. A cell that fails still fails.

Standard library only, until something is to be shown.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from helpers.course.kernel.missing import explain_missing
from helpers.course.kernel.silence import SilenceLine
from helpers.settings.language import say


def load_ipython_extension(shell: Any) -> None:
    """What ``%load_ext helpers.course.kernel`` calls; a second call does nothing.

    ``shell``: IPython's. Without a kernel, in a terminal, nothing changes.
    """
    if KeyboardInterrupt in shell.custom_exceptions or getattr(shell, "kernel", None) is None:
        return
    shell.set_custom_exc((NameError, KeyboardInterrupt), _show_error)
    line = SilenceLine(shell)
    shell.events.register("pre_run_cell", line.cell_begins)
    shell.events.register("post_run_cell", line.cell_ends)


def _show_error(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    traceback: TracebackType | None,
    tb_offset: int | None = None,
) -> None:
    """Show a line or two in the place of a traceback, where they say more than it does."""
    if isinstance(error, KeyboardInterrupt):
        lines = [say("Stopped. What earlier cells made is still there; %tb shows where it was.")]
    else:
        lines = explain_missing(shell, error, traceback)
    if not lines:
        shell.showtraceback((kind, error, traceback), tb_offset=tb_offset)
        return
    # What %tb shows.
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, traceback
    shell._showtraceback(kind, error, lines)
