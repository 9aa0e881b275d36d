"""SmolLM2 with eyes: a small vision encoder in front of a policy that has none.

The architecture is Llava's, so transformers, TRL and vLLM know it: a picture is cut into squares, a
small SigLIP encoder turns each into a vector, a projector turns that into what the language model
would read in the place of a word. 64 such tokens stand for a page.
"""

# transformers and torch take seconds to import, so they are imported where they are used.
from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from helpers.policy.loading import PolicyError, load_policy
from helpers.settings.paths import RECORDINGS

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor
    from transformers import LlavaForConditionalGeneration, LlavaProcessor, PreTrainedTokenizerBase

BELOW_THE_GOAL = (0, 50, 160, 210)  # the part of a page, in its pixels, that is looked at
SIDE = 160  # pixels
PATCH = 20  # pixels; a drawing of click-shape is as large
TOKENS = (SIDE // PATCH) ** 2  # that stand for a picture
IMAGE_TOKEN = "<image>"
RANK = 16  # of the adapter that the language model gets
SCALING = 2.0  # of what the adapter adds
ADAPTED = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
KEPT = RECORDINGS / "eyes"  # what was taught with the course's own command
WEIGHTS = "eyes.safetensors"

_VISION = {
    "hidden_size": 192,
    "intermediate_size": 768,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "image_size": SIDE,
    "patch_size": PATCH,
}
# The template of SmolLM2, with a content that may be a list of blocks, and with tools: a call is
# written as the action that it is, mouse_click(120, 150).
_TEMPLATE = """\
{%- for message in messages -%}
<|im_start|>{{ message['role'] }}
{% if message['content'] is string %}{{ message['content'] }}{% else %}\
{% for block in message['content'] or [] %}\
{% if block['type'] == 'image' %}<image>{% else %}{{ block['text'] }}{% endif %}\
{% endfor %}{% endif %}\
{% for call in message['tool_calls'] or [] %}\
{{ call['function']['name'] }}(\
{% for key, value in call['function']['arguments'].items() %}\
{% if key not in ('x', 'y') %}{{ key }}={% endif %}{{ value }}\
{% if not loop.last %}, {% endif %}{% endfor %}){% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
# How TRL finds the call in an answer.
_RESPONSE = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "tool_calls": {
            "open_pattern": r"(?P<name>mouse_\w+)\((?P<x>\d+), ?(?P<y>\d+)",
            "close_pattern": r"\)\s*",
            "repeats": True,
            "content": "text",
            "transform": {
                "type": "function",
                "function": {"name": "{name}", "arguments": {"x": "{x}", "y": "{y}"}},
            },
        },
        "content": {"close_pattern": r"<\|im_end\|>\s*", "content": "text"},
    },
}


def policy_with_new_eyes(
    name: str = "smollm2-135m", seed: int = 0
) -> tuple[LlavaForConditionalGeneration, LlavaProcessor]:
    """The policy ``name`` (a Llama) with an encoder and a projector of random weights, in fp32, and
    its processor. At SmolLM2's width of 576 2.5 million weights are new."""
    import torch
    from transformers import LlavaConfig, LlavaForConditionalGeneration, SiglipVisionConfig

    policy = load_policy(name)
    text = policy.model.config
    tokenizer = policy.tokenizer
    tokenizer.add_special_tokens({"additional_special_tokens": [IMAGE_TOKEN]})
    torch.manual_seed(seed)
    settings: dict[str, Any] = {
        "vision_config": SiglipVisionConfig.from_dict(_VISION),
        "text_config": text,
        "image_token_id": tokenizer.convert_tokens_to_ids(IMAGE_TOKEN),
        "image_seq_length": TOKENS,
        "vision_feature_layer": -1,
        "vision_feature_select_strategy": "full",  # no token stands for the picture as a whole
        "tie_word_embeddings": True,
    }
    config = LlavaConfig(**settings)
    model: Any = LlavaForConditionalGeneration(config)
    model.model.language_model.load_state_dict(policy.model.model.state_dict())
    model.resize_token_embeddings(len(tokenizer))
    model.tie_weights()
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model, _processor(tokenizer)


def _processor(tokenizer: PreTrainedTokenizerBase) -> LlavaProcessor:
    """Pixels between -1 and 1, and as many image tokens as there are squares."""
    from transformers import LlavaProcessor
    from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

    cast(Any, tokenizer).response_template = _RESPONSE
    return LlavaProcessor(
        SiglipImageProcessorPil(size={"height": SIDE, "width": SIDE}),
        tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="full",
        chat_template=_TEMPLATE,
        image_token=IMAGE_TOKEN,
    )


def looked_at(page: Image) -> Image:
    """The part of a page that the policy looks at, 160 x 160 pixels.

    ``page``: 160 x 210 pixels, as `helpers.episodes.tools.picture` returns it. Raises ValueError
    for any other size: what is stretched would show things in another place.
    """
    if page.size != (160, 210):
        width, height = page.size
        raise ValueError(f"The picture of a page has 160 x 210 pixels, not {width} x {height}.")
    return page.crop(BELOW_THE_GOAL)


# ---- what is kept of eyes that have learned ----


def new_weights(model: LlavaForConditionalGeneration) -> dict[str, Tensor]:
    """The weights that the language model did not come with, in bf16: encoder, projector and the
    adapter that was put into it."""
    import torch

    parts = ("vision_tower", "multi_modal_projector", "lora_")
    return {
        name: tensor.detach().to(torch.bfloat16).contiguous()
        for name, tensor in model.state_dict().items()
        if any(part in name for part in parts)
    }


def keep_eyes(model: LlavaForConditionalGeneration, folder: Path, about: dict[str, Any]) -> None:
    """Write `new_weights` (15 MB, 5 MB without an adapter) into ``folder``, and beside them what is
    to be said of them."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    save_file(new_weights(model), folder / WEIGHTS)
    (folder / "eyes.json").write_text(json.dumps(about, indent=1) + "\n")


def kept_eyes(folder: Path | str) -> dict[str, Tensor]:
    """The `new_weights` that `keep_eyes` wrote; `PolicyError` where they are missing or damaged."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(Path(folder) / WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise PolicyError(
            f"There are no eyes in {folder}: make them with python -m scripts.learn_to_see."
        ) from error


def policy_with_eyes(
    folder: Path | str = KEPT, name: str = "smollm2-135m", adapted: bool = True
) -> tuple[LlavaForConditionalGeneration, LlavaProcessor]:
    """The policy ``name`` with the eyes that `keep_eyes` wrote, in fp32, its adapter merged.

    ``adapted``: with the adapter; without it the eyes alone are its. Raises `PolicyError` where
    they are missing, damaged, or another policy's.
    """
    kept = kept_eyes(folder)
    if not adapted:
        kept = {key: tensor for key, tensor in kept.items() if "lora_" not in key}
    model, processor = policy_with_new_eyes(name)
    own = model.state_dict()
    try:
        for key, tensor in kept.items():
            if "lora_" not in key:
                own[key].copy_(tensor)
            elif ".lora_A." in key:
                base = own[key.replace("lora_A.default.", "")]
                up = kept[key.replace("lora_A", "lora_B")]
                base += SCALING * up.float() @ tensor.float()
    except (KeyError, RuntimeError) as error:
        raise PolicyError(
            f"The eyes in {folder} are not those of {name!r}: make them with python -m "
            "scripts.learn_to_see."
        ) from error
    return model, processor
