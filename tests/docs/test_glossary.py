"""The two glossaries hold together, and each term is found in the section that introduces it."""

import re

import nbformat
import pytest
from documents import CJK, HALF_WIDTH, TERMS, chinese_page, english_pages, read

from helpers.settings.paths import ROOT

pytestmark = pytest.mark.docs

PLACE = re.compile(
    r"\[Notebook (?P<number>\d)(?:, section |，第 )(?P<section>\d+)(?: 节：|: )(?P<name>.+)\]"
    r"\((?:\.\./)+(?P<notebook>notebooks/.+\.ipynb)\)"
)


def rows(name):
    """The cells of each row of the glossary's table, without its head."""
    lines = [line for line in read(name).splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


@pytest.fixture(scope="module")
def english():
    return rows("docs/glossary.md")


@pytest.fixture(scope="module")
def chinese():
    return rows("docs/zh/glossary.md")


def test_same_terms_in_the_same_order_with_the_same_links(english, chinese):
    assert len(english) == len(chinese) == 15
    assert len({term for term, *_ in english}) == 15
    for (term, translation, _, place), (both, _, there) in zip(english, chinese, strict=True):
        # Such as 观测（observation）; LoRA（low-rank adaptation，低秩适配）.
        assert f"{translation}（" in both or f"，{translation}）" in both, term
        assert term.lower() in both.lower()
        ours, theirs = PLACE.fullmatch(place), PLACE.fullmatch(there)
        assert (ours["number"], ours["section"]) == (theirs["number"], theirs["section"])
        assert chinese_page(ours["notebook"]) == theirs["notebook"]


def test_chinese_terms_are_those_of_the_other_pages(chinese):
    terms = {both: re.search(r"（(\w+)）", both)[1] for both in TERMS}
    ours = {match[1]: both for both, *_ in chinese if (match := re.search(r"（(\w+)）", both))}
    assert len(set(terms.values()) & set(ours)) >= 10
    for both, word in terms.items():
        assert ours.get(word, both) == both
    pages = "\n".join(read(chinese_page(name)) for name in english_pages())
    for translation in ("对数概率（logprob）", "词元账本（token ledger）"):
        assert pages.count(translation) >= 2  # here and where it is first used
        assert translation in {both for both, *_ in chinese}


def test_each_is_in_its_language(english, chinese):
    assert not [row for row in english if CJK.search(row[2] + row[3])]
    assert all(CJK.search(meaning) for _, meaning, _ in chinese)
    assert not [row for row in chinese if HALF_WIDTH.search("".join(row))]


def test_terms_are_explained_in_one_or_two_sentences(english):
    for term, _, meaning, _ in english:
        assert meaning.endswith("."), term
        assert 1 <= len(re.findall(r"\.(?= [A-Z]|$)", meaning)) <= 2, term


def section_named(place):
    """The section of a notebook that a cell of the last column names."""
    match = PLACE.fullmatch(place)
    path = ROOT / match["notebook"]
    assert path.name.startswith(f"0{match['number']}_")
    text = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
    heading = rf"^## {match['section']}\. {re.escape(match['name'])}(?: \(~.*|（约.*)?$"
    found = re.search(rf"{heading}(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, place
    return found[0]


def test_each_term_is_introduced_where_the_glossary_says(english):
    order = []
    for term, _, _, place in english:
        assert term.lower() in section_named(place).lower(), term
        match = PLACE.fullmatch(place)
        order.append((int(match["number"]), int(match["section"])))
    assert order == sorted(order)


def test_the_chinese_glossary_names_sections_as_the_chinese_notebooks_do(chinese):
    for _, _, place in chinese:
        assert CJK.search(section_named(place))


@pytest.mark.parametrize(
    "readme, glossary, other",
    [
        ("README.md", "docs/glossary.md", "zh/glossary.md"),
        ("README_zh.md", "docs/zh/glossary.md", "../glossary.md"),
    ],
)
def test_a_readme_leads_to_the_glossary_of_its_language_and_that_to_the_other(
    readme, glossary, other
):
    assert f"]({glossary})" in read(readme)
    assert f"]({other})" in read(glossary)
