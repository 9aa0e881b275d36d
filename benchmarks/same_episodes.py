"""The course's trainer with the same made-up episodes in every update, and a clock beside it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from transformers.trainer_utils import SaveStrategy
from typing_extensions import override

from helpers.episodes.rewards import strict_success
from helpers.learning.configuration import grpo_config
from helpers.learning.precision import prepare_weights
from helpers.learning.trainer import BrowserGRPOTrainer

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from helpers.learning.trainer import Batch
    from helpers.settings.profiles import Profile

# What a policy with eyes is given beside the tokens.
PICTURES = (
    "pixel_values",
    "pixel_attention_mask",
    "spatial_shapes",
    "image_grid_thw",
    "mm_token_type_ids",
    "num_images",
    "num_tiles",
)


class SameEpisodes(BrowserGRPOTrainer):
    """Plays nothing: every update begins with ``batch``, as TRL would hand it to the loss.

    Where vLLM samples in another precision than training computes in, an update first computes the
    logprobs that the loss corrects with, as it does in the course.
    """

    batch: Batch

    @override
    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> Batch:
        played = on_device(self.batch, self.accelerator.device)
        if self.vllm_importance_sampling_correction:
            with torch.no_grad():
                played["old_per_token_logps"] = self._logprobs(played)
        return played

    def _logprobs(self, batch: Batch) -> Tensor:
        """Logprobs of all answers, in parts of the size that the loss has."""
        logprobs, _, _ = self._get_per_token_logps_and_entropies(
            cast("torch.nn.Module", self.model),
            torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1),
            torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1),
            batch["completion_ids"].shape[1],
            batch_size=self.args.per_device_train_batch_size,
            **{name: batch[name] for name in PICTURES if name in batch},
        )
        return logprobs


class Clock(TrainerCallback):
    """Seconds of each update, from its batch to the step of the optimiser."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    @override
    def on_step_begin(self, *_: Any, **__: Any) -> None:
        wait_for_gpu()
        self.seconds.append(-time.perf_counter())

    @override
    def on_step_end(self, *_: Any, **__: Any) -> None:
        wait_for_gpu()
        self.seconds[-1] += time.perf_counter()


def train_on(
    batch: Batch,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    profile: Profile,
    folder: Path | str,
) -> list[float]:
    """Train for the profile's updates, each on ``batch``; returns the seconds of each."""
    clock = Clock()
    settings = grpo_config(profile, folder)
    settings.save_strategy = SaveStrategy.NO  # transformers would save after the last update
    prepare_weights(model, profile.dtype)
    rows = [{"prompt": str(row)} for row in range(profile.groups * profile.updates)]
    trainer = SameEpisodes(
        model=model,
        processing_class=tokenizer,
        args=settings,
        train_dataset=Dataset.from_list(rows),
        reward_funcs=[strict_success],
        rollout_func=lambda *_: {},  # is not called
        callbacks=[clock],
    )
    trainer.batch = batch
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return clock.seconds


def on_device(batch: Batch, device: Any) -> Batch:
    """A copy of a batch, its tensors where the policy computes."""
    return {
        name: value.to(device) if torch.is_tensor(value) else value for name, value in batch.items()
    }


def wait_for_gpu() -> None:
    """A GPU works on after a call has returned."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
