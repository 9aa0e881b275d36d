"""A GPU whose memory is full ends a run with one sentence, and with the weights it had reached."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from helpers.settings.errors import CourseError, first_line

if TYPE_CHECKING:
    from trl import GRPOTrainer

    from helpers.learning.recorder import Recorder
    from helpers.settings.profiles import Profile

# What vLLM's own errors about memory have in common; they are plain ValueErrors.
_WORDS_OF_VLLM = ("gpu_memory_utilization", "gpu memory utilization", "KV cache", "out of memory")


class GPUMemoryError(CourseError, MemoryError):
    """The GPU has no room for what the profile asks; the message says what to set instead."""


@contextlib.contextmanager
def save_when_out_of_memory(trainer: GRPOTrainer, recorder: Recorder | None) -> Iterator[None]:
    """Save a checkpoint where training runs out of memory, and raise `GPUMemoryError`.

    The checkpoint holds the weights after the last whole update; ``--resume`` goes on from it.
    ``recorder``: knows whether the optimiser was at work.
    """
    try:
        yield
    except torch.OutOfMemoryError as error:
        # The frames that the error came through still hold the broken update's tensors.
        traceback.clear_frames(error.__traceback__)
        kept = _keep(trainer, stepping=recorder is not None and recorder.stepping)
        update = trainer.state.global_step + 1
        raise GPUMemoryError(
            f"The GPU's memory was full in update {update}: {_smaller(trainer)}; {kept}."
        ) from error


def _keep(trainer: GRPOTrainer, stepping: bool) -> str:
    """Save what has been learned; says where it is, for the end of a sentence."""
    done = trainer.state.global_step
    if not done:
        return "no update had been made, so nothing is lost"
    folder = Path(str(trainer.args.output_dir)) / f"checkpoint-{done}"
    if stepping:
        # The optimiser was in the midst of the weights: some have this update in them, some not.
        return "go on from the last checkpoint, if there is one, with --resume"
    _free_memory(trainer)
    if not folder.exists():
        model: Any = trainer.model
        trainer._save_checkpoint(model, trial=None)
        trainer.callback_handler.on_save(trainer.args, trainer.state, trainer.control)
    return f"the weights after update {done} are in {folder}, go on from there with --resume"


def _free_memory(trainer: GRPOTrainer) -> None:
    """Give back what the broken update held: saving needs room as well."""
    trainer.accelerator.unwrap_model(trainer.model).zero_grad(set_to_none=True)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _smaller(trainer: GRPOTrainer) -> str:
    """What makes an update smaller, of what has not been done yet."""
    rows, parts = trainer.args.per_device_train_batch_size, trainer.args.gradient_accumulation_steps
    choices = ["a smaller COURSE_GROUPS", "LoRA"]
    if rows % 2 == 0:
        choices.insert(0, f"COURSE_ACCUMULATE={2 * parts}")
    if trainer.use_vllm and trainer.vllm_mode == "colocate":
        choices.insert(1, "a smaller COURSE_VLLM_MEMORY")
    return f"take {', '.join(choices[:-1])} or {choices[-1]}"


@contextlib.contextmanager
def say_when_vllm_has_no_room(profile: Profile) -> Iterator[None]:
    """Raise `GPUMemoryError` where a trainer's vLLM engine does not fit beside the rest."""
    try:
        yield
    except (torch.OutOfMemoryError, ValueError, RuntimeError) as error:
        if profile.generator != "vllm" or not _is_about_memory(error):
            raise
        share = f"COURSE_VLLM_MEMORY={profile.vllm_memory:g}"
        total = profile.memory_gb
        said = first_line(error).rstrip(".")[:160]
        raise GPUMemoryError(
            f"vLLM found no room for its {share} of {total:.0f} GB beside what else is on the GPU "
            f"({said}): end other programs there, change that share, or set "
            "COURSE_GENERATOR=transformers to go on without vLLM."
        ) from error


def _is_about_memory(error: Exception) -> bool:
    """Whether an error at the start of a trainer says that memory is missing."""
    if isinstance(error, torch.OutOfMemoryError):
        return True
    return any(words.lower() in str(error).lower() for words in _WORDS_OF_VLLM)
