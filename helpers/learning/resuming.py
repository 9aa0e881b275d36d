"""Whether a run may go on, or begin, in a folder that holds a run already."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from helpers.learning.checkpoints import SETTINGS, last_checkpoint, update_of
from helpers.learning.recorder import read_metrics
from helpers.policy.lora import ADAPTER
from helpers.settings.errors import ProfileError
from helpers.settings.files import read_object
from helpers.settings.run_folder import hold_folder

if TYPE_CHECKING:
    from helpers.settings.profiles import Profile

# What may differ between a run and its resumption: what belongs to the machine, and how much is
# done, kept or measured. Everything else decides what is learned.
MAY_DIFFER = {
    *("name", "device", "memory_gb", "measured", "workers", "clients", "accumulate", "dtype"),
    *("generator", "vllm_dtype", "vllm_memory", "vllm_server"),
    *("scale", "updates", "save_every", "eval_episodes", "probe_episodes"),
}


def prepare_folder(folder: Path | str, profile: Profile, lora: bool, resume: bool) -> str | None:
    """Take the folder of a run; returns the checkpoint to go on from, None for the beginning.

    Raises `RunFileError` where another run is at work in it or its files are not those of a run,
    and `ProfileError` where a run that is there already says no.
    """
    hold_folder(folder)
    read_metrics(folder)
    if resume:
        return checkpoint_to_resume(folder, profile, lora)
    check_not_unfinished(folder)
    return None


def checkpoint_to_resume(folder: Path | str, profile: Profile, lora: bool) -> str | None:
    """The checkpoint that ``--resume`` goes on from; None where the run begins at its beginning.

    Raises `ProfileError` where the run in the folder is over, or was another one.
    """
    checkpoint = last_checkpoint(folder)
    if checkpoint is None:
        return None
    _check_same_run(Path(checkpoint), profile, lora)
    done = finished_updates(folder)
    if update_of(checkpoint) <= done and profile.updates <= done:
        raise ProfileError(
            f"The run in {folder} is over ({done} updates): ask for more with --updates, or leave "
            "--resume out to begin anew."
        )
    return checkpoint


def check_not_unfinished(folder: Path | str) -> None:
    """Raise `ProfileError` where a new run would write over one that can still go on."""
    checkpoint = last_checkpoint(folder)
    if checkpoint is None or update_of(checkpoint) <= finished_updates(folder):
        return
    raise ProfileError(
        f"{folder} holds a run that was stopped after update {update_of(checkpoint)}: go on with "
        "--resume (make: RESUME=1), choose another folder with --output (make: OUT=...), or "
        "delete this one."
    )


def finished_updates(folder: Path | str) -> int:
    """How many updates the run in a folder had when it was over; 0 where it is not over."""
    result = read_object(Path(folder) / "result.json") or {}
    profile = result.get("profile")
    updates = profile.get("updates") if isinstance(profile, dict) else None
    return updates if isinstance(updates, int) else 0


def _check_same_run(checkpoint: Path, profile: Profile, lora: bool) -> None:
    """Raise `ProfileError` where a checkpoint was made with settings that are not the profile's.

    One without settings, of an older version of the course, is taken as it is.
    """
    if (checkpoint / ADAPTER).exists() != lora:
        made = "without" if lora else "with"
        raise ProfileError(
            f"{checkpoint} was made {made} LoRA: resume it {made} --lora (make: LORA=1 is with), "
            "or choose another folder with --output."
        )
    kept = read_object(checkpoint / SETTINGS) or {}
    for name, value in asdict(profile).items():
        if name not in MAY_DIFFER and name in kept and kept[name] != value:
            raise ProfileError(
                f"{checkpoint} was made with {name}={kept[name]}, not {value}: resume it with "
                f"COURSE_{name.upper()}={kept[name]}, or choose another folder with --output."
            )
