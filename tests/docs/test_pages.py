"""The READMEs and the pages of docs/: the same in both languages, one place for each fact, and
every test, setting, sentence and section that they name is there.
"""

import dataclasses
import os
import re
from collections import Counter
from pathlib import Path

import nbformat
import pytest
from documents import (
    CJK,
    GENERATED,
    HALF_WIDTH,
    TERMS,
    chinese_page,
    code_blocks,
    english_pages,
    invented,
    levels,
    links,
    prose,
    read,
    sections,
    tables,
)

from helpers.settings.paths import NOTEBOOKS, ROOT, notebook_paths
from helpers.settings.profiles import Profile
from tools import make_results

pytestmark = pytest.mark.docs

PAIRS = [(name, chinese_page(name)) for name in english_pages()]
GLOSSARY = "docs/glossary.md"  # its tables differ: test_glossary compares them
SETTING = re.compile(r"COURSE_[A-Z]+(?:_[A-Z]+)*")
# Messages of other programs.
FOREIGN = {
    "make: command not found",
    "operator torchvision::nms does not exist",
}
# Percentages of papers, and the ceiling and the limit that the text explains.
PUBLISHED = {"29.5", "43.5", "55.2", "67.2", "67", "90", "95", "1"}


@pytest.fixture(params=PAIRS, ids=lambda pair: pair[0])
def pair(request):
    """(name, text) of a page and of its Chinese twin."""
    return [(name, read(name)) for name in request.param]


def pictures(text):
    """(alternative text, address) of each picture."""
    return re.findall(r"!\[([^\]]*)\]\(([^)\s]+)\)", text)


def numbers(text):
    """How often each measured number stands in a text, outside of links and code."""
    plain = re.sub(r"\]\([^)]*\)|`[^`\n]+`|<!--.*?-->", "", prose(text))
    return Counter(re.findall(r"\d+(?:\.\d+)?(?: %| GB| MB)", plain))


def test_every_page_has_a_twin():
    english = {name for name, _ in PAIRS}
    assert len(english) > 11
    for _, chinese in PAIRS:
        assert (ROOT / chinese).exists(), chinese
    there = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "zh").rglob("*.md")}
    assert there == {chinese for name, chinese in PAIRS if name != "README.md"}


def test_same_headings_code_links_and_numbers(pair):
    (name, english), (other_name, chinese) = pair
    assert levels(english) == levels(chinese)
    assert code_blocks(english) == code_blocks(chinese)
    folders = [os.path.dirname(page) or "." for page in (name, other_name)]
    for one, other in zip(sections(english), sections(chinese), strict=True):
        heading = one.splitlines()[0]
        assert links(one, folders[0]) == links(other, folders[1]), heading
        assert numbers(one) == numbers(other), heading


def test_same_tables(pair):
    (name, english), (_, chinese) = pair
    ours, theirs = tables(english), tables(chinese)
    assert len(ours) == len(theirs)
    if name != GLOSSARY:
        for one, other in zip(ours, theirs, strict=True):
            assert one == other


def test_pictures_are_described(pair):
    (_, english), (_, chinese) = pair
    for alt, _ in pictures(english):
        assert 8 <= len(alt.split()) <= 25, alt
    for alt, _ in pictures(chinese):
        assert 8 <= len(CJK.findall(alt)) <= 60, alt


def test_each_is_in_its_language_and_leads_to_the_other(pair):
    (name, english), (other_name, chinese) = pair
    switches = [text.splitlines()[2] for text in (english, chinese)]
    assert re.fullmatch(r"English \| \[中文\]\(\S+\)", switches[0])
    assert re.fullmatch(r"\[English\]\(\S+\) \| 中文", switches[1])
    folder = os.path.dirname(name)
    target = re.search(r"\((\S+)\)", switches[0])[1]
    assert os.path.normpath(os.path.join(folder, target)) == other_name
    if name != GLOSSARY:  # which has the Chinese terms
        assert CJK.findall(english.replace(switches[0], "")) == []
    written = GENERATED.sub("", prose(chinese))
    for paragraph in re.split(r"\n\s*\n", written):
        # A list of addresses has no words.
        if re.sub(r"\[[^\]]*\]\([^)]*\)|[\s，]", "", paragraph):
            assert CJK.search(paragraph), paragraph
    assert HALF_WIDTH.findall(re.sub(r"`[^`\n]+`", "", prose(chinese))) == []


def test_every_term_is_given_in_english_once():
    everything = "\n".join(read(chinese) for _, chinese in PAIRS)
    for term in TERMS:
        assert term in everything, term


def linked_files(name):
    """(line, path in the repository) of each link of a text or notebook into the repository."""
    text = read(name)
    if name.endswith(".ipynb"):
        cells = nbformat.reads(text, as_version=4).cells
        text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    for line in prose(text).splitlines():
        for link in re.findall(r"\]\(([^)\s]+)\)", line):
            path = link.partition("#")[0]
            if own := re.search(r"/blob/main/(\S+)", path):
                yield line, own[1]
            elif path and not re.match(r"\w+:", path):
                yield line, os.path.normpath(os.path.join(os.path.dirname(name), path))


CHINESE = [chinese for _, chinese in PAIRS]
CHINESE += [path.relative_to(ROOT).as_posix() for path in notebook_paths(NOTEBOOKS / "zh")]


