"""The Chinese notebooks are the English ones with other prose: same code, same outputs, same numbers."""

import re
from collections import Counter

import nbformat
import pytest

from tools.make_zh import MARK, NOTEBOOKS, outdated, read_translation, translated

SOURCES = sorted(NOTEBOOKS.glob("0*.ipynb"))
CJK = re.compile(r"[\u4e00-\u9fff]")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
FOLDED = re.compile(
    r"<details><summary>(?:中文摘要|English abstract)</summary>.*?</details>", re.DOTALL
)


@pytest.fixture(params=SOURCES, ids=lambda path: path.stem)
def source(request):
    return request.param


def cells(path, kind):
    return {
        cell.id: cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == kind
    }


def prose(text):
    return FENCE.sub("", FOLDED.sub("", text))


def test_every_cell_is_translated_from_its_present_text(source):
    """Where this fails: translate the cells that `python tools/make_zh.py --sources` prints, then make zh."""
    assert outdated(source) == []


def test_the_committed_notebook_is_the_one_that_is_made(source):
    """Where this fails: make zh."""
    made = nbformat.writes(translated(source)).strip()
    assert (NOTEBOOKS / "zh" / source.name).read_text(encoding="utf-8").strip() == made


def test_code_and_outputs_are_the_english_ones(source):
    assert cells(source, "code") == cells(NOTEBOOKS / "zh" / source.name, "code")


def test_prose_says_the_same(source):
    english, chinese = cells(source, "markdown"), cells(NOTEBOOKS / "zh" / source.name, "markdown")
    assert list(english) == list(chinese)
    for name, cell in english.items():
        one, other = prose(cell.source), prose(chinese[name].source)
        assert CJK.search(other), name
        assert FENCE.findall(cell.source) == FENCE.findall(chinese[name].source), name
        for what in (r"`[^`\n]+`", r"^#+", r"<summary>"):
            assert Counter(re.findall(what, one, re.MULTILINE)) == Counter(
                re.findall(what, other, re.MULTILINE)
            ), (name, what)
        numbers = [
            Counter(re.findall(r"\d+(?:\.\d+)?", re.sub(r"\]\([^)]*\)|`[^`\n]+`", "", text)))
            for text in (one, other)
        ]
        assert numbers[0] == numbers[1], name
        assert one.count("](") == other.count("]("), name


def test_links_lead_somewhere(source):
    for cell in cells(NOTEBOOKS / "zh" / source.name, "markdown").values():
        for link in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", cell.source)):
            if not link.startswith(("http", "#")):
                assert (NOTEBOOKS / "zh" / link).resolve().exists(), (cell.id, link)
        for other in re.findall(r"blob/main/notebooks/(\S+?ipynb)", cell.source):
            assert other.startswith("zh/") and (NOTEBOOKS / other).exists()


def test_a_changed_cell_is_noticed(tmp_path):
    source, notebook = SOURCES[0], nbformat.read(SOURCES[0], as_version=4)
    changed = next(cell for cell in notebook.cells if cell.cell_type == "markdown")
    changed.source += "\n\nOne more sentence."
    nbformat.write(notebook, tmp_path / source.name)
    assert outdated(tmp_path / source.name) == [changed.id]
    text = (NOTEBOOKS / "zh" / "01.md").read_text(encoding="utf-8")
    assert set(read_translation(NOTEBOOKS / "zh" / "01.md")) == {
        match["id"] for match in MARK.finditer(text)
    }
