"""The form in which notebooks are committed: executed in order from a fresh kernel, readable, and small."""

import re

import nbformat
import pytest

from helpers.settings.paths import NOTEBOOKS

NOTEBOOKS = sorted(NOTEBOOKS.glob("*.ipynb"))
MAX_BYTES, MAX_LINES, MAX_WORDS = 600_000, 30, 2_000


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def notebook(path):
    return nbformat.read(path, as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def prose(notebook):
    """The markdown of a notebook, without code blocks, tags and the targets of links."""
    text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"<[^>]+>|(?<=\])\([^)]*\)", " ", text)


def texts(notebook):
    """Every text that an output shows."""
    for cell in code_cells(notebook):
        for output in cell.outputs:
            yield output.get("text", "")
            yield from (
                value for kind, value in output.get("data", {}).items() if kind.startswith("text/")
            )


def test_there_are_six():
    assert [path.name[:3] for path in NOTEBOOKS] == [f"{number:02d}_" for number in range(1, 7)]


def test_valid_with_ids_and_the_kernel_python3(notebook):
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) >= (4, 5)
    ids = [cell.id for cell in notebook.cells]
    assert all(ids) and len(set(ids)) == len(ids)
    assert notebook.metadata.kernelspec.name == "python3"
    assert notebook.metadata.language_info.name == "python"


def test_executed_in_order_from_a_fresh_kernel(notebook):
    counts = [cell.execution_count for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))


def test_no_error_among_the_outputs(notebook):
    assert not [
        cell.id
        for cell in code_cells(notebook)
        if any(o.output_type == "error" for o in cell.outputs)
    ]
    assert not [text for text in texts(notebook) if "Traceback (most recent call last)" in text]


def test_nothing_hides_a_failure(notebook):
    """nbmake stays green where one of these is set, or lets it replace the time limit."""
    assert not set(notebook.metadata) & {"allow_errors", "execution"}
    for cell in notebook.cells:
        assert not {"raises-exception", "skip-execution"} & set(cell.metadata.get("tags", []))


def test_small(path):
    assert path.stat().st_size < MAX_BYTES


def test_prose_between_any_two_code_cells(notebook):
    kinds = [cell.cell_type for cell in notebook.cells]
    assert not [
        notebook.cells[i].id for i in range(1, len(kinds)) if kinds[i - 1] == kinds[i] == "code"
    ]


def test_cells_and_prose_are_short(notebook):
    long = {
        cell.id: lines
        for cell in code_cells(notebook)
        if (lines := len(cell.source.splitlines())) > MAX_LINES
    }
    assert not long
    assert len(prose(notebook).split()) < MAX_WORDS


def test_no_path_of_the_machine_that_ran_it(notebook):
    private = re.compile(r"(?<![\w.])(?:/home/|/root/|/Users/|[A-Z]:\\Users\\)\S*")
    everything = (*texts(notebook), *(cell.source for cell in notebook.cells))
    assert not [hit for text in everything for hit in private.findall(text)]


def test_no_state_of_widgets(notebook):
    assert "widgets" not in notebook.metadata
    assert not [
        cell.id
        for cell in code_cells(notebook)
        for output in cell.outputs
        if "application/vnd.jupyter.widget-view+json" in output.get("data", {})
    ]


def test_pictures_exist_and_are_described(path, notebook):
    """Pictures are files in media/, each with an alt text of 8 to 25 words."""
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert "data:image" not in text
    pictures = re.findall(r"!\[([^\]]*)\]\(([^)\s]+)", text)
    for tag in re.findall(r"<img\b[^>]*>", text):
        found = dict(re.findall(r"""(alt|src)=["']([^"']*)["']""", tag))
        pictures.append((found.get("alt", ""), found.get("src", "")))
    for alt, source in pictures:
        if not source.startswith("http"):  # badges
            assert (path.parent / source).is_file(), source
            assert 8 <= len(alt.split()) <= 25, (source, alt)
