"""The workflow runs what is there, under the conditions that the project promises."""

import os
import re
import shlex

import pytest
import yaml

from helpers.settings.paths import ROOT

WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"


@pytest.fixture(scope="module")
def workflow():
    found = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    found["on"] = found.pop(True)  # YAML 1.1 reads the key "on" as yes
    return found


def commands(job):
    return [line for step in job["steps"] for line in step.get("run", "").splitlines()]


def unknown(command):
    """What a command names that the repository does not have."""
    targets = set(
        re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
    )
    program, *arguments = shlex.split(command)
    if program == "make":
        return [a for a in arguments if "=" not in a and a not in targets]
    missing = [a for a in arguments if "/" in a and not (ROOT / a).exists()]
    if program != ".venv/bin/python":  # which make setup makes
        missing += [program] * (not os.access(ROOT / program, os.X_OK))
    return missing


def test_every_command_is_there(workflow):
    found = [command for job in workflow["jobs"].values() for command in commands(job)]
    assert {".ci/run", "make setup"} <= set(found)
    assert [(command, unknown(command)) for command in found if unknown(command)] == []
    for wrong in (
        "make no-such-target",
        "./no-such-script",
        ".venv/bin/python -m pytest tests/test_gone.py",
        "README.md",
    ):
        assert unknown(wrong), wrong


def test_a_change_is_tested_on_both_pythons_with_the_pinned_packages(workflow):
    job = workflow["jobs"]["pinned"]
    assert {"push", "pull_request"} <= set(workflow["on"])
    assert job["strategy"]["matrix"]["python"] == ["3.11", "3.12"]
    assert commands(job) == [".ci/run"]
    assert "COURSE_UNPINNED" not in str(job)
    cache = next(
        step["with"] for step in job["steps"] if step.get("uses", "").startswith("actions/cache@")
    )
    assert "~/.cache/pip" in cache["path"]
    for name in re.findall(
        r"'([^']+)'", cache["key"]
    ):  # a file that is gone would never make a new cache
        assert list(ROOT.glob(name)), name


def test_the_newest_packages_are_tested_each_week(workflow):
    job = workflow["jobs"]["newest"]
    assert re.fullmatch(r"\d+ \d+ \* \* [0-6]", workflow["on"]["schedule"][0]["cron"])
    assert job["env"] == {"COURSE_UNPINNED": "1"} and "'schedule'" in job["if"]
    assert commands(job) == [
        "make setup",
        ".venv/bin/python -m pytest tests/test_api_drift.py",
        ".ci/run",
    ]
    assert "cache" not in str(job)  # a cache would hide what is new


def test_no_job_takes_long_or_holds_a_secret(workflow):
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["runs-on"] == "ubuntu-latest" and job["timeout-minutes"] == 45
        uses = {step["uses"].partition("@")[0] for step in job["steps"] if "uses" in step}
        assert uses <= {"actions/checkout", "actions/setup-python", "actions/cache"}
    assert "secrets." not in WORKFLOW.read_text()


def test_what_depends_on_an_event_is_started_by_it(workflow):
    named = re.findall(
        r"github\.event_name == '(\w+)'", " ".join(job["if"] for job in workflow["jobs"].values())
    )
    assert sorted(named) == sorted(
        workflow["on"]
    )  # each event starts one job, and none is forgotten


def test_the_updates_are_those_of_the_actions():
    found = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text(encoding="utf-8"))
    assert found["version"] == 2 and [
        update["package-ecosystem"] for update in found["updates"]
    ] == ["github-actions"]
