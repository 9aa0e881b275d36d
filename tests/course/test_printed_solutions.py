"""Each printed solution is right in its notebook's own namespace, at the place where it stands."""

import re

import nbformat
import pytest

from helpers.course.exercises import CHECKS, check
from helpers.course.handed_in import definitions, exercises

SOLUTION = re.compile(r"<summary>Solution</summary>\n\n```python\n(.*?)```", re.DOTALL)
JUDGED = [exercise for exercise in exercises() if exercise.number in CHECKS]


@pytest.mark.parametrize("exercise", JUDGED, ids=lambda exercise: exercise.number)
def test_a_printed_solution_is_ok_where_it_is_printed(capsys, exercise):
    cells = nbformat.read(exercise.notebook, as_version=4).cells
    place = next(i for i, cell in enumerate(cells) if cell.id == exercise.cell)
    defined = definitions(cells[:place])
    exec(SOLUTION.search(cells[place + 1].source)[1], defined)
    capsys.readouterr()
    check(exercise.number, defined[exercise.names[0]])
    assert capsys.readouterr().out == f"Exercise {exercise.number}: ok\n"


def test_every_exercise_has_a_place():
    assert {exercise.number for exercise in JUDGED} == set(CHECKS)
