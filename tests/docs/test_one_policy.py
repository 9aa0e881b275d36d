"""What the docs say of the one policy for every script is what its recordings say."""

import csv
import json
import re
from collections import Counter

import pytest

from helpers.episodes.config import EpisodeSpec
from helpers.episodes.how_played import kept_how
from helpers.evaluation.standard_sets import standard_set
from helpers.learning.warm_up import Lesson, pages_of_each
from helpers.settings.paths import RECORDINGS, ROOT
from scripts.benchmark import weights_of

pytestmark = pytest.mark.docs

# Where each GRPO is recorded: the folder of the policy, and the part of it.
GRPO = [
    ("one-policy", "practised"),
    ("one-policy-64-pages", "practised"),
    ("one-policy-2-cores", "practised"),
]
CHANGE = r"([+-]\d+) \[.*?\]"


def episodes_of(folder):
    """What a benchmark kept of each episode."""
    return [json.loads(line) for line in (folder / "outcomes.jsonl").read_text().splitlines()]


def outcomes(folder, part):
    """What was played before or after GRPO: {(task, seed): solved}."""
    rows = episodes_of(RECORDINGS / "benchmark" / f"webgum56-{folder}-{part}")
    return {(row["task"], row["seed"]): row["reward"] == 1 for row in rows}


def on_shared_pages(before, after):
    """Of two of these the pages that were played in both: the best policy has played more."""
    shared = before.keys() & after.keys()
    return tuple(
        {page: solved for page, solved in played.items() if page in shared}
        for played in (before, after)
    )


@pytest.fixture(params=GRPO, ids="/".join)
def grpo(request):
    """One GRPO: its settings, what was solved before and after it, and the docs' row about it."""
    folder, part = request.param
    recorded = json.loads((RECORDINGS / folder / part / "grpo.json").read_text())
    updates = len((RECORDINGS / folder / part / "metrics.csv").read_text().splitlines()) - 1
    shown = json.loads((RECORDINGS / folder / "warm_up.json").read_text())["demonstrations"]
    rate = f"{recorded['profile']['lora_learning_rate']:.0e}".replace("e-0", "e-")
    text = (ROOT / "docs" / "results.md").read_text()
    begin = rf"\| {shown} demonstrations[^|]*\| {updates} \| \d+ \| {rate} \|"
    found = re.search(rf"^{begin} (.*) \|$", text, re.MULTILINE)
    assert found, "the row is not there"
    before, after = on_shared_pages(outcomes(folder, "shown"), outcomes(folder, part))
    return {
        "recorded": recorded,
        "before": before,
        "after": after,
        "row": found[1].split(" | "),
    }


def test_the_same_pages_of_each_task_were_played_before_and_after(grpo):
    pages = {(page.task, page.seed) for page in standard_set("webgum56", 20).pages}
    assert grpo["before"].keys() == grpo["after"].keys() == pages


def test_the_best_policy_has_played_the_whole_set_of_webgum():
    pages = {(page.task, page.seed) for page in standard_set("webgum56").pages}
    assert outcomes("one-policy", "shown").keys() == pages


@pytest.mark.parametrize("chosen", ["webgum56", "browsergym125"])
def test_the_recorded_adapter_is_the_one_that_was_played(chosen):
    result = RECORDINGS / "benchmark" / f"{chosen}-one-policy-shown" / "result.json"
    recorded = weights_of(str(RECORDINGS / "one-policy" / "policy"))
    assert json.loads(result.read_text())["weights"] == recorded


def solved_by_task(benchmark):
    """How many pages of each task a benchmark has solved."""
    rows = episodes_of(RECORDINGS / "benchmark" / benchmark)
    return Counter(row["task"] for row in rows if row["reward"] == 1)


def lessons_of(*names):
    """What was kept of each lesson: its command, its tasks and how long it took."""
    return [json.loads((RECORDINGS / name / "warm_up.json").read_text()) for name in names]


def training_docs(language):
    """The page about training; ``language``: a folder in docs, or nothing for English."""
    return (ROOT / "docs" / language / "training.md").read_text()


def docs_say(told):
    """Whether the page about training says it in each language; ``told``: patterns by folder."""
    return all(
        re.search(pattern, training_docs(language).replace("\n", " "))
        for language, pattern in told.items()
    )


