"""``make badges REPO=owner/name``: the name stands everywhere it should, and nothing else changes."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from helpers.settings.paths import ROOT
from tools import set_repository

PLACEHOLDER = "OWNER/REPO"


@pytest.fixture
def copy(tmp_path):
    """The files that name the repository, and the script; named as they are before anybody called it."""
    for path in (*set_repository.files(), ROOT / "scripts" / "set_repository.py"):
        target = tmp_path / path.relative_to(ROOT)
        target.parent.mkdir(exist_ok=True, parents=True)
        shutil.copy(path, target)
    set_repository.set_repository(PLACEHOLDER, tmp_path)
    return tmp_path


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in set_repository.files(folder)
    }


def run(folder, *arguments):
    return subprocess.run(
        [sys.executable, folder / "scripts" / "set_repository.py", *arguments],
        text=True,
        capture_output=True,
    )


def test_the_name_stands_everywhere_and_nothing_else_changes(copy):
    before = contents(copy)
    done = run(copy, "me/browser.course")
    assert done.returncode == 0, done.stderr
    after = contents(copy)
    assert after == {
        name: text.replace(PLACEHOLDER.encode(), b"me/browser.course")
        for name, text in before.items()
    }
    named = [
        name for name in after if name.endswith((".ipynb", ".cff")) or name.startswith("README")
    ]
    assert all(b"me/browser.course" in after[name] for name in named)
    changed = sum(text.count(PLACEHOLDER.encode()) for text in before.values())
    assert changed > 20 and done.stdout == f"{changed} places changed.\n"


def test_a_second_call_changes_nothing_and_a_third_renames_again(copy):
    before = contents(copy)
    assert set_repository.set_repository("me/course", copy)
    once = contents(copy)
    assert set_repository.set_repository("me/course", copy) == 0 and contents(copy) == once
    assert set_repository.set_repository("a-team/other_course", copy)
    assert set_repository.set_repository(PLACEHOLDER, copy) and contents(copy) == before


def test_a_call_that_was_interrupted_can_be_repeated(copy):
    whole = {
        name: text.replace(PLACEHOLDER.encode(), b"me/course")
        for name, text in contents(copy).items()
    }
    (copy / "README.md").write_bytes(whole["README.md"])
    (copy / "notebooks" / "06_lora_training.ipynb").write_bytes(
        whole["notebooks/06_lora_training.ipynb"]
    )
    assert run(copy, "me/course").returncode == 0 and contents(copy) == whole


def test_a_short_name_is_not_sought_in_pictures_nor_in_longer_names(copy):
    set_repository.set_repository("a/b", copy)
    readme = copy / "README.md"
    tail = b'\r\nxa/b/y== "image/png": "a/b" https://github.com/a/b-2 https://github.com/a/b.c https://github.com/aa/b'
    readme.write_bytes(readme.read_bytes() + tail + b" https://github.com/a/b.")
    set_repository.set_repository("c/d", copy)
    assert readme.read_bytes().endswith(tail + b" https://github.com/c/d.")


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
    assert done.returncode == 1 and done.stdout == "" and contents(copy) == before
    assert done.stderr == (
        f"badges: {name!r} is no repository: give owner/name, for example "
        "`make badges REPO=octocat/browser-course`.\n"
    )


def test_a_project_that_the_course_links_to_is_refused(copy):
    """Its links could not be told from ours afterwards."""
    before = contents(copy)
    done = run(copy, "huggingface/trl")
    assert done.returncode == 1 and "another project" in done.stderr and contents(copy) == before


def test_no_other_file_names_the_repository():
    name = set_repository.places(set_repository.current())
    folders = ("helpers", "scripts", "benchmarks", "notebooks", "media", ".github", ".ci")
    paths = [
        p
        for p in (*ROOT.glob("*"), *(q for folder in folders for q in (ROOT / folder).rglob("*")))
        if p.is_file()
    ]
    named = {
        path
        for path in paths
        if path.suffix != ".pyc" and name.search(path.read_bytes().decode("utf-8", "replace"))
    }
    assert named and named <= set(set_repository.files())


def test_make_hands_the_name_over():
    done = subprocess.run(
        ["make", "--no-print-directory", "-n", "badges", "REPO=me/course"],
        cwd=ROOT,
        text=True,
        capture_output=True,
        env={**os.environ, "MAKEFLAGS": "", "MAKELEVEL": "0"},
    )
    assert re.fullmatch(r'\S+ tools/set_repository.py "me/course"\n', done.stdout), done.stderr
