"""Write the Chinese notebooks from the English ones and their translations: ``make zh``.

    python tools/make_zh.py            notebooks/zh/0N_*.ipynb, from notebooks/0N_*.ipynb and notebooks/zh/0N.md
    python tools/make_zh.py --sources  print what is not translated yet, or was translated from another text

A translation holds the prose cell by cell; before each stands ``<!-- cell ID HASH -->`` with the id of the English cell and the
hash of the text that was translated. Code, outputs and metadata are those of the English notebook, so there is one run of each.
"""

import argparse
import hashlib
import re
import sys
from pathlib import Path

import nbformat

from helpers.settings.paths import NOTEBOOKS

MARK = re.compile(r"^<!-- cell (?P<id>[\w-]+) (?P<hash>\w{8}) -->\n", re.MULTILINE)


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def read_translation(path: Path) -> dict[str, tuple[str, str]]:
    """{cell id: (hash of the English text, Chinese text)}."""
    if not path.exists():
        return {}
    parts = MARK.split(path.read_text(encoding="utf-8"))[1:]
    return {
        cell: (known, text.strip())
        for cell, known, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    }


def outdated(source: Path) -> list[str]:
    """Ids of the English cells whose translation is missing or was made from another text."""
    known = read_translation(NOTEBOOKS / "zh" / f"{source.name[:2]}.md")
    cells = [
        cell for cell in nbformat.read(source, as_version=4).cells if cell.cell_type == "markdown"
    ]
    return [cell.id for cell in cells if known.get(cell.id, ("", ""))[0] != text_hash(cell.source)]


def translated(source: Path) -> nbformat.NotebookNode:
    """The English notebook with the prose of its translation; KeyError where a cell has none."""
    notebook, known = (
        nbformat.read(source, as_version=4),
        read_translation(NOTEBOOKS / "zh" / f"{source.name[:2]}.md"),
    )
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = known[cell.id][1]
    return notebook


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sources", action="store_true")
    options, failed = parser.parse_args(), 0
    for source in sorted(NOTEBOOKS.glob("0*.ipynb")):
        old = outdated(source)
        if old:
            failed = 1
            print(f"{source.name}: translate {', '.join(old)} in notebooks/zh/{source.name[:2]}.md")
        if options.sources:
            cells = {cell.id: cell.source for cell in nbformat.read(source, as_version=4).cells}
            for cell in old:
                print(f"<!-- cell {cell} {text_hash(cells[cell])} -->\n{cells[cell]}\n")
        elif not old:
            nbformat.write(translated(source), NOTEBOOKS / "zh" / source.name)
            print(f"notebooks/zh/{source.name}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
