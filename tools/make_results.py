"""Write the measured numbers into the READMEs and into docs/: ``make results``.

    python tools/make_results.py              render them
    python tools/make_results.py --baselines  play the agents without a model first, and record it

A block is ``<!-- begin NAME --> ... <!-- end -->``; what is between is not edited by hand. A
function of this file takes a block's numbers from recordings/ and from `helpers.settings`, and
tools/templates/NAME.md.j2 holds its words, English and Chinese side by side. A block whose name has
a colon (``time:05``, ``reading:05``) is a number within a sentence or a table.
"""

import json
import re
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import jinja2
import typer

from helpers.command_line import run
from helpers.episodes.advantages import group_advantages
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.episode import read_episodes
from helpers.episodes.how_played import kept_how
from helpers.episodes.tasks import TASKS, UNSEEN
from helpers.evaluation.outcomes import Outcome, macro_of
from helpers.evaluation.standard_sets import standard_set
from helpers.evaluation.statistics import macro_mean
from helpers.learning.arms.outcomes import Solved, compare, outcomes_of, rates
from helpers.learning.arms.plan import ARMS
from helpers.output import clock
from helpers.settings.paths import NOTEBOOKS, RECORDINGS, ROOT
from helpers.settings.predictions import predict
from helpers.settings.profiles import PROFILES, scaled
from tools.recorded import (
    FOUR_ROLLOUTS,
    Run,
    find_runs,
    read_evaluations,
    read_json,
    read_times,
    recorded_result,
)

TEMPLATES = ROOT / "tools" / "templates"
BLOCK = re.compile(r"(<!-- begin (?P<name>[\w:]+) -->)(?P<body>.*?)(<!-- end -->)", re.DOTALL)
SUITE_COLUMNS = (
    "random",
    "first_button",
    "text_match",
    "oracle",
    "untrained",
    "untrained-own",
    "untrained-sampled",
    "warm-up",
    "grpo",
)

HALF = 0.5  # of a held-out task's pages: then it is named
CHANGES = 5  # tasks that are named with what GRPO changed
STEPS = ((0.95, 1.01), (0.8, 0.95), (0.5, 0.8), (0.2, 0.5), (0, 0.2))  # shares of solved pages
# What `make one` made: the folder that records it. What it solves of a standard set is in
# recordings/benchmark/<set>-<folder>-shown, and after GRPO in one whose name ends as the folder of
# that GRPO does: <set>-<folder>-practised.
ONE_POLICY = (
    "one-policy",
    "one-policy-second-lesson",
    "one-policy-rehearsed",
    "one-policy-by-need",
    "one-policy-thoughts",
    "one-policy-some-thoughts",
    "one-policy-64-pages",
    "one-policy-2-cores",
)
GOES_ON_FROM = re.compile(r"--policy recordings/([\w-]+)/policy")  # of the command of a warm-up
SHOWN = "shown"
# Policies that were shown only what BrowserGym trains on: a folder for each training seed.
HELD_OUT = RECORDINGS / "held-out"
STANDARD_SETS = {"webgum56": "WebGUM-56", "browsergym125": "BrowserGym-125"}

# In the first table of a notebook, and in the headings of its sections.
NOTEBOOK_TIMES = re.compile(r"(\d+) min to run, (\d+) min to read")
SECTION_TIME = re.compile(r'"## \d+\. (?:[^"\\]|\\.)*\(~(\d+) min')

Context = dict[str, Any]


def documents(language: str) -> list[Path]:
    """The texts in which blocks may stand: the README and docs/ of "en" or "zh"."""
    docs = ROOT / "docs"
    if language == "zh":
        return [ROOT / "README_zh.md", *sorted((docs / "zh").rglob("*.md"))]
    english = [path for path in docs.rglob("*.md") if docs / "zh" not in path.parents]
    return [ROOT / "README.md", *sorted(english)]


# What the templates can use besides their block's numbers.


def number(value: float, form: str) -> str:
    """A number in one of Python's formats: 2424263 with ",.0f" is "2,424,263"."""
    return format(value, form)


def percent(share: float) -> str:
    """0.287 is "29 %"."""
    return f"{100 * share:.0f} %"


