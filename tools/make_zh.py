"""Write the Chinese notebooks from the English ones and their translations: ``make zh``.

    python tools/make_zh.py            write notebooks/zh/*.ipynb and notebooks/zh/more/*.ipynb
    python tools/make_zh.py --sources  print what is to be translated: cells without a translation,
                                       cells whose English text has changed since, and strings and
                                       comments of the code

notebooks/zh/0N.md, or notebooks/zh/more/NAME.md, holds the Chinese prose cell by cell; before each
stands ``<!-- cell ID HASH -->`` with the id of the English cell and the hash of the text that was
translated. Below ``<!-- code -->`` follow the strings and the comments of its code, line by line:

    - {n} of {len(pages)} pages solved           in the English notebook
    + {len(pages)} 个网页中解决了 {n} 个            in the Chinese one
    = Goal: Submit the form.                     the same in both
    - xlabel=update                              a word that stands elsewhere in the code, too, as
    + 更新                                         a key perhaps: with what is before its quotes

What several notebooks say is in notebooks/zh/every_notebook.txt. Nothing else of the code differs,
but that the set-up names the language. A Chinese notebook has a run of its own: its outputs stay as
long as its code does, then ``make notebooks LANGUAGE=zh`` executes it again.
"""

import hashlib
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import nbformat
import typer
from nbformat import NotebookNode

from helpers.command_line import run
from helpers.course.handed_in import python_of
from helpers.settings.paths import NOTEBOOKS, chinese_of, notebook_paths, shown
from tools.set_repository import BADGES
from tools.set_repository import MARK as MARK_OF_BADGES

SHORT = re.compile(r"(?<=^\d\d)_.*")  # what the name of a translation leaves out of 01_...
MARK = re.compile(r"^<!-- cell (?P<id>[\w-]+) (?P<hash>\w{8}) -->\n", re.MULTILINE)
MARK_OF_CODE = "<!-- code -->\n"
COMMON = NOTEBOOKS / "zh" / "every_notebook.txt"
# Where a number of the prose comes from (tests/docs/test_numbers_in_prose.py): nobody reads it.
ORIGIN = re.compile(r"\s*<!-- (?:shown by|set in) [^>]+ -->")
SET_UP = re.compile(r"^profile = setup\((.+)\)$", re.MULTILINE)
SET_UP_ZH = r'profile = setup(\1, language="zh")'
QUOTE = re.compile(r"""[a-zA-Z]*("{3}|'{3}|"|')""")
CONTEXT = re.compile(r"\w+[=(]$")
LABELS = ("xlabel=", "ylabel=", "label=")
PLACEHOLDER = re.compile(r"\{[^{}]*\}")
LETTER = re.compile(r"[^\W\d_]")
FULL_WIDTH = ("，", "。", "、", "；", "：", "！", "？", "）", "”")  # no space stands after these

Place = tuple[int, int]
"""A line, from 1, and a column, from 0."""


class Piece(NamedTuple):
    """One line of a string or a comment in a cell of code, without the spaces around it."""

    text: str
    line: int
    """Its line in the cell, from 0."""
    start: int
    end: int
    """Its columns in that line."""
    context: str
    """The name before its quotation mark, such as ``xlabel=`` or ``print(``, if there is one."""

    @property
    def is_read(self) -> bool:
        """Whether a reader sees it: a comment, a label, or more than one word of a string."""
        words = self.text
        while PLACEHOLDER.search(words):  # the inner ones first
            words = PLACEHOLDER.sub("", words)
        is_text = words.startswith("#") or self.context in LABELS or " " in words.strip()
        return is_text and bool(LETTER.search(words))

    def known_as(self, known: dict[str, str]) -> str | None:
        """Under which of its names a translation has it."""
        names = (f"{self.context}{self.text}", self.text)
        return next((name for name in names if name in known), None)


# Prose


def text_hash(text: str) -> str:
    """The eight letters that say which English text was translated; its badges are nobody's text
    (tools/set_repository.py writes them), and neither are the marks of where its numbers are."""
    said = ORIGIN.sub("", BADGES.sub(MARK_OF_BADGES, text))
    return hashlib.sha256(said.encode()).hexdigest()[:8]


def translation_of(source: Path) -> Path:
    """Where the translation of an English notebook is."""
    return chinese_of(source).with_name(f"{SHORT.sub('', source.stem)}.md")


def read_translation(path: Path) -> dict[str, tuple[str, str]]:
    """{cell id: (hash of the English text, Chinese text)}."""
    if not path.exists():
        return {}
    prose, _, _ = path.read_text(encoding="utf-8").partition(MARK_OF_CODE)
    parts = MARK.split(prose)[1:]
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


# Strings and comments of the code


def literals(code: str) -> Iterator[tuple[Place, Place]]:
    """Where each string and each comment of some code begins and ends."""
    depth = 0
    start = (1, 0)
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        kind = tokenize.tok_name[token.type]
        if kind == "FSTRING_START":  # from Python 3.12 on an f-string is many tokens
            start = start if depth else token.start
            depth += 1
        elif kind == "FSTRING_END":
            depth -= 1
            if depth == 0:
                yield start, token.end
        elif depth == 0 and kind in ("STRING", "COMMENT"):
            yield token.start, token.end


