"""The targets of make: which command each one is, and what it refuses."""

import os
import re
import subprocess

import pytest
from patience import PATIENCE

from helpers.settings.paths import ROOT


def make(*arguments):
    """The finished make; also where these tests are themselves run by a make."""
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=ROOT,
        text=True,
        capture_output=True,
        timeout=PATIENCE,
        env={**os.environ, "MAKEFLAGS": "", "MAKELEVEL": "0"},
    )


def test_help_lists_every_target():
    phony = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    targets = set(phony[1].split())
    help_text = make("help").stdout
    listed = set(re.findall(r"^  make (\w+)", help_text, re.MULTILINE))
    assert listed == targets
    for line in help_text.splitlines():  # to its end, even where it names alternatives
        assert line.count("(") == line.count(")"), line
    assert targets >= {"setup", "course", "test", "lab", "train", "notebooks", "doctor", "clean"}


@pytest.mark.parametrize(
    "arguments, command",
    [
        (
            "train POLICY=p TASK=t UPDATES=0 SEED=3 LORA=1 RESUME=1 OUT=o",
            "scripts.train --policy p --task t --updates 0 --seed 3 --lora --resume --output o",
        ),
        (
            "train PROCESSES=2",
            "accelerate.commands.launch --num_processes 2 -m scripts.train",
        ),
        (
            "tools POLICY=p OBSERVATION=both",
            "scripts.train_tools --policy p --observation both",
        ),
        (
            "evaluate AGENT=oracle TASK=suite N=5",
            "scripts.evaluate --agent oracle --task suite --n 5",
        ),
        (
            "evaluate POLICY=p N=5 VALIDATION=1 OUT=o",
            "scripts.evaluate --policy p --n 5 --validation --output o",
        ),
        (
            "warmup POLICY=p DEMOS=8 REHEARSE=2 EVALUATION=o",
            "scripts.warm_up --policy p --demos 8 --rehearse 2 --evaluation o",
        ),
        (
            "benchmark SET=suite AGENT=random N=2 RECORD=1 OUT=o",
            "scripts.benchmark --set suite --agent random --n 2 --output o --record",
        ),
        ("eyes PLAY=20 OUT=o", "scripts.learn_to_see --output o --play 20"),
        ("eyes TASK=click-shape", "scripts.learn_to_see --task click-shape"),
        ("warmup TASK=suite DEMOS=3 OUT=o", "scripts.warm_up --task suite --demos 3 --output o"),
        (
            "warmup TASK=scripted SPLIT=train MEASURED=1 DEMOS=3 EPOCHS=1 RATE=5e-4 RANK=16",
            "scripts.warm_up --task scripted --split train --measured --demos 3 --epochs 1 "
            "--learning-rate 5e-4 --rank 16",
        ),
    ],
)
def test_targets_are_the_commands_of_the_readme(arguments, command):
    lines = make("-n", *arguments.split()).stdout.splitlines()[1:]  # after the set-up
    said = " ".join(" ".join(lines).replace("\\", "").split())
    assert said == f".venv/bin/python -m {command}"


@pytest.mark.parametrize("language", ["zh", "zh_CN:zh"])
def test_the_course_and_the_lab_can_be_chinese(language):
    course = make("-n", "course", "NB=02", f"LANGUAGE={language}").stdout
    speaks = "COURSE_LANGUAGE=${COURSE_LANGUAGE:-zh} .venv/bin/python "
    assert f"{speaks}tools/run_course.py --folder notebooks/zh --only 02" in course
    again = make("-n", "notebooks", f"LANGUAGE={language}").stdout
    assert f"{speaks}tools/run_course.py --in-place --folder notebooks/zh" in again
    lab = make("-n", "lab", f"LANGUAGE={language}").stdout
    assert "--LabApp.default_url=/lab/tree/mine/zh " in lab
    assert f"{speaks}-m jupyter lab" in lab


def test_without_a_word_or_in_english_they_are_not():
    for arguments in (("LANGUAGE=",), ("LANGUAGE=en_GB:en",)):
        assert "notebooks/zh" not in make("-n", "course", *arguments).stdout
        lab = make("-n", "lab", *arguments).stdout
        assert "default_url=/lab/tree/mine " in lab
        assert "COURSE_LANGUAGE" not in lab


def test_one_notebook_can_be_executed_and_ci_runs_the_readmes_command():
    assert "run_course.py --in-place --only 03" in make("-n", "notebooks", "NB=03").stdout
    assert "make test" in (ROOT / ".ci" / "run").read_text()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


@pytest.mark.parametrize(
    "value, is_on", [("1", True), ("yes", True), ("0", False), ("false", False)]
)
def test_a_switch_is_on_or_off(value, is_on):
    assert ("--lora" in make("-n", "train", f"LORA={value}").stdout) == is_on


def test_a_switch_that_is_neither_is_refused_in_a_sentence():
    done = make("-n", "train", "LORA=maybe")
    assert done.returncode == 2
    assert "LORA is yes or no, not maybe: write LORA=1, or leave it out." in done.stderr


def test_clean_keeps_what_was_trained():
    kept = make("-n", "clean").stdout
    assert "rm -rf runs/test " in kept
    assert not re.search(r"\bruns(\s|/?$)", kept, re.MULTILINE)
    assert not re.search(r"\bruns(\s|/?$)", make("-n", "distclean").stdout, re.MULTILINE)
    assert "rm -rf runs\n" in make("-n", "clean", "CLEAN_RUNS=1").stdout


def test_tests_write_to_a_folder_of_their_own():
    assert f"COURSE_RUNS={ROOT}/runs/test " in make("-n", "test").stdout
    assert "COURSE_RUNS" not in make("-n", "course").stdout


def test_the_form_is_checked_before_the_tests_and_the_types_with_them():
    for target in ("unit", "test"):
        said = make("-n", target, "COURSE_UNPINNED=").stdout
        steps = [said.index(name) for name in ("ruff check", "ruff format", "pytest")]
        assert steps == sorted(steps)
        # The newest packages may bring other types: the tests then run all the same.
        said = make("-n", target, "COURSE_UNPINNED=1").stdout
        assert "ruff" not in said and "basedpyright" not in said
    assert "basedpyright" in make("-n", "unit", "COURSE_UNPINNED=").stdout
    # What the checker says is one of the slow tests, and `make test` leaves out none.
    assert '-m "' not in make("-n", "test").stdout