def test_what_the_docs_tell_of_the_second_lesson():
    lessons = lessons_of("one-policy", "one-policy-second-lesson")
    known = set(lessons[0]["tasks"])
    assert "--policy recordings/one-policy/policy" in lessons[1]["command"]
    assert lessons[1]["rehearsed"] == lessons[0]["tasks"]
    assert len(set(lessons[1]["tasks"]) - known) == 12
    before, after = (
        solved_by_task(f"browsergym125-{name}-shown")
        for name in ("one-policy", "one-policy-second-lesson")
    )
    for counts in (before, after):
        number = rf"\b{sum(counts[task] for task in known)}\b"
        assert docs_say({"": number, "zh/": number})
    changes = {task: (before[task], after[task]) for task in {*before, *after}}
    assert changes["drag-box"] == (0, 5)
    assert changes["use-colorwheel-2"] == (1, 5)
    assert changes["use-autocomplete"] == (5, 0)
    rows = episodes_of(RECORDINGS / "benchmark" / "browsergym125-one-policy-second-lesson-shown")
    autocomplete = [row["ended"] for row in rows if row["task"] == "use-autocomplete"]
    assert autocomplete == ["turn_limit"] * 5


def test_what_the_docs_tell_of_the_lesson_with_more_rehearsal():
    first, lesson = lessons_of("one-policy", "one-policy-rehearsed")
    known, new = set(first["tasks"]), set(lesson["tasks"]) - set(first["tasks"])
    assert lesson["rehearsed"] == first["tasks"]
    names = ("one-policy", "one-policy-second-lesson", "one-policy-rehearsed")
    solved = [solved_by_task(f"browsergym125-{name}-shown") for name in names]
    before, eight, more = (sum(counts[task] for task in new) for counts in solved)
    kept = sum(solved[-1][task] for task in known)
    minutes = round(lesson["seconds"] / 60)
    assert docs_say(
        {
            "": rf"{minutes} minutes .*? solves {kept} of those 395 pages, and of the 60 pages of "
            rf"the twelve new tasks {more}; after .*? it was {eight}, and before both lessons "
            rf"{before}\.",
            "zh/": rf"{minutes} 分钟.*?395 个页面里解决 {kept} 个.*?60 个页面里解决 {more} 个；"
            rf".*?之后是 {eight} 个，两课之前是 {before} 个",
        }
    )
    played = RECORDINGS / "benchmark" / "browsergym125-one-policy-rehearsed-shown" / "result.json"
    recorded = weights_of(str(RECORDINGS / "one-policy-rehearsed" / "policy"))
    assert json.loads(played.read_text())["weights"] == recorded
    for task in ("use-slider", "use-slider-2", "text-editor"):
        assert solved[-1][task] == 0


def test_what_the_lesson_with_more_rehearsal_cost_is_counted():
    played = (outcomes(name, "shown") for name in ("one-policy", "one-policy-rehearsed"))
    before, after = on_shared_pages(*played)
    change = Counter()
    for page in before:
        change[page[0]] += after[page] - before[page]
    gained = sum(after[page] > before[page] for page in before)
    lost = sum(after[page] < before[page] for page in before)
    named = ("identify-shape", "click-menu", "click-color")
    assert sum(change[task] for task in named) / change.total() == pytest.approx(0.5, abs=0.03)
    assert docs_say(
        {
            "": rf"Of the {len(before):,} pages .*? it gained {gained} and lost {lost};",
            "zh/": rf"{len(before):,} 个 WebGUM 页面里，它多解决 {gained} 个，少解决 {lost} 个；",
        }
    )


@pytest.fixture
def measured_before():
    """The success on each task on which the lesson by need was decided."""
    folder = RECORDINGS / "one-policy-by-need"
    measured = json.loads((folder / "evaluation.json").read_text())
    [lesson] = lessons_of("one-policy-by-need")
    assert measured["pages"] == "validation"
    for command in (measured["command"], lesson["command"]):
        assert "--policy recordings/one-policy-rehearsed/policy" in command
    return {task: row["success"] for task, row in measured["result"]["by_task"].items()}


def test_what_the_docs_tell_of_the_lesson_by_need():
    first, lesson = lessons_of("one-policy", "one-policy-by-need")
    known = set(first["tasks"])
    after = solved_by_task("browsergym125-one-policy-by-need-shown")
    old = sum(after[task] for task in known)
    new = sum(after[task] for task in set(lesson["tasks"]) - known)
    shown, minutes = f"{lesson['demonstrations']:,}", round(lesson["seconds"] / 60)
    assert docs_say(
        {
            "": rf"\({shown} demonstrations, {minutes} minutes\) it solves {old} of the 395 pages "
            rf"and {new} of the 60\.",
            "zh/": rf"（{shown} 个示范，{minutes} 分钟），它在那 395 个页面里解决 {old} 个，"
            rf"在那 60 个页面里解决 {new} 个。",
        }
    )


