"""An evaluation as a folder keeps it: evaluation.json, and the first episodes of each task."""

from pathlib import Path

from helpers.episodes.episode import write_episodes
from helpers.episodes.tasks import TEST_SEEDS, VALIDATION_SEEDS
from helpers.evaluation.evaluate import Evaluation
from helpers.settings.files import RunFileError, read_object, write_json
from helpers.settings.machine import run_facts

EVALUATION = "evaluation.json"
PAGES = {"test": TEST_SEEDS, "validation": VALIDATION_SEEDS}
EPISODES_KEPT = 3  # of each task, in episodes.jsonl


def write_evaluation(
    folder: Path, result: Evaluation, command: str, temperature: float, pages: str, seconds: float
) -> None:
    """Write evaluation.json, and the first episodes of each task beside it. ``pages``: what they
    are for, a key of `PAGES`."""
    kept = []
    for part in result.by_task.values():
        kept += part.episodes[:EPISODES_KEPT]
    write_episodes(folder / "episodes.jsonl", kept)
    record = {
        "command": command,
        "temperature": temperature,
        "pages": pages,
        "result": result.summary(),
        "seconds": round(seconds, 1),
        **run_facts(),
    }
    write_json(folder / EVALUATION, record)


def validated_success(folder: Path) -> dict[str, float]:
    """The success on each task of an evaluation on validation pages, which is kept in a folder.

    Raises `RunFileError` where there is none, or one on test pages: what is learned from those
    cannot be tested on them.
    """
    record = read_object(folder / EVALUATION)
    if record is None:
        raise RunFileError(
            f"{folder} holds no evaluation: make one with python -m scripts.evaluate --validation "
            f"--output {folder}."
        )
    if record.get("pages") != "validation":
        raise RunFileError(
            f"The evaluation in {folder} was not played on validation pages: make another one with "
            "--validation."
        )
    result = record["result"]
    parts = result.get("by_task") or {result["tasks"][0]: result}
    return {task: part["success"] for task, part in parts.items()}
