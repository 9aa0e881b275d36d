"""Notebook 6's own pieces: a linear layer with an adapter, and how many numbers that adds.

They are the solutions of its exercises; the notebook goes on with them where the reader's own are
not there yet.
"""

from __future__ import annotations

import torch
from torch import nn
from typing_extensions import override


def adapter_parameters(d_in: int, d_out: int, r: int) -> int:
    """How many numbers an adapter of rank ``r`` adds to a layer: those of A and of B."""
    return r * (d_in + d_out)


class LoRALinear(nn.Module):
    """A frozen linear layer with an adapter of low rank beside it: W x + (alpha / r) B A x.

    ``A``: (r, d_in), small random numbers. ``B``: (d_out, r), zeros, so that a new layer gives what
    the frozen one gives. Source: Hu et al., arXiv 2106.09685, section 4.1.
    """

    def __init__(self, linear: nn.Linear, r: int, alpha: float) -> None:
        super().__init__()
        self.linear = linear.requires_grad_(False)
        limit = linear.in_features**-0.5
        self.A = nn.Parameter(torch.empty(r, linear.in_features).uniform_(-limit, limit))
        self.B = nn.Parameter(torch.zeros(linear.out_features, r))
        self.scale = alpha / r

    @override
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(..., d_in) to (..., d_out)."""
        return self.linear(x) + self.scale * (x @ self.A.T @ self.B.T)
