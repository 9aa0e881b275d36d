"""What a notebook defines before one of its exercises, and what the exercise's check says of it.

So the printed solutions are tested, and so a teacher's marks are made: nothing of the notebook runs
but its definitions, so no model is loaded and nothing is trained.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
from nbformat import NotebookNode

from helpers.course import exercises as checks
from helpers.settings.language import say
from helpers.settings.paths import NOTEBOOKS, chinese_of, notebook_paths

if TYPE_CHECKING:
    from helpers.browser.models import Client

CHECK_CALL = re.compile(r'\b(?P<check>check\w*)\("(?P<number>[\d.]+)", (?P<names>[\w, ]+)')
CLIENTS = "clients"


@dataclass(frozen=True)
class Exercise:
    """An exercise of the course, as its own notebook has it."""

    notebook: Path
    cell: str
    """The id of the cell in which the reader writes."""
    number: str
    check: str
    """Which function of `helpers.course.exercises` judges it."""
    names: tuple[str, ...]
    """What it is given after the number: the answer first."""

    @property
    def title(self) -> str:
        """ "4.2" in the six; in a notebook beside the thread its number is its own."""
        return self.number if "." in self.number else f"{self.notebook.stem} {self.number}"

    @property
    def plays(self) -> bool:
        """Whether the answer is played in a browser."""
        return CLIENTS in self.names


def python_of(cell: NotebookNode) -> str:
    """The code of a cell, with ``pass`` in the place of what only IPython understands."""
    return re.sub(r"^(\s*)[!%].*", r"\1pass", "".join(cell["source"]), flags=re.MULTILINE)


@functools.cache
def cells_of(path: Path) -> list[NotebookNode]:
    """The cells of one of the course's own notebooks."""
    return nbformat.read(path, as_version=4).cells


def exercises() -> list[Exercise]:
    """The exercises of all notebooks, in their order."""
    return [
        _exercise(path, cell.id, call)
        for path in notebook_paths(NOTEBOOKS)
        for cell in cells_of(path)
        if cell.cell_type == "code"
        for call in CHECK_CALL.finditer(cell.source)
    ]


def _exercise(path: Path, cell: str, call: re.Match[str]) -> Exercise:
    names = tuple(call["names"].split(", "))
    if call["check"] == "checked":  # what the notebook goes on with otherwise is not looked at
        return Exercise(path, cell, call["number"], "check", names[:1])
    return Exercise(path, cell, call["number"], call["check"], names)


def exercises_of(cells: Sequence[NotebookNode]) -> list[Exercise]:
    """The exercises of the course's notebook that these cells come from, in either language; none
    where they come from no notebook of the course."""
    given = _code_of(cells)
    alike = {
        path: len(given & (_code_of(cells_of(path)) | _code_of(cells_of(chinese_of(path)))))
        for path in notebook_paths(NOTEBOOKS)
    }
    source = max(alike, key=lambda path: alike[path])
    if not alike[source]:
        return []
    return [exercise for exercise in exercises() if exercise.notebook == source]


def _code_of(cells: Sequence[NotebookNode]) -> set[tuple[str | None, str]]:
    """(id, source) of each code cell."""
    return {(cell.get("id"), cell.source) for cell in cells if cell.cell_type == "code"}


def definitions(cells: Iterable[NotebookNode]) -> dict[str, Any]:
    """The names that code cells import and define, without what they compute.

    Raises whatever a definition raises, and SyntaxError where a cell is no Python.
    """
    defined: dict[str, Any] = {}
    for cell in cells:
        if cell.cell_type == "code":
            kept = [node for node in ast.parse(python_of(cell)).body if _is_definition(node)]
            exec(compile(ast.Module(kept, []), str(cell.id), "exec"), defined)
    return defined


def _is_definition(node: ast.stmt) -> bool:
    """Whether a statement only names things: no browser, no model, no file."""
    if isinstance(node, ast.Assign):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef)


def verdict(exercise: Exercise, cells: Sequence[NotebookNode], clients: Sequence[Client]) -> str:
    """What the check prints about the answer in the cells of a notebook: "todo", "try again. ..."
    or "ok".

    ``clients``: browser sessions, for an exercise that `plays`. The check is the course's own,
    whatever the notebook has made of it; a cell that is not there any more is "todo".
    """
    place = next((i for i, cell in enumerate(cells) if cell.id == exercise.cell), None)
    if place is None:
        return "todo"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            defined = definitions(cells[: place + 1])
        except (Exception, SystemExit) as error:
            return f"try again. {type(error).__name__}: {error}"
        given = [clients if name == CLIENTS else defined.get(name) for name in exercise.names]
        getattr(checks, exercise.check)(exercise.number, *given)
    last = printed.getvalue().strip().splitlines()[-1]
    return last.removeprefix(say("Exercise {number}: ", number=exercise.number))
