"""The arms side by side: success, intervals, and what each changes on the same pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from helpers.learning.arms.outcomes import MEASURES, Outcomes, compare, mean_success
from helpers.learning.arms.plan import ARMS, DEMONSTRATIONS, PLAIN, Plan
from helpers.output import table
from helpers.settings.files import read_object

if TYPE_CHECKING:
    from helpers.learning.arms.experiment import Experiment

NUMBERS = ("episodes", "extra_episodes", "updates", "silent", "seconds_updates", "seconds_training")
"""What a run says of itself, of which the table has the mean over the seeds."""

COLUMNS = ("arm", "demos", "greedy", "sampled", "pass", "greedy against demos", "against GRPO")


def arm_rows(experiment: Experiment, demos: int, arms: Sequence[str]) -> list[dict[str, Any]]:
    """A row for the warm-up and for each of ``arms``, with the runs of all seeds together.

    A row has the macro means with their intervals (``greedy``, ``sampled``, ``pass``: [mean, low,
    high]) and the paired changes against the warm-up, the arm of demonstrations and GRPO, as far as
    those are there.
    """
    seeds = experiment.plan.seeds
    runs = {"warm-up": [experiment.before(demos)] * len(seeds)}
    for arm in arms:
        runs[arm] = [experiment.run(arm, demos, seed) for seed in seeds]
    rows = []
    for arm, outcomes in runs.items():
        row: dict[str, Any] = {"arm": arm, "demos": demos}
        for name in MEASURES:
            solved = [one.measure(name) for one in outcomes]
            known = solved[:1] if arm == "warm-up" else solved  # it has one run alone
            row[name] = [round(value, 4) for value in mean_success(known)]
            row[f"{name}_by_seed"] = [round(mean_success([one])[0], 4) for one in known]
        row |= _mean_numbers(experiment, arm, demos)
        for other in ("warm-up", DEMONSTRATIONS, PLAIN):
            if other in runs and other != arm:
                row[f"against {other}"] = _changes(runs[other], outcomes)
        rows.append(row)
    return rows


def _changes(before: Sequence[Outcomes], after: Sequence[Outcomes]) -> dict[str, Any]:
    """The paired change in each measure."""
    return {
        name: compare([one.measure(name) for one in before], [one.measure(name) for one in after])
        for name in MEASURES
    }


def _mean_numbers(experiment: Experiment, arm: str, demos: int) -> dict[str, float]:
    """The means of what the runs of an arm say of themselves."""
    if arm not in ARMS:
        return {}
    records = [
        read_object(experiment.run_folder(arm, demos, seed) / "outcomes.json") or {}
        for seed in experiment.plan.seeds
    ]
    means = {}
    for name in NUMBERS:
        values = [record[name] for record in records if name in record]
        if values:
            means[name] = round(sum(values) / len(values), 3)
    return means


def best_arm(rows: Sequence[dict[str, Any]]) -> str:
    """The arm with reinforcement learning whose greedy success is highest; not the control."""
    learned = [row for row in rows if row["arm"] in ARMS]
    candidates = [row for row in learned if row["arm"] not in (DEMONSTRATIONS, "shuffled")]
    return max(candidates, key=lambda row: row["greedy"][0])["arm"]


def results(experiment: Experiment) -> dict[str, Any]:
    """Do what of the experiment is not done yet, and put it together as ``result.json`` has it."""
    plan: Plan = experiment.plan
    rows = arm_rows(experiment, plan.demos, tuple(ARMS))
    best = best_arm(rows)
    for demos in plan.other_demos:
        rows += arm_rows(experiment, demos, (DEMONSTRATIONS, best))
    return {"plan": plan.to_json(), "tasks": experiment.tasks(), "best": best, "rows": rows}


def report(result: dict[str, Any]) -> str:
    """The table as plain text."""
    rows = []
    for row in result["rows"]:
        shares = [_interval(row[name]) for name in MEASURES]
        against = [row.get(f"against {other}") for other in (DEMONSTRATIONS, PLAIN)]
        changes = [_points(one["greedy"]) if one else "" for one in against]
        rows.append((row["arm"], row["demos"], *shares, *changes))
    return table(COLUMNS, rows)


def _interval(values: Sequence[float]) -> str:
    mean, low, high = (100 * value for value in values)
    return f"{mean:.0f} % [{low:.0f}, {high:.0f}]"


def _points(change: dict[str, float]) -> str:
    values = [100 * change[name] for name in ("change", "low", "high")]
    return "{:+.0f} [{:+.0f}, {:+.0f}]".format(*values)
