"""What a reader sees of the kernel's extension in a real JupyterLab, from the first cell on."""

import pytest
from a_chromium import a_chromium
from a_jupyterlab import jupyterlab, write_notebook
from playwright.sync_api import TimeoutError as NotShown

pytestmark = pytest.mark.slow

CELLS = [
    """
line = get_ipython().kernel.session.send.__self__
line._show.__globals__["PATIENCE"] = 0.5  # instead of ten seconds
answer = 42
print(answer - 1)""",
    """
print("begun")
import time
while True:
    time.sleep(0.1)""",
    "print(answer + 1)",
]
IDLE = "text=/Python 3.*Idle/i"


@pytest.fixture
def lab(tmp_path):
    """A page with the notebook, of which nothing has run."""
    (tmp_path / "work").mkdir()
    write_notebook(tmp_path / "work" / "own.ipynb", CELLS)
    with jupyterlab(tmp_path) as port, a_chromium() as browser:
        page = browser.new_page(viewport={"width": 1100, "height": 1500})
        page.set_default_timeout(120_000)
        page.goto(f"http://127.0.0.1:{port}/doc/tree/own.ipynb?token=secret")
        page.wait_for_selector(".jp-Notebook .jp-CodeCell >> nth=-1")
        page.wait_for_selector(IDLE)
        yield page


def choose(lab, command):
    lab.evaluate("command => { window.jupyterapp.commands.execute(command) }", command)


def run(lab, number):
    """Run a cell; returns it."""
    cell = lab.locator(".jp-Notebook .jp-CodeCell").nth(number)
    cell.locator(".cm-content").click()
    choose(lab, "notebook:run-cell")
    return cell


def run_until_shown(lab, number, text):
    """Run a cell, and again as a reader would, until it shows the text.

    A kernel drops what it is asked before it is done with an error, and says nothing about it.
    """
    for _ in range(6):
        try:
            run(lab, number).get_by_text(text).wait_for(timeout=20_000)
            return
        except NotShown:
            lab.wait_for_selector(IDLE)
    outputs = lab.locator(".jp-OutputArea-output").all_inner_texts()
    pytest.fail(f"the kernel is idle, and the cell never showed {text}; the page shows {outputs}")


def test_a_reader_is_told_what_to_run_first_that_it_works_and_that_it_stopped(lab):
    middle = run(lab, 2)
    middle.get_by_text("NameError: answer is not defined yet.").wait_for()
    middle.get_by_text("Run > Run All Above Selected Cell").wait_for()
    assert middle.get_by_text("Traceback").count() == 0
    lab.wait_for_selector(IDLE)
    run_until_shown(lab, 0, "41")
    silent = run(lab, 1)
    silent.get_by_text("still at work · 0:").wait_for()
    choose(lab, "notebook:interrupt-kernel")
    silent.get_by_text("Stopped.").wait_for()
    shown = silent.locator(".jp-OutputArea-output").all_inner_texts()
    assert [text.partition(".")[0].strip() for text in shown] == ["begun", "Stopped"]
    lab.wait_for_selector(IDLE)
    run_until_shown(lab, 2, "43")
