"""The exercise on eyes: the printed solution is right, and usual mistakes are told."""

import re

import nbformat
import pytest

from helpers.course.by_hand_eyes import square_of
from helpers.course.exercises import check_square
from helpers.settings.paths import NOTEBOOKS

PATH = NOTEBOOKS / "more" / "a_policy_with_eyes.ipynb"
SOLUTION = re.compile(r"<summary>Solution</summary>\n\n```python\n(.*?)```", re.DOTALL)


def printed():
    """What the folded solution of the notebook defines."""
    [text] = [
        found[1]
        for cell in nbformat.read(PATH, as_version=4).cells
        if (found := SOLUTION.search(cell.source))
    ]
    defined = {}
    exec(text, defined)
    return defined["my_square"]


def forgets_the_goal(answer):
    numbers = [int(number) for number in re.findall(r"\d+", answer)]
    return 8 * (numbers[1] // 30) + numbers[0] // 30 if numbers else None


def swaps_row_and_column(answer):
    square = square_of(answer)
    return None if square is None else 8 * (square % 8) + square // 8


def never_says_that_there_is_none(answer):
    square = square_of(answer)
    return 0 if square is None else square


def test_the_printed_solution_is_ok_and_is_gone_on_with(capsys):
    solution = printed()
    assert check_square("1", solution) is solution
    assert "Exercise 1: ok" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda answer: None, "todo"),
        (forgets_the_goal, "try again. For 'mouse_click(0, 75)' the answer is 0, not 16."),
        (swaps_row_and_column, "try again. For 'mouse_click(120, 150)' the answer is 20"),
        (never_says_that_there_is_none, "the answer is None, not 0."),
    ],
)
def test_any_other_is_told_why_and_ours_goes_on(capsys, answer, said):
    assert check_square("1", answer) is square_of
    assert said in capsys.readouterr().out
