"""How trained weights reach an engine of vLLM that holds its copy in fewer bits.

An update moves a weight by hundredths of what lies between two neighbours of bf16. So nearly all
weights of the engine's copy should stay and a few should go a whole distance: of those that are
moved a hundredth of it one in a hundred, and then both policies move alike in the sum. Rounding to
the nearest does this only where weights lie anywhere between two neighbours, and none do:

- Weights that were published in bf16 lie on its numbers. All stay where they are until their steps
  add up to half a distance, and the engine goes on playing as the policy of many updates ago.
- Weights of 4 bits (smollm2-135m's package) are products of short numbers, and one in twelve lies
  exactly half-way between two. Whatever its first step is, it goes the whole distance or nothing,
  and the engine is ahead of the policy.

So each weight is rounded up or down by chance, with odds that keep its mean (stochastic rounding).
The chance is drawn once: at every update the same weights are rounded by the same numbers, and what
has not moved is rounded as before. After two steps of smollm2-135m, at a quarter and half of the
profiles' rate, rounding to the nearest had moved the logprobs by 0.25 nats in the mean, this way by
0.005; with weights that had been published in bf16, by 0.14 and 0.001.
"""

from __future__ import annotations

import functools
from collections.abc import Generator
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from trl.generation.vllm_generation import VLLMGeneration

# The last bits of an fp32 number, which a precision has no room for.
DROPPED_BITS = {"bfloat16": 16, "float16": 13}
DRAWN = 1_048_573  # random numbers, used again and again; a prime, so that rows have other ones


def hand_over_in(dtype: str, generation: VLLMGeneration) -> None:
    """Let a trainer give vLLM its weights in the engine's own precision, rounded by chance.

    ``dtype``: the profile's ``vllm_dtype``; where it is float32 nothing changes. Whether the engine
    is beside the trainer or behind a server, the weights go through TRL's ``_iter_named_params``.
    """
    if dtype not in DROPPED_BITS:
        return
    in_fp32 = generation._iter_named_params

    def rounded() -> Generator[tuple[str, torch.Tensor], None, None]:
        for name, weights in in_fp32():
            yield name, stochastically_rounded(weights, dtype)

    generation._iter_named_params = rounded


def stochastically_rounded(weights: torch.Tensor, dtype: str) -> torch.Tensor:
    """Weights in a shorter precision, each up or down with odds that keep its mean.

    ``weights``: fp32, of any shape; what the precision has a number for stays as it is. ``dtype``:
    bfloat16 or float16. The same weights always come out alike.
    """
    bits = DROPPED_BITS[dtype]
    drawn = _drawn(bits, weights.device)
    # Added to the bits that are dropped, a random number carries over into those that stay as often
    # as what is dropped is large. This is how far the number lies towards its neighbour.
    numbers = weights.detach().float().reshape(-1).view(torch.int32)
    carried = torch.cat([part + drawn[: len(part)] for part in numbers.split(DRAWN)])
    carried &= -(1 << bits)
    return carried.view(torch.float32).reshape(weights.shape).to(getattr(torch, dtype))


@functools.cache
def _drawn(bits: int, device: torch.device) -> torch.Tensor:
    """Random integers of so many bits: the same in every process and on every device."""
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randint(1 << bits, (DRAWN,), generator=generator, dtype=torch.int32)
    return drawn.to(device)
