"""Write the repository's name into every notebook's badges and set-up cell, and into CITATION.cff.

    make badges REPO=owner/name

Without a name the notebooks have no badges, and a set-up cell asks for the course's ZIP file where
a notebook has come alone. Any Python will do, without the course's environment: this file keeps to
the standard library and imports nothing of the repository. A later call with another name works
too. Nothing else in a file changes, not a byte.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# In a set-up cell; inside a notebook's JSON the quotation marks are escaped.
SETTING = re.compile(r'(REPOSITORY = \\?")([^"\\]*)')
# A line of a notebook's first cell, which ends with this mark, or is the mark alone. It begins
# where a line or a string of JSON does: to look from each letter of a picture on takes minutes.
MARK = "<!-- badges -->"
BADGES = re.compile(rf'(?<![^"\n])[^"\\\r\n]*{MARK}')
CITED = re.compile(r'^(?:# )?repository-code: ".*"', re.MULTILINE)
# What GitHub allows: an owner without leading or double hyphens, a name that is not "." or "..".
NAME = re.compile(r"[A-Za-z0-9](?:-?[A-Za-z0-9]){0,38}/(?!\.{1,2}$)[A-Za-z0-9_.-]{1,100}(?<!\.git)")


def files(root: Path = ROOT) -> list[Path]:
    """Where the name stands."""
    notebooks = root / "notebooks"
    return [
        root / "CITATION.cff",
        *sorted((notebooks / "zh").rglob("*.md")),
        *sorted((notebooks / "zh").rglob("*.ipynb")),
        *sorted(notebooks.glob("*.ipynb")),
        *sorted((notebooks / "more").glob("*.ipynb")),
    ]


def read(path: Path) -> str:
    """The text of a file with the ends of its lines as they are (``read_text`` changes them)."""
    return path.read_bytes().decode("utf-8")


def current(root: Path = ROOT) -> str:
    """The name that stands in the first notebook; empty where nobody has given it one."""
    first = sorted((root / "notebooks").glob("*.ipynb"))[0]
    return SETTING.findall(read(first))[0][1]


def badges(name: str, path: Path, root: Path = ROOT) -> str:
    """The line of badges in a notebook, or in the Chinese prose of one."""
    if not name:
        return MARK
    notebook = path
    if path.suffix == ".md":
        english = root / "notebooks" / path.parent.relative_to(root / "notebooks" / "zh")
        [notebook] = [
            path.parent / found.name
            for pattern in (f"{path.stem}.ipynb", f"{path.stem}_*.ipynb")
            for found in english.glob(pattern)
        ]
    file = f"{name}/blob/main/{notebook.relative_to(root).as_posix()}"
    colab = "https://colab.research.google.com"
    return (
        f"[![Open in Colab]({colab}/assets/colab-badge.svg)]({colab}/github/{file}) "
        "[![Source on GitHub](https://img.shields.io/badge/source-GitHub-black)]"
        f"(https://github.com/{file}) {MARK}"
    )


def named(path: Path, name: str, root: Path = ROOT) -> tuple[str, int]:
    """The text of a file with the name in it, and how many places differ from what is there."""
    places = {
        BADGES: lambda _: badges(name, path, root),
        SETTING: lambda found: found[1] + name,
    }
    if path.suffix == ".cff":
        address = f'repository-code: "https://github.com/{name}"'
        places = {CITED: lambda _: address if name else '# repository-code: ""'}
    text = read(path)
    count = 0
    for pattern, new in places.items():
        count += sum(new(found) != found[0] for found in pattern.finditer(text))
        text = pattern.sub(new, text)
    return text, count


def set_repository(name: str, root: Path = ROOT) -> int:
    """Write the name, or take it away where it is empty; returns how many places changed."""
    count = 0
    for path in files(root):
        text, changed = named(path, name, root)
        if changed:
            path.write_bytes(text.encode("utf-8"))
        count += changed
    return count


def main() -> None:
    """Take the name from the command line."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if not NAME.fullmatch(name):
        sys.exit(
            f"badges: {name!r} is no repository: give owner/name, "
            "for example `make badges REPO=octocat/browser-course`."
        )
    print(f"{set_repository(name)} places changed.")


if __name__ == "__main__":
    main()
