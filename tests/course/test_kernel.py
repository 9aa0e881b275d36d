"""What a kernel of the course says where IPython alone says nothing, or too much: real kernels, as
`make setup` has them start."""

import json
import os

import nbformat
import pytest
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from patience import PATIENCE

from helpers.settings.paths import NOTEBOOKS, ROOT

# The module is no longer in sys.modules, see `at_start`.
QUIET = """
line = get_ipython().kernel.session.send.__self__
line._show.__globals__["PATIENCE"] = 0.2
"""
SLOW = """
import os, time
from pathlib import Path
def wait_for(name):
    while not Path(os.environ["TOP"], name).exists():
        time.sleep(0.02)
"""


class Kernel:
    """A kernel that is spoken to as a front end does."""

    def __init__(self, **env):
        self.manager = KernelManager()
        self.manager.start_kernel(cwd=str(NOTEBOOKS), env=env)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=PATIENCE)

    def start(self, code):
        """Run a cell; returns its number."""
        return self.client.execute(code)

    def messages(self, cell):
        """What a cell says, message by message, until it has ended."""
        while True:
            message = self.client.get_iopub_msg(timeout=PATIENCE)
            if message["parent_header"].get("msg_id") != cell:
                continue
            if message["content"].get("execution_state") == "idle":
                return
            yield message["msg_type"], message["content"]

    def run(self, code):
        """All that a cell says."""
        return list(self.messages(self.start(code)))

    def error(self, code):
        """Name, text and lines of the error that a cell ends in."""
        said = dict(self.run(code))["error"]
        return said["ename"], said["evalue"], said["traceback"]

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture
def kernel(tmp_path):
    """A function that starts a kernel, with further variables in its environment."""
    started = []

    def start(**env):
        kernel = Kernel(**{**os.environ, "PYTHONPATH": str(ROOT), "TOP": str(tmp_path), **env})
        started.append(kernel)
        return kernel

    yield start
    for each in started:
        each.close()


# ---- a cell that is silent ----


def outputs(messages):
    """What a front end shows below a cell in the end, and every text that a display has shown."""
    shown, texts, clear_later = [], [], False
    for kind, content in messages:
        if kind == "clear_output":
            clear_later = content["wait"]
            shown = shown if clear_later else []
            continue
        if kind not in ("stream", "display_data", "update_display_data", "error"):
            continue
        if clear_later:
            shown, clear_later = [], False
        if kind in ("display_data", "update_display_data"):
            texts.append(content["data"]["text/plain"])
        if kind in ("display_data", "error"):
            shown.append(content)
        elif kind == "stream" and shown and "name" in shown[-1]:
            shown[-1] = {**shown[-1], "text": shown[-1]["text"] + content["text"]}
        elif kind == "stream":
            shown.append(content)
    return shown, texts


def stream(text):
    return {"name": "stdout", "text": text}


def let_go_once_shown(messages, folder, names):
    """Hand the messages on; with each line that is new the cell may go on."""
    names = list(names)
    numbers = set()
    for kind, content in messages:
        number = content.get("transient", {}).get("display_id")
        if kind == "display_data" and number not in numbers and names:
            numbers.add(number)
            (folder / names.pop(0)).touch()
        yield kind, content


def test_a_silent_cell_shows_that_it_works_and_leaves_nothing_of_that(kernel, tmp_path):
    kernel = kernel()
    kernel.run(QUIET)
    kernel.run(SLOW)
    cell = kernel.start("wait_for('a')\nprint('one')\nwait_for('b')\nprint('two')\nwait_for('c')")
    said = let_go_once_shown(kernel.messages(cell), tmp_path, "abc")
    shown, texts = outputs(said)
    assert shown == [stream("one\ntwo\n")]
    assert all(text.startswith("still at work · 0:0") for text in texts)
    assert len(texts) >= 3


