"""Write the repository's name into every badge, link, clone command and set-up cell: ``make badges REPO=owner/name``.

Needs no environment: any Python will do. The name that stands there now is read from the first notebook, so a later call with
another name works too. Nothing else in a file changes, not a byte.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from helpers.settings.paths import ROOT

SETTING = r'REPO(?:SITORY)? = \\?"'  # in a set-up cell; inside a notebook's JSON the quotation mark is escaped
NAME = re.compile(r"[A-Za-z0-9](?:-?[A-Za-z0-9]){0,38}/(?!\.{1,2}$)[A-Za-z0-9_.-]{1,100}(?<!\.git)")


def files(root: Path = ROOT) -> list[Path]:
    """Where the name may stand. The first notebook comes last: until it is written, an interrupted call can be repeated."""
    notebooks = root / "notebooks"
    chinese = [*(notebooks / "zh").glob("*.md"), *(notebooks / "zh").glob("*.ipynb")]
    return [
        *sorted(root.glob("*.md")),
        *sorted(root.glob("*.cff")),
        *sorted(chinese),
        *sorted(notebooks.glob("*.ipynb"), reverse=True),
    ]


def places(name: str) -> re.Pattern:
    """Where a text means this repository; the same letters may stand by chance in the base64 of a picture."""
    return re.compile(
        rf"(github\.com/|\.com/github/|{SETTING}){re.escape(name)}(?=\.git\b|\.?(?![\w.-]))"
    )


def read(path: Path) -> str:
    return path.read_bytes().decode("utf-8")  # read_text would change the ends of lines


def current(root: Path = ROOT) -> str:
    """The name that stands in the first notebook."""
    return re.search(rf'{SETTING}([^"\\]+)', read(files(root)[-1]))[1]


def set_repository(new: str, root: Path = ROOT) -> int:
    """Write the name everywhere and return how many places changed. ValueError, and nothing written, where that is no good."""
    if not NAME.fullmatch(new):
        raise ValueError(
            f"{new!r} is no repository: give owner/name, for example `make badges REPO=octocat/browser-course`."
        )
    old = current(root)
    if new == old:
        return 0
    texts, count = {}, 0
    for path in files(root):
        text = read(path)
        texts[path], changed = places(old).subn(lambda found: found[1] + new, text)
        if changed and places(new).search(text):
            raise ValueError(
                f"{new} is another project that {path.name} links to: give the name of your own repository."
            )
        count += changed
    for path, text in texts.items():
        path.write_bytes(text.encode("utf-8"))
    return count


if __name__ == "__main__":
    try:
        print(f"{set_repository(sys.argv[1] if len(sys.argv) > 1 else '')} places changed.")
    except ValueError as error:
        sys.exit(f"badges: {error}")
