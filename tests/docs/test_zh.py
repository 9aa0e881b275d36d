"""The Chinese notebooks are the English ones in other words: same cells, same code but for strings
and comments, and numbers that their own run shows."""

import ast
import re
from collections import Counter

import nbformat
import pytest
from documents import CJK
from nbformat.v4 import new_code_cell, new_notebook, new_output
from test_numbers_in_prose import around, named, paragraphs, values

from helpers.course.handed_in import python_of
from helpers.settings.paths import NOTEBOOKS, chinese_of, notebook_paths
from tools.make_zh import (
    COMMON,
    MARK,
    ORIGIN,
    SET_UP,
    SET_UP_ZH,
    is_executed,
    outdated,
    pieces,
    read_code,
    read_translation,
    take_outputs,
    translated,
    translated_code,
    translation_of,
    untranslated,
    unused,
)

pytestmark = pytest.mark.docs

SOURCES = notebook_paths()
SHOWN = re.compile(r"<!-- shown by ")
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
    return FENCE.sub("", FOLDED.sub("", ORIGIN.sub("", text)))


def numbers(text):
    """How often each number stands in a text, outside of code and links."""
    return Counter(re.findall(r"\d+(?:\.\d+)?", re.sub(r"\]\([^)]*\)|`[^`\n]+`", "", text)))


def test_every_cell_is_translated_from_its_present_text(source):
    """Where this fails: translate what `python tools/make_zh.py --sources` prints, then make zh."""
    assert outdated(source) == []


def test_every_string_and_comment_is_translated_or_kept(source):
    """Where this fails: put what `python tools/make_zh.py --sources` prints below <!-- code -->."""
    assert untranslated(source) == []
    assert unused(source) == []


def test_what_is_common_stands_in_several_notebooks_and_nowhere_else():
    for text in read_code(COMMON):
        assert sum(text in texts_of(source) for source in SOURCES) > 1, text
        assert not [path.stem for path in SOURCES if text in read_code(translation_of(path))], text


def texts_of(source):
    """What stands in strings and comments of a notebook."""
    return {piece.text for cell in cells(source, "code").values() for piece in pieces(cell)}


def test_the_committed_notebook_is_the_one_that_is_made(source):
    """Where this fails: make zh."""
    made = nbformat.writes(translated(source)).strip()
    assert chinese(source).read_text(encoding="utf-8").strip() == made


def test_code_is_the_english_code_in_other_words(source):
    """The same statements: only the text of strings and f-strings, and comments, may differ."""
    ours, theirs = cells(source, "code"), cells(chinese(source), "code")
    assert list(ours) == list(theirs)
    for name, cell in ours.items():
        cell.source = SET_UP.sub(SET_UP_ZH, cell.source)
        assert skeleton(cell) == skeleton(theirs[name]), name
        lines = [len(each.source.splitlines()) for each in (cell, theirs[name])]
        assert lines[0] == lines[1], name


class Wordless(ast.NodeTransformer):
    """Takes the words out of code."""

    def visit_Constant(self, node):
        return ast.Constant("") if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node):
        """Of an f-string the values stay, in whatever order the words have them, with their format
        but for the width: a Chinese character is as wide as two letters."""
        values = [value for value in node.values if isinstance(value, ast.FormattedValue)]
        found = [
            (ast.dump(self.visit(value.value)), value.conversion, form(value)) for value in values
        ]
        return ast.Constant(str(sorted(found)))


def form(value):
    """How a value of an f-string is shown, without the width."""
    if value.format_spec is None:
        return ""
    return re.sub(r"^f?'([<>=^+\- ]*)\d+", r"'\1", ast.unparse(value.format_spec))


def skeleton(cell):
    """A cell's code without words."""
    return ast.dump(Wordless().visit(ast.parse(python_of(cell))))


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
        if not SHOWN.search(cell.source):
            assert numbers(one) == numbers(other), name
        assert one.count("](") == other.count("]("), name


def test_numbers_are_those_of_its_own_run(source):
    """What the English prose takes from an output stands in the output of the same Chinese cell.

    The comments that say where a number is from are in the English text alone. Where this fails:
    write the Chinese run's number into the translation.
    """
    theirs = nbformat.read(chinese(source), as_version=4).cells
    wrong = []
    for place, cell in enumerate(nbformat.read(source, as_version=4).cells):
        if cell.cell_type != "markdown" or not SHOWN.search(cell.source):
            continue
        claimed = set().union(*(values(text) for text, _ in paragraphs(cell)))
        no_claim = values(prose(cell.source)) - claimed  # of sections, stages ...
        names = {name for _, named_here in paragraphs(cell) for name in named_here if name}
        known = no_claim.union(around(theirs, place), *(named(theirs, name) for name in names))
        found = values(prose(theirs[place].source))
        wrong += [(cell.id, number) for number in found if known.isdisjoint({number, number / 100})]
    assert wrong == []


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


def test_a_changed_string_is_noticed(tmp_path):
    source = SOURCES[0]
    notebook = nbformat.read(source, as_version=4)
    changed = next(cell for cell in notebook.cells if cell.cell_type == "code")
    changed.source += "\nprint('one more sentence')  # and why"
    nbformat.write(notebook, tmp_path / source.name)
    assert untranslated(tmp_path / source.name) == ["one more sentence", "# and why"]


KNOWN = {
    "{n} of": "共 {all} 个，",
    "{all} solved": "解决 {n} 个",
    "# why": "# 为什么",
    "xlabel=update": "更新",
    "A line.": "一行。",
    "Another line.": "另一行。",
}


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        (
            'print(f"{n} of "\n      f"{all} solved")',
            'print(f"共 {all} 个，"\n      f"解决 {n} 个")',
        ),
        ("x = 1  # why", "x = 1  # 为什么"),
        ('plot(row["update"], xlabel="update")', 'plot(row["update"], xlabel="更新")'),
        ('"""A line.\n\n   Another line.\n"""', '"""一行。\n\n   另一行。\n"""'),
        ("!ls # why\nprint(r'# why')", "!ls # why\nprint(r'# 为什么')"),
        (
            'profile = setup("01", FETCHED, minutes=3)',
            'profile = setup("01", FETCHED, minutes=3, language="zh")',
        ),
    ],
    ids=["f-strings", "comment", "label and key", "lines", "shell", "set-up"],
)
def test_words_of_code_are_put_in_place(english, chinese):
    assert translated_code(new_code_cell(english), KNOWN) == chinese


def test_outputs_stay_as_long_as_the_code_does(tmp_path):
    ran = new_notebook(cells=[new_code_cell("print(1)", id="a", execution_count=1)])
    ran.cells[0].outputs = [new_output("stream", text="1\n")]
    nbformat.write(ran, tmp_path / "ran.ipynb")
    for code, kept in (("print(1)", ran.cells[0].outputs), ("print(2)", [])):
        made = new_notebook(cells=[new_code_cell(code, id="a")])
        take_outputs(made, tmp_path / "ran.ipynb")
        assert made.cells[0].outputs == kept
        assert is_executed(made) == bool(kept)
