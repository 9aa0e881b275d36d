"""A number in a notebook's prose can be looked up: in an output, in the code beside it, in a file.

A paragraph that quotes what was measured holds a comment, which no reader sees, with the cell that
printed its numbers; or with the file of the repository that sets them:

    The policy solves 40 % of the pages. <!-- shown by c22 -->
    The brackets hold 95 % intervals. <!-- set in helpers/evaluation/statistics.py -->

Each number of a paragraph stands

- in an output of the cell, or in the text of the file, that the paragraph names;
- or as a constant in the code around it: the code cell above, the code cell below, or the one under
  "Parameters", or in a Python file that the paragraph names. 20 % may be 0.2 there. A count
  ("6 of 24") is no constant: its cell is named.

Some numbers claim nothing: those of headings, tables, exercises ("**3.1 (10 minutes)**"), stages
and versions; those in code, formulas, addresses and names (SmolLM2-135M); what is folded, apart
from answers; 0 and 1, of which masks, rewards and probabilities are made, unless they count or are
per cent. A number that is written as a word is not looked at.
"""

import ast
import re
from decimal import Decimal

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from helpers.course.handed_in import python_of
from helpers.settings.paths import ROOT, notebook_paths

pytestmark = pytest.mark.docs

SOURCE = re.compile(r"<!-- (?:shown by|set in) (?P<names>[\w./, -]+?) -->")
NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]*[A-Za-z_])")
COUNT = re.compile(rf"({NUMBER.pattern}) of (?:the )?({NUMBER.pattern})")
NUMBERED = r"\d+(?:\.\d+)?"
NO_CLAIM = re.compile(
    "|".join(
        (
            r"^```.*?^```|`[^`\n]+`|<code>.*?</code>|\$[^$\n]+\$",  # code and formulas
            r"<details><summary>(?!Answer).*?</details>",
            r"^(?:#|\|)[^\n]*",  # headings, rows of tables
            r"(?<=\])\([^)]*\)|\barXiv[: ]\S+",  # where a link leads, what is cited
            r"\*\*(?:\w+ )?\d\.\d[^*]*\*\*|^\d\.\d and \d\.\d\b",  # exercises, with their minutes
            rf"\b(?i:notebook|section|stage|step|version|exercise)s? {NUMBERED}"
            rf"(?:(?:, | and | to | or ){NUMBERED})*",
            r"\b\d (?=reset|read|answer|act|learn)",  # the stages of the loop
            r"\b\d+-bit\b|\bpass@\d+",  # names
        )
    ),
    re.MULTILINE | re.DOTALL,
)


def value(text):
    """The number that a text shows: 0.60 and 0.6, 1,000 and 1000 are the same."""
    return Decimal(text.replace(",", ""))


def values(text):
    """Every number in a text, without its sign."""
    return {value(number) for number in NUMBER.findall(text)}


def paragraphs(cell):
    """(prose without the numbers that claim nothing, what its comments name) of each paragraph."""
    text = NO_CLAIM.sub("", cell.source)
    for paragraph in re.split(r"\n\s*\n", text):
        names = ", ".join(SOURCE.findall(paragraph))
        yield re.sub(r"<!--.*?-->", "", paragraph, flags=re.DOTALL), re.split(r",\s*", names)


def constants(cell):
    """The numbers that a code cell computes with; none where there is no cell."""
    found = set()
    for node in ast.walk(ast.parse(python_of(cell) if cell else "")):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):  # True is no number
            found.add(Decimal(str(node.value)))
    return found


def shown(cell):
    """The numbers in the outputs of a code cell."""
    texts = []
    for output in cell.outputs:
        texts += [output.get("text", ""), output.get("data", {}).get("text/plain", "")]
    return values("\n".join(texts))


def around(cells, place):
    """The constants of the code above and below a cell, and of that under "Parameters"."""
    titles = [cell.source.partition("\n")[0] for cell in cells]
    parameters = titles.index("## Parameters") if "## Parameters" in titles else len(cells)
    above, below = reversed(cells[:place]), cells[place:]
    near = map(code_cell, (above, below, cells[parameters:]))
    return set().union(*map(constants, near))


def code_cell(cells):
    """The first of some cells that holds code, or None."""
    return next((cell for cell in cells if cell.cell_type == "code"), None)


def named(cells, name):
    """The numbers of what a comment names: a cell by its id, or a file of the repository."""
    cell = next((cell for cell in cells if cell.id == name and cell.cell_type == "code"), None)
    return shown(cell) if cell else values((ROOT / name).read_text(encoding="utf-8"))


