"""Environment variables: which of them the server, its workers, Playwright's driver and Chromium
get.

A notebook's environment holds secrets, such as an HF_TOKEN, which a page that breaks out of
Chromium could read. So these are lists of what is needed, and whatever is not in them stays behind.
"""

import os
from collections.abc import Iterable

# Where programs, files and texts are found, and how text is written.
BROWSER = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "TZ",
    "LANG",
    "LANGUAGE",
    "LD_LIBRARY_PATH",
    "LOCALE_ARCHIVE",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_DIRS",
    "XDG_DATA_HOME",
    "COURSE_CHROMIUM",
)
BROWSER_FAMILIES = ("LC_", "FONTCONFIG_", "PLAYWRIGHT_", "NIX_LD")
# What Python itself and its arithmetic libraries read.
PYTHON_FAMILIES = ("PYTHON", "OMP_", "OPENBLAS_", "MKL_")


def for_python(**also: str) -> dict[str, str]:
    """What a Python process of ours gets of this process's variables, and those in ``also``."""
    names = _needed((*BROWSER_FAMILIES, *PYTHON_FAMILIES))
    return {name: os.environ[name] for name in names} | also


def drop_all_but_browser() -> None:
    """Take from this process, and so from all that it starts, what a browser does not need. For a
    worker, once it has imported its modules."""
    needed = set(_needed(BROWSER_FAMILIES))
    for name in set(os.environ) - needed:
        del os.environ[name]


def _needed(families: tuple[str, ...]) -> Iterable[str]:
    return [name for name in os.environ if name in BROWSER or name.startswith(families)]
