"""Supervised training on a policy's own tokens that computes nothing twice, and nothing for naught.

Of an episode a tenth is the answers that are taught; the rest is a prompt and pages, and prompts
begin with the same words. Three things follow, and loss and gradients stay those of TRL's
`SFTTrainer`:

- the output head computes where something is taught: on two cores its 49,152 logits of every token
  take as long as all layers together;
- the episodes of an update go through the model in parts of about equal length, as many together
  as the memory takes, so that short ones do not wait for a long one, and little is padding;
- what the episodes of a part begin with is computed once, where that is much, and the others read
  it from the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import cross_entropy
from trl import SFTTrainer
from typing_extensions import override

from helpers.learning.prefix_tree import ATTENTION_ONLY
from helpers.policy.lengths import split_lengths
from helpers.settings.machine import this_machine

if TYPE_CHECKING:
    from transformers.cache_utils import Cache

MOST_TOKENS = 2_000  # of a part on a CPU, padded: of 6,000 each takes longer, and twice the memory
TOKENS_A_GB = 400  # of a GPU's memory, which vLLM and other runs may share
LEAST_SAVED = 300  # tokens: a pass of its own for a beginning takes as long as so many on two cores
NOT_TAUGHT = -100  # the label of a token that the loss leaves out

Batch = dict[str, torch.Tensor]
"""``input_ids``, ``attention_mask`` and ``labels``, each (rows, length), padded on the right."""


class AnswersOnly(SFTTrainer):
    """TRL's trainer, which computes what an update needs of its episodes (see above)."""

    @cached_property
    def _most(self) -> int:
        """How many tokens go through the model together; the machine is asked once."""
        return most_tokens(self.args.device)

    @override
    def training_step(
        self,
        model: torch.nn.Module,
        inputs: dict[str, Any],
        num_items_in_batch: torch.Tensor | int | None = None,
    ) -> torch.Tensor:
        """Gradients of all episodes of an update, part by part; returns their mean loss."""
        if num_items_in_batch is None:
            num_items_in_batch = (inputs["labels"][:, 1:] != NOT_TAUGHT).sum()
        loss = torch.zeros((), device=self.args.device)
        for part in parts_of(inputs, self._most):
            loss += super().training_step(model, part, num_items_in_batch)
        return loss

    @override
    def compute_loss(
        self,
        model: torch.nn.Module,
        inputs: Batch,
        return_outputs: bool = False,
        num_items_in_batch: torch.Tensor | int | None = None,
    ) -> Any:
        """Mean cross-entropy of the tokens that are taught, over all parts of an update."""
        following = inputs["labels"][:, 1:]  # what each token but the last is followed by
        taught = following != NOT_TAUGHT
        places = taught.any(dim=0).nonzero()[:, 0]  # in one row at least
        output = _outputs_at(model, inputs, places)
        kept = taught[:, places]
        loss = cross_entropy(
            output.logits[kept].float(), following[:, places][kept], reduction="sum"
        )
        loss = loss / (taught.sum() if num_items_in_batch is None else num_items_in_batch)
        return (loss, output) if return_outputs else loss


def most_tokens(device: torch.device) -> int:
    """How many tokens go through the model together, padding included."""
    if device.type == "cpu":
        return MOST_TOKENS
    _, memory = this_machine()
    return int(TOKENS_A_GB * memory)


def parts_of(batch: Batch, most: int) -> Iterator[Batch]:
    """The rows of a batch in parts of at most ``most`` tokens each, padding included.

    Rows of about equal length come together; a longer row than ``most`` is a part of its own.
    """
    lengths = batch["attention_mask"].sum(dim=1).tolist()
    for rows in split_lengths(lengths, most):
        longest = max(lengths[row] for row in rows)
        yield {name: values[rows, :longest] for name, values in batch.items()}


def common_beginning(batch: Batch) -> int:
    """How many tokens all rows begin with, of those that come before the first prediction that is
    taught."""
    ids, labels = batch["input_ids"], batch["labels"]
    alike = (ids == ids[0]).all(dim=0) & (labels.roll(-1, dims=1) == NOT_TAUGHT).all(dim=0)
    return int(alike.long().cumprod(dim=0).sum())


def _outputs_at(model: Any, batch: Batch, places: torch.Tensor) -> Any:
    """The model's output with the logits of ``places``, which all rows have in common."""
    ids, mask = batch["input_ids"], batch["attention_mask"]
    begins = common_beginning(batch)
    saved = begins * (len(ids) - 1)
    # A layer that keeps a state, such as LFM2's short convolution, has none to hand on.
    if saved < LEAST_SAVED or model.config.model_type not in ATTENTION_ONLY:
        return model(input_ids=ids, attention_mask=mask, logits_to_keep=places, use_cache=False)
    cache: Cache = model(
        input_ids=ids[:1, :begins], logits_to_keep=1, use_cache=True
    ).past_key_values
    cache.batch_repeat_interleave(len(ids))
    return model(
        input_ids=ids[:, begins:],
        attention_mask=mask,
        past_key_values=cache,
        logits_to_keep=places - begins,
    )
