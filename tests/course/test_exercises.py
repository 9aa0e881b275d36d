"""The self-checks tell right from wrong, know an answer not yet written, and stop no notebook."""

import json
import re

import nbformat
import pytest
import torch
from exercise_answers import RIGHT, WRONG, find_bid, report, solution, told_what_fails

from helpers.course.by_hand import grpo_loss
from helpers.course.exercises import CHECKS, check, check_agent, checked
from helpers.settings.paths import NOTEBOOKS, RECORDINGS, ROOT
from helpers.settings.profiles import PROFILES


def answers_nothing(seen, turn):
    return None


def clicks_the_last(seen, turn):
    return f"click('{seen.elements[-1].bid}')"


def breaks(seen, turn):
    return seen.nonsense


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (answers_nothing, r"todo"),
        (
            clicks_the_last,
            r"try again\. \d+ of 20 .* Seed 10\d\d: Click .* It did: click",
        ),
        (breaks, r"try again\. For \(.+\) it raises AttributeError: .*nonsense"),
        (solution("n06-p2", "my_agent"), r"ok\. 20 of 20 validation pages of unicode-test solved"),
    ],
    ids=["todo", "wrong", "raises", "right"],
)
def test_an_agent_is_played_in_real_browsers(capsys, browsers, agent, words):
    check_agent("6.3", agent, "unicode-test", browsers)
    assert re.fullmatch(rf"Exercise 6\.3: {words}.*\n", capsys.readouterr().out)


def said(capsys, number, answer):
    """What `check` prints about an answer."""
    check(number, answer)
    return capsys.readouterr().out


def test_every_check_has_right_and_wrong_answers_here():
    assert set(CHECKS) == set(RIGHT) == set(WRONG)
    assert all(len(answers) >= 2 for answers in WRONG.values())


@pytest.mark.parametrize("number", CHECKS)
def test_a_right_answer_is_ok(capsys, number):
    assert said(capsys, number, RIGHT[number]) == f"Exercise {number}: ok\n"


@pytest.mark.parametrize(
    ("number", "answer"),
    [(number, answer) for number, answers in WRONG.items() for answer in answers],
)
def test_a_wrong_answer_is_told_what_fails(capsys, number, answer):
    assert re.match(told_what_fails(number), said(capsys, number, answer))


@pytest.mark.parametrize("answer", [None, lambda *_: None], ids=["no function", "returns None"])
@pytest.mark.parametrize("number", CHECKS)
def test_what_is_not_written_yet_is_todo(capsys, number, answer):
    assert said(capsys, number, answer) == f"Exercise {number}: todo\n"


@pytest.mark.parametrize("number", CHECKS)
@pytest.mark.parametrize("result", [0, "", [], (1, 2), object(), float("nan")])
def test_any_other_result_is_try_again(capsys, number, result):
    assert "try again" in said(capsys, number, lambda *_: result)


@pytest.mark.parametrize("number", [*CHECKS, "9.9"])
def test_an_answer_that_raises_stops_nothing(capsys, number):
    def stops(*_):
        raise SystemExit("stop")

    def takes_no_arguments_and_fails():
        return undefined_name  # noqa: F821

    assert "try again" in said(capsys, number, stops)
    assert "try again" in said(capsys, number, takes_no_arguments_and_fails)


def test_an_answer_that_raises_is_told_for_which_case(capsys):
    def first(elements, role, name):
        return next(e.bid for e in elements if e.role == "no such role")

    words = r"Exercise 1\.2: try again\. For \(\[\[\w+\] .*\) it raises StopIteration\n"
    assert re.fullmatch(words, said(capsys, "1.2", first))


def test_a_result_that_no_check_can_look_at_is_shown(capsys):
    words = r"Exercise 2\.3: try again\. For \(\) it returns \(1, 2\): ValueError: .*\n"
    assert re.fullmatch(words, said(capsys, "2.3", lambda: (1, 2)))


def test_a_notebook_goes_on_with_an_answer_that_is_ok(capsys):
    def ours(elements, role, name):
        return find_bid(elements, role, name)

    assert checked("1.2", find_bid, ours) is find_bid
    assert capsys.readouterr().out == "Exercise 1.2: ok, and the notebook goes on with yours\n"
    for answer in (None, lambda *_: None, *WRONG["1.2"]):
        assert checked("1.2", answer, ours) is ours
        verdict, goes_on = capsys.readouterr().out.splitlines()
        assert re.match(r"Exercise 1\.2: (todo|try again)", verdict)
        assert goes_on == "The notebook goes on with the printed solution."


@pytest.mark.parametrize(
    "kind",
    [list, tuple, torch.tensor, lambda numbers: [torch.tensor(number) for number in numbers]],
    ids=["a list", "a tuple", "a tensor", "a list of tensors"],
)
def test_advantages_of_any_type_are_ok_and_the_toy_of_notebook_1_learns_with_them(capsys, kind):
    def advantages(rewards):
        return kind(RIGHT["1.1"](rewards))

    assert said(capsys, "1.1", advantages) == "Exercise 1.1: ok\n"
    notebook = nbformat.read(next(NOTEBOOKS.glob("01_*.ipynb")), as_version=4)
    toy = next(cell.source for cell in notebook.cells if cell.id == "c04d")
    defined = {"profile": PROFILES["cpu"], "UPDATES": 30, "advantages": advantages}
    exec(toy, defined)
    assert defined["curve"][0][1] < 0.2
    assert defined["curve"][-1][1] > 0.9


def test_the_printed_loss_is_the_one_that_the_notebook_falls_back_on():
    torch.manual_seed(0)
    logprobs, old = -torch.rand(3, 5), -torch.rand(3, 5)
    mask = torch.tensor([[1, 1, 0, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]])
    arguments = (logprobs, old, torch.randn(3), mask, 0.2)
    assert torch.allclose(RIGHT["5.1"](*arguments), grpo_loss(*arguments))


def test_an_answer_cannot_spoil_the_cases(capsys):
    def spoils(elements, role, name):
        elements.clear()

    check("1.2", spoils)
    capsys.readouterr()
    assert said(capsys, "1.2", find_bid) == "Exercise 1.2: ok\n"


def test_the_notebook_reports_the_recorded_projects_and_names_them():
    notebook = nbformat.read(next(NOTEBOOKS.glob("06_*.ipynb")), as_version=4)
    cells = {cell.id: cell for cell in notebook.cells}
    printed = "".join(output.text for output in cells["n06-p3"].outputs)
    recorded = sorted((RECORDINGS / "project").glob("*/result.json"))
    assert len(recorded) == 3
    for path in recorded:
        sentence = report(json.loads(path.read_text()))
        assert f"{path.parent.relative_to(ROOT)}: {sentence}\n" in printed
        assert f"`{path.parent.name}`" in cells["n06-p4"].source
