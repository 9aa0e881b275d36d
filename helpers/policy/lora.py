"""Which parts of a model LoRA adapts, by model family, and how much of a model that covers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from helpers.policy.loading import PolicyError

if TYPE_CHECKING:
    from torch.nn import Module

_LLAMA = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
# LFM2 mixes short convolutions (in_proj, out_proj) with attention (out_proj, too) and calls its
# feed-forward w1 w2 w3: the usual Llama list silently matches q, k and v of its six attention
# layers and nothing else.
_LFM2 = ("q_proj", "k_proj", "v_proj", "out_proj", "in_proj", "w1", "w2", "w3")

LORA_TARGETS: dict[str, tuple[str, ...]] = {
    "llama": _LLAMA,
    "qwen2": _LLAMA,
    "qwen3": _LLAMA,
    "qwen3_vl": _LLAMA,
    "gemma3_text": _LLAMA,
    "lfm2": _LFM2,
    "lfm2_vl": _LFM2,
}


def lora_targets(family: str) -> tuple[str, ...]:
    """The names of the linear modules that LoRA adapts in a model family (``config.model_type``).

    Raises `PolicyError` for a family that is not known.
    """
    if family not in LORA_TARGETS:
        raise PolicyError(
            f"No LoRA module names are known for the family {family!r}: add them to LORA_TARGETS."
        )
    return LORA_TARGETS[family]


def lora_coverage(model: Module, targets: tuple[str, ...]) -> list[dict[str, Any]]:
    """For each kind of linear module in the model's layers: how many there are and are matched.

    Returns rows ``{"module", "count", "matched"}``; the output head is left out, as LoRA leaves it
    alone. ``model`` may be on the meta device: nothing is computed.
    """
    import torch  # seconds to import

    counts: Counter[str] = Counter()
    for path, module in model.named_modules():
        if isinstance(module, torch.nn.Linear) and ".layers." in f".{path}":
            counts[path.rsplit(".", 1)[-1]] += 1
    return [
        {"module": name, "count": count, "matched": count if name in targets else 0}
        for name, count in sorted(counts.items())
    ]
