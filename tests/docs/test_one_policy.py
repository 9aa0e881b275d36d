"""What the docs say of the one policy for every script is what its recordings say."""

import csv
import json
import re

import pytest

from helpers.settings.paths import RECORDINGS, ROOT
from scripts.benchmark import weights_of

pytestmark = pytest.mark.docs

FOLDER = RECORDINGS / "one-policy"


def outcomes(who):
    """What was played before or after GRPO: {(task, seed): solved}."""
    path = RECORDINGS / "benchmark" / f"webgum56-one-policy-{who}" / "outcomes.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {(row["task"], row["seed"]): row["reward"] == 1 for row in rows}


BEFORE, AFTER = outcomes("shown"), outcomes("practised")


def test_the_same_pages_were_played_before_and_after():
    assert BEFORE.keys() == AFTER.keys()
    assert len({task for task, _ in BEFORE}) == 56


def test_the_recorded_adapter_is_the_one_that_was_played():
    result = RECORDINGS / "benchmark" / "webgum56-one-policy-practised" / "result.json"
    assert json.loads(result.read_text())["weights"] == weights_of(str(FOLDER / "policy"))


def test_what_grpo_changed_is_counted_on_pages():
    """In all, and on the tasks that had a group with a signal."""
    signals = json.loads((FOLDER / "page_choice.json").read_text())["page_choice"]["signals"]
    given = {task for task, number in signals.items() if number}
    gained = {page: AFTER[page] - BEFORE[page] for page in BEFORE}
    on_given = [change for (task, _), change in gained.items() if task in given]
    text = (ROOT / "docs" / "results.md").read_text()
    found = re.search(
        r"GRPO changed \+(\d+) \[.*?\] points .*?: \+(\d+) \[.*?\] on the (\d+) tasks", text
    )
    assert found, "the sentence is not there"
    assert int(found[1]) == round(100 * sum(gained.values()) / len(gained))
    assert int(found[2]) == round(100 * sum(on_given) / len(on_given))
    assert int(found[3]) == len({task for task, _ in gained} & given)


def test_the_tasks_that_changed_most_are_named():
    tasks = {task for task, _ in BEFORE}
    change = {
        task: sum(AFTER[page] - BEFORE[page] for page in BEFORE if page[0] == task)
        for task in tasks
    }
    text = (ROOT / "docs" / "results.md").read_text()
    named = re.search(r"It changed most: (.*?)\. One training seed", text)
    assert named, "the sentence is not there"
    mentioned = [one.split(" ")[0] for one in named[1].split(", ")]
    smallest = min(abs(change[task]) for task in mentioned)
    assert all(abs(change[task]) <= smallest for task in tasks - set(mentioned))


def test_the_metrics_are_those_of_the_whole_run():
    grpo = json.loads((FOLDER / "grpo.json").read_text())
    rows = (FOLDER / "metrics.csv").read_text().splitlines()
    assert len(rows) - 1 == grpo["profile"]["updates"]
    assert grpo["profile"]["scout"] == 1


def test_guess_number_became_a_habit():
    """What the docs tell of one task: groups of one solved episode at most, then of six."""
    rows = list(csv.DictReader((FOLDER / "groups.csv").read_text().splitlines()))
    groups = [
        (int(row["update"]), int(row["solved"])) for row in rows if row["task"] == "guess-number"
    ]
    assert max(solved for update, solved in groups if update <= 11) == 1
    assert {solved for update, solved in groups if update > 21} == {6}
    pages = [page for page in BEFORE if page[0] == "guess-number"]
    assert [sum(outcome[page] for page in pages) for outcome in (BEFORE, AFTER)] == [2, 18]
