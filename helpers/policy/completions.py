"""An answer of a policy, and the distribution that its tokens are sampled from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class Completion:
    """One answer: its token ids, and the logprob of each.

    The end-of-turn token is among them where the policy wrote one.
    """

    ids: list[int]
    logprobs: list[float]


def token_logprobs(logits: Tensor, temperature: float, top_k: int) -> Tensor:
    """The logprob of every token, (n, vocabulary) as ``logits``: the distribution that is sampled.

    Where ``temperature`` is 0 that of temperature 1.
    """
    import torch

    if temperature > 0:
        logits = logits / temperature
    if top_k:
        smallest_kept = logits.topk(top_k).values[:, -1:]
        logits = logits.masked_fill(logits < smallest_kept, float("-inf"))
    return torch.log_softmax(logits, dim=-1)
