"""Write the Chinese notebooks from the English ones and their translations: ``make zh``.

    python tools/make_zh.py            write notebooks/zh/*.ipynb and notebooks/zh/more/*.ipynb
    python tools/make_zh.py --sources  print what is to be translated: cells without a translation,
                                       and cells whose English text has changed since

notebooks/zh/0N.md, or notebooks/zh/more/NAME.md, holds the Chinese prose cell by cell; before each
stands ``<!-- cell ID HASH -->`` with the id of the English cell and the hash of the text that was
translated. Code, outputs and metadata are those of the English notebook, so there is one run of
each.
"""

import hashlib
import re
import sys
from pathlib import Path
from typing import Annotated

import nbformat
import typer
from nbformat import NotebookNode

from helpers.command_line import run
from helpers.settings.paths import NOTEBOOKS, notebook_paths
from tools.set_repository import BADGES
from tools.set_repository import MARK as MARK_OF_BADGES

SHORT = re.compile(r"(?<=^\d\d)_.*")  # what the name of a translation leaves out of 01_...
MARK = re.compile(r"^<!-- cell (?P<id>[\w-]+) (?P<hash>\w{8}) -->\n", re.MULTILINE)


def text_hash(text: str) -> str:
    """The eight letters that say which English text was translated; its badges are nobody's text
    (tools/set_repository.py writes them)."""
    return hashlib.sha256(BADGES.sub(MARK_OF_BADGES, text).encode()).hexdigest()[:8]


def translation_of(source: Path) -> Path:
    """Where the Chinese prose of an English notebook is."""
    return chinese_of(source).with_name(f"{SHORT.sub('', source.stem)}.md")


def chinese_of(source: Path) -> Path:
    """Where the Chinese twin of an English notebook is."""
    folder = NOTEBOOKS / "zh"
    return (folder / "more" if source.parent.name == "more" else folder) / source.name


def read_translation(path: Path) -> dict[str, tuple[str, str]]:
    """{cell id: (hash of the English text, Chinese text)}."""
    if not path.exists():
        return {}
    parts = MARK.split(path.read_text(encoding="utf-8"))[1:]
    cells = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return {cell: (known, text.strip()) for cell, known, text in cells}


def outdated(source: Path) -> list[str]:
    """Ids of the English cells whose translation is missing or was made from another text."""
    known = read_translation(translation_of(source))
    found = []
    for cell in nbformat.read(source, as_version=4).cells:
        if cell.cell_type == "markdown":
            translated_from, _ = known.get(cell.id, ("", ""))
            if translated_from != text_hash(cell.source):
                found.append(cell.id)
    return found


def translated(source: Path) -> NotebookNode:
    """The English notebook with the prose of its translation; KeyError where a cell has none."""
    notebook = nbformat.read(source, as_version=4)
    known = read_translation(translation_of(source))
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            _, cell.source = known[cell.id]
    return notebook


def print_sources(source: Path, cells: list[str]) -> None:
    """Print cells as they shall stand in the file of translations, with their English text."""
    for cell in nbformat.read(source, as_version=4).cells:
        if cell.id in cells:
            print(f"<!-- cell {cell.id} {text_hash(cell.source)} -->\n{cell.source}\n")


def main(
    sources: Annotated[
        bool, typer.Option("--sources", help="Print what is to be translated, and write nothing.")
    ] = False,
) -> int:
    """Write the Chinese notebooks from the English ones and their translations."""
    complete = True
    for source in notebook_paths():
        cells = outdated(source)
        if cells:
            complete = False
            to_do = ", ".join(cells)
            translation = translation_of(source).relative_to(NOTEBOOKS.parent)
            print(f"{source.name}: translate {to_do} in {translation.as_posix()}")
        if sources:
            print_sources(source, cells)
        elif not cells:
            twin = chinese_of(source)
            twin.parent.mkdir(exist_ok=True)
            nbformat.write(translated(source), twin)
            print(twin.relative_to(NOTEBOOKS.parent).as_posix())
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(run(main))
