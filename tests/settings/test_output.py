"""Tables, clocks, and the line of progress where it is shown: in a file, a terminal, a notebook."""

import contextlib
import os
import pty
import re
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient

from helpers import output
from helpers.output import Progress, clock, table
from helpers.settings.paths import ROOT

WORK = """
from helpers.output import Progress
with Progress(3, "updates") as progress:
    for done in (1, 2, 3):
        progress.reach(done, f"reward {done / 10}")
"""
LAST = r"updates 3 of 3 · reward 0\.3 · \d+:\d\d"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (9.4, "0:09"), (59.6, "1:00"), (125.4, "2:05"), (3_600, "60:00")],
)
def test_a_clock_counts_minutes_and_seconds(seconds, text):
    assert clock(seconds) == text


def test_a_table_aligns_its_columns():
    rows = [["click-button", 0.5, None], ["x", 12, "[b] :smile:"]]
    assert table(["task", "rate", "note"], rows).splitlines() == [
        "task          rate         note",
        "click-button   0.5         None",
        "x               12  [b] :smile:",
    ]


def test_a_long_cell_is_not_cut():
    assert table(["a"], [["word " * 150 + "end"]]).endswith("end")


class Clock:
    """A clock that a test moves."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def time(monkeypatch):
    """The clock that progress is timed by."""
    moved = Clock()
    monkeypatch.setattr("tqdm.std.time", moved)
    return moved


def test_the_time_left_follows_from_the_steps_of_this_run(time):
    with Progress(10, "episodes", initial=4) as line:
        assert str(line) == "episodes 4 of 10 · 0:00"
        time.now = 20.0
        line.reach(6, "12 solved")
        assert str(line) == "episodes 6 of 10 · 12 solved · 0:20 · 0:40 left"
        line.reach(10)
        assert str(line) == "episodes 10 of 10 · 0:20"


def test_in_a_file_a_line_is_written_every_half_minute(time, capsys):
    with Progress(10, "episodes", initial=4) as line:
        for second in range(1, 67):
            time.now = float(second)
            line.reach(4 + second // 11, "busy")
    assert capsys.readouterr().out.splitlines() == [
        "episodes 6 of 10 · busy · 0:30 · 1:00 left",
        "episodes 9 of 10 · busy · 1:00 · 0:12 left",
        "episodes 10 of 10 · busy · 1:06",
    ]


def test_in_a_file_the_last_line_is_not_written_twice(time, capsys):
    with Progress(10, "episodes") as line:
        time.now = 60.0
        line.reach(10)
    assert capsys.readouterr().out == "episodes 10 of 10 · 1:00\n"


def run_in_a_process(**streams):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-c", WORK], check=True, env=environment, **streams)


def read_to_the_end(terminal):
    parts = []
    with open(terminal, "rb", buffering=0) as file, contextlib.suppress(OSError):
        while part := file.read(1_000):  # an OSError says that the other side was closed
            parts.append(part)
    return b"".join(parts).decode()


def test_a_pipe_gets_whole_lines():
    printed = run_in_a_process(stdout=subprocess.PIPE, text=True).stdout
    assert re.fullmatch(LAST + r"\n", printed)


def test_a_terminal_gets_one_line_that_is_overwritten():
    reader, terminal = pty.openpty()
    run_in_a_process(stdout=terminal)
    os.close(terminal)
    printed = read_to_the_end(reader)
    states = [state.strip() for state in printed.split("\r") if state.strip()]
    assert states[0] == "updates 0 of 3 · 0:00"
    assert re.fullmatch(LAST, states[-1])
    assert printed.count("\n") == 1


def test_a_notebook_gets_one_display_that_is_replaced():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(WORK)])
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(ROOT)}}).execute()
    (shown,) = notebook.cells[0].outputs
    assert shown.output_type == "display_data"
    assert re.fullmatch(LAST, shown.data["text/plain"])


def test_without_a_notebook_nothing_is_displayed():
    assert output._notebook_display() is None
