"""Judge the exercises in notebooks that were handed in: ``make marks FROM=handed-in``.

FROM holds a folder for each student, or files whose names begin with the student's: ann/ and
bob_02_prompt_and_action_parser.ipynb. What the cells print is not believed: the answers are judged
again, by the checks of this course. That runs what students have written, on this machine, each
notebook in a process of its own with so many seconds an exercise: judge what you would run.

What the notebooks import takes seconds: one process imports it, and is forked for each notebook.
"""

from __future__ import annotations

import csv
import io
import multiprocessing
import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import nbformat
import typer

from helpers.browser import BrowserClient, start_browser_server
from helpers.command_line import run
from helpers.course.handed_in import (
    Exercise,
    cells_of,
    definitions,
    exercises,
    exercises_of,
    verdict,
)
from helpers.output import table
from helpers.settings.errors import CourseError
from helpers.settings.files import write_whole

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["helpers.course.notebook_imports"])
SESSIONS = 4  # in which an answer that acts is played
SECONDS = 60  # that one exercise may take, the start of a browser among them
NO_END = "try again. It did not end within {} s."
CRASHED = "try again. It ended Python itself."
Marks = dict[str, str]  # what the check says, by the title of the exercise


class MarksError(CourseError):
    """There is nothing to judge; the message is one sentence with the next step."""


def main(
    folder: Annotated[Path, typer.Option(help="what was handed in")] = Path("handed-in"),
    output: Annotated[Path | None, typer.Option(help="default: marks.csv in that folder")] = None,
    seconds: Annotated[int, typer.Option(min=1, help="for each exercise")] = SECONDS,
) -> None:
    """Judge the exercises in the notebooks of a folder."""
    found = handed_in(folder)
    if not found:
        raise MarksError(
            f"{folder} holds no notebook with the course's exercises: name the folder with "
            "FROM=..., a folder for each student."
        )
    marks: dict[str, Marks] = {}
    for student, path in found:
        print(f"{student}: {path.relative_to(folder)}", flush=True)
        marks.setdefault(student, {}).update(judge(path, seconds))
    output = output or folder / "marks.csv"
    write_whole(output, as_csv(marks))
    print(report(marks))
    print(f"What was said of each answer: {output}")


def handed_in(folder: Path) -> list[tuple[str, Path]]:
    """(student, notebook) of each notebook of the course in the folder, in the order of names."""
    paths = sorted(
        path for path in folder.rglob("*.ipynb") if ".ipynb_checkpoints" not in str(path)
    )
    return [(student_of(path, folder), path) for path in paths if exercises_in(path)]


def student_of(path: Path, folder: Path) -> str:
    """The name of the folder that the student handed in, or what the file's name begins with."""
    inside = path.relative_to(folder)
    if len(inside.parts) > 1:
        return inside.parts[0]
    notebook = r"[ _-]*\d\d_|[ _-]*(side_ways|wrong_pay|a_policy_with)"
    return re.split(notebook, inside.stem)[0] or inside.stem


def exercises_in(path: Path) -> list[Exercise]:
    """The course's exercises that belong to a notebook; none where it cannot be read."""
    try:
        return exercises_of(nbformat.read(path, as_version=4).cells)
    except (ValueError, OSError, AttributeError, nbformat.ValidationError):  # not a notebook
        return []


def judge(path: Path, seconds: int) -> Marks:
    """What the checks say of a notebook's answers. An answer that does not end, or ends Python,
    costs its own mark; the next ones are judged in a new process."""
    titles = [exercise.title for exercise in exercises_in(path)]
    marks: Marks = {}
    while len(marks) < len(titles):
        receiver, sender = PROCESSES.Pipe(duplex=False)
        process = PROCESSES.Process(target=judge_into, args=(sender, path, len(marks)))
        process.start()
        sender.close()
        reason = NO_END.format(seconds)
        try:
            receiver.recv()  # it has started, and imported what takes long
            while receiver.poll(seconds):
                title, said = receiver.recv()
                marks[title] = said
        except EOFError:  # the process has ended
            reason = CRASHED
        finally:
            process.kill()
            process.join()
        if len(marks) < len(titles):
            marks[titles[len(marks)]] = reason
    return marks


def judge_into(sender: Connection[tuple[str, str], None], path: Path, skip: int) -> None:
    """Send a word when it begins, then (title, verdict) of each exercise in a notebook but the
    first ``skip``."""
    left = exercises_in(path)[skip:]
    cells = nbformat.read(path, as_version=4).cells
    # Imports what the answers will: that may take longer than any of them.
    definitions(cells_of(left[0].notebook))
    sender.send(("started", ""))
    with ExitStack() as opened:
        clients: list[BrowserClient] = []
        for exercise in left:
            if exercise.plays and not clients:
                server = opened.enter_context(start_browser_server(workers=1))
                clients = server.clients(SESSIONS)
            sender.send((exercise.title, verdict(exercise, cells, clients)))


def as_csv(marks: dict[str, Marks]) -> str:
    """A line for each answer: student, exercise, what was said."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(("student", "exercise", "said"))
    for student, said in marks.items():
        writer.writerows((student, title, words) for title, words in said.items())
    return text.getvalue()


def report(marks: dict[str, Marks]) -> str:
    """A row for each student, a column for each exercise: ok, again, todo, or - where the notebook
    was not handed in."""
    titles = [exercise.title for exercise in exercises()]
    shown = [title for title in titles if any(title in said for said in marks.values())]
    rows = []
    for student, said in marks.items():
        words = [short(said.get(title, "-")) for title in shown]
        rows.append((student, *words, f"{words.count('ok')} of {len(shown)}"))
    return table(("student", *shown, "ok"), rows)


def short(said: str) -> str:
    """One word for what a check has said."""
    if said.startswith("try again"):
        return "again"
    return re.split(r"[.（]", said)[0]  # in Chinese a word in brackets stands behind it


if __name__ == "__main__":
    sys.exit(run(main))
