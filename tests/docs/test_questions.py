"""The forty questions: each is answered in the section and by the cell that its place names.

The words in bold of an answer are its key words. They stand in a section that is named, and each
cell that is named says or prints at least one of them.
"""

import functools
import os
import re
from dataclasses import dataclass

import nbformat
import pytest
from documents import read, sections
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from helpers.settings.paths import ROOT

pytestmark = pytest.mark.docs

PAGES = {"en": "docs/teaching/questions.md", "zh": "docs/zh/teaching/questions.md"}
PLACE = re.compile(
    r"\[Notebook (?P<notebook>\d)(?:, section |，第 )(?P<section>\d+)(?:: | 节：)(?P<name>[^\]]+)\]"
    r"\((?P<path>\S+\.ipynb)\)<!-- (?P<cell>[\w-]+) -->"
)
SECTION = re.compile(r"## (\d+)\. (.+?)(?: \(~.*|（约.*)?$", re.MULTILINE)


@dataclass
class Question:
    """A heading of a page, the answer below it, and the places behind the answer."""

    number: int
    words: str
    answer: str
    places: list[re.Match[str]]


def questions(text):
    """The questions of a page, in its order."""
    found = []
    for section in sections(text):
        if match := re.match(r"### (\d+)\. (.+)\n", section):
            places = list(PLACE.finditer(section))
            end = places[0].start() if places else len(section)
            answer = section[match.end() : end].strip("\n(（")
            found.append(Question(int(match[1]), match[2], answer, places))
    return found


def plain(text):
    """A text without comments, marks, addresses of links and white space, in lower case."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"<!--.*?-->|[*`\s]", "", words, flags=re.DOTALL).lower()


@functools.cache
def sections_of(path):
    """{(number, name) of a section: {id of a cell: what it says and prints}} of a notebook.

    ``path``: from the root of the repository. A cell in which a section ends and another one begins
    has a part in both.
    """
    found = {}
    here = {}
    for cell in nbformat.read(ROOT / path, as_version=4).cells:
        if cell.cell_type == "code":
            printed = (o.text for o in cell.outputs if o.output_type == "stream")
            here[cell.id] = plain(cell.source + "".join(printed))
            continue
        for part in re.split(r"\n(?=## )", cell.source):
            if part.startswith("## "):
                heading = SECTION.match(part)
                here = found.setdefault(heading.groups(), {}) if heading else {}
            here[cell.id] = plain(part)
    return found


def key_words(answer):
    """What is bold in an answer, as `plain` writes it."""
    return [plain(words) for words in re.findall(r"\*\*(.+?)\*\*", answer, re.DOTALL)]


def problems(question, folder):
    """A sentence for each place that is not there, and for each key word that is not said there.

    ``folder``: of the page, from the root of the repository.
    """
    wrong = []
    named = []  # the sections, each as one text
    keys = key_words(question.answer)
    for place in question.places:
        path = os.path.normpath(os.path.join(folder, place["path"]))
        if not os.path.basename(path).startswith(f"0{place['notebook']}_"):
            wrong.append(f"{path} is not notebook {place['notebook']}")
            continue
        cells = sections_of(path).get((place["section"], place["name"]))
        if cells is None:
            wrong.append(f"there is no section {place['section']}: {place['name']}")
        elif place["cell"] not in cells:
            wrong.append(f"section {place['section']} has no cell {place['cell']}")
        else:
            named.append("\n".join(cells.values()))
            if not any(key in cells[place["cell"]] for key in keys):
                wrong.append(f"{place['cell']} says none of the key words")
    return wrong + [f"not said: {key}" for key in keys if not any(key in text for text in named)]


@pytest.mark.parametrize("number", range(1, 41))
@pytest.mark.parametrize("language", PAGES)
def test_an_answer_stands_where_its_place_says(language, number):
    question = questions(read(PAGES[language]))[number - 1]
    assert question.number == number
    assert question.places
    assert key_words(question.answer)
    assert problems(question, os.path.dirname(PAGES[language])) == []


@pytest.mark.parametrize("language", PAGES)
def test_there_are_twenty_questions_from_each_half_of_the_course(language):
    found = questions(read(PAGES[language]))
    assert len({question.words for question in found}) == len(found) == 40
    assert all(question.words[-1] in "?？" for question in found)
    notebooks = [question.places[0]["notebook"] for question in found]
    assert set(notebooks[:20]) == set("123")
    assert set(notebooks[20:]) == set("456")


@pytest.mark.parametrize("language", PAGES)
def test_an_answer_has_one_to_three_sentences(language):
    for question in questions(read(PAGES[language])):
        ends = re.findall(r"[.?](?=\s|$)|[。？]", question.answer.replace("**", ""))
        assert 1 <= len(ends) <= 3, question.words


def test_both_languages_name_the_same_places():
    english, chinese = (
        [
            [place.group("notebook", "section", "cell") for place in question.places]
            for question in questions(read(page))
        ]
        for page in PAGES.values()
    )
    assert english == chinese


PAGE = """### 1. What is the mask for?

It says which tokens **the policy wrote**: **5 of 6** here.
([Notebook 1, section 2: The mask](01_start.ipynb)<!-- b -->)
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with a notebook of two sections."""
    printed = new_output("stream", text="5 of 6 tokens\n")
    cells = [
        new_markdown_cell(
            "## 1. Tokens (~1 min)\n\nText.\n\n## 2. The mask (~2 min)\n\n1 or 0.", id="a"
        ),
        new_markdown_cell("It is 1 where the *policy* wrote a token.", id="b"),
        new_code_cell("print(count)", id="c", outputs=[printed]),
        new_markdown_cell("## What you built\n\nA mask.", id="d"),
    ]
    nbformat.write(new_notebook(cells=cells), tmp_path / "01_start.ipynb")
    return tmp_path


@pytest.mark.parametrize(
    "old, new, wrong",
    [
        ("", "", []),
        ("<!-- b -->", "<!-- c -->", []),
        ("Notebook 1", "Notebook 2", "is not notebook 2"),
        ("section 2", "section 3", "there is no section 3: The mask"),
        ("The mask]", "A mask]", "there is no section 2: A mask"),
        ("<!-- b -->", "<!-- d -->", "section 2 has no cell d"),
        ("<!-- b -->", "<!-- a -->", "a says none of the key words"),
        ("**5 of 6**", "**4 of 6**", "not said: 4of6"),
    ],
)
def test_a_wrong_place_and_a_wrong_answer_are_named(folder, old, new, wrong):
    (question,) = questions(PAGE.replace(old, new))
    found = problems(question, str(folder))
    assert (wrong in found[0]) if wrong else (found == [])