def rate(summary: dict[str, Any]) -> str:
    """The success of an evaluation with its interval: "29 % [21, 39]"."""
    return interval(summary["success"], summary["low"], summary["high"])


def interval(share: float, low: float, high: float) -> str:
    """A share and its 95 % interval in per cent."""
    return f"{percent(share)} [{100 * low:.0f}, {100 * high:.0f}]"


def points(difference: dict[str, Any]) -> str:
    """The change of a paired comparison in points: "+69 [+60, +77]"."""
    change, low, high = (round(100 * difference[key]) for key in ("change", "low", "high"))
    return f"{change:+d} [{low:+d}, {high:+d}]"


@cache
def environment_of(language: str) -> jinja2.Environment:
    """The templates with their filters, and ``t``, which chooses between English and Chinese."""
    english = language == "en"
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

    def one_line(text: str) -> str:
        """A paragraph of a template in one line; between Chinese sentences stands no space."""
        return (" " if english else "").join(line.strip() for line in text.strip().splitlines())

    environment.filters |= {
        "clock": clock,
        "interval": lambda shares: interval(*shares),
        "number": number,
        "one_line": one_line,
        "percent": percent,
        "points": points,
        "rate": rate,
    }
    environment.globals["english"] = english
    environment.globals["t"] = lambda in_english, in_chinese: in_english if english else in_chinese
    return environment


# Each of these returns the numbers of one block; its name is the block's and the template's.


def results() -> Context:
    """The recorded trainings, the commands that make them, and the machines that ran them."""
    runs = find_runs()
    machines = set()
    for training in runs:
        versions = ", ".join(f"{name} {v}" for name, v in training.result["versions"].items())
        machines.add(f"{training.result['machine']}; {versions}")
    commands = list(dict.fromkeys(training.command for training in runs))
    return {"runs": runs, "commands": commands, "machines": sorted(machines)}


def summary() -> Context:
    """The result in a few rows: agents without a model, the policy before and after training.

    Of the trainings only those that differ in their seed alone: on pages with a choice.
    """
    usual = [run for run in find_runs() if _is_usual(run)]
    return {
        **baselines(),
        "full": [run.result for run in usual if not run.result["lora"]],
        "lora": [run.result for run in usual if run.result["lora"]],
        "suite": suite(),
        "webgum": next(iter(_before_and_after(_played("webgum56"))), None),
    }


def headline() -> Context:
    """The same numbers for one sentence."""
    return summary()


def _is_usual(run: Run) -> bool:
    """Whether a run has the course's own settings and differs in its seed or adapters alone."""
    profile = run.result["profile"]
    usual = scaled(PROFILES[profile["name"]], profile["scale"])
    compared = ("pages", "groups", "group_size", "learning_rate", "task")
    return all(profile.get(name) == getattr(usual, name) for name in compared)


def baselines() -> Context:
    """The agents without a model, and the untrained policy on the same task."""
    agents = recorded_result("baselines").get("agents", {})
    tasks = {summary["tasks"][0] for summary in agents.values()}
    untrained = None
    for training in find_runs():
        before = training.result["before"]
        of_the_course = training.result["profile"]["policy"] == "smollm2-135m"
        if of_the_course and before["tasks"][0] in tasks:
            untrained = before
            break
    return {"agents": agents, "untrained": untrained}


def times() -> Context:
    """What one `make course` took."""
    recorded = read_times()
    seconds = {"six": 0.0, "more": 0.0}
    for notebook in recorded.get("notebooks", []):
        seconds["more" if "/" in notebook["name"] else "six"] += notebook["seconds"]
    return {"recorded": recorded, "seconds": seconds}


def four_rollouts() -> Context:
    """The four rollouts of one prompt, as (what it did, reward, advantage)."""
    if not FOUR_ROLLOUTS.exists():
        return {"rollouts": []}
    episodes = read_episodes(FOUR_ROLLOUTS)
    advantages = group_advantages([episode.reward for episode in episodes], len(episodes))
    rollouts = []
    for episode, advantage in zip(episodes, advantages, strict=True):
        actions = [turn.parsed.action or turn.parsed.kind for turn in episode.turns]
        rollouts.append((actions, episode.reward, advantage))
    return {"rollouts": rollouts}


def settings() -> Context:
    """The profiles, of which the template shows field by field."""
    return {"profiles": PROFILES}