@pytest.mark.parametrize("language", ["", "zh/"])
def test_what_the_lesson_by_need_changed_is_counted(language, measured_before):
    """On the tasks of which little was solved before it, and on the others."""
    success = measured_before
    weak, strong = (
        [task for task in success if (success[task] < 0.8) is little] for little in (True, False)
    )
    told = {int(number) for number in re.findall(r"\d+", told_of_need(language))}
    before, after = (
        solved_by_task(f"browsergym125-{name}-shown")
        for name in ("one-policy-rehearsed", "one-policy-by-need")
    )
    for tasks in (weak, strong):
        change = (sum(before[task] for task in tasks), sum(after[task] for task in tasks))
        assert {len(tasks), *change, 5 * len(tasks)} <= told
    kept = outcomes_of_tasks(strong)
    assert {kept.count((False, True)), kept.count((True, False))} <= told
    lesson = Lesson(demos=80, rehearse=16, success=success)
    pages = pages_of_each(strong, lesson, before=tuple(success))
    assert {16, max(pages.values())} <= told


def outcomes_of_tasks(tasks):
    """Of each episode of the tasks whether it was solved before the lesson by need, and after."""
    before, after = (
        episodes_of(RECORDINGS / "benchmark" / f"browsergym125-{name}-shown")
        for name in ("one-policy-rehearsed", "one-policy-by-need")
    )
    assert [row["seed"] for row in before] == [row["seed"] for row in after]
    return [
        (one["reward"] == 1, other["reward"] == 1)
        for one, other in zip(before, after, strict=True)
        if one["task"] in tasks
    ]


def told_of_need(language):
    """What the docs say of the lesson by need, from its command on."""
    return training_docs(language).partition("EVALUATION=runs/measured")[2].partition("\n\n**")[0]


@pytest.mark.parametrize(
    ("language", "patterns"),
    [
        (
            "",
            (
                r"most of ({}) pages were seen once",
                r"solves (\d+) of BrowserGym's 625 pages, and `one-policy-rehearsed` (\d+)",
                r"choose-date-easy (\d) pages of 5, choose-date-medium (\d); before (\d) and (\d)",
                r"simple-algebra (\d) of 10; before (\d)",
                r"form-sequence-2 (\d) of 5; before (\d)",
                r"enter-date \((\d) of 5; before (\d)\)",
            ),
        ),
        (
            "zh/",
            (
                r"({}) 个页面大多只看了一遍",
                r"625 个页面它解决 (\d+) 个，`one-policy-rehearsed` 解决 (\d+) 个",
                r"choose-date-easy 5 个页面解决 (\d) 个， ?choose-date-medium (\d) 个；"
                r"之前 (\d) 个和 (\d) 个",
                r"simple-algebra 的 10 个页面解决 (\d) 个；之前 (\d) 个",
                r"form-sequence-2 的 5 个页面解决 (\d) 个；之前 (\d) 个",
                r"enter-date（5 个页面解决 (\d) 个；之前 (\d) 个）",
            ),
        ),
    ],
)
def test_what_the_docs_tell_of_thoughts(language, patterns):
    [lesson] = lessons_of("one-policy-thoughts")
    before, after = (
        solved_by_task(f"browsergym125-{name}-shown")
        for name in ("one-policy-rehearsed", "one-policy-thoughts")
    )
    sums = ("simple-arithmetic", "simple-algebra")
    told = [
        [f"{lesson['demonstrations']:,}"],
        [after.total(), before.total()],
        [
            counts[f"choose-date-{kind}"]
            for counts in (after, before)
            for kind in ("easy", "medium")
        ],
        [sum(counts[task] for task in sums) for counts in (after, before)],
        [counts["form-sequence-2"] for counts in (after, before)],
        [counts["enter-date"] for counts in (after, before)],
    ]
    text = training_docs(language).replace("\n", " ")
    for pattern, numbers in zip(patterns, told, strict=True):
        found = re.search(pattern.replace("{}", r"[\d,]+"), text)
        assert found, pattern
        assert list(found.groups()) == [str(number) for number in numbers]
    assert lesson["steps"] < lesson["steps_planned"]
    played = RECORDINGS / "benchmark" / "browsergym125-one-policy-thoughts-shown" / "result.json"
    recorded = weights_of(str(RECORDINGS / "one-policy-thoughts" / "policy"))
    assert json.loads(played.read_text())["weights"] == recorded


