"""Each printed solution is right in its notebook's own namespace, at the place where it stands."""

import ast
import re
from pathlib import Path

import nbformat
import pytest
from cell_code import python_of

from helpers.course.exercises import CHECKS, check
from helpers.settings.paths import NOTEBOOKS

ASKED = re.compile(r'\bcheck(?:ed)?\("(\d\.\d)", (\w+)')
SOLUTION = re.compile(r"<summary>Solution</summary>\n\n```python\n(.*?)```", re.DOTALL)


def cells(path):
    return nbformat.read(path, as_version=4).cells


def exercises():
    """(notebook, place, number, name) of each exercise that `CHECKS` judges."""
    for path in sorted(NOTEBOOKS.glob("0*.ipynb")):
        for place, cell in enumerate(cells(path)):
            if cell.cell_type == "code":
                for number, name in ASKED.findall(cell.source):
                    yield path, place, number, name


def is_definition(node):
    """Whether a statement only names things: no browser, no model, no file."""
    if isinstance(node, ast.Assign):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef)


def namespace(path: Path, place: int) -> dict:
    """What a notebook has imported and defined before a cell, without what it has computed."""
    defined: dict = {}
    for cell in cells(path)[:place]:
        if cell.cell_type == "code":
            kept = [node for node in ast.parse(python_of(cell)).body if is_definition(node)]
            exec(compile(ast.Module(kept, []), cell.id, "exec"), defined)
    return defined


@pytest.mark.parametrize(
    ("path", "place", "number", "name"),
    [pytest.param(*found, id=found[2]) for found in exercises()],
)
def test_a_printed_solution_is_ok_where_it_is_printed(capsys, path, place, number, name):
    below = cells(path)[place + 1].source
    defined = namespace(path, place)
    exec(SOLUTION.search(below)[1], defined)
    capsys.readouterr()
    check(number, defined[name])
    assert capsys.readouterr().out == f"Exercise {number}: ok\n"


def test_every_exercise_has_a_place():
    assert {number for _, _, number, _ in exercises()} == set(CHECKS)
