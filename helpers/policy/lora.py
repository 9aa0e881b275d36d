"""Which parts of a model LoRA adapts, by model family, and adapters that can be handed on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helpers.policy.loading import Policy, PolicyError, load_policy
from helpers.settings.known_policies import POLICIES

if TYPE_CHECKING:
    from peft import LoraConfig
    from torch.nn import Module

ADAPTER = "adapter_model.safetensors"

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
    "llava": _LLAMA,
    "gemma3_text": _LLAMA,
    "lfm2": _LFM2,
    "lfm2_vl": _LFM2,
}

# Families whose eyes have modules of the same names. They get no adapter: what eyes say must not
# change while the language model learns to read it (see `helpers.learning.eyes.answers`).
WITH_EYES = ("llava", "lfm2_vl")
EYES = r".*\bvision_tower\b.*"


def lora_targets(family: str) -> tuple[str, ...]:
    """The names of the linear modules that LoRA adapts in a model family (``config.model_type``).

    Raises `PolicyError` for a family that is not known.
    """
    if family not in LORA_TARGETS:
        raise PolicyError(
            f"No LoRA module names are known for the family {family!r}: add them to LORA_TARGETS."
        )
    return LORA_TARGETS[family]


def lora_of_rank(rank: int, family: str) -> LoraConfig:
    """LoRA on every linear module inside the layers of a model ``family`` (``config.model_type``),
    those of its eyes left out.

    alpha is twice the rank. There is no dropout: it would make the policy that is trained another
    one than the policy that was sampled.
    """
    from peft import LoraConfig  # takes seconds, and most runs train all weights

    return LoraConfig(
        r=rank,
        lora_alpha=2 * rank,
        lora_dropout=0.0,
        task_type="CAUSAL_LM",
        target_modules=list(lora_targets(family)),
        exclude_modules=EYES if family in WITH_EYES else None,
    )


def load_adapter(folder: Path, device: str = "cpu") -> Policy:
    """The policy whose adapter lies in ``folder``, ready to be trained on: a ``PeftModel``, fp32.

    Raises `PolicyError` where the weights below it cannot be had.
    """
    from peft import PeftConfig, PeftModel

    config = PeftConfig.from_pretrained(str(folder))
    policy = load_policy(config.base_model_name_or_path or "", "float32", device)
    config.base_model_name_or_path = policy.path  # where PEFT finds its configuration, on saving
    policy.model = PeftModel.from_pretrained(
        policy.model, str(folder), is_trainable=True, config=config
    )
    return policy


def load_to_train(name: str, device: str, adapted: bool) -> Policy:
    """A policy by name, in fp32. An adapter in a folder goes on learning as one where ``adapted``;
    else it becomes a part of the weights, as `load_policy` has it."""
    if adapted and (Path(name) / ADAPTER).exists():
        return load_adapter(Path(name), device)
    return load_policy(name, "float32", device)


def is_adapted(model: object) -> bool:
    """Whether a model has adapters already."""
    return hasattr(model, "peft_config")


def name_base(folder: Path, name: str) -> None:
    """Let the adapter that was saved in ``folder`` name the policy below it by its short name.

    So it goes with that policy on any machine, and not with a folder of this one's cache. A policy
    without a short name stays as it is named, and so does a folder without an adapter.
    """
    path = folder / "adapter_config.json"
    if name in POLICIES and path.exists():
        config = {**json.loads(path.read_text()), "base_model_name_or_path": name}
        path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def name_of_base(name: str) -> str:
    """The policy below the adapter in a folder, as the adapter has it; any other name as it is."""
    path = Path(name) / "adapter_config.json"
    if not path.exists():
        return name
    return json.loads(path.read_text()).get("base_model_name_or_path") or name


def name_adapter(folder: Path, start: str) -> None:
    """Let the adapter that was saved in ``folder`` name the policy below it (`name_base`), where
    ``start`` is the policy that was trained: that one itself, or one with an adapter, which then
    gets no larger by going on. A folder without an adapter stays as it is."""
    base = name_of_base(start)
    if (folder / ADAPTER).exists() and (Path(start) / ADAPTER).exists():
        small_adapter(folder, base)
    else:
        name_base(folder, base)


def small_adapter(folder: Path, name: str) -> None:
    """Make the adapter that was saved in ``folder`` half as large, and one for other machines.

    Its weights become bf16; ``name``: see `name_base`.
    """
    import torch
    from safetensors.torch import load_file, save_file

    weights = folder / ADAPTER
    halved = {key: value.to(torch.bfloat16) for key, value in load_file(weights).items()}
    save_file(halved, weights, metadata={"format": "pt"})
    name_base(folder, name)


@contextmanager
def merged(model: Any) -> Iterator[None]:
    """While the block runs the adapters are part of the weights, without gradients.

    A token then costs as much as without adapters, a third of the products. The weights below come
    back bit by bit: they are put aside, not computed back, as `PeftModel.unmerge_adapter` does. For
    a model without adapters, or None, nothing is done.
    """
    if not is_adapted(model):
        yield
        return
    import torch
    from peft.tuners.lora import Linear

    adapters = [weights for weights in model.parameters() if weights.requires_grad]
    layers = [module for module in model.modules() if isinstance(module, Linear)]
    below: list[Any] = [layer.get_base_layer().weight for layer in layers]
    aside = [weight.data for weight in below]
    try:
        with torch.no_grad(), model.disable_adapter():
            for layer, weight in zip(layers, below, strict=True):
                added = sum(layer.get_delta_weight(name) for name in layer.active_adapters)
                weight.data = weight.data + added
            yield
    finally:
        for weight, kept in zip(below, aside, strict=True):
            weight.data = kept
        for weights in adapters:
            weights.requires_grad_(True)


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
