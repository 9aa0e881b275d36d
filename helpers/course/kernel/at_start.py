"""The extension as a kernel of .venv loads it when it starts, before any cell has run."""

import sys
from typing import Any

from helpers.course import kernel


def load_ipython_extension(shell: Any) -> None:
    """Load the extension, and forget that ``helpers`` was imported.

    The notebook may be one of another checkout: its set-up cell then puts that one first on the
    path, and imports its ``helpers``.
    """
    kernel.load_ipython_extension(shell)
    for name in list(sys.modules):
        if name.partition(".")[0] == "helpers":
            del sys.modules[name]
