"""What the first cell of a notebook calls: it sees to it that this Python has the course.

Standard library only, until the packages of the course are here.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helpers.course.kernel import load_ipython_extension
from helpers.settings.language import VARIABLE
from helpers.settings.paths import ROOT

if TYPE_CHECKING:
    from helpers.settings.profiles import Profile

ONE_OF_OURS = "browsergym"  # a package that no host brings


def setup(
    notebook: str, fetched: Path, minutes: float | None = None, language: str = ""
) -> Profile:
    """Install what is missing where the notebook came alone (`prepare`), load the course's
    extension of the kernel, then print what the notebook runs on and return the profile
    (`helpers.course.banner.setup`).

    ``language``: that of the notebook, in which the course speaks without ``COURSE_LANGUAGE``.
    """
    if language:
        os.environ.setdefault(VARIABLE, language)
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    prepare(shell, fetched)
    if shell is not None:
        load_ipython_extension(shell)
    from helpers.course import banner

    return banner.setup(notebook, minutes)


def installed() -> bool:
    """Whether this Python has the packages of the course."""
    importlib.invalidate_caches()
    return importlib.util.find_spec(ONE_OF_OURS) is not None


def prepare(shell: Any, fetched: Path) -> None:
    """Install the course into this Python where the notebook came alone, as on Colab; elsewhere say
    in one sentence what is missing.

    ``shell``: IPython's, whose commands print into the cell. ``fetched``: where the set-up cell
    puts a course that it fetches. Exits where the packages are not there in the end.
    """
    script = ROOT / "scripts" / "setup.py"
    if fetched.resolve() in (ROOT, ROOT.parent):
        # It knows by itself what is done already.
        shell.system(f"{shlex.quote(sys.executable)} {shlex.quote(str(script))} --here")
        os.chdir(ROOT / "notebooks")
        if not installed():
            sys.exit("The course could not be installed: the lines above say why.")
    elif not installed():
        sys.exit(
            f"This kernel's Python, {sys.executable}, lacks the packages of the course: run `make "
            f"setup` in {ROOT} and choose the kernel of {ROOT / '.venv'}, or install them into "
            f"this one with `{sys.executable} {script} --here`."
        )
