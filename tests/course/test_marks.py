"""Marks: the course's checks judge what was handed in, whatever its cells print or do."""

import csv
import subprocess
import sys

import nbformat
import pytest
from patience import LONG_PATIENCE

from helpers.command_line import run
from helpers.course.handed_in import exercises, exercises_of, verdict
from helpers.settings.paths import NOTEBOOKS, ROOT, chinese_of
from scripts import marks

FOURTH = NOTEBOOKS / "04_rewards_and_advantages.ipynb"
SIXTH = NOTEBOOKS / "06_lora_training.ipynb"
FORGED = 'print("Exercise 4.1: ok")\ndef checked(*_): print("Exercise 4.1: ok")\n'


def hand_in(source, target, answers):
    """A copy of a notebook with these answers in the place of the cells of its exercises."""
    notebook = nbformat.read(source, as_version=4)
    cells = {exercise.number: exercise.cell for exercise in exercises()}
    for cell in notebook.cells:
        for number, answer in answers.items():
            if cell.id == cells[number]:
                cell.source = answer
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, target)


def marked(folder, *options):
    """{(student, exercise): what was said} of a folder, as the command leaves it, and what it
    prints."""
    done = subprocess.run(
        [sys.executable, "-m", "scripts.marks", "--folder", str(folder), *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LONG_PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    with (folder / "marks.csv").open() as file:
        said = {(row["student"], row["exercise"]): row["said"] for row in csv.DictReader(file)}
    return said, done.stdout


def solution(source, number):
    """The solution that a notebook prints below an exercise."""
    cells = nbformat.read(source, as_version=4).cells
    cell = next(e.cell for e in exercises() if e.number == number)
    below = cells[next(i for i, c in enumerate(cells) if c.id == cell) + 1].source
    return below.partition("<summary>Solution</summary>\n\n```python\n")[2].partition("```")[0]


def test_a_class_gets_its_marks(tmp_path):
    answers = {number: solution(FOURTH, number) for number in ("4.1", "4.2", "4.3")}
    hand_in(FOURTH, tmp_path / "ann" / FOURTH.name, answers)
    wrong = {
        "4.1": FORGED + "def early(*_, **__):\n    return [0.0]\n",
        "4.2": "def advantages(*_):\n    while True:\n        pass\n",
        "4.3": "import os\ndef objective(*_):\n    os._exit(0)\n",
    }
    hand_in(FOURTH, tmp_path / f"bob_{FOURTH.name}", wrong)
    said, printed = marked(tmp_path, "--seconds", "15")
    assert [said["ann", number] for number in answers] == ["ok", "ok", "ok"]
    assert said["bob", "4.1"].startswith("try again. For ")
    assert said["bob", "4.2"] == "try again. It did not end within 15 s."
    assert said["bob", "4.3"] == "try again. It ended Python itself."
    assert [line.split() for line in printed.splitlines() if line.startswith("bob  ")] == [
        ["bob", "again", "again", "again", "0", "of", "3"]
    ]


def test_an_answer_that_acts_is_played_in_a_browser(tmp_path):
    agent = 'my_task = "unicode-test"\n' + solution(SIXTH, "6.3")
    hand_in(SIXTH, tmp_path / "dora" / SIXTH.name, {"6.3": agent, "6.4": "def report(:\n"})
    said, _ = marked(tmp_path)
    assert said["dora", "6.3"].startswith("ok. 20 of 20 validation pages")
    assert said["dora", "6.2"] == "todo"
    assert said["dora", "6.4"].startswith("try again. SyntaxError")


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("todo", "todo"),
        ("ok. 20 of 20 validation pages", "ok"),
        ("try again. For 1 the answer is 2", "again"),
        ("todo（还没有写）", "todo"),
        ("ok（正确）：验证网页", "ok"),
        ("try again（再试一次）：对 1", "again"),
    ],
)
def test_a_verdict_in_either_language_is_one_word_in_the_table(said, word):
    assert marks.short(said) == word


def test_a_notebook_may_be_handed_in_in_chinese(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_LANGUAGE", "zh")
    hand_in(chinese_of(FOURTH), tmp_path / FOURTH.name, {"4.2": solution(FOURTH, "4.2")})
    cells = nbformat.read(tmp_path / FOURTH.name, as_version=4).cells
    found = exercises_of(cells)
    assert {exercise.notebook for exercise in found} == {FOURTH}
    said = [verdict(exercise, cells, []) for exercise in found]
    assert said == ["todo（还没有写）", "ok（正确）", "todo（还没有写）"]


@pytest.mark.parametrize("name", ["nothing", "notes.ipynb"])
def test_a_folder_without_exercises_is_refused_in_a_sentence(tmp_path, capsys, name):
    (tmp_path / name).write_text("{}")
    assert run(marks.main, ["--folder", str(tmp_path)]) == 2
    assert "holds no notebook with the course's exercises" in capsys.readouterr().err
