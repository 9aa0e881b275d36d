"""What the docs say about why arms differ is what their recordings say."""

import csv
import json
import re
from collections import Counter
from pathlib import Path

import nbformat
import pytest
from group_counts import teaching_groups

from helpers.episodes.tasks import TEST_SEEDS
from helpers.output import percent
from helpers.settings.paths import NOTEBOOKS, RECORDINGS, ROOT, chinese_of

RUNS = RECORDINGS / "arms" / "runs"
FIFTH = NOTEBOOKS / "05_grpo_training.ipynb"
REVISITED = RECORDINGS / "arms" / "revisited"
PLAYED = {
    "no limit": REVISITED,
    "once again": RUNS / "curriculum-16-seed0",
    "grpo": RUNS / "grpo-16-seed0",
}
PLAYED_ONCE = {"silent again": RUNS / "dynamic-sampling-16-seed0"}
PAGES = {"en": ROOT / "docs" / "training.md", "zh": ROOT / "docs" / "zh" / "training.md"}


def visits_of(run):
    """How many groups a run played on each page of click-option."""
    with ((PLAYED | PLAYED_ONCE)[run] / "groups.csv").open() as file:
        rows = csv.DictReader(file)
        return Counter(row["seed"] for row in rows if row["task"] == "click-option")


def outcomes_of(arm, seed):
    """What a run with sixteen demonstrations a task has recorded of its test episodes."""
    return json.loads((RUNS / f"{arm}-16-seed{seed}" / "outcomes.json").read_text())


def answers_of(run):
    with (REVISITED / "answers.csv").open() as file:
        return [row for row in csv.DictReader(file) if row["run"] == run]


@pytest.fixture(params=PAGES)
def told(request):
    """The numbers of the paragraph about pages that came back, in each language."""
    return numbers(request.param, "recordings/arms/revisited")


def numbers(language, word):
    """The numbers of the first paragraph about the arms that has a word."""
    text = PAGES[language].read_text().partition("`make arms`")[2]
    paragraph = next(part for part in text.split("\n\n") if word in part)
    return set(map(int, re.findall(r"\d+", paragraph)))


def test_the_groups_on_the_pages_that_came_back(told):
    visits, once, others = map(visits_of, PLAYED)
    three = visits.most_common(3)
    assert [n for _, n in visits.most_common(4)][3] == 1
    for number in (visits.total(), sum(n for _, n in three), once.total(), len(once), len(others)):
        assert number in told
    assert max(once.values()) == 2
    assert others.total() == len(others)  # each of GRPO's pages once


def test_the_answers_on_other_pages(told):
    back = {seed for seed, _ in visits_of("no limit").most_common(3)}
    answers = {run: answers_of(run) for run in PLAYED}
    bids = [row["right"] for row in answers["no limit"] if row["seed"] in back]
    learned = {f"click('{bid}')" for bid in bids}
    counts = []
    for rows in answers.values():
        new = [row for row in rows if row["seed"] not in back]
        counts += [len(new), sum(row["first"] in learned for row in new)]
    right = sum(row["right"] in bids for row in answers["grpo"] if row["seed"] not in back)
    for number in (*counts, right):
        assert number in told


@pytest.mark.parametrize("language", PAGES)
def test_the_option_that_was_clicked_where_no_page_came_back(language):
    said = numbers(language, "dynamic sampling")
    visits = visits_of("silent again")
    assert set(visits.values()) == {1}
    assert len(visits) in said
    for run in ("silent again", "grpo"):
        others = answers_of(run)[3:]  # the first three are the pages that came back elsewhere
        clicks = [row["first"] for row in others]
        right = sum(row["first"] == f"click('{row['right']}')" for row in others)
        assert {len(others), clicks.count("click('21')"), right} <= said
    for name in ("dynamic-sampling", "grpo"):
        assert round(100 * outcomes_of(name, 0)["silent"]) in said


@pytest.mark.parametrize("of_language", [Path, chinese_of], ids=["en", "zh"])
def test_the_table_in_the_notebook_is_of_all_runs_that_are_recorded(of_language):
    cells = nbformat.read(of_language(FIFTH), as_version=4).cells
    table = next(c for c in cells if '"arms" / "result.json"' in c.source).outputs[0]["text"]
    rows = json.loads((RECORDINGS / "arms" / "result.json").read_text())["rows"]
    for row, line in zip(rows, table.splitlines()[2:], strict=True):  # below tasks and headings
        assert f" {len(row.get('seeds', [0]))} {percent(*row['greedy'])} " in " ".join(line.split())


def solved_greedily(arm, seed, task):
    """How many test pages of a task a run solves greedily."""
    answers = outcomes_of(arm, seed)["greedy"].items()
    return sum(solved for page, (solved,) in answers if page.startswith(f"{task}#"))


@pytest.mark.parametrize("language", PAGES)
def test_what_other_seeds_of_dynamic_sampling_solve(language):
    said = numbers(language, "dynamic sampling")
    for task, seeds in {
        "click-option": (1, 2),
        "form-sequence-2": (1,),
        "copy-paste": (2,),
        "enter-time": (0, 1, 2),
    }.items():
        for arm in ("dynamic-sampling", "grpo"):
            assert {solved_greedily(arm, seed, task) for seed in seeds} <= said
    assert {solved_greedily("curriculum", seed, "enter-time") for seed in (0, 1, 2)} <= said


@pytest.mark.parametrize("language", PAGES)
def test_the_groups_that_an_arm_could_learn_from(language):
    said = numbers(language, "groups.csv")
    grpo, solved = (
        teaching_groups(RUNS / f"{arm}-16-seed0" / "groups.csv") for arm in ("grpo", "own-solved")
    )
    learned = solved["differ"] + solved["all"]
    assert {sum(grpo.values()), grpo["differ"], learned, solved["differ"], solved["all"]} <= said


# ---- one text field, and no other ----

FIELDS = "form-sequence-2"


@pytest.fixture(scope="module")
def fields(shared_server):
    """The text field that each of the test pages asks for: 1st, 2nd or 3rd."""
    with shared_server.client() as client:
        goals = [client.reset(FIELDS, seed).goal for seed in TEST_SEEDS[:20]]
    return [goal.split()[-2] for goal in goals]


def solved(arm, seed, fields):
    """By text field: how many of its test pages a run solved, and of how many."""
    greedy = outcomes_of(arm, seed)["greedy"]
    solved = [greedy[f"{FIELDS}#{page}"] == [True] for page in TEST_SEEDS[:20]]
    pages = Counter(fields)
    right = Counter(field for field, once in zip(fields, solved, strict=True) if once)
    return {field: (right[field], pages[field]) for field in sorted(pages)}


@pytest.mark.parametrize("language", PAGES)
def test_each_run_of_grpo_fills_one_field_and_solves_all_pages_that_ask_for_it(language, fields):
    said = numbers(language, FIELDS)
    found = [solved("grpo", seed, fields) for seed in range(3)]
    filled = []
    for of_run in found:
        (field,) = [field for field, (right, _) in of_run.items() if right]
        right, pages = of_run[field]
        assert right == pages
        assert right in said
        filled.append(field)
    assert filled == ["1st", "2nd", "3rd"]


@pytest.mark.parametrize("language", PAGES)
def test_own_solved_episodes_keep_two_of_the_fields(language, fields):
    said = numbers(language, FIELDS)
    for seed in range(3):
        of_run = solved("own-solved", seed, fields)
        assert sum(right > 0 for right, _ in of_run.values()) == 2
        assert sum(right for right, _ in of_run.values()) in said
