"""The parser that notebook 2 grows: each version repairs something, the last one everything."""

import random
import re

import nbformat
import pytest

from helpers.browser.actions import ACTIONS, parse_action
from helpers.settings.paths import NOTEBOOKS

VERSIONS = ("c26", "c28", "c30", "n02-p4", "n02-p6")  # the cells that hold them
PIECES = (
    *("click", "fill", "noop", "select_option", "(", ")", ",", " ", "[", "]", "x", "é"),
    *("'13'", "'15'", '"a"', "'it\\'s'", '"\\n"', "12", "-3.5", "007", "['a', 'b']", "[]", "''"),
    *("'", "\\", "\n", "Action:", "goto", "None", "click('13')", "noop()"),
)


@pytest.fixture(scope="module")
def said():
    return []


@pytest.fixture(scope="module")
def notebook(said):
    """What the cells of the versions define; what they print is in ``said``."""
    path = next(NOTEBOOKS.glob("02_*.ipynb"))
    sources = {cell.id: cell.source for cell in nbformat.read(path, as_version=4).cells}

    def keep(*parts):
        said.append(" ".join(map(str, parts)))

    defined = {"re": re, "ACTIONS": ACTIONS, "print": keep}
    for cell in VERSIONS:
        exec(sources[cell], defined)
    return defined


def test_each_version_gets_more_right_and_the_last_one_all(notebook, said):
    counts = re.findall(
        r"^(naive|version \d): (\d+) of (\d+) right$", "\n".join(said), re.MULTILINE
    )
    right = [int(count) for _, count, _ in counts]
    assert [name for name, _, _ in counts] == ["naive", *(f"version {i}" for i in range(1, 6))]
    assert right == sorted(set(right))
    assert right[-1] == len(notebook["BREAKING"]) == int(counts[-1][2])


def test_the_last_version_says_what_the_parser_of_the_course_says(notebook):
    draw = random.Random(1)
    kinds = set()
    for _ in range(20_000):
        answer = "".join(draw.choices(PIECES, k=draw.randint(1, 7)))
        if draw.random() < 0.6:
            values = ", ".join(draw.choices(PIECES[12:23], k=draw.randint(0, 3)))
            answer = f"{draw.choice([*ACTIONS, 'goto'])}({values})"
        theirs = parse_action(answer, notebook["BIDS"])
        if "must lie between" in theirs.reason:
            continue  # the limits of numbers are the course's alone
        assert notebook["our_parse"](answer, notebook["BIDS"]) == (
            theirs.kind,
            theirs.action or None,
        )
        kinds.add(theirs.kind)
    assert len(kinds) == 6


def test_the_breaking_answers_become_what_the_notebook_says(notebook):
    for answer, (right, _) in notebook["BREAKING"].items():
        assert (parse_action(answer, notebook["BIDS"]).action or None) == right
