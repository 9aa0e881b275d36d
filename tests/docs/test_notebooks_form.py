"""The form in which notebooks are committed: run in order from a fresh kernel, readable, small."""

import re

import nbformat
import pytest

from helpers.settings.paths import NOTEBOOKS, notebook_paths

pytestmark = pytest.mark.docs

PATHS = [*notebook_paths(), *notebook_paths(NOTEBOOKS / "zh")]
WIDGET = "application/vnd.jupyter.widget-view+json"
MAX_BYTES = 600_000
MAX_LINES = 30  # of a code cell
MAX_WORDS = 2_000  # of prose


@pytest.fixture(params=PATHS, ids=lambda path: path.relative_to(NOTEBOOKS).as_posix())
def path(request):
    return request.param


@pytest.fixture
def notebook(path):
    return nbformat.read(path, as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def markdown(notebook):
    """The prose of all cells."""
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def words(notebook):
    """The words of the prose, without code blocks, tags and the targets of links."""
    text = re.sub(r"^```.*?^```", "", markdown(notebook), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"<[^>]+>|(?<=\])\([^)]*\)", " ", text).split()


def texts(notebook):
    """Every text that an output shows."""
    for cell in code_cells(notebook):
        for output in cell.outputs:
            yield output.get("text", "")
            for kind, value in output.get("data", {}).items():
                if kind.startswith("text/"):
                    yield value


def pictures(text):
    """(alternative text, address) of each picture in prose, badges apart."""
    found = re.findall(r"!\[([^\]]*)\]\(([^)\s]+)", text)
    for tag in re.findall(r"<img\b[^>]*>", text):
        attributes = dict(re.findall(r"""(alt|src)=["']([^"']*)["']""", tag))
        found.append((attributes.get("alt", ""), attributes.get("src", "")))
    return [(alt, source) for alt, source in found if not source.startswith("http")]


def test_there_are_six():
    assert [path.name[:3] for path in sorted(NOTEBOOKS.glob("*.ipynb"))] == [
        f"{number:02d}_" for number in range(1, 7)
    ]


def test_valid_with_ids_and_the_kernel_python3(notebook):
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) >= (4, 5)
    ids = [cell.id for cell in notebook.cells]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    assert notebook.metadata.kernelspec.name == "python3"
    assert notebook.metadata.language_info.name == "python"


def test_executed_in_order_from_a_fresh_kernel(notebook):
    counts = [cell.execution_count for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))


def test_no_error_among_the_outputs(notebook):
    for cell in code_cells(notebook):
        assert not [output for output in cell.outputs if output.output_type == "error"], cell.id
    assert not [text for text in texts(notebook) if "Traceback (most recent call last)" in text]


def test_nothing_hides_a_failure(notebook):
    """nbmake stays green where one of these is set, or lets it replace the time limit."""
    assert not set(notebook.metadata) & {"allow_errors", "execution"}
    for cell in notebook.cells:
        assert not {"raises-exception", "skip-execution"} & set(cell.metadata.get("tags", []))


def test_small(path):
    assert path.stat().st_size < MAX_BYTES


def test_prose_between_any_two_code_cells(notebook):
    for one, other in zip(notebook.cells, notebook.cells[1:], strict=False):
        assert not one.cell_type == other.cell_type == "code", other.id


def test_cells_and_prose_are_short(notebook):
    for cell in code_cells(notebook):
        assert len(cell.source.splitlines()) <= MAX_LINES, cell.id
    assert len(words(notebook)) < MAX_WORDS


def test_what_a_notebook_writes_can_be_put_elsewhere(notebook):
    """The tests run notebooks, too, and leave alone what a reader trained: see COURSE_RUNS."""
    for cell in code_cells(notebook):
        assert not re.search(r"""["']runs\b""", cell.source), cell.id


def test_no_path_of_the_machine_that_ran_it(notebook):
    private = re.compile(r"(?<![\w.])(?:/home/|/root/|/Users/|[A-Z]:\\Users\\)\S*")
    everything = (*texts(notebook), *(cell.source for cell in notebook.cells))
    assert not [hit for text in everything for hit in private.findall(text)]


def test_no_state_of_widgets(notebook):
    assert "widgets" not in notebook.metadata
    for cell in code_cells(notebook):
        for output in cell.outputs:
            assert WIDGET not in output.get("data", {}), cell.id


def test_pictures_exist_and_are_described(path, notebook):
    """Pictures are files in media/, each with an alt text of 8 to 25 words."""
    text = markdown(notebook)
    assert "data:image" not in text
    for alt, source in pictures(text):
        assert (path.parent / source).is_file(), source
        assert 8 <= len(alt.split()) <= 25, (source, alt)