def gpu() -> Context:
    """Trainings on a GPU, as it is recorded in recordings/gpu/."""
    return {"runs": find_runs(RECORDINGS / "gpu")}


def predictions() -> Context:
    """What is predicted for the profiles with a GPU, as (name, profile, demo, full).

    The CPU's is measured, and its prediction follows the cores of the machine.
    """
    rows = []
    for name, profile in PROFILES.items():
        if profile.device != "cpu":
            full = predict(scaled(profile, "full"))
            rows.append((name, profile, predict(profile), full))
    return {"rows": rows}


def environment() -> Context:
    """What an episode costs here and in stock BrowserGym, and what limits it."""
    recorded = recorded_result("environment")
    if not recorded:
        return {"recorded": recorded}
    return {"recorded": recorded, "bound": _bound(recorded), "each_task": _each_task()}


def parity() -> Context:
    """In how many observations each field differs from stock's, and stock's from itself."""
    recorded = recorded_result("parity")
    here = recorded.get("fields_that_differ", {})
    stock = recorded.get("fields_in_which_stock_differs_with_itself", {})
    return {
        "recorded": recorded,
        "fields": list(dict.fromkeys([*here, *stock])),
        "here": here,
        "stock": stock,
        "drawn": _draws(),
    }


def _draws() -> Context:
    """What all recorded draws of episodes say together (`benchmarks.drawn_episodes.counts`)."""
    paths = sorted((RECORDINGS / "parity").glob("drawn*-*.json"))
    draws = [json.loads(path.read_text()) for path in paths]
    summed = ("episodes", "actions", "compared")
    differing = [episode["task"] for draw in draws for episode in draw["differing"]]
    not_covered = recorded_result("parity").get("not_covered", {})
    alone = read_json(RECORDINGS / "parity" / "alone.json")["episodes"]
    left = Counter(each["known"] for each in alone if "first" in each)
    return {
        **{name: sum(draw[name] for draw in draws) for name in summed},
        "differing": len(differing),
        "not_covered": sum(task in not_covered for task in differing),
        "alone": len(alone),
        "times": max(each["times"] for each in alone),
        "equal_alone": len(alone) - left.total(),
        "left": left.most_common(),
    }


def faults() -> Context:
    """What the environment endures: things broken on purpose, hostile strings and episodes, a busy
    machine, long use."""
    return {
        "broken": _broken(),
        "soak": recorded_result("soak"),
        "busy": recorded_result("busy"),
        "reuse": recorded_result("reuse"),
    }


def _bound(recorded: Context) -> Context:
    """The processor time of an episode at the number of workers that plays most of them."""
    rates = recorded["episodes_per_s"]["ours"]
    workers = max(rates, key=rates.get)
    parts: Counter = Counter()
    for name, milliseconds in recorded["cpu_ms"][workers].items():
        program = name.split()[0]  # of "chromium renderer" and "chromium gpu" the same
        parts[program] += milliseconds
    total = sum(parts.values())
    busy_cores = total * rates[workers] / 1_000
    return {"workers": workers, "cpu_ms": total, "parts": parts.most_common(), "busy": busy_cores}


def _each_task() -> Context:
    """How many times stock's speed each task has; empty where that is not recorded."""
    tasks = read_json(RECORDINGS / "environment" / "tasks.json").get("tasks", {})
    if not tasks:
        return {}
    ratios = [row["ratio"] for row in tasks.values()]
    return {
        "n": len(ratios),
        "median": statistics.median(ratios),
        "least": min(ratios),
        "many": sum(ratio >= 12 for ratio in ratios),
    }


def _broken() -> Context:
    """What was broken on purpose, and what hostile strings earned; empty where not recorded."""
    found = recorded_result("faults")
    if not found:
        return {}
    kinds = found["strings"].values()
    return {
        "n": len(found["faults"]),
        "slowest_reset": max(fault["next_reset_s"] for fault in found["faults"]),
        "strings": sum(kind["sent"] for kind in kinds),
        "unearned": sum(kind["paid_without_button"] for kind in kinds),
    }


