"""Write the repository's name into every badge, link and set-up cell, and into CITATION.cff.

    make badges REPO=owner/name

Any Python will do, without the course's environment: this file keeps to the standard library and
imports nothing of the repository. The name that stands there now is read from the first notebook,
so a later call with another name works too. Nothing else in a file changes, not a byte.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# How the name begins in a set-up cell; inside a notebook's JSON the quotation mark is escaped.
SETTING = r'REPO(?:SITORY)? = \\?"'
# What stands there before anybody has given it a name. CITATION.cff names no repository then.
PLACEHOLDER = "OWNER/REPO"
CITED = re.compile(r"^(?:# )?repository-code:", re.MULTILINE)
# What GitHub allows: an owner without leading or double hyphens, a name that is not "." or "..".
NAME = re.compile(r"[A-Za-z0-9](?:-?[A-Za-z0-9]){0,38}/(?!\.{1,2}$)[A-Za-z0-9_.-]{1,100}(?<!\.git)")


def files(root: Path = ROOT) -> list[Path]:
    """Where the name may stand.

    The first notebook comes last: until it is written, an interrupted call can be repeated.
    """
    notebooks = root / "notebooks"
    chinese = [*(notebooks / "zh").glob("*.md"), *(notebooks / "zh").glob("*.ipynb")]
    return [
        *sorted(root.glob("*.md")),
        *sorted(root.glob("*.cff")),
        *sorted(chinese),
        *sorted(notebooks.glob("*.ipynb"), reverse=True),
    ]


def places(name: str) -> re.Pattern[str]:
    """Where a text means this repository, and not another one or the base64 of a picture."""
    return re.compile(
        rf"(github\.com/|\.com/github/|{SETTING}){re.escape(name)}(?=\.git\b|\.?(?![\w.-]))"
    )


def read(path: Path) -> str:
    """The text of a file with the ends of its lines as they are (``read_text`` changes them)."""
    return path.read_bytes().decode("utf-8")


def current(root: Path = ROOT) -> str:
    """The name that stands in the first notebook."""
    return re.findall(rf'{SETTING}([^"\\]+)', read(files(root)[-1]))[0]


def set_repository(new: str, root: Path = ROOT) -> int:
    """Write the name everywhere and return how many places changed.

    ValueError, before anything is written, where it is no name, or that of another project which
    the course links to: afterwards the two could not be told apart.
    """
    if not NAME.fullmatch(new):
        raise ValueError(
            f"{new!r} is no repository: give owner/name, "
            "for example `make badges REPO=octocat/browser-course`."
        )
    old = current(root)
    if new == old:
        return 0
    texts = {}
    count = 0
    for path in files(root):
        text = read(path)
        texts[path], changed = places(old).subn(lambda found: found[1] + new, text)
        if path.suffix == ".cff":
            field = "# repository-code:" if new == PLACEHOLDER else "repository-code:"
            texts[path] = CITED.sub(field, texts[path])
        names_others = changed or (path.parent == root and path.suffix == ".md")
        if names_others and places(new).search(text):
            raise ValueError(
                f"{new} is another project that {path.name} links to: "
                "give the name of your own repository."
            )
        count += changed
    for path, text in texts.items():
        path.write_bytes(text.encode("utf-8"))
    return count


def main() -> None:
    """Take the name from the command line."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    try:
        print(f"{set_repository(name)} places changed.")
    except ValueError as error:
        sys.exit(f"badges: {error}")


if __name__ == "__main__":
    main()
