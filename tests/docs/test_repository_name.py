"""``make badges REPO=owner/name``: the name stands everywhere it should; nothing else changes."""

import json
import os
import re
import shutil
import subprocess
import sys

import nbformat
import pytest

from helpers.settings.paths import NOTEBOOKS, ROOT, notebook_paths
from tools import make_zh, set_repository

pytestmark = pytest.mark.docs

SCRIPT = "tools/set_repository.py"


@pytest.fixture
def copy(tmp_path):
    """The files that name the repository, as they were before anybody called it, and the script."""
    for path in (*set_repository.files(), ROOT / SCRIPT):
        target = tmp_path / path.relative_to(ROOT)
        target.parent.mkdir(exist_ok=True, parents=True)
        shutil.copy(path, target)
    set_repository.set_repository("", tmp_path)
    return tmp_path


def contents(folder):
    """{name: bytes} of the files that name the repository."""
    files = set_repository.files(folder)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def run(folder, *arguments):
    """Run the script of a copy on a bare Python: ``-S -E`` hides what is installed."""
    command = [sys.executable, "-S", "-E", folder / SCRIPT, *arguments]
    return subprocess.run(command, text=True, capture_output=True)


def addresses(notebook):
    """The addresses of a notebook's badges, without those of their pictures."""
    first = nbformat.read(notebook, as_version=4).cells[0].source
    return re.findall(r"\)\]\(([^)]+)\)", first)


def test_the_name_stands_everywhere_and_is_all_that_changes(copy):
    before = contents(copy)
    done = run(copy, "me/browser.course")
    assert done.returncode == 0, done.stderr
    after = contents(copy)
    for name, text in after.items():
        assert b"me/browser.course" in text, name
    # Taken away again, it leaves nothing behind.
    changed = set_repository.set_repository("", copy)
    assert contents(copy) == before
    assert done.stdout == f"{changed} places changed.\n"
    notebooks = sum(name.endswith(".ipynb") for name in before)
    assert changed == 2 * notebooks + notebooks // 2 + 1  # and the Chinese prose, and the citation


def test_a_badge_opens_its_own_notebook(copy):
    set_repository.set_repository("me/course", copy)
    english, chinese = notebook_paths(copy / "notebooks"), notebook_paths(copy / "notebooks" / "zh")
    assert len(english) == len(chinese) > 6
    notebooks = [*english, *chinese]
    for notebook in notebooks:
        file = f"me/course/blob/main/{notebook.relative_to(copy)}"
        assert addresses(notebook) == [
            f"https://colab.research.google.com/github/{file}",
            f"https://github.com/{file}",
        ]
        cell = next(
            c for c in json.loads(notebook.read_text())["cells"] if c["cell_type"] == "code"
        )
        assert 'REPOSITORY = "me/course"' in "".join(cell["source"])


def test_without_a_name_there_is_none_to_copy(copy):
    for name, text in contents(copy).items():
        assert b"OWNER" not in text, name
        assert b"colab-badge" not in text, name


def test_the_chinese_prose_stays_the_one_of_its_notebook(copy):
    """A badge is no text that somebody translates."""
    set_repository.set_repository("me/course", copy)
    for source in notebook_paths(copy / "notebooks"):
        [cell, *_] = nbformat.read(source, as_version=4).cells
        twin = copy / "notebooks" / "zh" / source.relative_to(copy / "notebooks")
        prose = make_zh.translation_of(NOTEBOOKS / source.relative_to(copy / "notebooks"))
        known = make_zh.read_translation(copy / prose.relative_to(ROOT))
        translated_from, text = known[cell.id]
        assert make_zh.text_hash(cell.source) == translated_from
        chinese = nbformat.read(twin, as_version=4)
        assert chinese.cells[0].source == text


def test_a_second_call_changes_nothing_and_a_third_renames(copy):
    before = contents(copy)
    assert set_repository.set_repository("me/course", copy) > 0
    once = contents(copy)
    assert set_repository.set_repository("me/course", copy) == 0
    assert contents(copy) == once
    assert set_repository.current(copy) == "me/course"
    assert set_repository.set_repository("a-team/other_course", copy) > 0
    assert b"me/course" not in b"".join(contents(copy).values())
    assert set_repository.set_repository("", copy) > 0
    assert contents(copy) == before


def test_a_call_that_was_interrupted_can_be_repeated(copy):
    before = contents(copy)
    set_repository.set_repository("me/course", copy)
    whole = contents(copy)
    for name in ("CITATION.cff", "notebooks/01_environment_exploration.ipynb"):
        (copy / name).write_bytes(before[name])
    assert run(copy, "me/course").returncode == 0
    assert contents(copy) == whole


def test_nobody_cites_a_repository_without_a_name(copy):
    cited = (copy / "CITATION.cff").read_text()
    assert "repository-code" not in re.sub(r"^#.*$", "", cited, flags=re.MULTILINE)
    set_repository.set_repository("me/course", copy)
    cited = (copy / "CITATION.cff").read_text()
    assert '\nrepository-code: "https://github.com/me/course"\n' in cited


def test_line_ends_stay(copy):
    prose = copy / "notebooks" / "zh" / "01.md"
    prose.write_bytes(prose.read_bytes().replace(b"\n", b"\r\n"))
    before = prose.read_bytes()
    set_repository.set_repository("me/course", copy)
    assert before.count(b"\r\n") == prose.read_bytes().count(b"\r\n")
    set_repository.set_repository("", copy)
    assert prose.read_bytes() == before


@pytest.mark.parametrize(
    "name",
    [
        "",
        "course",
        "me/",
        "/course",
        "me/course/x",
        "me/my course",
        "-me/course",
        "me--you/course",
        "https://github.com/me/course",
        "me/course.git",
        "me/..",
        "m_e/course",
        "me/kurs\n",
        "我/课程",
    ],
)
def test_a_malformed_name_is_refused_in_one_sentence(copy, name):
    before = contents(copy)
    done = run(copy, name)
    assert done.returncode == 1
    assert done.stdout == ""
    assert contents(copy) == before
    assert done.stderr == (
        f"badges: {name!r} is no repository: give owner/name, for example "
        "`make badges REPO=octocat/browser-course`.\n"
    )


def test_make_hands_the_name_over():
    done = subprocess.run(
        ["make", "--no-print-directory", "-n", "badges", "REPO=me/course"],
        cwd=ROOT,
        text=True,
        capture_output=True,
        env={**os.environ, "MAKEFLAGS": "", "MAKELEVEL": "0"},
    )
    assert re.fullmatch(rf'\S+ {SCRIPT} "me/course"\n', done.stdout), done.stderr