def suite() -> Context:
    """One policy for many tasks: a row per task, a column per evaluation."""
    found = read_evaluations(SUITE_COLUMNS)
    if not found:
        return {"columns": {}}
    columns = {name: evaluation["result"]["by_task"] for name, evaluation in found.items()}
    episodes = {name: max(task["n"] for task in tasks.values()) for name, tasks in columns.items()}
    commands = []
    for name in found:
        # The training comes before its test: result.json or warm_up.json, then evaluation.json.
        paths = sorted((RECORDINGS / "suite" / name).glob("*.json"), reverse=True)
        commands += [Run(path.parent, read_json(path)).command for path in paths]
    return {
        "columns": columns,
        "episodes": episodes,
        "usual": episodes["random"],
        "sets": {"seen": TASKS, "unseen": UNSEEN},
        "means": {"seen": _means(columns, TASKS), "unseen": _means(columns, UNSEEN)},
        "commands": commands,
    }


def _means(columns: dict[str, Context], tasks: Context) -> list[tuple | None]:
    """For each column the mean over the tasks that it has, with its interval; None without any."""
    means = []
    for by_task in columns.values():
        rates = [
            (by_task[task]["success"], by_task[task]["n"]) for task in tasks if task in by_task
        ]
        means.append(macro_mean(rates) if rates else None)
    return means


def arms() -> Context:
    """What reinforcement learning adds to demonstrations: a row for each arm that is recorded."""
    recorded = {"rows": [], **recorded_result("arms")}
    seeds = sorted({seed for row in recorded["rows"] for seed in row.get("seeds", [])})
    done = {row["arm"] for row in recorded["rows"]}
    return {**recorded, "seeds": seeds, "missing": [arm for arm in ARMS if arm not in done]}


def benchmark() -> Context:
    """The field's standard sets: what was played here, the best first, and what others report."""
    published = read_json(RECORDINGS / "benchmark" / "published.json")
    sets: dict[str, Context] = {}
    for name, title in STANDARD_SETS.items():
        ours = _played(name)
        if ours:
            tasks = ours[0]["by_task"]
            sets[name] = {
                "title": title,
                "tasks": len(tasks),
                "pages": sorted({result["pages"] for result in ours}),
                "ours": ours,
                "published": published[name],
                "steps": _by_success(ours) if name == "webgum56" else [],
                "gains": _gains_by_grpo(ours),
            }
    commands = [result["command"] for chosen in sets.values() for result in chosen["ours"]]
    return {"sets": sets, "commands": commands}


def _played(name: str) -> list[Context]:
    """What was recorded of a standard set, the best first."""
    results = [
        {**result, **_player_of(path.parent.name.removeprefix(f"{name}-"))}
        | {"folder": path.parent.name, "pages": _pages_of_each_task(result)}
        for path in sorted((RECORDINGS / "benchmark").glob(f"{name}-*/result.json"))
        if (result := read_json(path))
    ]
    return sorted(results, key=lambda result: result["macro"][0], reverse=True)


def _pages_of_each_task(result: Context) -> int:
    """How many pages of each task were played."""
    return max(row["n"] for row in result["by_task"].values())


def _by_success(results: list[Context]) -> list[Context]:
    """The tasks by how much of each the best policy solves, from the best step of `STEPS` down, and
    last those that a text policy cannot do."""
    result = next((one for one in results if one["taught"]), None)
    if result is None:
        return []
    success = {task: row["solved"] / row["n"] for task, row in result["by_task"].items()}
    steps = []
    for low, high in STEPS:
        names = [t for t in success if low <= success[t] < high and t not in result["out_of_reach"]]
        names.sort(key=lambda task: -success[task])
        tasks = [(task, 100 * success[task]) for task in names]
        steps.append({"low": low, "high": min(high, 1), "tasks": tasks})
    beyond = [(task, 100 * success[task]) for task in success if task in result["out_of_reach"]]
    return [*steps, {"tasks": beyond}]


def _before_and_after(results: list[Context]) -> list[tuple[Context, Context]]:
    """The results of a set before and after each GRPO, of the policies of `ONE_POLICY`."""
    pairs = []
    for name in ONE_POLICY:
        own = [one for one in results if one["recorded"] == name]
        before = [one for one in own if not one["grpo"]]
        after = [one for one in own if one["grpo"]]
        pairs += [(before[0], one) for one in after if before]
    return pairs


