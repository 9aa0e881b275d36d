"""The two READMEs are short, begin with what everybody needs, and lead to the rest."""

import re

import pytest
from documents import CJK, CODE_BLOCK, GENERATED, chinese_page, code_blocks, links, prose, read

from helpers.settings.paths import ROOT, notebook_paths

pytestmark = pytest.mark.docs

NAMES = ("README.md", "README_zh.md")
# How fast prose is read silently.
WORDS_A_MINUTE = 250
CHARACTERS_A_MINUTE = 420


@pytest.fixture(params=NAMES)
def text(request):
    return read(request.param)


def minutes_to_read(text):
    """How long the prose takes: without code, addresses and the tables of numbers."""
    written = GENERATED.sub("", prose(text))
    written = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", written)
    written = re.sub(r"\]\([^)]*\)", "]", written)
    characters = len(CJK.findall(written))
    words = len(re.findall(r"[A-Za-z0-9][\w'.+-]*", written))
    return words / WORDS_A_MINUTE + characters / CHARACTERS_A_MINUTE


def test_it_is_read_in_three_minutes(text):
    assert len(text.splitlines()) <= 200
    assert 1.5 < minutes_to_read(text) <= 3


def test_what_everybody_needs_stands_first(text):
    picture = text.index("![")
    result = text.index("<!-- begin headline -->")
    commands = [text.index(block) for block in CODE_BLOCK.findall(text)]
    assert picture < result < commands[0]
    assert text[:result].count("\n") < 15
    block = re.search(r"<!-- begin headline -->(.*?)<!-- end -->", text, re.DOTALL)[1]
    assert len(re.findall(r"\d+ % \[\d+, \d+\]", block)) >= 2  # before and after, with intervals


def test_two_commands_are_enough_and_ci_runs_the_one_for_the_tests(text):
    blocks = [block.strip("`\n") for block in code_blocks(text)]
    assert blocks[:2] == ["sudo apt-get install -y make python3-venv", "make course"]
    assert re.search(r"^make test\b", "\n".join(blocks), re.MULTILINE)
    assert read(".ci/run").splitlines()[-1] == "exec make test"


def test_no_name_of_a_repository_has_to_be_filled_in(text):
    """Whoever copies a command gets one that works."""
    assert "OWNER/REPO" not in text
    assert "git clone https" not in text


@pytest.mark.parametrize("name", NAMES)
def test_it_leads_to_every_notebook_and_to_every_page(name):
    targets = {target.partition("#")[0] for target in links(read(name))}
    notebooks = {target for target in targets if target.endswith(".ipynb")}
    assert notebooks == {path.relative_to(ROOT).as_posix() for path in notebook_paths()}
    pages = {
        "docs/README.md",
        "docs/concepts.md",
        "docs/results.md",
        "docs/environment.md",
        "docs/training.md",
        "docs/doors.md",
        "docs/settings.md",
        "docs/troubleshooting.md",
        "docs/origins.md",
        "docs/teaching/README.md",
        "docs/glossary.md",
        "docs/third_party.md",
    }
    assert pages <= targets
    assert {chinese_page(page) for page in pages} >= {"docs/zh/README.md", "docs/zh/results.md"}