def test_pictures_and_errors_of_a_slow_cell_stay(kernel, tmp_path):
    kernel = kernel()
    kernel.run(QUIET)
    kernel.run(SLOW)
    cell = kernel.start(
        "handle = display({'text/plain': 'first'}, raw=True, display_id='mine')\n"
        "handle.update({'text/plain': 'second'}, raw=True)\n"
        "wait_for('b')\n1 / 0"
    )
    (tmp_path / "a").touch()
    shown, texts = outputs(let_go_once_shown(kernel.messages(cell), tmp_path, "ab"))
    assert [texts[0], texts[1], texts[-1]] == ["first", "second", "second"]
    assert any("still at work" in text for text in texts)
    assert [one.get("ename", "picture") for one in shown] == ["picture", "ZeroDivisionError"]


def test_a_quick_cell_says_what_it_says_and_nothing_else(kernel):
    said = kernel().run("print('one', flush=True)\nimport time\ntime.sleep(0.5)\nprint('two')")
    assert {kind for kind, _ in said} == {"status", "execute_input", "stream"}


def test_slow_episodes_are_counted(kernel, tmp_path):
    kernel = kernel()
    kernel.run(QUIET)
    kernel.run(SLOW)
    kernel.run(PAUSED)
    cell = kernel.start("episodes = play_agent(agent, [EpisodeSpec('a', 0)] * 3, [Fake()], 1)")
    said = []
    for message in kernel.messages(cell):
        said.append(message)
        if "still at work · 1 of 3 episodes · 0:0" in str(message):
            (tmp_path / "a").touch()
    assert outputs(said)[0] == []
    assert dict(kernel.run("print(len(episodes))"))["stream"]["text"] == "3\n"


PAUSED = """
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.play import play_agent
from helpers.browser.models import BrowserObservation
asked = []
def agent(seen, turn):
    asked.append(seen)
    if len(asked) == 2:
        wait_for("a")
    return "noop()"
class Fake:
    def reset(self, task, seed, **_):
        return BrowserObservation(task=task, seed=seed, goal="g", done=False, reward=0.0)
    def step(self, action, **_):
        return BrowserObservation(task="a", seed=0, goal="g", done=True, reward=1.0)
    def close(self):
        pass
"""


def test_a_cell_with_a_line_of_progress_needs_no_other(kernel, tmp_path):
    kernel = kernel()
    # On a busy machine an import takes longer than a test's patience, and so may a line's start.
    kernel.run("import time\nfrom helpers.output import Progress")
    kernel.run(QUIET.replace("0.2", "1"))
    (tmp_path / "a").touch()
    texts = outputs(kernel.run("with Progress(2, 'steps') as line:\n    time.sleep(3)"))[1]
    assert texts
    assert not [text for text in texts if "still at work" in text]


# ---- a cell in the middle of a fresh kernel ----


def cells_of(path):
    return [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]


ROLLOUTS = NOTEBOOKS / "03_vllm_rollout_loop.ipynb"


@pytest.mark.parametrize("front_end_says_which", [True, False])
def test_a_name_of_an_earlier_cell_says_what_to_run_first(kernel, front_end_says_which):
    env = {"JPY_SESSION_NAME": str(ROLLOUTS)} if front_end_says_which else {}
    cell = next(cell for cell in cells_of(ROLLOUTS) if cell.id == "c10")
    name, text, lines = kernel(**env).error(cell.source)
    assert (name, text) == ("NameError", "name 'policy' is not defined")
    assert len(lines) == 2
    assert lines[0].startswith("NameError: policy is not defined yet. A cell in section '")
    assert "starts with `from helpers.browser import start_browser_server`" in lines[0]
    assert "min" not in lines[0]
    assert "Run > Run All Above Selected Cell" in lines[1]


def test_a_name_that_nobody_defines_keeps_its_traceback(kernel):
    kernel = kernel(JPY_SESSION_NAME=str(ROLLOUTS))
    name, _, lines = kernel.error("polcy.model")
    assert name == "NameError"
    assert len(lines) > 2
    # A name of another file is not one of the notebook, whatever it is called.
    kernel.run("import types\nmodule = types.ModuleType('m')")
    kernel.run("exec('def f(): return policy', module.__dict__)")
    assert len(kernel.error("module.f()")[2]) > 2


