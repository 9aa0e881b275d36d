"""What `make lab` does to mine/: copies without outputs, and nothing of a reader's is lost."""

import subprocess
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest

from helpers.settings.paths import NOTEBOOKS, ROOT, notebook_paths
from scripts import working_copies
from tests.docs.test_links import links, markdown


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The folder of the copies, beside a folder of notebooks of two cells."""
    sources = tmp_path / "notebooks"
    for name in ("01_a", "more/b", "zh/01_a", "zh/more/b"):
        write(sources / f"{name}.ipynb", "print(1)")
    monkeypatch.setattr(working_copies, "NOTEBOOKS", sources)
    monkeypatch.setattr(working_copies, "MINE", tmp_path / "mine")
    working_copies.main()
    return tmp_path / "mine"


def write(path, code):
    output = nbformat.v4.new_output("stream", text="1\n")
    cell = nbformat.v4.new_code_cell(code, execution_count=1, outputs=[output])
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)


def change(path, **fields):
    """Set fields of the first cell."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].update(fields)
    nbformat.write(notebook, path)


def cell_of(path):
    return nbformat.read(path, as_version=4).cells[0]


def newer_course(mine):
    """A course in which the first notebook has another cell."""
    write(mine.parent / "notebooks" / "01_a.ipynb", "print(2)")


def test_every_notebook_is_copied_without_what_it_printed(mine):
    names = {str(path.relative_to(mine)) for path in mine.rglob("*.ipynb")}
    assert names == {"01_a.ipynb", "more/b.ipynb", "zh/01_a.ipynb", "zh/more/b.ipynb"}
    for name in names:
        cell = cell_of(mine / name)
        assert (cell.source, cell.outputs, cell.execution_count) == ("print(1)", [], None)
    assert cell_of(mine.parent / "notebooks" / "01_a.ipynb").outputs  # stay in the course's


@pytest.mark.parametrize(
    "work", [{"source": "print('my answer')"}, {"execution_count": 4}], ids=["changed", "run"]
)
def test_what_a_reader_has_done_stays_and_a_newer_notebook_is_put_beside_it(mine, work, capsys):
    path = mine / "01_a.ipynb"
    change(path, **work)
    before = path.read_bytes()
    working_copies.main()
    assert capsys.readouterr().out == ""
    newer_course(mine)
    working_copies.main()
    assert path.read_bytes() == before
    [newer] = set(mine.glob("*.ipynb")) - {path}
    assert cell_of(newer).source == "print(2)"
    assert newer.name in capsys.readouterr().out
    change(newer, source="print('and here')")
    before = newer.read_bytes()
    working_copies.main()  # said once
    assert (capsys.readouterr().out, newer.read_bytes()) == ("", before)


def test_a_copy_that_nobody_has_touched_becomes_the_newer_notebook(mine, capsys):
    newer_course(mine)
    working_copies.main()
    assert [path.name for path in mine.glob("*.ipynb")] == ["01_a.ipynb"]
    assert cell_of(mine / "01_a.ipynb").source == "print(2)"
    assert capsys.readouterr().out == ""


def test_a_file_that_is_no_notebook_any_more_stays(mine):
    path = mine / "01_a.ipynb"
    path.write_text("{ half a note")
    working_copies.main()
    assert path.read_text() == "{ half a note"


def test_a_copy_that_was_removed_comes_back(mine):
    (mine / "01_a.ipynb").unlink()
    working_copies.main()
    assert cell_of(mine / "01_a.ipynb").source == "print(1)"


def test_git_does_not_see_them():
    done = subprocess.run(["git", "check-ignore", "-q", "mine/01_a.ipynb"], cwd=ROOT)
    assert done.returncode == 0


@pytest.mark.parametrize(
    "source",
    [*notebook_paths(NOTEBOOKS), *notebook_paths(NOTEBOOKS / "zh")],
    ids=lambda path: str(path.relative_to(NOTEBOOKS)),
)
def test_links_of_a_copy_lead_to_another_copy_or_out_of_the_notebooks(source):
    """As mine/ lies beside notebooks/, what leads out of one leads to the same from the other."""
    for _, target in links(markdown(source)):
        name = unquote(target.partition("#")[0])
        if not name or "://" in target:
            continue
        there = (source.parent / name).resolve()
        is_copied = there in [*notebook_paths(NOTEBOOKS), *notebook_paths(NOTEBOOKS / "zh")]
        assert is_copied or not there.is_relative_to(Path(NOTEBOOKS)), target
