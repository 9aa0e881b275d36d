"""The architectures of published policies, as their config.json has them, without their weights.

Typed from what is public, since a benchmark must run without the Hub. Where each was read:

- LFM2.5-350M: the config.json of LiquidAI/LFM2-350M as copies of it have it (Thorge-AI's
  lfm2-web-runtime-weights, for one). LFM2.5-350M is announced with the same 10 convolutions and 6
  attentions; its own file was not seen.
- Qwen3-0.6B: the config.json of Qwen/Qwen3-0.6B, as TensorStack/TextEncoder has it.
- LFM2-VL-450M: LFM2-350M behind SigLIP2's base encoder (the documentation of transformers), joined
  as in the config.json of davanstrien/lfm2-vl-iconclass, which is trained from it.
- Qwen3-VL-2B: the documentation of transformers and the model card, from memory: the text model has
  the size of Qwen3-1.7B, the encoder 24 layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_LFM2_350M = {
    "hidden_size": 1024,
    "intermediate_size": 6656,  # two thirds of it, in steps of 256: 4608
    "block_auto_adjust_ff_dim": True,
    "block_ffn_dim_multiplier": 1.0,
    "block_multiple_of": 256,
    "num_hidden_layers": 16,
    "layer_types": [
        "full_attention" if layer in (2, 5, 8, 10, 12, 14) else "conv" for layer in range(16)
    ],
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "conv_L_cache": 3,
    "conv_bias": False,
    "conv_dim": 1024,  # hidden_size for transformers; vLLM asks for these two names
    "block_dim": 1024,
    "norm_eps": 1e-5,
    "vocab_size": 65_536,
    "tie_word_embeddings": True,
}
_SIGLIP2_BASE = {
    "model_type": "siglip2_vision_model",
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "num_patches": 256,
    "patch_size": 16,
    "vision_use_head": False,
}
_QWEN3_VL_2B_TEXT = {
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151_936,
    "tie_word_embeddings": True,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 5_000_000.0,
        "mrope_section": [24, 20, 20],
        "mrope_interleaved": True,
    },
}
_QWEN3_VL_2B_EYES = {
    "depth": 24,
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_heads": 16,
    "out_hidden_size": 2048,
    "patch_size": 16,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "num_position_embeddings": 2304,
    "deepstack_visual_indexes": [5, 11, 17],
}


@dataclass(frozen=True)
class Architecture:
    """A policy without its weights."""

    model_type: str
    """The family's name in transformers."""
    config: dict[str, Any]
    """The values of its config.json."""
    known_as: str = ""
    """The short name of a known policy of this size, whose predicted memory is compared."""
    vision: bool = False
    """Whether it reads a picture of the page with each prompt."""

    def build(self) -> PreTrainedModel:
        """The model with random weights in fp32, the same ones every time."""
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

        torch.manual_seed(0)
        config = AutoConfig.for_model(self.model_type, **self.config)
        kind = AutoModelForImageTextToText if self.vision else AutoModelForCausalLM
        return kind.from_config(config, dtype=torch.float32)


ARCHITECTURES = {
    "LFM2.5-350M": Architecture("lfm2", _LFM2_350M, known_as="lfm2.5-350m"),
    "Qwen3-0.6B": Architecture(
        "qwen3",
        {
            "hidden_size": 1024,
            "intermediate_size": 3072,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "rms_norm_eps": 1e-6,
            "vocab_size": 151_936,
            "tie_word_embeddings": True,
        },
        known_as="qwen3-0.6b",
    ),
    "LFM2-VL-450M": Architecture(
        "lfm2_vl",
        {
            "text_config": {"model_type": "lfm2", **_LFM2_350M},
            "vision_config": _SIGLIP2_BASE,
            "downsample_factor": 2,
            "projector_hidden_size": 2560,
            "projector_bias": True,
            "image_token_id": 396,
            "tie_word_embeddings": True,
        },
        vision=True,
    ),
    "Qwen3-VL-2B": Architecture(
        "qwen3_vl",
        {
            "text_config": {"model_type": "qwen3_vl_text", **_QWEN3_VL_2B_TEXT},
            "vision_config": {"model_type": "qwen3_vl_vision", **_QWEN3_VL_2B_EYES},
            "image_token_id": 151_655,
            "tie_word_embeddings": True,
        },
        known_as="qwen3-vl-2b",
        vision=True,
    ),
}
