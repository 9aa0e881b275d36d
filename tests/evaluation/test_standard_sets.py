"""The standard sets: their tasks and seeds are those of BrowserGym's own package."""

import json
from collections import Counter

import pytest
from in_python import run_script

from helpers.browser import list_tasks
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.tasks import TASKS, TEST_SEEDS
from helpers.evaluation import standard_sets
from helpers.evaluation.scripted import OUT_OF_REACH, SCRIPTS
from helpers.evaluation.standard_sets import (
    SETS,
    MissingSetError,
    standard_set,
    task_table,
    tasks_where,
)

# The package's own benchmark, without a package that it needs to write itself down as JSON.
OWN_BENCHMARK = """
import json, sys, types
stub = types.ModuleType("dataclasses_json")
stub.DataClassJsonMixin = object
stub.config = lambda **_: {}
sys.modules["dataclasses_json"] = stub
from browsergym.experiments.benchmark import DEFAULT_BENCHMARKS
from browsergym.experiments.benchmark.metadata.utils import task_list_from_metadata
own = DEFAULT_BENCHMARKS["miniwob"]()
pages = [[args.task_name, args.task_seed, args.max_steps] for args in own.env_args_list]
webgum = task_list_from_metadata(own.task_metadata, {"webgum_subset": "True"})
splits = {}
for split in ("train", "test"):
    own_split = own.subset_from_split(split)
    splits[split] = list(dict.fromkeys(args.task_name for args in own_split.env_args_list))
print(json.dumps({"pages": pages, "webgum": webgum, "splits": splits}))
"""


def plain(names):
    return [name.removeprefix("miniwob.") for name in names]


@pytest.fixture(scope="module")
def own():
    """What the package itself says."""
    return json.loads(run_script(OWN_BENCHMARK))


def test_browsergyms_pages_are_its_own(own):
    ours = standard_set("browsergym125")
    theirs = [EpisodeSpec(*plain([task]), seed) for task, seed, _ in own["pages"]]
    assert list(ours.pages) == theirs
    assert {turns for _, _, turns in own["pages"]} == {ours.turns}


def test_the_tasks_of_webgum_and_of_the_split_are_the_packages(own):
    assert list(standard_set("webgum56").tasks) == plain(own["webgum"])
    for split, names in own["splits"].items():
        assert list(tasks_where("browsergym_split", split)) == plain(names)


def test_the_63_are_the_pages_of_browsergyms_that_it_holds_out(own):
    ours = standard_set("browsergym63")
    held_out = own["splits"]["test"]
    theirs = [(task, seed) for task, seed, _ in own["pages"] if task in held_out]
    assert [(f"miniwob.{page.task}", page.seed) for page in ours.pages] == theirs
    assert len(ours.tasks) == 63
    assert ours.turns == standard_set("browsergym125").turns


def test_tasks_that_are_alike_are_all_held_out_or_none():
    """As docs/results.md says of BrowserGym's halves."""
    halves = {}
    for row in task_table():
        halves.setdefault(row["similarity_group"], set()).add(row["browsergym_split"])
    assert len(halves) == 78
    assert all(len(half) == 1 for half in halves.values())
    held_out = " ".join(tasks_where("browsergym_split", "test"))
    shown = " ".join(tasks_where("browsergym_split", "train"))
    for family in ("email-inbox", "click-menu", "click-tab"):
        assert family in held_out
        assert family not in shown


def test_the_table_names_the_tasks_that_can_be_played():
    assert sorted(row["task_name"] for row in task_table()) == list(list_tasks())


@pytest.mark.parametrize(("name", "tasks", "pages"), [("webgum56", 56, 100), ("suite", 14, 100)])
def test_sets_of_the_courses_pages_play_test_pages(name, tasks, pages):
    chosen = standard_set(name)
    counts = Counter(page.task for page in chosen.pages)
    assert len(counts) == tasks
    assert set(counts.values()) == {pages}
    assert all(page.seed in TEST_SEEDS for page in chosen.pages)
    assert len(set(chosen.pages)) == len(chosen.pages)


def test_the_suite_is_the_courses():
    assert standard_set("suite").tasks == tuple(TASKS)


@pytest.mark.parametrize("name", SETS)
def test_fewer_pages_are_the_first_ones_of_each_task(name):
    whole, part = standard_set(name), standard_set(name, n=2)
    assert part.tasks == whole.tasks
    for task in whole.tasks[:3]:
        pages = [page for page in whole.pages if page.task == task]
        assert [page for page in part.pages if page.task == task] == pages[:2]


@pytest.mark.parametrize("name", ["webgum56", "browsergym125"])
def test_a_task_has_a_script_or_a_reason_why_it_has_none(name):
    without = set(standard_set(name).tasks) - set(SCRIPTS)
    assert without <= set(OUT_OF_REACH)


def test_where_the_package_is_missing_a_sentence_says_so(monkeypatch):
    task_table.cache_clear()
    monkeypatch.setattr(standard_sets, "TABLE", "experiments/no_such_table.csv")
    with pytest.raises(MissingSetError, match="make setup"):
        standard_set("webgum56")
    task_table.cache_clear()
