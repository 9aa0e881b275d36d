"""The two glossaries hold together, and each term is found in the section that introduces it."""

import re

import nbformat
import pytest
from documents import CJK, HALF_WIDTH, TERMS, read

from helpers.settings.paths import ROOT

pytestmark = pytest.mark.docs

PLACE = re.compile(
    r"\[(?:Notebook|笔记本) (\d)(?:, section |，第 )(\d+)(?: 节：|: )(.+)\]"
    r"\((?:\.\./)+(notebooks/.+\.ipynb)\)"
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
        assert PLACE.fullmatch(place).groups() == PLACE.fullmatch(there).groups()


def test_chinese_terms_are_those_of_the_readme(chinese):
    terms = {both: re.search(r"（(\w+)）", both)[1] for both in TERMS}
    ours = {match[1]: both for both, *_ in chinese if (match := re.search(r"（(\w+)）", both))}
    assert len(set(terms.values()) & set(ours)) >= 10
    for both, word in terms.items():
        assert ours.get(word, both) == both
    readme = read("README_zh.md")
    for translation in ("对数概率（logprob）", "词元账本（token ledger）"):
        assert translation in readme
        assert translation in {both for both, *_ in chinese}


def test_each_is_in_its_language(english, chinese):
    assert not [row for row in english if CJK.search(row[2] + row[3])]
    assert all(CJK.search(meaning) for _, meaning, _ in chinese)
    assert not [row for row in chinese if HALF_WIDTH.search("".join(row))]


def test_terms_are_explained_in_one_or_two_sentences(english):
    for term, _, meaning, _ in english:
        assert meaning.endswith("."), term
        assert 1 <= len(re.findall(r"\.(?= [A-Z]|$)", meaning)) <= 2, term


def test_each_term_is_introduced_where_the_glossary_says(english):
    order = []
    for term, _, _, place in english:
        number, section, name, notebook = PLACE.fullmatch(place).groups()
        path = ROOT / notebook
        assert path.name.startswith(f"0{number}_")
        text = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
        found = re.search(
            rf"^## {section}\. {re.escape(name)}(?: \(~.*)?$(.*?)(?=^## |\Z)",
            text,
            re.MULTILINE | re.DOTALL,
        )
        assert found, place
        assert term.lower() in found[0].lower(), term
        order.append((int(number), int(section)))
    assert order == sorted(order)


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
