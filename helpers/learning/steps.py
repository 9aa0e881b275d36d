"""How far an update moves the weights, seen on a sample of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

SAMPLE = 20_000  # weights that are looked at, spread evenly over all that are trained


@dataclass(frozen=True)
class Step:
    """One update of the weights.

    Both numbers are needed. The size tells a large step from a small one, but a policy whose
    weights are kept in bf16 looks well by it: the few weights that move jump by a whole spacing of
    their numbers. The share tells those apart.
    """

    size: float
    """Norm of the change over the norm of the weights."""
    moved: float
    """Share of the weights that are not what they were."""


class StepMeter:
    """Measures the steps of an optimiser: `before` each, then `after` it.

    A whole copy of the weights would cost their memory again, and two more passes over it. Every
    n-th weight says the same to within a percent or two, in milliseconds.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        self._weights = [weights for weights in model.parameters() if weights.requires_grad]
        total = sum(weights.numel() for weights in self._weights)
        # An odd number, so that no column of a matrix with an even width is passed over.
        self._every = total // SAMPLE | 1
        self._before: torch.Tensor | None = None

    @property
    def precisions(self) -> set[str]:
        """In which precisions the weights are kept, such as {"float32"}."""
        return {str(weights.dtype).removeprefix("torch.") for weights in self._weights}

    def before(self) -> None:
        """Remember the sample as it is."""
        self._before = self._sample()

    def after(self) -> Step | None:
        """The step since `before`; None where there is nothing to compare."""
        before, self._before = self._before, None
        if before is None or not before.numel():
            return None
        now = self._sample()
        size = (now - before).norm() / before.norm().clamp(min=torch.finfo(torch.float32).tiny)
        moved = (now != before).float().mean()
        return Step(*torch.stack([size, moved]).tolist())

    def _sample(self) -> torch.Tensor:
        """Every n-th of the trained weights, in fp32."""
        parts = [weights[:: self._every].float() for weights in _flat(self._weights)]
        return torch.cat(parts) if parts else torch.empty(0)


def _flat(weights: Iterable[torch.nn.Parameter]) -> Iterable[torch.Tensor]:
    """The values of parameters as vectors; of those that are shared out, this process's part."""
    for parameter in weights:
        values = parameter.detach()
        local = getattr(values, "to_local", None)
        yield (local() if local else values).reshape(-1)