@pytest.fixture
def thoughts_on_some():
    """How the policy that thinks on some tasks was taught, and its episodes before and after."""
    names = ("one-policy-rehearsed", "one-policy-some-thoughts")
    before, after = (
        episodes_of(RECORDINGS / "benchmark" / f"browsergym125-{name}-shown") for name in names
    )
    assert [row["seed"] for row in before] == [row["seed"] for row in after]
    how = kept_how(str(RECORDINGS / names[-1] / "policy"))
    return how, before, after


@pytest.mark.parametrize(
    ("language", "pattern"),
    [
        (
            "",
            r"\((\d+) demonstrations, each seen once, (\d+) minutes\): (\d+) of the 625 pages, and "
            r"(\d+) before it\. On the (\d+) tasks on which it thinks it solves (\d+) of (\d+) "
            r"pages, before it (\d+), .*?: (\d+) of its (\d+) answers there .*? of its (\d+) "
            r"answers before none was\. Of the (\d+) pages of the other tasks that it was taught "
            r"(\d+) were gained and (\d+) lost\.",
        ),
        (
            "zh/",
            r"（(\d+) 个示范，每个只看一遍，(\d+) 分钟）：625 个页面解决 (\d+) 个，之前 (\d+) 个。"
            r"在要思考的 (\d+) 个任务上，它只解决 (\d+) 个页面 ?（共 (\d+) 个），之前 (\d+) 个，.*?"
            r"有 (\d+) 次回答（共 (\d+) 次）不是.*?之前的 (\d+) 次回答里一次也没有。.*?"
            r"的 (\d+) 个页面里，多解决 (\d+) 个，少解决 (\d+) 个。",
        ),
    ],
)
def test_what_the_docs_tell_of_thoughts_on_some_tasks(thoughts_on_some, language, pattern):
    how, *played = thoughts_on_some
    [lesson] = lessons_of("one-policy-some-thoughts")
    solved = [[row["reward"] == 1 for row in rows] for rows in played]
    tasks = [row["task"] for row in played[0]]
    pages = list(zip(tasks, *solved, strict=True))
    thinking = [page[1:] for page in pages if page[0] in how.thinking]
    others = [page[1:] for page in pages if page[0] in set(how.tasks) - set(how.thinking)]
    before, after = (kinds_on(how.thinking, rows) for rows in played)
    assert before["ok"] == before.total()
    assert after["no_call"] > (after.total() - after["ok"]) / 2
    told = [
        lesson["demonstrations"],
        round(lesson["seconds"] / 60),
        sum(solved[1]),
        sum(solved[0]),
        len(how.thinking),
        sum(now for _, now in thinking),
        len(thinking),
        sum(then for then, _ in thinking),
        after.total() - after["ok"],
        after.total(),
        before.total(),
        len(others),
        others.count((False, True)),
        others.count((True, False)),
    ]
    found = re.search(pattern, training_docs(language).replace("\n", " "))
    assert found, pattern
    assert [int(number) for number in found.groups()] == told


def kinds_on(tasks, rows):
    """How often the answers on these tasks were of each kind."""
    kinds = Counter()
    for row in rows:
        if row["task"] in tasks:
            kinds.update(row["kinds"])
    return kinds


def test_what_grpo_changed_is_counted_on_pages(grpo):
    """In all, on the tasks that had a group with a signal, and on the others."""
    given = set(grpo["recorded"]["with_signal"])
    gained = {page: grpo["after"][page] - solved for page, solved in grpo["before"].items()}
    parts = [
        list(gained.values()),
        [change for (task, _), change in gained.items() if task in given],
        [change for (task, _), change in gained.items() if task not in given],
    ]
    for told, changes in zip(grpo["row"][:3], parts, strict=True):
        assert int(re.match(CHANGE, told)[1]) == round(100 * sum(changes) / len(changes))
    assert f"({len({task for task, _ in gained} & given)} tasks)" in grpo["row"][1]


def test_the_tasks_that_changed_most_are_named(grpo):
    before, after = grpo["before"], grpo["after"]
    tasks = {task for task, _ in before}
    change = {
        task: sum(after[page] - before[page] for page in before if page[0] == task)
        for task in tasks
    }
    mentioned = [one.split(" ")[0] for one in grpo["row"][3].split(", ")]
    smallest = min(abs(change[task]) for task in mentioned)
    assert all(abs(change[task]) <= smallest for task in tasks - set(mentioned))


def test_only_tasks_with_a_signal_were_practised(grpo):
    profile = grpo["recorded"]["profile"]
    assert profile["scout"] == 1
    assert profile["curriculum"] == "success"
    assert set(grpo["recorded"]["with_signal"]) < set(profile["task"].split(","))