def claims(text):
    """(number as it is written, whether it counts, whether it is per cent) of a paragraph."""
    counts = {number for pair in COUNT.findall(text) for number in pair}
    for match in NUMBER.finditer(text):
        percent = bool(re.match(r" ?%", text[match.end() :]))
        counted = match[0] in counts
        if value(match[0]) not in (0, 1) or counted or percent:
            yield match[0], counted, percent


def unexplained(cells):
    """(cell id, number, paragraph) of each number of the prose that stands nowhere else."""
    found = []
    for place, cell in enumerate(cells):
        if cell.cell_type != "markdown":
            continue
        beside = around(cells, place)
        for text, names in paragraphs(cell):
            known = {name: named(cells, name) for name in names if name}
            there = set().union(*known.values())
            near = beside.union(
                *(numbers for name, numbers in known.items() if name.endswith(".py"))
            )
            for number, counted, percent in claims(text):
                same = {value(number), value(number) / (100 if percent else 1)}
                if value(number) not in there and (counted or near.isdisjoint(same)):
                    found.append((cell.id, number, text.strip()))
    return found


def notebook_of(prose, code="EPISODES = 40\nCLIP = 0.2", printed="40 pages, 0.35 solved"):
    """The cells of a notebook: some prose below a code cell with the id c1, which has printed."""
    output = new_output("stream", text=printed)
    return [
        new_code_cell(code, id="c1", outputs=[output]),
        new_markdown_cell("More."),
        new_code_cell("", id="c2"),
        new_markdown_cell(prose, id="m1"),
    ]


@pytest.mark.parametrize("path", notebook_paths(), ids=lambda path: path.stem)
def test_each_number_of_the_prose_stands_where_it_comes_from(path):
    assert unexplained(nbformat.read(path, as_version=4).cells) == []


@pytest.mark.parametrize(
    "prose",
    [
        "The rate is 0.35. <!-- shown by c1 -->",
        "Of 40 pages\n0.350 are solved. <!-- shown by c2, c1 -->",
        "Half of a mask is 1, and a reward of 0 teaches as well.",
        "## 12. A heading (~8 min)",
        "**3.1 (10 minutes)** Medium. As in notebooks 2 and 3, section 7, **3 answer**.",
        "It is written `12`, $p^{12}$, [here](12.md), SmolLM2-135M, in 32-bit numbers.",
        "```python\nx = 12\n```",
        "<details><summary>Hint</summary>Take 12.</details>",
        "A run that lost more than 1 % is invalid. <!-- set in helpers/evaluation/evaluate.py -->",
        "It solves 20 to 80 % of them. <!-- set in helpers/learning/arms/plan.py -->",
    ],
)
def test_what_is_shown_or_claims_nothing_passes(prose):
    assert unexplained(notebook_of(prose)) == []


@pytest.mark.parametrize(
    ("prose", "numbers"),
    [
        ("The rate is 0.35.", ["0.35"]),
        ("The rate is 0.36. <!-- shown by c1 -->", ["0.36"]),
        ("The rate is 0.35.\n\nAnother paragraph. <!-- shown by c1 -->", ["0.35"]),
        ("The rate is 35 %. <!-- shown by c1 -->", ["35"]),
        ("It solves 1 of 40. <!-- shown by c1 -->", ["1"]),
        ("Only 1 % are lost.", ["1"]),
        ("It plays 1,000 pages, -3 and 5e-6.", ["1,000", "3", "5e-6"]),
        ("<details><summary>Answer</summary>It is 12.</details>", ["12"]),
    ],
)
def test_a_number_that_stands_nowhere_is_found(prose, numbers):
    assert [number for _, number, _ in unexplained(notebook_of(prose))] == numbers


def test_a_constant_counts_beside_its_code_and_everywhere_below_parameters():
    far = notebook_of("We play 40 pages and clip at 20 %.")
    assert [number for _, number, _ in unexplained(far)] == ["40", "20"]
    assert unexplained(far[:1] + far[3:]) == []
    assert unexplained([new_markdown_cell("## Parameters"), *far]) == []


def test_a_count_is_no_constant():
    cells = [notebook_of("")[0], new_markdown_cell("It solves 8 of 40 pages.")]
    assert [number for _, number, _ in unexplained(cells)] == ["8", "40"]


def test_what_a_comment_names_has_to_be_there():
    with pytest.raises(FileNotFoundError, match="c9"):
        unexplained(notebook_of("The rate is 0.35. <!-- shown by c9 -->"))
