"""What the docs say about why arms differ is what their recordings say."""

import csv
import re
from collections import Counter

import pytest

from helpers.learning.arms.groups import teaching_groups
from helpers.settings.paths import RECORDINGS, ROOT

FOLDER = RECORDINGS / "arms" / "revisited"
RUNS = ("no limit", "once again", "grpo")
PAGES = {"en": ROOT / "docs" / "training.md", "zh": ROOT / "docs" / "zh" / "training.md"}


def rows(name, run):
    with (FOLDER / name).open() as file:
        return [row for row in csv.DictReader(file) if row["run"] == run]


@pytest.fixture(params=PAGES)
def told(request):
    """The numbers of the paragraph about pages that came back, in each language."""
    return numbers(request.param, "recordings/arms/revisited")


def numbers(language, word):
    """The numbers of the first paragraph that has a word."""
    text = PAGES[language].read_text()
    paragraph = next(part for part in text.split("\n\n") if word in part)
    return set(map(int, re.findall(r"\d+", paragraph)))


def test_the_groups_on_the_pages_that_came_back(told):
    visits, once, others = (Counter(row["seed"] for row in rows("pages.csv", run)) for run in RUNS)
    three = visits.most_common(3)
    assert [n for _, n in visits.most_common(4)][3] == 1
    for number in (visits.total(), sum(n for _, n in three), once.total(), len(once), len(others)):
        assert number in told
    assert max(once.values()) == 2
    assert others.total() == len(others)  # each of GRPO's pages once


def test_the_answers_on_other_pages(told):
    visits = Counter(row["seed"] for row in rows("pages.csv", RUNS[0])).most_common(3)
    back = {seed for seed, _ in visits}
    answers = {run: rows("answers.csv", run) for run in RUNS}
    bids = [row["right"] for row in answers[RUNS[0]] if row["seed"] in back]
    learned = {f"click('{bid}')" for bid in bids}
    counts = []
    for run in RUNS:
        new = [row for row in answers[run] if row["seed"] not in back]
        counts += [len(new), sum(row["first"] in learned for row in new)]
    right = sum(row["right"] in bids for row in answers["grpo"] if row["seed"] not in back)
    for number in (*counts, right):
        assert number in told


@pytest.mark.parametrize("language", PAGES)
def test_the_groups_that_an_arm_could_learn_from(language):
    said = numbers(language, "groups.csv")
    runs = RECORDINGS / "arms" / "runs"
    grpo, solved = (
        teaching_groups(runs / f"{arm}-16-seed0" / "groups.csv") for arm in ("grpo", "own-solved")
    )
    learned = solved["differ"] + solved["all"]
    assert {sum(grpo.values()), grpo["differ"], learned, solved["differ"], solved["all"]} <= said