def _gains_by_grpo(results: list[Context]) -> list[Context]:
    """What each GRPO changed, of the policies of `ONE_POLICY` that were played before it, too."""
    return [
        {
            "taught": after["taught"],
            "grpo": after["grpo"],
            "sampled": _sampled(after),
            **_gain_by_grpo(before, after),
        }
        for before, after in _before_and_after(results)
    ]


def _sampled(result: Context) -> list[Context]:
    """What a policy solved of the tasks that it practised with sampled answers, before and after
    GRPO; empty where that is not recorded."""
    folder = RECORDINGS / result["recorded"] / result["part"]
    paths = [folder / f"sampled-{when}.json" for when in ("before", "after")]
    return [json.loads(path.read_text())["result"] for path in paths if path.exists()]


def _gain_by_grpo(before_it: Context, after_it: Context) -> Context:
    """What GRPO changed, on the pages that were played before and after it: of the set, of the
    tasks that it was given, and of the others, and the tasks that changed most: (task, before,
    after)."""
    was, now = (_solved(one["folder"]) for one in (before_it, after_it))
    was = {page: tries for page, tries in was.items() if page in now}
    tasks = set(before_it["by_task"])
    given = tasks & set(after_it["grpo"]["with_signal"])
    gain: Context = {"given": len(given), "others": len(tasks - given)}
    for name, part in {"all": tasks, "given": given, "others": tasks - given}.items():
        pages = {page: tries for page, tries in was.items() if EpisodeSpec.read(page).task in part}
        gain[f"{name}_change"] = compare([pages], [now])
    before, after = rates(was), rates(now)
    changes = [(task, before[task][0], after[task][0]) for task in sorted(tasks)]
    changes.sort(key=lambda change: round(abs(change[2] - change[1]), 4), reverse=True)
    return {**gain, "most": changes[:CHANGES]}


def _solved(folder: str) -> Solved:
    """What of a benchmark was solved, page by page."""
    lines = (RECORDINGS / "benchmark" / folder / "outcomes.jsonl").read_text().splitlines()
    return outcomes_of(Outcome(**json.loads(line)) for line in lines)


def _player_of(who: str) -> Context:
    """Of a policy of ``make one``, by the end of its folder's name: its size, what it was shown,
    and the GRPO after that, if any, with the number of its updates; of an agent nothing."""
    names = [name for name in ONE_POLICY if who.startswith(f"{name}-")]
    if not names:
        return {"recorded": "", "part": "", "taught": {}, "grpo": {}, "size": ""}
    name = max(names, key=len)
    part = who.removeprefix(f"{name}-")
    grpo: Context = {}
    if part != SHOWN:
        folder = RECORDINGS / name / part
        updates = len((folder / "metrics.csv").read_text().splitlines()) - 1
        grpo = {**read_json(folder / "grpo.json"), "updates": updates}
    return {"recorded": name, "part": part, "taught": _taught(name), "grpo": grpo, "size": "135M"}


def _taught(name: str) -> Context:
    """What a recorded policy was shown, and as ``before`` what the policy was that it goes on
    from. ``thinks``: the number of these tasks on which it thinks."""
    folder = RECORDINGS / name
    taught = read_json(folder / "warm_up.json")
    earlier = GOES_ON_FROM.search(taught["command"])
    kept = kept_how(str(folder / "policy"))
    thinks = len({*kept.thinking} & {*taught["tasks"]}) if kept else 0
    return {**taught, "before": _taught(earlier[1]) if earlier else {}, "thinks": thinks}


def held_out() -> Context:
    """The 63 tasks that BrowserGym holds out: solved by policies that were shown the other half
    only, a row for each training seed, and beside them by who was not kept from the 63."""
    tasks = standard_set("browsergym63").tasks
    seeds = [
        {
            **read_json(path),
            "seed": path.parent.name.removeprefix("seed"),
            "taught": _taught(f"held-out/{path.parent.name}"),
        }
        for path in sorted(HELD_OUT.glob("seed*/result.json"))
    ]
    beside = [_on_tasks(result, tasks) for result in _played("browsergym125")]
    return {
        "tasks": len(tasks),
        "seeds": seeds,
        "mean": statistics.mean(each["macro"][0] for each in seeds) if seeds else None,
        "beside": sorted(beside, key=lambda result: result["macro"][0], reverse=True),
        "most": _solved_by_all(seeds),
    }


