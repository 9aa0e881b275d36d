"""The two READMEs say the same, and their numbers are those of the recordings."""

import dataclasses
import re

import pytest
from documents import (
    CJK,
    HALF_WIDTH,
    TERMS,
    code_blocks,
    invented,
    levels,
    links,
    prose,
    read,
    sections,
    tables,
)

from helpers.settings.paths import ROOT
from helpers.settings.profiles import Profile
from tools import make_results

pytestmark = pytest.mark.docs

SETTING = re.compile(r"COURSE_[A-Z]+(?:_[A-Z]+)*")
# Messages of other programs.
FOREIGN = {
    "make: command not found",
    "operator torchvision::nms does not exist",
}


@pytest.fixture(scope="module")
def english():
    return read("README.md")


@pytest.fixture(scope="module")
def chinese():
    return read("README_zh.md")


def pictures(text):
    """(alternative text, address) of each picture."""
    return re.findall(r"!\[([^\]]*)\]\(([^)\s]+)\)", text)


def test_same_headings_code_and_links(english, chinese):
    assert levels(english) == levels(chinese)
    assert code_blocks(english) == code_blocks(chinese)
    assert links(english) == links(chinese)
    for one, other in zip(sections(english), sections(chinese), strict=True):
        assert links(one) == links(other), one.splitlines()[0]


def test_same_tables(english, chinese):
    ours, theirs = tables(english), tables(chinese)
    assert len(ours) == len(theirs) >= 6
    for one, other in zip(ours, theirs, strict=True):
        assert len(one) == len(other)
        for row, counterpart in zip(one, other, strict=True):
            assert row == counterpart


@pytest.mark.parametrize("language", ["en", "zh"])
def test_generated_blocks_are_those_of_the_recordings(language):
    """Where this fails: make results."""
    text = make_results.READMES[language].read_text(encoding="utf-8")
    named = {match["name"] for match in make_results.BLOCK.finditer(text)}
    assert named >= set(make_results.BLOCKS)
    assert make_results.render(text, language) == text


def test_a_changed_number_is_noticed_and_mended(english):
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
    written = re.sub(r"<!-- begin.*?<!-- end -->", "", prose(chinese), flags=re.DOTALL)
    for paragraph in re.split(r"\n\s*\n", written):
        if paragraph.strip():
            assert CJK.search(paragraph), paragraph
    assert HALF_WIDTH.findall(prose(chinese)) == []
    for term in TERMS:
        assert term in chinese, term


def test_error_texts_are_real(english):
    """The first column of the troubleshooting table quotes sentences that the course can say."""
    section = next(s for s in sections(english) if s.startswith("## Troubleshooting"))
    quoted = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
    assert len(quoted) > 15
    assert invented(set(quoted) - FOREIGN) == []


def test_every_setting_is_listed(english):
    """Each COURSE_ variable that the code reads is in a table, and no other."""
    files = [ROOT / "Makefile"]
    for folder in ("helpers", "scripts"):
        files += (ROOT / folder).rglob("*.py")
    read_somewhere = set()
    for path in files:
        read_somewhere |= set(SETTING.findall(path.read_text(encoding="utf-8")))
    fields = {f"COURSE_{field.name.upper()}" for field in dataclasses.fields(Profile)}
    named = set(SETTING.findall(english))
    assert read_somewhere <= named
    assert named <= read_somewhere | fields


def test_every_field_of_a_profile_is_in_the_table_of_settings(english):
    """Those apart that say which machine it is, and COURSE_SCALE, which stands elsewhere."""
    shown = set(re.findall(r"^\| `COURSE_(\w+)` \|", english, re.MULTILINE))
    not_set = {"name", "device", "memory_gb", "scale", "measured"}
    fields = {field.name for field in dataclasses.fields(Profile)} - not_set
    assert {name.upper() for name in fields} <= shown