def test_the_updates_of_make_one_are_those_that_are_recorded():
    updates = re.findall(r"^ONE_UPDATES := (\d+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    rows = [
        len((RECORDINGS / folder / "practised" / "metrics.csv").read_text().splitlines()) - 1
        for folder in ("one-policy", "one-policy-2-cores")
    ]
    assert [int(number) for number in updates] == rows


@pytest.mark.parametrize("name", ["one-policy", "one-policy-64-pages"])
def test_sampled_success_on_the_tasks_that_were_practised(name):
    text = (ROOT / "docs" / "results.md").read_text()
    folder = RECORDINGS / name / "practised"
    given = json.loads((folder / "grpo.json").read_text())["with_signal"]
    for when in ("before", "after"):
        result = json.loads((folder / f"sampled-{when}.json").read_text())["result"]
        assert set(result["tasks"]) == set(given)
        rate, low, high = (f"{100 * number:.0f}" for number in result["macro"])
        assert f"{rate} % [{low}, {high}]" in text


def test_guess_number_became_a_habit_on_two_cores():
    """What the docs tell of one task: groups of one solved episode at most, then of six."""
    folder = RECORDINGS / "one-policy-2-cores" / "practised"
    rows = list(csv.DictReader((folder / "groups.csv").read_text().splitlines()))
    groups = [
        (int(row["update"]), int(row["solved"])) for row in rows if row["task"] == "guess-number"
    ]
    assert max(solved for update, solved in groups if update <= 11) == 1
    assert {solved for update, solved in groups if update > 21} == {6}
    played = [outcomes("one-policy-2-cores", part) for part in ("shown", "practised")]
    pages = [page for page in played[0] if page[0] == "guess-number"]
    assert [sum(outcome[page] for page in pages) for outcome in played] == [2, 18]


@pytest.fixture(params=(0, 1, 2), ids="seed{}".format)
def held_out(request):
    """A policy that was shown what BrowserGym trains on: what it was taught, and its episodes."""
    folder = RECORDINGS / "held-out" / f"seed{request.param}"
    return {
        "seed": request.param,
        "taught": json.loads((folder / "warm_up.json").read_text()),
        "result": json.loads((folder / "result.json").read_text()),
        "outcomes": episodes_of(folder),
    }


def test_no_task_that_is_held_out_was_shown(held_out):
    counted = standard_set("browsergym63").tasks
    assert len(held_out["taught"]["tasks"]) > 30
    assert not set(held_out["taught"]["tasks"]) & set(counted)
    assert f"--seed {held_out['seed']} " in held_out["taught"]["command"] + " "


def test_what_is_held_out_was_played_on_browsergyms_own_pages(held_out):
    played = [EpisodeSpec(row["task"], row["seed"]) for row in held_out["outcomes"]]
    pages = standard_set("browsergym63").pages
    assert Counter(played) == Counter(pages)
    solved = Counter(row["task"] for row in held_out["outcomes"] if row["reward"] == 1.0)
    # Each task has as many pages, so the mean over the tasks is that over the pages.
    assert held_out["result"]["macro"][0] == pytest.approx(solved.total() / len(pages), abs=1e-4)


def test_what_the_docs_tell_of_the_held_out_tasks(held_out):
    """Three of four answers name an element that is there; two of three failures are a wrong answer
    that the page takes, most often after a single action."""
    rows = held_out["outcomes"]
    kinds = Counter()
    for row in rows:
        kinds.update(row["kinds"])
    assert kinds["ok"] / kinds.total() == pytest.approx(3 / 4, abs=0.07)
    failed = [row for row in rows if row["reward"] != 1.0]
    taken = [row for row in failed if row["ended"] == "failed"]
    assert len(taken) / len(failed) == pytest.approx(2 / 3, abs=0.07)
    assert sum(row["turns"] == 1 for row in taken) > len(taken) / 2


@pytest.mark.parametrize("page", ["docs/results.md", "docs/zh/results.md"])
def test_the_docs_count_the_held_out_pages_that_were_solved(page):
    def solved(folder):
        held_out_tasks = set(standard_set("browsergym63").tasks)
        rows = episodes_of(RECORDINGS / folder)
        return sum(row["reward"] == 1.0 for row in rows if row["task"] in held_out_tasks)

    seeds = [solved(f"held-out/seed{seed}") for seed in range(3)]
    by_chance = solved("benchmark/browsergym125-random")
    words = (ROOT / page).read_text()
    assert re.search(rf"{seeds[0]}[,、] ?{seeds[1]} (and|和) {seeds[2]} .*\b{by_chance}\b", words)
