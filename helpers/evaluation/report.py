"""An evaluation or a benchmark as text, task by task."""

from typing import Any

from helpers.evaluation.evaluate import MAX_INFRASTRUCTURE_RATE, Evaluation
from helpers.output import table
from helpers.settings.language import say


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
    rows.append((say("mean over the tasks"), f"{100 * mean:.1f} %", interval, result.n, "", ""))
    columns = (say("task"), say("solved"), say("95 % interval"), "n", say("turns"), say("answers"))
    text = table(columns, rows)
    if result.failed_infrastructure:
        text += f"\n{_lost(result.failed_infrastructure)}"
    return text


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
    columns = (say("task"), say("solved"), say("95 % interval"), say("raw > 0"), "n", say("remark"))
    lines = [table(columns, rows)]
    for key, counted in (("macro", say("strict")), ("macro_raw", say("raw reward above 0"))):
        mean, low, high = (100 * value for value in result[key])
        lines.append(
            say(
                "mean over {tasks} tasks, {counted}: {mean:.1f} % [{low:.1f}, {high:.1f}]",
                tasks=len(rows),
                counted=counted,
                mean=mean,
                low=low,
                high=high,
            )
        )
    if result["lost"]:
        lines.append(_lost(result["lost"]))
    if result["lost"] > MAX_INFRASTRUCTURE_RATE * (result["n"] + result["lost"]):
        lines.append(say("INVALID: more than 1 % were lost"))
    return "\n".join(lines)


def _lost(n: int) -> str:
    return say("{n} episodes were lost to the infrastructure and count for nothing", n=n)
