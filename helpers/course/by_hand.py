"""What notebook 5 builds by hand: GRPO's loss, the warm-up's loss, and a comparison of pairs.

`grpo_loss`, `warm_up_loss` and `improved` are the solutions of its exercises; `TRLGroup` is TRL's
own loss on the same episodes, with which it compares.
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
from trl import GRPOConfig

from helpers.episodes.ledger import COLUMNS
from helpers.episodes.rollout_func import rollout_columns
from helpers.policy.trl_parts import GRPOTrainer

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


def warm_up_loss(logits: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The cross-entropy of a demonstration: minus the mean logprob of the tokens to be learned.

    ``logits``: (tokens, vocabulary); the row of a token is about the token that follows it.
    ``ids``: (tokens,). ``mask``: (tokens,), 1 for what the script wrote. Returns a number, in nats.
    """
    logprobs = logits[:-1].log_softmax(-1)
    chosen = logprobs.gather(-1, ids[1:, None]).squeeze(-1)
    return -(chosen * mask[1:]).sum() / mask[1:].sum()


def improved(before: Sequence[bool], after: Sequence[bool]) -> tuple[int, int]:
    """How many pages were gained and how many lost; the two lists hold whether a page was solved,
    in the same order."""
    pairs = list(zip(before, after, strict=True))
    gained = sum(new and not old for old, new in pairs)
    lost = sum(old and not new for old, new in pairs)
    return gained, lost


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
