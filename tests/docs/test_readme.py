"""The two READMEs say the same, and their numbers are those of the recordings."""

import importlib.util
import re
import sys
from collections import Counter

import pytest

from helpers.settings.paths import ROOT

CJK = re.compile(r"[\u4e00-\u9fff]")
TERMS = (
    "观测（observation）",
    "环境（environment）",
    "提示（prompt）",
    "策略（policy）",
    "动作（action）",
    "奖励（reward）",
    "回合（episode）",
    "轨迹（rollout）",
    "词元（token）",
    "优势（advantage）",
    "组（group）",
    "步（turn）",
    "种子（seed）",
)
FOREIGN = {
    "make: command not found",
    "operator torchvision::nms does not exist",
}  # messages of other programs


@pytest.fixture(scope="module")
def english():
    return (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def chinese():
    return (ROOT / "README_zh.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def make_results():
    spec = importlib.util.spec_from_file_location(
        "make_results", ROOT / "scripts" / "make_results.py"
    )
    module = sys.modules["make_results"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def code_blocks(text):
    return re.findall(r"^```.*?^```$", text, re.MULTILINE | re.DOTALL)


def prose(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def pictures(text):
    return re.findall(r"!\[([^\]]*)\]\(([^)\s]+)\)", text)


def links(text):
    found = re.findall(r"\]\(([^)\s]+)\)", prose(text))
    return Counter(
        link.replace("_zh.md", ".md") for link in found if link not in ("README.md", "README_zh.md")
    )


def tables(text):
    """For each table, for each row: how many cells, and the numbers and the code in it. A date's words may differ."""
    rows, found = [], []
    for line in [*prose(text).splitlines(), ""]:
        if line.startswith("|"):
            line = re.sub(r"<!--.*?-->|(?:November|December) 2025|2025 年 1[12] 月", "", line)
            rows.append(
                (
                    line.count("|"),
                    sorted(re.findall(r"\d+(?:\.\d+)?", line)),
                    sorted(re.findall(r"`[^`]+`", line)),
                )
            )
        elif rows:
            found.append(rows)
            rows = []
    return found


def sections(text):
    """The pieces between headings, with the level of the heading."""
    return re.split(r"^(?=#+ )", prose(text), flags=re.MULTILINE)[1:]


def test_same_headings_code_and_links(english, chinese):
    def levels(text):
        return [section.split(" ")[0] for section in sections(text)]

    assert levels(english) == levels(chinese)
    assert code_blocks(english) == code_blocks(chinese)
    assert links(english) == links(chinese)
    for one, other in zip(sections(english), sections(chinese), strict=True):
        assert links(one) == links(other), one.splitlines()[0]


def test_same_tables(english, chinese):
    ours, theirs = tables(english), tables(chinese)
    assert len(ours) == len(theirs) >= 6
    for one, other in zip(ours, theirs, strict=True):
        for row, counterpart in zip(one, other, strict=True):
            assert row == counterpart


@pytest.mark.parametrize("language", ["en", "zh"])
def test_generated_blocks_are_those_of_the_recordings(make_results, language):
    """Where this fails: make results."""
    text = make_results.READMES[language].read_text(encoding="utf-8")
    assert {m["name"] for m in make_results.BLOCK.finditer(text)} >= set(make_results.BLOCKS)
    assert make_results.render(text, language) == text


def test_a_changed_number_is_noticed_and_mended(make_results, english):
    changed = re.sub(r"(\| `COURSE_GROUP_SIZE` \|[^|]+\| )\d+", r"\g<1>77", english)
    assert changed != english
    assert make_results.render(changed, "en") == english


def test_pictures_are_described(english, chinese):
    for alt, _ in pictures(english):
        assert 8 <= len(alt.split()) <= 25, alt
    for alt, _ in pictures(chinese):
        assert 8 <= len(CJK.findall(alt)) <= 60, alt


def test_each_is_in_its_language(english, chinese):
    assert CJK.findall(english.replace("[中文](README_zh.md)", "")) == []
    for paragraph in re.split(
        r"\n\s*\n", re.sub(r"<!-- begin.*?<!-- end -->", "", prose(chinese), flags=re.DOTALL)
    ):
        if paragraph.strip():
            assert CJK.search(paragraph), paragraph
    assert (
        re.findall(r"[\u4e00-\u9fff][,;:?!]|[,;:?!][\u4e00-\u9fff]", prose(chinese)) == []
    )  # full-width there
    for term in TERMS:
        assert term in chinese, term


def invented(quotes):
    """Those of the quoted sentences that the course cannot say."""
    source = "\n".join(
        p.read_text()
        for folder in ("helpers", "scripts")
        for p in (ROOT / folder).rglob("*.py")
        if p.name != "make_results.py"
    )
    source = re.sub(r"""["']\s*\n\s*f?["']""", "", source)  # a string that goes on in the next line
    source = re.sub(r"\{[^{}]*\}", "…", source)
    return [text for text in quotes if not all(part.strip() in source for part in text.split("…"))]


def test_error_texts_are_real(english):
    """The first column of the troubleshooting table quotes sentences that the course can say."""
    section = next(s for s in sections(english) if s.startswith("## Troubleshooting"))
    quoted = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
    assert len(quoted) > 15
    assert invented(set(quoted) - FOREIGN) == []


def test_every_setting_is_listed(english):
    """Each COURSE_ variable that the code reads is in a table, and no other."""
    source = "\n".join(
        p.read_text() for folder in ("helpers", "scripts") for p in (ROOT / folder).rglob("*.py")
    )
    read = set(re.findall(r"COURSE_[A-Z]+(?:_[A-Z]+)*", source + (ROOT / "Makefile").read_text()))
    named = set(re.findall(r"COURSE_[A-Z]+(?:_[A-Z]+)*", english))
    assert read <= named
    for name in named - read:
        assert (
            name.removeprefix("COURSE_").lower() in (ROOT / "helpers" / "profiles.py").read_text()
        ), name
