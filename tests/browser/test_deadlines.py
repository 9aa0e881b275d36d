"""How long an answer is waited for depends on what the processes had of the processor meanwhile."""

import os
import subprocess
import sys
from concurrent.futures import Future

import psutil
import pytest

from benchmarks.busy import busy_loops, main
from helpers.browser.deadlines import MOST, wait_for_answer
from helpers.browser.processes import tree_cpu_seconds
from helpers.command_line import run
from helpers.settings.paths import ROOT

LOOK = 0.01  # seconds between two looks, so that no test waits for long
SECONDS = 10 * LOOK  # the deadline


class Processes:
    """What `wait_for_answer` looks at: processes that get ``share`` of a processor, and answer at
    the look ``answers_at``."""

    def __init__(self, share, answers_at=None):
        self.looks = 0
        self.answer = Future()
        self._share = share
        self._answers_at = answers_at

    def used(self):
        """Seconds of the processor until now. A look is ``LOOK`` seconds after the one before by a
        clock of our own: on a busy machine it may come late."""
        if self.looks == self._answers_at:
            self.answer.set_result("done")
        self.looks += 1
        return self.looks * LOOK * self._share

    def wait(self, monkeypatch):
        monkeypatch.setattr("helpers.browser.deadlines.monotonic", lambda: self.looks * LOOK)
        return wait_for_answer(self.answer, SECONDS, self.used, LOOK)


@pytest.mark.parametrize("share", [1.0, 3.0, 0.0, 0.01], ids=str)
def test_who_has_the_processor_or_wants_none_gets_the_deadline(monkeypatch, share):
    """An endless loop on one core, more of them on several, and what waits for ever."""
    processes = Processes(share)
    with pytest.raises(TimeoutError):
        processes.wait(monkeypatch)
    assert processes.looks * LOOK == pytest.approx(SECONDS)


def test_who_has_a_quarter_of_it_gets_four_times_as_long(monkeypatch):
    late = Processes(0.25, answers_at=30)
    assert late.wait(monkeypatch) == "done"
    with pytest.raises(TimeoutError):
        Processes(0.25, answers_at=45).wait(monkeypatch)


def test_who_has_next_to_nothing_is_not_waited_for_without_end(monkeypatch):
    processes = Processes(0.06)
    with pytest.raises(TimeoutError):
        processes.wait(monkeypatch)
    assert processes.looks * LOOK == pytest.approx(MOST * SECONDS, rel=0.05)


def test_an_answer_in_time_is_not_looked_for(monkeypatch):
    processes = Processes(1.0)
    processes.answer.set_result("at once")
    assert processes.wait(monkeypatch) == "at once"
    assert processes.looks == 0


def test_what_is_below_a_process_counts_and_what_has_ended_does_no_harm():
    busy = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    shell = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", shell], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        assert tree_cpu_seconds(process.pid) >= 0.3
        process.communicate(b"\n")
    assert tree_cpu_seconds(process.pid) == 0


def test_each_loop_beside_a_benchmark_has_a_session_of_its_own():
    """Linux divides the processor among sessions first: all in one would hardly be a load."""
    with busy_loops(2):
        children = psutil.Process().children()
        loops = [each for each in children if each.cmdline()[-1:] == ["while True: pass"]]
        sessions = {os.getsid(each.pid) for each in loops}
    assert len(sessions - {os.getsid(0)}) == 2


def test_a_command_runs_beside_the_loops_and_ends_as_it_does():
    count = (
        "import os, psutil, sys\n"
        "beside = psutil.Process(os.getppid()).children()\n"
        "sys.exit(sum(each.cmdline()[-1:] == ['while True: pass'] for each in beside))"
    )
    beside_three = [sys.executable, "-m", "benchmarks.busy", "--loops", "3", "--"]
    assert subprocess.call([*beside_three, sys.executable, "-c", count], cwd=ROOT) == 3


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--", "no-such-command"], "Cannot run no-such-command (No such file or directory): "),
        (["--record", "--", "true"], "--actions and --record are about the recorded "),
        (["--actions", "9", "--", "true"], "--actions and --record are about the recorded "),
    ],
)
def test_what_cannot_be_run_beside_the_loops_is_refused_in_a_sentence(words, sentence, capsys):
    assert run(main, words) == 2
    said = capsys.readouterr()
    assert said.err.startswith(sentence)
    assert said.err.count("\n") == 1
