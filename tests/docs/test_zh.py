"""The Chinese notebooks are the English ones with other prose: same code, outputs and numbers."""

import re
from collections import Counter

import nbformat
import pytest
from documents import CJK

from helpers.settings.paths import NOTEBOOKS, notebook_paths
from tools.make_zh import MARK, chinese_of, outdated, read_translation, translated

pytestmark = pytest.mark.docs

SOURCES = notebook_paths()
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
FOLDED = re.compile(
    r"<details><summary>(?:中文摘要|English abstract)</summary>.*?</details>", re.DOTALL
)


@pytest.fixture(params=SOURCES, ids=lambda path: path.stem)
def source(request):
    return request.param


def cells(path, kind):
    """{id: cell} of one kind."""
    notebook = nbformat.read(path, as_version=4)
    return {cell.id: cell for cell in notebook.cells if cell.cell_type == kind}


def chinese(source):
    """The Chinese notebook of an English one."""
    return chinese_of(source)


def prose(text):
    """What is translated: neither code nor the abstract in the other language."""
    return FENCE.sub("", FOLDED.sub("", text))


def numbers(text):
    """How often each number stands in a text, outside of code and links."""
    return Counter(re.findall(r"\d+(?:\.\d+)?", re.sub(r"\]\([^)]*\)|`[^`\n]+`", "", text)))


def test_every_cell_is_translated_from_its_present_text(source):
    """Where this fails: translate what `python tools/make_zh.py --sources` prints, then make zh."""
    assert outdated(source) == []


def test_the_committed_notebook_is_the_one_that_is_made(source):
    """Where this fails: make zh."""
    made = nbformat.writes(translated(source)).strip()
    assert chinese(source).read_text(encoding="utf-8").strip() == made


def test_code_and_outputs_are_the_english_ones(source):
    assert cells(source, "code") == cells(chinese(source), "code")


def test_prose_says_the_same(source):
    ours, theirs = cells(source, "markdown"), cells(chinese(source), "markdown")
    assert list(ours) == list(theirs)
    for name, cell in ours.items():
        other_cell = theirs[name]
        one, other = prose(cell.source), prose(other_cell.source)
        assert CJK.search(other), name
        assert FENCE.findall(cell.source) == FENCE.findall(other_cell.source), name
        for what in (r"`[^`\n]+`", r"^#+", r"<summary>"):
            found = [Counter(re.findall(what, text, re.MULTILINE)) for text in (one, other)]
            assert found[0] == found[1], (name, what)
        assert numbers(one) == numbers(other), name
        assert one.count("](") == other.count("]("), name


def test_links_lead_somewhere(source):
    folder = chinese(source).parent
    for cell in cells(chinese(source), "markdown").values():
        for link in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", cell.source)):
            if not link.startswith(("http", "#")):
                assert (folder / link).resolve().exists(), (cell.id, link)
        for other in re.findall(r"blob/main/notebooks/(\S+?ipynb)", cell.source):
            assert other.startswith("zh/")
            assert (NOTEBOOKS / other).exists()


def test_a_changed_cell_is_noticed(tmp_path):
    source = SOURCES[0]
    notebook = nbformat.read(source, as_version=4)
    changed = next(cell for cell in notebook.cells if cell.cell_type == "markdown")
    changed.source += "\n\nOne more sentence."
    nbformat.write(notebook, tmp_path / source.name)
    assert outdated(tmp_path / source.name) == [changed.id]


def test_every_mark_of_a_translation_is_read():
    path = NOTEBOOKS / "zh" / "01.md"
    marks = [match["id"] for match in MARK.finditer(path.read_text(encoding="utf-8"))]
    assert list(read_translation(path)) == marks
