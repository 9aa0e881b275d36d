"""What the docs say of the one policy for every script is what its recordings say."""

import csv
import json
import re

import pytest

from helpers.settings.paths import RECORDINGS, ROOT
from scripts.benchmark import weights_of

pytestmark = pytest.mark.docs

# Where it was made: what is recorded of its training, and of the benchmark before and after GRPO.
MADE = {
    "On a GPU": ("one-policy", "one-policy-gpu"),
    "On two cores": ("one-policy-2-cores", "one-policy"),
}


def outcomes(run, who):
    """What was played before or after GRPO: {(task, seed): solved}."""
    path = RECORDINGS / "benchmark" / f"webgum56-{run}-{who}" / "outcomes.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {(row["task"], row["seed"]): row["reward"] == 1 for row in rows}


PLAYED = {
    where: (outcomes(run, "shown"), outcomes(run, "practised")) for where, (_, run) in MADE.items()
}


def grpo_of(where):
    return json.loads((RECORDINGS / MADE[where][0] / "grpo.json").read_text())


def sentence_of(where):
    """What the docs say of what GRPO changed."""
    text = (ROOT / "docs" / "results.md").read_text()
    found = re.search(rf"^{where} GRPO changed .*$", text, re.MULTILINE)
    assert found, "the sentence is not there"
    return found[0]


@pytest.mark.parametrize("where", MADE)
def test_the_same_pages_were_played_before_and_after(where):
    before, after = PLAYED[where]
    assert before.keys() == after.keys()
    assert len({task for task, _ in before}) == 56


def test_the_recorded_adapter_is_the_one_that_was_played():
    folder, run = MADE["On a GPU"]
    result = RECORDINGS / "benchmark" / f"webgum56-{run}-shown" / "result.json"
    assert json.loads(result.read_text())["weights"] == weights_of(
        str(RECORDINGS / folder / "policy")
    )


@pytest.mark.parametrize("where", MADE)
def test_what_grpo_changed_is_counted_on_pages(where):
    """In all, and on the tasks that had a group with a signal."""
    before, after = PLAYED[where]
    given = set(grpo_of(where)["with_signal"])
    gained = {page: after[page] - before[page] for page in before}
    on_given = [change for (task, _), change in gained.items() if task in given]
    found = re.search(
        r"changed ([+-]\d+) \[.*?\] points .*?: ([+-]\d+) \[.*?\] on the (\d+) tasks",
        sentence_of(where),
    )
    assert found, "the numbers are not there"
    assert int(found[1]) == round(100 * sum(gained.values()) / len(gained))
    assert int(found[2]) == round(100 * sum(on_given) / len(on_given))
    assert int(found[3]) == len({task for task, _ in gained} & given)


@pytest.mark.parametrize("where", MADE)
def test_the_tasks_that_changed_most_are_named(where):
    before, after = PLAYED[where]
    tasks = {task for task, _ in before}
    change = {
        task: sum(after[page] - before[page] for page in before if page[0] == task)
        for task in tasks
    }
    named = re.search(r"It changed most: (.*?)\. One training seed", sentence_of(where))
    assert named, "the tasks are not there"
    mentioned = [one.split(" ")[0] for one in named[1].split(", ")]
    smallest = min(abs(change[task]) for task in mentioned)
    assert all(abs(change[task]) <= smallest for task in tasks - set(mentioned))


@pytest.mark.parametrize("where", MADE)
def test_only_tasks_with_a_signal_were_practised(where):
    grpo = grpo_of(where)
    assert grpo["profile"]["scout"] == 1
    assert grpo["profile"]["curriculum"] == "success"
    assert set(grpo["with_signal"]) < set(grpo["profile"]["task"].split(","))


def test_the_updates_of_make_one_are_those_that_are_recorded():
    updates = re.findall(r"^ONE_UPDATES := (\d+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    rows = [
        len((RECORDINGS / folder / "metrics.csv").read_text().splitlines()) - 1
        for folder, _ in MADE.values()
    ]
    assert [int(number) for number in updates] == rows


def test_sampled_success_rose_on_the_tasks_that_were_practised():
    text = (ROOT / "docs" / "results.md").read_text()
    folder = RECORDINGS / MADE["On a GPU"][0]
    for who in ("shown", "practised"):
        result = json.loads((folder / f"sampled-{who}.json").read_text())["result"]
        assert set(result["tasks"]) == set(grpo_of("On a GPU")["with_signal"])
        rate, low, high = (f"{100 * number:.0f}" for number in result["macro"])
        assert f"{rate} % [{low}, {high}]" in text


def test_guess_number_became_a_habit_on_two_cores():
    """What the docs tell of one task: groups of one solved episode at most, then of six."""
    folder = RECORDINGS / MADE["On two cores"][0]
    rows = list(csv.DictReader((folder / "groups.csv").read_text().splitlines()))
    groups = [
        (int(row["update"]), int(row["solved"])) for row in rows if row["task"] == "guess-number"
    ]
    assert max(solved for update, solved in groups if update <= 11) == 1
    assert {solved for update, solved in groups if update > 21} == {6}
    before, after = PLAYED["On two cores"]
    pages = [page for page in before if page[0] == "guess-number"]
    assert [sum(outcome[page] for page in pages) for outcome in (before, after)] == [2, 18]
