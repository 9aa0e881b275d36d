"""The arms side by side: success, intervals, and what each changes on the same pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from helpers.learning.arms.outcomes import MEASURES, Outcomes, compare, mean_success
from helpers.learning.arms.plan import ARMS, DEMONSTRATIONS, PLAIN, Plan
from helpers.output import percent, table
from helpers.settings.files import read_object

if TYPE_CHECKING:
    from helpers.learning.arms.experiment import Experiment

NUMBERS = ("episodes", "extra_episodes", "updates", "silent", "seconds_updates", "seconds_training")
"""What a run says of itself, of which the table has the mean over the seeds."""

COLUMNS = (
    "arm",
    "demos",
    "runs",
    "greedy",
    "sampled",
    "pass",
    "greedy against demos",
    "against GRPO",
)


def arm_rows(experiment: Experiment, demos: int, arms: Sequence[str]) -> list[dict[str, Any]]:
    """A row for the warm-up and for each of ``arms``, with the runs of all seeds that are done.

    An arm without a run has no row. A row has the macro means with their intervals (``greedy``,
    ``sampled``, ``pass``: [mean, low, high]) and the paired changes against the warm-up, the arm of
    demonstrations and GRPO, as far as those are there.
    """
    runs: dict[str, dict[int, Outcomes]] = {
        "warm-up": dict.fromkeys(experiment.plan.seeds, experiment.before(demos))
    }
    for arm in arms:
        seeds = seeds_done(experiment, arm, demos)
        if seeds:
            runs[arm] = {seed: experiment.run(arm, demos, seed) for seed in seeds}
    rows = []
    for arm, outcomes in runs.items():
        row: dict[str, Any] = {"arm": arm, "demos": demos}
        known = list(outcomes.values())[: 1 if arm == "warm-up" else None]  # it has one run alone
        for name in MEASURES:
            solved = [one.measure(name) for one in known]
            row[name] = [round(value, 4) for value in mean_success(solved)]
            row[f"{name}_by_seed"] = [round(mean_success([one])[0], 4) for one in solved]
        row |= _mean_numbers(experiment, arm, demos)
        for other in ("warm-up", DEMONSTRATIONS, PLAIN):
            if other in runs and other != arm:
                row[f"against {other}"] = _changes(runs[other], outcomes)
        rows.append(row)
    return rows


def seeds_done(experiment: Experiment, arm: str, demos: int) -> list[int]:
    """The training seeds of an arm's runs that have been trained and tested."""
    return [seed for seed in experiment.plan.seeds if experiment.is_done(arm, demos, seed)]


def _changes(before: dict[int, Outcomes], after: dict[int, Outcomes]) -> dict[str, Any]:
    """The paired change in each measure, on the seeds that both have."""
    seeds = [seed for seed in before if seed in after]
    return {
        name: compare(
            [before[seed].measure(name) for seed in seeds],
            [after[seed].measure(name) for seed in seeds],
        )
        for name in MEASURES
    }


def _mean_numbers(experiment: Experiment, arm: str, demos: int) -> dict[str, Any]:
    """The seeds of an arm's runs, and the means of what they say of themselves."""
    if arm not in ARMS:
        return {}
    seeds = seeds_done(experiment, arm, demos)
    records = [
        read_object(experiment.run_folder(arm, demos, seed) / "outcomes.json") or {}
        for seed in seeds
    ]
    means: dict[str, Any] = {"seeds": seeds}
    for name in NUMBERS:
        values = [record[name] for record in records if name in record]
        if values:
            means[name] = round(sum(values) / len(values), 3)
    return means


def best_arm(rows: Sequence[dict[str, Any]]) -> str:
    """The arm with reinforcement learning whose greedy success is highest, of those with the most
    runs; not the control.

    "" where none is done.
    """
    learned = [row for row in rows if row["arm"] in ARMS]
    candidates = [row for row in learned if row["arm"] not in (DEMONSTRATIONS, "shuffled")]
    most = max((len(row["seeds"]) for row in candidates), default=0)
    candidates = [row for row in candidates if len(row["seeds"]) == most]
    return max(candidates, key=lambda row: row["greedy"][0], default={"arm": ""})["arm"]


def run_all(experiment: Experiment, seeds: Sequence[int], arms: Sequence[str]) -> None:
    """Do what of the experiment is not done yet: these arms with a seed, then with the next one.

    Once all arms have all seeds of the plan, the best one and the demonstrations are run with the
    plan's other numbers of demonstrations.
    """
    plan: Plan = experiment.plan
    experiment.before(plan.demos)
    for seed in seeds:
        for arm in arms:
            experiment.run(arm, plan.demos, seed)
    if any(len(seeds_done(experiment, arm, plan.demos)) < len(plan.seeds) for arm in ARMS):
        return
    best = best_arm(arm_rows(experiment, plan.demos, tuple(ARMS)))
    for demos in plan.other_demos:
        for seed in seeds:
            for arm in (DEMONSTRATIONS, best):
                experiment.run(arm, demos, seed)


def results(experiment: Experiment) -> dict[str, Any]:
    """What of the experiment is done, as ``result.json`` has it."""
    plan: Plan = experiment.plan
    rows = arm_rows(experiment, plan.demos, tuple(ARMS))
    best = best_arm(rows)
    for demos in plan.other_demos:
        if any(seeds_done(experiment, arm, demos) for arm in ARMS):
            rows += arm_rows(experiment, demos, (DEMONSTRATIONS, best))
    return {"plan": plan.to_json(), "tasks": experiment.tasks(), "best": best, "rows": rows}


def report(result: dict[str, Any]) -> str:
    """The table as plain text."""
    rows = []
    for row in result["rows"]:
        shares = [percent(*row[name]) for name in MEASURES]
        against = [row.get(f"against {other}") for other in (DEMONSTRATIONS, PLAIN)]
        changes = [_points(one["greedy"]) if one else "" for one in against]
        runs = len(row.get("seeds", [0]))
        rows.append((row["arm"], row["demos"], runs, *shares, *changes))
    return table(COLUMNS, rows)


def _points(change: dict[str, float]) -> str:
    values = [100 * change[name] for name in ("change", "low", "high")]
    return "{:+.0f} [{:+.0f}, {:+.0f}]".format(*values)
