"""An evaluation as text, task by task."""

from helpers.evaluation.evaluate import Evaluation
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
