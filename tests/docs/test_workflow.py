"""The workflow runs what is there, under the conditions that the project promises."""

import os
import re
import shlex

import pytest
import yaml
from documents import read

from helpers.settings.paths import ROOT

pytestmark = pytest.mark.docs

WORKFLOW = ".github/workflows/ci.yml"


@pytest.fixture(scope="module")
def workflow():
    found = yaml.safe_load(read(WORKFLOW))
    found["on"] = found.pop(True)  # YAML 1.1 reads the key "on" as yes
    return found


def commands(job):
    """The lines of all its steps."""
    return [line for step in job["steps"] for line in step.get("run", "").splitlines()]


def unknown(command):
    """What a command names that the repository does not have."""
    program, *arguments = shlex.split(command)
    if program == "make":
        targets = re.search(r"^\.PHONY: (.+)$", read("Makefile"), re.MULTILINE)[1].split()
        return [word for word in arguments if "=" not in word and word not in targets]
    missing = [word for word in arguments if "/" in word and not (ROOT / word).exists()]
    made_by_the_setup = program == ".venv/bin/python"
    if not made_by_the_setup and not os.access(ROOT / program, os.X_OK):
        missing.append(program)
    return missing


def test_every_command_is_there(workflow):
    found = [command for job in workflow["jobs"].values() for command in commands(job)]
    assert {".ci/run", "make setup"} <= set(found)
    for command in found:
        assert unknown(command) == [], command


@pytest.mark.parametrize(
    "command",
    [
        "make no-such-target",
        "./no-such-script",
        ".venv/bin/python -m pytest tests/test_gone.py",
        "README.md",
    ],
)
def test_a_command_that_is_not_there_is_noticed(command):
    assert unknown(command)


def test_a_change_is_tested_on_both_pythons_with_the_pinned_packages(workflow):
    job = workflow["jobs"]["pinned"]
    assert {"push", "pull_request"} <= set(workflow["on"])
    assert job["strategy"]["matrix"]["python"] == ["3.11", "3.12"]
    assert commands(job) == [".ci/run"]
    assert "COURSE_UNPINNED" not in str(job)


def test_a_change_of_what_is_installed_makes_a_new_cache(workflow):
    steps = workflow["jobs"]["pinned"]["steps"]
    cache = next(s["with"] for s in steps if s.get("uses", "").startswith("actions/cache@"))
    assert "~/.cache/uv" in cache["path"]
    names = re.findall(r"'([^']+)'", cache["key"])
    assert names
    for name in names:  # a file that is gone would never make a new cache
        assert list(ROOT.glob(name)), name


def test_the_newest_packages_are_tested_each_week(workflow):
    job = workflow["jobs"]["newest"]
    assert re.fullmatch(r"\d+ \d+ \* \* [0-6]", workflow["on"]["schedule"][0]["cron"])
    assert job["env"] == {"COURSE_UNPINNED": "1"}
    assert "'schedule'" in job["if"]
    assert commands(job) == [
        "make setup",
        ".venv/bin/python -m basedpyright",
        ".venv/bin/python -m pytest tests/test_api_drift.py",
        ".ci/run",
    ]
    assert "cache" not in str(job)  # a cache would hide what is new


def test_no_job_takes_long_or_holds_a_secret(workflow):
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["runs-on"] == "ubuntu-latest"
        assert job["timeout-minutes"] == 90
        uses = {step["uses"].partition("@")[0] for step in job["steps"] if "uses" in step}
        assert uses <= {"actions/checkout", "actions/setup-python", "actions/cache"}
    assert "secrets." not in read(WORKFLOW)


def test_each_event_starts_one_job_and_none_is_forgotten(workflow):
    conditions = " ".join(job["if"] for job in workflow["jobs"].values())
    named = re.findall(r"github\.event_name == '(\w+)'", conditions)
    assert sorted(named) == sorted(workflow["on"])


def test_the_updates_are_those_of_the_actions():
    found = yaml.safe_load(read(".github/dependabot.yml"))
    assert found["version"] == 2
    assert [update["package-ecosystem"] for update in found["updates"]] == ["github-actions"]