def _on_tasks(result: Context, tasks: Sequence[str]) -> Context:
    """A recorded result with some of its tasks only, and the means over them."""
    by_task = {task: result["by_task"][task] for task in tasks}
    means = {"macro": macro_of(by_task, "solved"), "macro_raw": macro_of(by_task, "raw_above_0")}
    return {**result, **means, "by_task": by_task}


def _solved_by_all(results: list[Context]) -> list[tuple[str, float]]:
    """The tasks with what all of these results together solve of their pages, from `HALF` on."""
    by_task: dict[str, list[int]] = {}
    for result in results:
        for task, row in result["by_task"].items():
            counts = by_task.setdefault(task, [0, 0])
            counts[0] += row["solved"]
            counts[1] += row["n"]
    shares = [(task, solved / n) for task, (solved, n) in by_task.items() if solved >= HALF * n]
    return sorted(shares, key=lambda each: -each[1])


def doors() -> Context:
    """What each door into a task costs, and each way to show a page."""
    return {"recorded": recorded_result("doors")}


def peers() -> Context:
    """TRL's own examples with OpenEnv's own client, one update each, on our server."""
    return {"recorded": recorded_result("peers")}


def rollouts() -> Context:
    """Episodes per second of the loops, and what overlap wins where most time is generation."""
    recorded = recorded_result("rollouts")
    several = {}
    if measured := recorded.get("tasks", {}).get("mix of several turns"):
        batched, streamed = measured["batched"], measured["streamed"]
        several = {
            "gained": streamed["episodes_per_s"] / batched["episodes_per_s"],
            "generating": batched["generation_share"],
        }
    return {"recorded": recorded, "several": several}


def architectures() -> Context:
    """What an update of larger policies takes, with random weights."""
    return {"recorded": recorded_result("architectures")}


def updates() -> Context:
    """Where the seconds of an update go."""
    return {"recorded": recorded_result("training")}


def prompts() -> Context:
    """How long prompts are and what the shorter ones lose."""
    return {"recorded": recorded_result("prompts")}


def wrong_pay() -> Context:
    """What a policy learns from three rewards: a row for each that is recorded."""
    recorded = {"rows": [], **recorded_result("wrong_pay")}
    seeds = sorted({seed for row in recorded["rows"] for seed in row["seeds"]})
    return {**recorded, "seeds": seeds, "share": share, "by_seed": by_seed}


def orders() -> Context:
    """Policies and defences on pages that give orders: a row for each that is recorded."""
    recorded = {"rows": [], **recorded_result("orders")}
    by_family = next((row["by_family"] for row in recorded["rows"] if row["name"] == "warm-up"), {})
    families = ", ".join(
        f"{name} {numbers['count']} / {numbers['n']}" for name, numbers in by_family.items()
    )
    return {**recorded, "families": families, "share": share}


def by_seed(numbers: dict[str, Any]) -> str:
    """The rate of each training seed: "75, 56, 56 %"."""
    return ", ".join(f"{100 * rate:.0f}" for rate in numbers["by_seed"]) + " %"


def share(numbers: dict[str, Any]) -> str:
    """A share of an experiment with its interval: "29 % [21, 39]"."""
    return interval(numbers["rate"], numbers["low"], numbers["high"])


BLOCKS: dict[str, Callable[[], Context]] = {
    block.__name__: block
    for block in (
        headline,
        summary,
        suite,
        rollouts,
        updates,
        architectures,
        prompts,
        arms,
        benchmark,
        held_out,
        wrong_pay,
        orders,
        doors,
        results,
        baselines,
        times,
        four_rollouts,
        settings,
        predictions,
        gpu,
        environment,
        parity,
        faults,
        peers,
    )
}


def running_time(number: str, language: str) -> str:
    """What the notebook with a number took in the recorded `make course`: "3:32 min".

    "all": what all of them took. A dash where that is not recorded, or the notebook failed.
    """
    chosen = [
        notebook
        for notebook in read_times().get("notebooks", [])
        if notebook["name"].startswith(number if number != "all" else "0")
    ]
    if not chosen or any(notebook["error"] for notebook in chosen):
        return "–"
    total = sum(notebook["seconds"] for notebook in chosen)
    return f"{clock(total)} {'min' if language == 'en' else '分钟'}"


