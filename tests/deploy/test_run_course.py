"""The course runner: what it reports, what it writes, and what it leaves as it is."""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from patience import PATIENCE

from helpers.settings.paths import ROOT
from tools.run_report import Outcome, move_links, write_index

FOLDED = """<details><summary>Solution</summary>

```python
folded = 1
```
</details>

Not folded."""

PROGRESS = r"""
import helpers, sys
for i in range(9):
    print(end=f'\r{i} of 9')
print()
"""
RESULT = """
print('Result: 0.42 [0.33, 0.51], n = 100')
from ipywidgets import Label
from helpers.course.widgets.live import show_live
show_live(Label(), 'Run this notebook.')
sys.prefix
"""


def write_notebook(path: Path, title: str, *sources: str) -> bytes:
    """Write a notebook with these code cells; returns the file's bytes."""
    links = "[the actions](../helpers/browser/actions.py), [the next](02_raises.ipynb)"
    opening = f"# {title}\n\n{links}\n\n{FOLDED}"
    cells = [nbformat.v4.new_markdown_cell(opening)]
    for source in sources:
        cells.append(nbformat.v4.new_markdown_cell("And then:"))
        cells.append(nbformat.v4.new_code_cell(source.strip()))
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path.read_bytes()


def write_four(top):
    """One that works, one that raises, one that ends its kernel, and one beside the thread; returns
    their paths and bytes."""
    folder = top / "notebooks"
    (folder / "more").mkdir(parents=True)
    names = ("01_works.ipynb", "02_raises.ipynb", "03_dies.ipynb", "more/aside.ipynb")
    paths = [folder / name for name in names]
    before = [
        write_notebook(paths[0], "1. It works", PROGRESS, RESULT),
        write_notebook(
            paths[1], "2. It raises", "1", "raise ValueError('no such task: klick')", "2"
        ),
        write_notebook(paths[2], "3. It dies", "import os; os._exit(3)", "2"),
        write_notebook(paths[3], "Aside", "1"),
    ]
    return paths, before


def run_course(folder, *arguments):
    """Run the notebooks of this folder; returns the finished process with its text."""
    command = [sys.executable, ROOT / "tools" / "run_course.py", "--folder", folder / "notebooks"]
    command += ["--out", folder / "runs", *arguments]
    return subprocess.run(
        command, cwd=ROOT, text=True, capture_output=True, timeout=PATIENCE, env=os.environ
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of the four: its folder, the notebooks' paths and former bytes, and the process."""
    folder = tmp_path_factory.mktemp("course")
    paths, before = write_four(folder)
    return folder, paths, before, run_course(folder)


def test_course_runs_all_and_reports_what_failed(finished):
    _, paths, before, done = finished
    assert done.returncode == 1, done.stderr
    works, raises, dies, aside, summary = done.stdout.splitlines()
    assert re.fullmatch(r"  ok +01_works +\d+:\d\d  0\.42 \[0\.33, 0\.51\], n = 100", works)
    assert re.fullmatch(
        r"  FAIL +02_raises +\d+:\d\d  cell 2 of 3: ValueError: no such task: klick", raises
    )
    assert re.fullmatch(r"  FAIL +03_dies +\d+:\d\d  cell 1 of 2: the kernel died .*", dies)
    assert re.fullmatch(r"  ok +more/aside +\d+:\d\d  1 cells", aside)
    assert summary.startswith("2 of 4 notebooks ran")
    assert [path.read_bytes() for path in paths] == before  # what is committed stays as it is


def test_course_writes_pages_that_can_be_read(finished):
    folder, paths, _, _ = finished
    made = next((folder / "runs").iterdir())
    written = {path.relative_to(made).as_posix() for path in made.rglob("*.*")}
    names = [path.relative_to(folder / "notebooks").with_suffix("").as_posix() for path in paths]
    assert {f"{name}{end}" for name in names for end in (".ipynb", ".html")} <= written
    assert "index.html" in written
    index = (made / "index.html").read_text()
    assert "2. It raises" in index
    assert "no such task: klick" in index
    assert 'href="01_works.html"' in index
    assert 'href="more/aside.html"' in index
    works = (made / "01_works.html").read_text()
    assert "0.42 [0.33, 0.51]" in works
    assert "<em>Run this notebook.</em>" in works
    assert 'href="../../helpers/browser/actions.py"' in works
    assert 'href="02_raises.html"' in works
    folded = works.partition("<details>")[2].partition("</details>")[0]
    assert "Solution" in folded
    assert "folded" in folded
    assert "Not folded" not in folded
    executed = nbformat.read(made / "01_works.ipynb", as_version=4)
    assert "(../../helpers/browser/actions.py)" in executed.cells[0].source
    assert "(02_raises.ipynb)" in executed.cells[0].source


def test_the_index_speaks_the_language_of_the_titles(tmp_path):
    for title, words in (("1. 探索环境", "个运行成功"), ("1. It works", "notebooks ran")):
        write_index(tmp_path, [Outcome("01_works", title, seconds=61)], 1)
        page = (tmp_path / "index.html").read_text(encoding="utf-8")
        assert words in page
        assert ("zh-CN" in page) == ("个" in words)
        assert "1:01" in page


def test_links_of_a_chinese_notebook_are_right_in_the_folder_of_the_run(tmp_path):
    source = "[动作](../../helpers/a.py) ![图](../../media/b.png) [下一个](02_next.ipynb)"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(source)])
    move_links(notebook, tmp_path / "notebooks" / "zh", tmp_path / "runs" / "now")
    assert notebook.cells[0].source == source  # both folders lie two levels down
    move_links(notebook, tmp_path / "notebooks" / "zh", tmp_path / "runs" / "test" / "now")
    assert "(../../../helpers/a.py) ![图](../../../media/b.png)" in notebook.cells[0].source
    assert "(02_next.ipynb)" in notebook.cells[0].source


@pytest.mark.slow
def test_notebooks_in_place_are_normal_and_stay_the_same(tmp_path):
    paths, before = write_four(tmp_path)
    command = ("--in-place", "--only")
    assert run_course(tmp_path, *command, "01").returncode == 0
    once = paths[0].read_bytes()
    notebook = nbformat.reads(once.decode(), as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == [1, 2]
    assert code[0].outputs[0].text == "8 of 9\n"  # of a progress line, its last state
    assert all(set(cell.metadata) == set() for cell in notebook.cells)
    assert str(Path.home()) not in once.decode()
    assert str(ROOT) not in once.decode()
    assert run_course(tmp_path, *command, "01").returncode == 0
    assert paths[0].read_bytes() == once
    assert run_course(tmp_path, *command, "02").returncode == 1
    assert paths[1].read_bytes() == before[1]  # a failure is not committed
    assert run_course(tmp_path, *command, "09").returncode == 2
