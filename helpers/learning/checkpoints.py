"""The checkpoints of a run: which of them are whole, and which are kept.

A checkpoint is a folder ``checkpoint-<update>``. Whatever else stands beside it, ``checkpoint-old``
for instance, is the reader's own and stays as it is.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from safetensors import SafetensorError

from helpers.policy.weights import problem_of_weights
from helpers.settings.files import (
    RunFileError,
    cannot_write,
    is_first_process,
    read_object,
    set_aside,
    write_json,
    write_whole,
    writing,
)

if TYPE_CHECKING:
    from helpers.settings.profiles import Profile

STATE = "trainer_state.json"  # the trainer writes it last
SETTINGS = "settings.json"  # the run's profile
PARTS = {  # what every checkpoint has, whatever else there is
    "model.safetensors": "*.safetensors",
    "optimizer.pt": "optimizer*",
    "scheduler.pt": "scheduler.pt",
    "rng_state.pth": "rng_state*",
}


def last_checkpoint(folder: Path | str) -> str | None:
    """The latest whole checkpoint of a run, for ``trainer.train(resume_from_checkpoint=...)``.

    None where there is none. What a save that was interrupted has left behind is deleted; a
    checkpoint that was damaged later gets another name. Either is said in a line.
    """
    for checkpoint in reversed(checkpoints(folder)):
        problem = _problem_of(checkpoint)
        if not problem:
            return str(checkpoint)
        if is_first_process():
            _put_away(checkpoint, problem)
    return None


def _put_away(checkpoint: Path, problem: str) -> None:
    """Take a checkpoint that is not whole out of the way, and say so."""
    if (checkpoint / STATE).exists():
        aside = set_aside(checkpoint)
        print(f"{checkpoint} is not whole ({problem}): it is left out, and now {aside.name}.")
        return
    print(f"{checkpoint} was not written to its end ({problem}): it is deleted.")
    _delete(checkpoint)


def checkpoints(folder: Path | str) -> list[Path]:
    """The folders of a run that have the name of a checkpoint, the oldest first."""
    found = [
        path
        for path in Path(folder).glob("checkpoint-*")
        if path.is_dir() and re.fullmatch(r"checkpoint-\d+", path.name)
    ]
    return sorted(found, key=update_of)


def update_of(checkpoint: Path | str) -> int:
    """The number of updates after which a checkpoint was made."""
    return int(Path(checkpoint).name.rpartition("-")[2])


def _problem_of(checkpoint: Path) -> str:
    """Why a run cannot go on from a checkpoint, as a phrase; empty where it can."""
    return (
        _problem_of_state(checkpoint)
        or _missing(checkpoint)
        or problem_of_weights(checkpoint)
        or _damaged_archive(checkpoint)
    )


def _problem_of_state(checkpoint: Path) -> str:
    """Whether ``trainer_state.json`` is that of this checkpoint."""
    path = checkpoint / STATE
    if not path.exists():
        return f"{STATE} is missing"
    state = read_object(path)
    if state is None:
        return f"{STATE} cannot be read"
    if state.get("global_step") != update_of(checkpoint):
        return f"{STATE} is not that of update {update_of(checkpoint)}"
    return ""


def _missing(checkpoint: Path) -> str:
    """The first part that every checkpoint has and this one has not."""
    for part, pattern in PARTS.items():
        if not any(checkpoint.glob(pattern)):
            return f"{part} is missing"
    return ""


def _damaged_archive(checkpoint: Path) -> str:
    """The first of PyTorch's files that is cut short: each is a ZIP, whose table stands last."""
    for path in sorted([*checkpoint.glob("*.pt"), *checkpoint.glob("*.pth")]):
        if not zipfile.is_zipfile(path):
            return f"{path.name} is cut short or damaged"
    return ""


@contextmanager
def saving(folder: Path | str) -> Iterator[None]:
    """Turn what the disk refuses while a checkpoint is saved into a `RunFileError`.

    The libraries raise errors of their own for it: safetensors one type, PyTorch a RuntimeError.
    """
    try:
        yield
    except OSError as error:
        raise cannot_write(folder, error) from error
    except SafetensorError as error:
        raise _not_saved(folder, str(error)) from error
    except RuntimeError as error:
        if "inline_container" not in str(error):  # the part of PyTorch that writes archives
            raise
        raise _not_saved(folder, "the archive could not be written to its end") from error


def _not_saved(folder: Path | str, reason: str) -> RunFileError:
    """The error of a save that the disk has refused."""
    return RunFileError(
        f"The weights could not be saved in {folder} ({reason}): make room on the disk, and go on "
        "from the last checkpoint with --resume."
    )


def keep_settings(checkpoint: Path, profile: Profile) -> None:
    """Write down beside a checkpoint which settings it was made with."""
    write_json(checkpoint / SETTINGS, asdict(profile))


class Memory(Protocol):
    """What a part of a run has to remember from one update to the next."""

    @property
    def name(self) -> str:
        """Of the part, by which it finds its own again."""
        ...

    def state(self) -> dict[str, Any]:
        """What is remembered, ready for JSON."""
        ...

    def load(self, state: dict[str, Any]) -> None:
        """Remember what `state` returned."""
        ...


def keep_memories(checkpoint: Path, memories: Sequence[Memory]) -> None:
    """Write into a checkpoint what this process has to remember; nothing where that is nothing."""
    if memories:
        states = {memory.name: memory.state() for memory in memories}
        write_whole(_memory_file(checkpoint), json.dumps(states) + "\n")


def load_memories(checkpoint: Path | str, memories: Sequence[Memory]) -> None:
    """Let each of ``memories`` remember what the checkpoint has of it, if anything."""
    states = read_object(_memory_file(Path(checkpoint))) or {}
    for memory in memories:
        if memory.name in states:
            memory.load(states[memory.name])


def _memory_file(checkpoint: Path) -> Path:
    """The file of this process: each plays its own groups."""
    return checkpoint / f"memory-{os.environ.get('RANK', '0')}.json"


def drop_older_checkpoints(folder: Path | str, newest: int) -> None:
    """Delete the checkpoints before update ``newest``, if that one is whole and on the disk."""
    if _problem_of(Path(folder) / f"checkpoint-{newest}"):
        return
    os.sync()  # a crash of the machine must not leave a run without either
    for checkpoint in checkpoints(folder):
        if update_of(checkpoint) < newest:
            _delete(checkpoint)


def drop_checkpoints_after(folder: Path | str, last: int) -> None:
    """Delete the checkpoints after update ``last``, from where the run is made again."""
    for checkpoint in checkpoints(folder):
        if update_of(checkpoint) > last:
            _delete(checkpoint)


def _delete(checkpoint: Path) -> None:
    """Delete a checkpoint; what the system refuses is a `RunFileError`."""
    with writing(checkpoint):
        shutil.rmtree(checkpoint)
