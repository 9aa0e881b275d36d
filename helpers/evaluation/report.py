"""An evaluation or a benchmark as text, task by task."""

from typing import Any

from helpers.evaluation.evaluate import MAX_INFRASTRUCTURE_RATE, Evaluation
from helpers.output import table

COLUMNS = ("task", "solved", "95 % interval", "n", "turns", "answers")


def task_report(result: Evaluation) -> str:
    """A table with a row per task, and a last one for the mean over the tasks.

    Episodes that the infrastructure lost are counted in a line below.
    """
    rows = []
    for task, part in result.by_task.items():
        low, high = part.interval
        kinds = ", ".join(f"{kind} {count}" for kind, count in part.kinds.items())
        rows.append(
            (
                task,
                f"{100 * part.success:.0f} %",
                f"[{100 * low:.0f}, {100 * high:.0f}]",
                part.n,
                f"{part.mean_turns:.1f}",
                kinds,
            )
        )
    mean, low, high = result.macro
    interval = f"[{100 * low:.1f}, {100 * high:.1f}]"
    rows.append(("mean over the tasks", f"{100 * mean:.1f} %", interval, result.n, "", ""))
    text = table(COLUMNS, rows)
    if result.failed_infrastructure:
        text += (
            f"\n{result.failed_infrastructure} episodes were lost to the infrastructure and count "
            "for nothing"
        )
    return text


BENCHMARK_COLUMNS = ("task", "solved", "95 % interval", "raw > 0", "n", "remark")


def benchmark_report(result: dict[str, Any]) -> str:
    """A table of a benchmark's result with a row per task, and below it the means over them."""
    rows = []
    for task, row in result["by_task"].items():
        n = max(1, row["n"])
        rows.append(
            (
                task,
                f"{100 * row['solved'] / n:.0f} %",
                f"[{100 * row['low']:.0f}, {100 * row['high']:.0f}]",
                f"{100 * row['raw_above_0'] / n:.0f} %",
                row["n"],
                result["out_of_reach"].get(task, ""),
            )
        )
    lines = [table(BENCHMARK_COLUMNS, rows)]
    for key, counted in (("macro", "strict"), ("macro_raw", "raw reward above 0")):
        mean, low, high = (100 * value for value in result[key])
        lines.append(
            f"mean over {len(rows)} tasks, {counted}: {mean:.1f} % [{low:.1f}, {high:.1f}]"
        )
    if result["lost"]:
        lines.append(
            f"{result['lost']} episodes were lost to the infrastructure and count for nothing"
        )
    if result["lost"] > MAX_INFRASTRUCTURE_RATE * (result["n"] + result["lost"]):
        lines.append("INVALID: more than 1 % were lost")
    return "\n".join(lines)
