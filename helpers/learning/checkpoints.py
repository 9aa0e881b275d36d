"""The checkpoints of a run: which one it can go on from."""

import json
import shutil
from pathlib import Path


def last_checkpoint(folder: Path | str) -> str | None:
    """The latest whole checkpoint of a run, for ``trainer.train(resume_from_checkpoint=...)``.

    None where there is none. What an interrupted save has left behind is deleted.
    """
    whole = None
    for path in sorted(Path(folder).glob("checkpoint-*"), key=_update):
        if _is_whole(path):
            whole = str(path)
        else:
            shutil.rmtree(path)
    return whole


def _update(checkpoint: Path) -> int:
    """The number of updates after which a checkpoint was made."""
    return int(checkpoint.name.rpartition("-")[2])


def _is_whole(checkpoint: Path) -> bool:
    """Whether ``trainer_state.json``, which the trainer writes last, can be read."""
    try:
        json.loads((checkpoint / "trainer_state.json").read_text())
    except (OSError, ValueError):
        return False
    return True