def test_the_name_may_be_sought_in_a_function_of_the_notebook(kernel, tmp_path):
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell("## 1. First (~8 min · 20 min from the start)"),
            nbformat.v4.new_code_cell("%matplotlib inline\nwith open(0) as (this, that): pass"),
            nbformat.v4.new_code_cell("def f():\n    that\nf()"),
            nbformat.v4.new_code_cell("def g():\n    after\nafter = 1"),
        ]
    )
    path = tmp_path / "own.ipynb"
    nbformat.write(notebook, path)
    kernel = kernel(JPY_SESSION_NAME=str(path))
    lines = kernel.error(notebook.cells[2].source)[2]
    assert lines[0] == (
        "NameError: that is not defined yet. A cell in section '1. First' defines it, which starts "
        "with `with open(0) as (this, that): pass`."
    )
    # What only the cell itself, or a later one defines, is another mistake.
    assert len(kernel.error("after\n" + notebook.cells[2].source)[2]) == 2  # a cell that changed
    path.write_text(json.dumps({"cells": []}))
    assert len(kernel.error("that")[2]) > 2


# ---- a cell that was stopped ----


def test_a_stopped_cell_leaves_one_line_and_what_was_there(kernel):
    kernel = kernel()
    kernel.run("kept = 1")
    cell = kernel.start("import time\ntime.sleep(0)\nprint('begun')\nwhile True: time.sleep(0.1)")
    said = []
    for kind, content in kernel.messages(cell):
        said.append((kind, content))
        if kind == "stream":
            kernel.manager.interrupt_kernel()
    error = dict(said)["error"]
    assert error["ename"] == "KeyboardInterrupt"
    assert len(error["traceback"]) == 1
    assert error["traceback"][0].startswith("Stopped. ")
    assert dict(kernel.run("print(kept)"))["stream"]["text"] == "1\n"
    assert "sleep" in str(kernel.run("%tb"))  # where it was


# ---- what the kernel has loaded ----


def test_a_notebook_imports_the_course_that_its_set_up_cell_finds(kernel, tmp_path):
    """Also where the kernel is that of another checkout."""
    (tmp_path / "helpers").mkdir()
    (tmp_path / "helpers" / "__init__.py").write_text("")
    kernel = kernel()
    kernel.run(f"import sys\nsys.path.insert(0, {str(tmp_path)!r})")
    said = dict(kernel.run("import helpers\nprint(helpers.__file__)"))["stream"]["text"]
    assert said == f"{tmp_path / 'helpers' / '__init__.py'}\n"


def test_where_the_environment_does_not_load_it_the_set_up_cell_does(kernel, tmp_path):
    """As on Colab; a second time it changes nothing."""
    (tmp_path / "profile_default").mkdir()
    config = tmp_path / "profile_default" / "ipython_kernel_config.py"
    config.write_text("c.IPKernelApp.extensions = []")
    kernel = kernel(IPYTHONDIR=str(tmp_path))
    assert len(kernel.error("raise KeyboardInterrupt")[2]) > 1
    load = "from helpers.course.kernel import load_ipython_extension as load\nload(get_ipython())"
    send = "get_ipython().kernel.session.send"
    kernel.run(f"{load}\nbefore = {send}.__self__\n{load}")
    assert dict(kernel.run(f"print({send}.__self__ is before)"))["stream"]["text"] == "True\n"
    assert len(kernel.error("raise KeyboardInterrupt")[2]) == 1


# ---- what executes notebooks ----


@pytest.mark.parametrize("code", ["policy.model", "raise KeyboardInterrupt"])
def test_a_cell_that_fails_still_fails_where_notebooks_are_executed(code):
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(code), nbformat.v4.new_code_cell("print('not run')")],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    with pytest.raises(CellExecutionError):
        NotebookClient(notebook, timeout=PATIENCE).execute()
    assert [output.output_type for output in notebook.cells[0].outputs] == ["error"]
    assert notebook.cells[1].outputs == []
