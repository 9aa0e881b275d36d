"""``make badges REPO=owner/name``: the name stands everywhere it should; nothing else changes."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from helpers.settings.paths import ROOT
from tools import set_repository

pytestmark = pytest.mark.docs

PLACEHOLDER = set_repository.PLACEHOLDER
SCRIPT = "tools/set_repository.py"


@pytest.fixture
def copy(tmp_path):
    """The files that name the repository, as they were before anybody called it, and the script."""
    for path in (*set_repository.files(), ROOT / SCRIPT):
        target = tmp_path / path.relative_to(ROOT)
        target.parent.mkdir(exist_ok=True, parents=True)
        shutil.copy(path, target)
    set_repository.set_repository(PLACEHOLDER, tmp_path)
    return tmp_path


def contents(folder):
    """{name: bytes} of the files that name the repository."""
    files = set_repository.files(folder)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def renamed(files, name):
    """The same files with another name in the place of the usual one, which is cited then."""
    new = {path: text.replace(PLACEHOLDER.encode(), name.encode()) for path, text in files.items()}
    new["CITATION.cff"] = new["CITATION.cff"].replace(b"# repository-code:", b"repository-code:")
    return new


def run(folder, *arguments):
    """Run the script of a copy on a bare Python: ``-S -E`` hides what is installed."""
    command = [sys.executable, "-S", "-E", folder / SCRIPT, *arguments]
    return subprocess.run(command, text=True, capture_output=True)


def test_the_name_stands_everywhere_and_nothing_else_changes(copy):
    before = contents(copy)
    done = run(copy, "me/browser.course")
    assert done.returncode == 0, done.stderr
    after = contents(copy)
    assert after == renamed(before, "me/browser.course")
    for name in after:
        if name.endswith((".ipynb", ".cff")):
            assert b"me/browser.course" in after[name], name
    changed = sum(text.count(PLACEHOLDER.encode()) for text in before.values())
    assert changed > 20
    assert done.stdout == f"{changed} places changed.\n"


def test_a_second_call_changes_nothing_and_a_third_renames_again(copy):
    before = contents(copy)
    assert set_repository.set_repository("me/course", copy) > 0
    once = contents(copy)
    assert set_repository.set_repository("me/course", copy) == 0
    assert contents(copy) == once
    assert set_repository.set_repository("a-team/other_course", copy) > 0
    assert set_repository.set_repository(PLACEHOLDER, copy) > 0
    assert contents(copy) == before


def test_a_call_that_was_interrupted_can_be_repeated(copy):
    whole = renamed(contents(copy), "me/course")
    for name in ("CITATION.cff", "notebooks/06_lora_training.ipynb"):
        (copy / name).write_bytes(whole[name])
    assert run(copy, "me/course").returncode == 0
    assert contents(copy) == whole


def test_nobody_cites_a_repository_without_a_name(copy):
    cited = (copy / "CITATION.cff").read_text()
    assert PLACEHOLDER not in re.sub(r"^#.*$", "", cited, flags=re.MULTILINE)
    set_repository.set_repository("me/course", copy)
    cited = (copy / "CITATION.cff").read_text()
    assert '\nrepository-code: "https://github.com/me/course"\n' in cited


def test_a_short_name_is_not_sought_in_pictures_nor_in_longer_names(copy):
    set_repository.set_repository("a/b", copy)
    readme = copy / "README.md"
    others = (
        b'\r\nxa/b/y== "image/png": "a/b" https://github.com/a/b-2 https://github.com/a/b.c '
        b"https://github.com/aa/b"
    )
    readme.write_bytes(readme.read_bytes() + others + b" https://github.com/a/b.")
    set_repository.set_repository("c/d", copy)
    assert readme.read_bytes().endswith(others + b" https://github.com/c/d.")


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


def test_a_project_that_the_course_links_to_is_refused(copy):
    """Its links could not be told from ours afterwards."""
    before = contents(copy)
    done = run(copy, "huggingface/trl")
    assert done.returncode == 1
    assert "another project" in done.stderr
    assert contents(copy) == before


# What tests, runs and JupyterLab leave behind is not committed, and nobody renames it.
LEFT_BEHIND = {"__pycache__", ".ipynb_checkpoints"}
FOLDERS = (
    ".ci",
    ".github",
    "benchmarks",
    "deploy",
    "docs",
    "helpers",
    "media",
    "notebooks",
    "scripts",
    "tools",
)


def files_that_name(repository, root):
    """Every file of the repository's folders that means this repository."""
    pattern = set_repository.places(repository)
    paths = list(root.glob("*"))
    for folder in FOLDERS:
        paths += (root / folder).rglob("*")
    kept = [path for path in paths if not LEFT_BEHIND & set(path.relative_to(root).parts)]
    texts = {path: path.read_bytes().decode("utf-8", "replace") for path in kept if path.is_file()}
    return {path for path, text in texts.items() if pattern.search(text)}


def test_no_other_file_names_the_repository():
    named = files_that_name(set_repository.current(), ROOT)
    assert named
    assert named <= set(set_repository.files())


def test_a_file_that_is_forgotten_is_found_and_a_copy_of_jupyterlab_is_not(copy):
    notebook = copy / "notebooks" / "01_environment_exploration.ipynb"
    checkpoints = copy / "notebooks" / ".ipynb_checkpoints"
    checkpoints.mkdir()
    shutil.copy(notebook, checkpoints)
    assert files_that_name(PLACEHOLDER, copy) <= set(set_repository.files(copy))
    forgotten = copy / "docs" / "forgotten.md"
    forgotten.parent.mkdir()
    forgotten.write_text(f"git clone https://github.com/{PLACEHOLDER}.git")
    left = files_that_name(PLACEHOLDER, copy) - set(set_repository.files(copy))
    assert left == {forgotten}


def test_make_hands_the_name_over():
    done = subprocess.run(
        ["make", "--no-print-directory", "-n", "badges", "REPO=me/course"],
        cwd=ROOT,
        text=True,
        capture_output=True,
        env={**os.environ, "MAKEFLAGS": "", "MAKELEVEL": "0"},
    )
    assert re.fullmatch(rf'\S+ {SCRIPT} "me/course"\n', done.stdout), done.stderr