@pytest.mark.parametrize("name", sorted(CHINESE))
def test_links_under_chinese_titles_lead_to_chinese_pages(name):
    """A link to a page that is there in English alone says so: 英文."""
    wrong = []
    for line, path in linked_files(name):
        twin = chinese_page(path)
        says_so = "英文" in line or "[English]" in line
        in_chinese = path == "README_zh.md" or "/zh" in path
        is_page = path.endswith((".md", ".ipynb")) or path == "notebooks"
        if is_page and not in_chinese and not says_so:
            wrong.append(f"{path} instead of {twin}" if twin else f"{path} is in English")
    assert wrong == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_fact_that_is_generated_has_one_place(language):
    found = Counter()
    for path in make_results.documents(language):
        text = path.read_text(encoding="utf-8")
        found.update(match["name"] for match in make_results.BLOCK.finditer(text))
    blocks = {name: n for name, n in found.items() if ":" not in name}
    assert blocks == dict.fromkeys(make_results.BLOCKS, 1)


@pytest.mark.parametrize(
    "language, path",
    [(language, path) for language in ("en", "zh") for path in make_results.documents(language)],
    ids=lambda value: value.relative_to(ROOT).as_posix() if isinstance(value, Path) else value,
)
def test_generated_blocks_are_those_of_the_recordings(language, path):
    """Where this fails: make results."""
    assert make_results.render_file(path, language) == path.read_text(encoding="utf-8")


def test_a_changed_number_is_noticed_and_mended():
    text = read("docs/settings.md")
    changed = re.sub(r"(\| `COURSE_GROUP_SIZE` \|[^|]+\| )\d+", r"\g<1>77", text)
    assert changed != text
    assert make_results.render(changed, "en", "../") == text


def test_percentages_in_sentences_are_those_of_the_tables():
    text = read("docs/results.md")
    generated = " ".join(GENERATED.findall(text))
    said = set(re.findall(r"(\d+(?:\.\d+)?) %", GENERATED.sub("", prose(text))))
    assert len(said - PUBLISHED) >= 2
    for number in said - PUBLISHED:
        assert re.search(rf"(?<![\d.]){re.escape(number)} %", generated), number


def test_error_sentences_are_real():
    """The first column of the table quotes sentences that the course can say."""
    section = next(s for s in sections(read("docs/troubleshooting.md")) if "Error sentences" in s)
    quoted = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
    assert len(quoted) > 15
    assert invented(set(quoted) - FOREIGN) == []


@pytest.mark.parametrize("name", ["docs/troubleshooting.md", "docs/zh/troubleshooting.md"])
def test_each_of_the_ten_complaints_has_a_cause_a_place_and_a_test(name):
    found = [s for s in sections(read(name)) if s.startswith("### ")]
    assert len(found) == 10
    for complaint in found:
        heading = complaint.splitlines()[0]
        assert re.search(r"https://github\.com/\S+/(?:issues|pull)/\d+", complaint), heading
        assert len(re.findall(r"^- \*\*", complaint, re.MULTILINE)) == 3, heading
        assert re.search(r"`tests/\S+\.py::test_\w+`", complaint), heading


def test_every_test_that_is_named_exists():
    named = set()
    for page in (name for pair in PAIRS for name in pair):
        named |= set(re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", read(page)))
    assert len(named) >= 20
    for file, test in named:
        assert re.search(rf"^(?:async )?def {test}\(", read(file), re.MULTILINE), (file, test)


def test_every_section_of_a_notebook_that_is_named_exists():
    named = set()
    for page, _ in PAIRS:
        named |= set(re.findall(r"[Nn]otebook (\d), section (\d+)", read(page)))
    assert named
    for number, section in named:
        path = next(NOTEBOOKS.glob(f"0{number}_*.ipynb"))
        cells = nbformat.read(path, as_version=4).cells
        text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        assert re.search(rf"^## {section}\. ", text, re.MULTILINE), (number, section)


def test_columns_of_metrics_that_are_named_are_written():
    header = read("recordings/click-button-full-seed0/metrics.csv").splitlines()[0].split(",")
    named = set(
        re.findall(r"`(\w+(?:/\w+)?)` of (?:a|every) run's", read("docs/troubleshooting.md"))
    )
    named |= {"frac_reward_zero_std", "logprob_gap/max", "infrastructure"}
    text = read("docs/troubleshooting.md")
    for column in named:
        assert f"`{column}`" in text
        assert column in header


def test_every_setting_is_listed():
    """Each COURSE_ variable that the code reads is on the page of settings, and no other."""
    files = [ROOT / "Makefile"]
    for folder in ("helpers", "scripts"):
        files += (ROOT / folder).rglob("*.py")
    read_somewhere = set()
    for path in files:
        read_somewhere |= set(SETTING.findall(path.read_text(encoding="utf-8")))
    fields = {f"COURSE_{field.name.upper()}" for field in dataclasses.fields(Profile)}
    named = set(SETTING.findall(read("docs/settings.md")))
    assert read_somewhere <= named
    assert named <= read_somewhere | fields
    for page, _ in PAIRS:
        assert set(SETTING.findall(read(page))) <= read_somewhere | fields, page


def test_every_field_of_a_profile_is_in_the_table_of_settings():
    """Those apart that say which machine it is, and COURSE_SCALE, which stands elsewhere."""
    text = read("docs/settings.md")
    shown = set(re.findall(r"^\| `COURSE_(\w+)` \|", text, re.MULTILINE))
    not_set = {"name", "device", "memory_gb", "scale", "measured"}
    fields = {field.name for field in dataclasses.fields(Profile)} - not_set
    assert {name.upper() for name in fields} <= shown


@pytest.mark.parametrize("name", ["docs/README.md", "docs/zh/README.md"])
def test_the_index_names_every_page(name):
    folder = os.path.dirname(name)
    targets = {target.partition("#")[0] for target in links(read(name), folder)}
    assert {page for page, _ in PAIRS} <= targets
