"""Policies with eyes: a model that reads pictures, with the processor that encodes them."""

# transformers and torch take seconds to import, so they are imported where they are used.
from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from helpers.policy.loading import (
    PolicyError,
    check_folder,
    check_hub,
    load_policy,
    policy_path,
    quiet_transformers,
)
from helpers.settings.errors import first_line
from helpers.settings.known_policies import POLICIES

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase, ProcessorMixin

    from helpers.settings.profiles import Profile

SMALL = "small-with-eyes"  # the name of `small_policy_with_eyes` on a command line

# Tokens that stand for a picture, in the order in which Qwen's processor names them.
_VISION_TOKENS = ("vision_start", "vision_end", "image_pad", "video_pad")

_TEXT_CONFIG = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 10_000.0,
        "mrope_section": [2, 3, 3],
        "mrope_interleaved": True,
    },
}
_VISION_CONFIG = {
    "depth": 2,
    "hidden_size": 32,
    "num_heads": 4,
    "intermediate_size": 64,
    "out_hidden_size": 64,
    "patch_size": 16,
    "spatial_merge_size": 2,
    "num_position_embeddings": 256,
    "deepstack_visual_indexes": [0],
}


def small_policy_with_eyes(seed: int = 0) -> tuple[PreTrainedModel, ProcessorMixin]:
    """A Qwen3-VL of 3 million random weights, and its processor.

    All goes through the same code as with the real model, but it can do nothing. The processor has
    SmolLM2's tokenizer, Qwen's image processor and the template that TRL ships.
    """
    tokenizer = load_policy("smollm2-135m", weights=False).tokenizer
    tokens = [f"<|{name}|>" for name in _VISION_TOKENS]
    tokenizer.add_special_tokens({"additional_special_tokens": tokens})
    return _small_model(tokenizer, seed), _small_processor(tokenizer)


def _ids_of_vision_tokens(tokenizer: PreTrainedTokenizerBase) -> dict[str, int]:
    ids = tokenizer.convert_tokens_to_ids([f"<|{name}|>" for name in _VISION_TOKENS])
    return dict(zip(_VISION_TOKENS, cast("list[int]", ids), strict=True))


def _small_model(tokenizer: PreTrainedTokenizerBase, seed: int) -> PreTrainedModel:
    """The model, built from its configuration."""
    import torch
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    ids = _ids_of_vision_tokens(tokenizer)
    torch.manual_seed(seed)
    return Qwen3VLForConditionalGeneration(
        Qwen3VLConfig(
            text_config={**_TEXT_CONFIG, "vocab_size": len(tokenizer)},
            vision_config=_VISION_CONFIG,
            image_token_id=ids["image_pad"],
            video_token_id=ids["video_pad"],
            vision_start_token_id=ids["vision_start"],
            vision_end_token_id=ids["vision_end"],
            tie_word_embeddings=True,
        )
    )


def _small_processor(tokenizer: PreTrainedTokenizerBase) -> ProcessorMixin:
    """Qwen's processor without its part for videos, which needs torchvision."""
    from transformers import ProcessorMixin, Qwen3VLProcessor
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
    from trl.chat_template_utils import qwen3_vl_chat_template

    ids = _ids_of_vision_tokens(tokenizer)

    class Processor(Qwen3VLProcessor):
        def __init__(
            self, image_processor: Any = None, tokenizer: Any = None, chat_template: Any = None
        ) -> None:
            ProcessorMixin.__init__(self, image_processor, tokenizer, chat_template=chat_template)
            self.vision_start_token = "<|vision_start|>"
            self.vision_end_token = "<|vision_end|>"
            self.image_token = "<|image_pad|>"
            self.video_token = "<|video_pad|>"
            self.vision_start_token_id = ids["vision_start"]
            self.vision_end_token_id = ids["vision_end"]
            self.image_token_id = ids["image_pad"]
            self.video_token_id = ids["video_pad"]

    pictures = Qwen2VLImageProcessorPil(
        patch_size=16, merge_size=2, size={"shortest_edge": 32**2, "longest_edge": 256**2}
    )
    return Processor(pictures, tokenizer, chat_template=qwen3_vl_chat_template)


def load_with_processor(
    name: str, profile: Profile
) -> tuple[PreTrainedModel, ProcessorMixin | PreTrainedTokenizerBase]:
    """Model and processor of a policy with eyes, model and tokenizer of one without.

    ``small-with-eyes`` is `small_policy_with_eyes`. Raises `PolicyError` where one of both cannot
    be had.
    """
    if name == SMALL:
        return small_policy_with_eyes()
    if name in POLICIES and not POLICIES[name].vision:
        policy = load_policy(name, profile.dtype, profile.device)
        return policy.model, policy.tokenizer
    import torch
    from transformers import AutoModelForImageTextToText, AutoProcessor

    quiet_transformers()
    path = policy_path(name)
    check_folder(name, path)
    check_hub(name, path)
    dtype = getattr(torch, profile.dtype)
    try:
        model: Any = AutoModelForImageTextToText.from_pretrained(path, dtype=dtype)
        processor = AutoProcessor.from_pretrained(path)
    except (OSError, ValueError) as error:
        raise PolicyError(
            f"{name!r} ({path}) could not be loaded as a policy with eyes: it needs weights and a "
            f"processor ({first_line(error)[:150]})."
        ) from error
    return model.to(profile.device), processor
