"""In its notebook's own namespace, at the place where an exercise stands, its printed solution is
ok, and the usual mistakes are told."""

import functools
import inspect
import re

import exercise_answers
import pytest
from exercise_answers import WRONG, told_what_fails

from helpers.course.exercises import CHECKS, check
from helpers.course.handed_in import cells_of, definitions, exercises

SOLUTION = re.compile(r"<summary>Solution</summary>\n\n```python\n(.*?)```", re.DOTALL)
JUDGED = [exercise for exercise in exercises() if exercise.number in CHECKS]


@functools.cache
def around(exercise):
    """What the notebook has defined where the exercise stands, and the text below its cell."""
    cells = cells_of(exercise.notebook)
    place = next(i for i, cell in enumerate(cells) if cell.id == exercise.cell)
    return definitions(cells[:place]), cells[place + 1].source


@pytest.mark.parametrize("exercise", JUDGED, ids=lambda exercise: exercise.number)
def test_a_printed_solution_is_ok_where_it_is_printed(capsys, exercise):
    before, text = around(exercise)
    defined = dict(before)
    exec(SOLUTION.search(text)[1], defined)
    capsys.readouterr()
    check(exercise.number, defined[exercise.names[0]])
    assert capsys.readouterr().out == f"Exercise {exercise.number}: ok\n"


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        pytest.param(exercise, answer, id=f"{exercise.number}-{answer.__name__}")
        for exercise in JUDGED
        for answer in WRONG[exercise.number]
    ],
)
def test_a_usual_mistake_is_told_where_the_exercise_stands(capsys, exercise, answer):
    before, _ = around(exercise)
    # What the notebook has defined goes before what the answers' own file has imported.
    defined = {**vars(exercise_answers), **before}
    exec(inspect.getsource(answer), defined)
    capsys.readouterr()
    check(exercise.number, defined[answer.__name__])
    assert re.match(told_what_fails(exercise.number), capsys.readouterr().out)


def test_every_exercise_has_a_place():
    assert {exercise.number for exercise in JUDGED} == set(CHECKS)