def pieces(cell: NotebookNode) -> list[Piece]:
    """The strings and comments of a cell, line by line, without quotation marks."""
    found = []
    lines = cell.source.split("\n")
    for (first, begin), (last, end) in literals(python_of(cell)):
        quote = QUOTE.match(lines[first - 1], begin)
        context = CONTEXT.search(lines[first - 1][:begin])
        for number in range(first - 1, last):
            line = lines[number]
            left = begin if number == first - 1 else 0
            right = end if number == last - 1 else len(line)
            if quote and number == first - 1:
                left = quote.end()
            if quote and number == last - 1:
                right -= len(quote[1])
            text = line[left:right].strip()
            if text:
                start = line.index(text, left)
                name = context[0] if context and quote and number == first - 1 else ""
                found.append(Piece(text, number, start, start + len(text), name))
    return found


def pieces_of(source: Path) -> list[Piece]:
    """Those of all code cells of a notebook."""
    cells = nbformat.read(source, as_version=4).cells
    return [piece for cell in cells if cell.cell_type == "code" for piece in pieces(cell)]


def read_code(path: Path) -> dict[str, str]:
    """{English piece: Chinese piece}; the same twice where it stays English."""
    if not path.exists():
        return {}
    known = {}
    english = ""
    _, _, code = path.read_text(encoding="utf-8").partition(MARK_OF_CODE)
    for line in code.splitlines():
        mark, text = line[:2], line[2:].strip(" ")
        if mark == "- ":
            english = text
        if mark == "= ":
            known[text] = text
        if mark == "+ " and text:
            known[english] = text
    return known


def untranslated(source: Path) -> list[str]:
    """What a reader sees of a notebook's code and no translation has, each once."""
    known = read_code(COMMON) | read_code(translation_of(source))
    found = [piece for piece in pieces_of(source) if piece.is_read and not piece.known_as(known)]
    return list(dict.fromkeys(piece.text for piece in found))


def unused(source: Path) -> list[str]:
    """What the translation of a notebook has, and its code no more."""
    known = read_code(translation_of(source))
    used = {piece.known_as(known) for piece in pieces_of(source)}
    return [text for text in known if text not in used]


def translated_code(cell: NotebookNode, known: dict[str, str]) -> str:
    """The code of a cell with its pieces in Chinese."""
    lines = cell.source.split("\n")
    for piece in reversed(pieces(cell)):
        line = lines[piece.line]
        name = piece.known_as(known)
        chinese = known[name] if name else piece.text
        before, after = line[: piece.start], line[piece.end :]
        if chinese.endswith(FULL_WIDTH):
            after = after.lstrip(" ")
        lines[piece.line] = f"{before}{chinese}{after}"
    return SET_UP.sub(SET_UP_ZH, "\n".join(lines))


# The notebooks


def translated(source: Path) -> NotebookNode:
    """The Chinese notebook of an English one; KeyError where a cell has no translation.

    It has the outputs of the Chinese notebook that is there, if that has the same code; else none.
    """
    notebook = nbformat.read(source, as_version=4)
    prose = read_translation(translation_of(source))
    code = read_code(COMMON) | read_code(translation_of(source))
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            _, cell.source = prose[cell.id]
        if cell.cell_type == "code":
            cell.source = translated_code(cell, code)
            cell.outputs = []
            cell.execution_count = None
    take_outputs(notebook, chinese_of(source))
    return notebook


def take_outputs(notebook: NotebookNode, path: Path) -> None:
    """Give a notebook the outputs of the one in a file, if both have the same code."""
    if not path.exists():
        return
    ours = code_cells(notebook)
    theirs = code_cells(nbformat.read(path, as_version=4))
    if [(cell.id, cell.source) for cell in ours] == [(cell.id, cell.source) for cell in theirs]:
        for one, other in zip(ours, theirs, strict=True):
            one.outputs = other.outputs
            one.execution_count = other.execution_count


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """The cells that are executed."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def is_executed(notebook: NotebookNode) -> bool:
    """Whether every cell of code was run."""
    return all(cell.execution_count for cell in code_cells(notebook))


def print_sources(source: Path, cells: list[str], code: list[str]) -> None:
    """Print what is to be translated as it shall stand in the file of translations."""
    for cell in nbformat.read(source, as_version=4).cells:
        if cell.id in cells:
            text = ORIGIN.sub("", cell.source)
            print(f"<!-- cell {cell.id} {text_hash(cell.source)} -->\n{text}\n")
    for text in code:
        print(f"- {text}\n+ ")


def report(source: Path) -> tuple[list[str], list[str]]:
    """Print what is missing in the translation of a notebook; returns cells, and pieces of code."""
    cells, code = outdated(source), untranslated(source)
    missing = [f"translate {', '.join(cells)}"] if cells else []
    if code:
        missing.append(f"{len(code)} strings and comments of the code")
    if unused(source):
        missing.append(f"take out {unused(source)}")
    if missing:
        print(f"{source.name}: {'; '.join(missing)} in {shown(translation_of(source)).as_posix()}")
    return cells, code


def main(
    sources: Annotated[
        bool, typer.Option("--sources", help="Print what is to be translated, and write nothing.")
    ] = False,
) -> int:
    """Write the Chinese notebooks from the English ones and their translations."""
    complete = True
    for source in notebook_paths():
        cells, code = report(source)
        complete = complete and not (cells or code)
        if sources:
            print_sources(source, cells, code)
        elif not cells:
            write(source)
    return 0 if complete else 1


def write(source: Path) -> None:
    """Write the Chinese notebook of an English one, and say where it has to be executed."""
    twin = chinese_of(source)
    twin.parent.mkdir(exist_ok=True)
    notebook = translated(source)
    nbformat.write(notebook, twin)
    begin = SHORT.sub("", source.stem)
    to_do = "" if is_executed(notebook) else f": make notebooks LANGUAGE=zh NB={begin}"
    print(f"{shown(twin).as_posix()}{to_do}")


if __name__ == "__main__":
    sys.exit(run(main))