def reading_time(number: str, language: str) -> str:
    """What the first table of the notebook with a number says of reading it: "50 min".

    "all": the hours and minutes of all of them.
    """
    pattern = "0*.ipynb" if number == "all" else f"{number}_*.ipynb"
    found = []
    for path in NOTEBOOKS.glob(pattern):
        match = NOTEBOOK_TIMES.search(path.read_text(encoding="utf-8"))
        found.append(int(match[2]) if match else 0)
    hours, minutes = divmod(sum(found), 60)
    hour_word, minute_word = ("h", "min") if language == "en" else ("小时", "分钟")
    if number != "all":
        return f"{sum(found)} {minute_word}"
    return f"{hours} {hour_word} {minutes} {minute_word}"


def _text_of(number: str) -> str:
    """The file of the notebook with a number."""
    return next(NOTEBOOKS.glob(f"{number}_*.ipynb")).read_text(encoding="utf-8")


def said_times(number: str, language: str) -> str:
    """What the first table of a notebook says: "3 min to run, 50 min to read"."""
    match = NOTEBOOK_TIMES.search(_text_of(number))
    if match is None:
        return "–"
    return match[0] if language == "en" else f"运行 {match[1]} 分钟，阅读 {match[2]} 分钟"


def section_times(number: str, language: str) -> str:
    """The sum of the minutes in the headings of a notebook's sections."""
    return str(sum(int(minutes) for minutes in SECTION_TIME.findall(_text_of(number))))


# What may stand in the middle of a line, as NAME:NUMBER.
INLINE: dict[str, Callable[[str, str], str]] = {
    "time": running_time,
    "reading": reading_time,
    "said": said_times,
    "sections": section_times,
}


def render(text: str, language: str, root: str = "") -> str:
    """A text with every block as the recordings have it.

    ``language`` is "en" or "zh"; ``root`` leads from the text to the root of the repository
    ("../" from a file in docs/). KeyError for a block that is unknown.
    """
    templates = environment_of(language)

    def fill(match: re.Match[str]) -> str:
        name, _, number = match["name"].partition(":")
        if number:
            body = INLINE[name](number, language)
        else:
            context = {**BLOCKS[name](), "root": root}
            rendered = templates.get_template(f"{name}.md.j2").render(context)
            body = f"\n\n{rendered.strip()}\n\n"
        return f"{match[1]}{body}{match[4]}"

    return BLOCK.sub(fill, text)


def render_file(path: Path, language: str) -> str:
    """The text of a file of the repository with every block as the recordings have it."""
    root = "../" * (len(path.relative_to(ROOT).parts) - 1)
    return render(path.read_text(encoding="utf-8"), language, root)


def missing_recordings() -> list[str]:
    """What `make results` shows a sentence for, because nobody has recorded it yet."""
    recorded = {
        "recordings/<run>/result.json": bool(find_runs()),
        "recordings/course/times.json": bool(read_times()),
        "recordings/baselines/result.json": bool(recorded_result("baselines")),
        "recordings/four_rollouts/episodes.jsonl": FOUR_ROLLOUTS.exists(),
    }
    return [name for name, there in recorded.items() if not there]


def update(path: Path, language: str) -> None:
    """Render the blocks of one file, if it has any, and say whether that changed it."""
    old = path.read_text(encoding="utf-8")
    if not BLOCK.search(old):
        return
    new = render_file(path, language)
    path.write_text(new, encoding="utf-8")
    print(f"  {path.relative_to(ROOT)}: {'as it was' if new == old else 'updated'}")


def main(
    baselines: Annotated[
        bool,
        typer.Option("--baselines", help="Play and record the agents without a model first."),
    ] = False,
    task: Annotated[str, typer.Option(help="The task of the baselines.")] = "click-button",
) -> None:
    """Write the measured numbers into the READMEs and into docs/."""
    if baselines:
        from tools.record_baselines import record_baselines  # it starts browsers

        record_baselines(task)
    for language in ("en", "zh"):
        for path in documents(language):
            update(path, language)
    if missing := missing_recordings():
        print(f"  not recorded yet: {', '.join(missing)}")


if __name__ == "__main__":
    sys.exit(run(main))
