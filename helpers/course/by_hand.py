"""One GRPO update without a trainer: its loss in plain PyTorch, and TRL's on the same episodes.

Notebook 5 builds the update step by step; `grpo_loss` is the solution of its exercise, `TRLGroup`
what it compares with.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from helpers.episodes.ledger import COLUMNS
from helpers.episodes.rollout_func import rollout_columns

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from helpers.episodes.episode import Episode


def grpo_loss(
    logprobs: torch.Tensor,
    old_logprobs: torch.Tensor,
    advantages: torch.Tensor,
    mask: torch.Tensor,
    epsilon: float,
) -> torch.Tensor:
    """The clipped loss of GRPO, a mean over all tokens of the policy.

    ``logprobs`` and ``old_logprobs``: (rollouts, tokens), those of the weights now and those of the
    weights that sampled. ``advantages``: (rollouts,). ``mask``: (rollouts, tokens), 1 where the
    policy wrote the token. Sources: PPO's clipped objective (arXiv 1707.06347, eq. 7), averaged
    over tokens as in DAPO (arXiv 2503.14476, eq. 8).
    """
    ratio = (logprobs - old_logprobs).exp()
    clipped = ratio.clamp(1 - epsilon, 1 + epsilon)
    advantage = advantages[:, None]
    objective = torch.minimum(ratio * advantage, clipped * advantage)
    return -(objective * mask).sum() / mask.sum()


class TRLGroup:
    """TRL's own `GRPOTrainer`, whose batch is one group of episodes that were played before."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        episodes: Sequence[Episode],
        epsilon: float,
        folder: Path | str,
    ) -> None:
        """TRL makes its batch from the episodes here: masks, advantages, and the logprobs of the
        weights as they are now, which stay the old ones.

        ``folder``: its output folder, in which it writes nothing.
        """
        columns = rollout_columns(episodes, tokenizer)
        rows = [{"prompt": str(episode.seed)} for episode in episodes]
        logging.getLogger("trl").setLevel(logging.ERROR)  # it warns of a lost episode's None
        self._trainer = GRPOTrainer(
            model=model,
            processing_class=tokenizer,
            args=_settings(len(episodes), epsilon, folder, on_cpu=model.device.type == "cpu"),
            train_dataset=Dataset.from_list(rows),
            reward_funcs=[lambda **_: [episode.reward for episode in episodes]],
            rollout_func=lambda prompts, trainer: {name: columns[name] for name in COLUMNS},
        )
        model.train()
        self._trainer.current_gradient_accumulation_steps = 1  # ``train()`` sets it
        self._batch = self._trainer._generate_and_score_completions(rows)

    def loss(self) -> torch.Tensor:
        """TRL's loss of the group with the weights as they are now, to be differentiated."""
        give_memory_back()  # the activations of the update by hand; these come on top
        return self._trainer._compute_loss(self._trainer.model, self._batch)


def _settings(rollouts: int, epsilon: float, folder: Path | str, on_cpu: bool) -> GRPOConfig:
    """What the course trains with, in fp32, for a batch of one group that is used several times."""
    return GRPOConfig(
        output_dir=str(folder),
        per_device_train_batch_size=rollouts,
        num_generations=rollouts,
        num_iterations=2,  # more than once: TRL then keeps the logprobs of the first time
        loss_type="dapo",
        beta=0.0,
        epsilon=epsilon,
        temperature=1.0,
        top_k=0,
        max_completion_length=1024,
        use_cpu=on_cpu,
        bf16=False,
        activation_checkpointing=False,
        report_to=[],
        disable_tqdm=True,
    )


def largest_gap(ours: Iterable[torch.Tensor], theirs: Iterable[torch.Tensor]) -> float:
    """The largest difference between two gradients, each given weight by weight in one order."""
    pairs = zip(ours, theirs, strict=True)
    return max((one - other).abs().max().item() for one, other in pairs)


def give_memory_back() -> None:
    """Hand memory that is no longer used back to the system, where the C library can (glibc).

    Gradients and activations are freed in pieces between others that stay, and the library keeps
    such memory for the process: 3.7 GB after three updates by hand.
    """
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # another system, another C library
        ctypes.CDLL("libc.so.6").malloc_trim(0)
