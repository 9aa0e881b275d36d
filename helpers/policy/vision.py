"""The other door into the same task: the browser as tools of `GRPOTrainer` (``environment_factory``), in text or with pictures.

    python -m scripts.train_tools --policy qwen3-vl-2b --task click-test --observation both --output runs/eyes

TRL makes one environment per rollout, offers its public methods to the policy as tools, calls them, and hands what they return
(text, pictures) to the policy and to the training pass. So the policy's template has to know tools (Qwen3, LFM2.5), and pictures
need a processor (Qwen3-VL, LFM2.5-VL). ``--observation``: tree, screenshot, both or marks (the screenshot with the numbers drawn
in). Everything else is a variable of `helpers.settings.profiles`, as in scripts/train.py.
"""

from typing import Any

from helpers.policy.loading import PolicyError, load_policy, policy_path, quiet_transformers
from helpers.settings.known_policies import POLICIES
from helpers.settings.profiles import Profile


def small_policy_with_eyes(seed: int = 0) -> tuple[Any, Any]:
    """A Qwen3-VL of 3 million random weights, built from its config, and a processor of SmolLM2's tokenizer, Qwen's image
    processor and the template that TRL ships: all goes through the same code as with the real model, but it can do nothing."""
    import torch
    from transformers import (
        ProcessorMixin,
        Qwen3VLConfig,
        Qwen3VLForConditionalGeneration,
        Qwen3VLProcessor,
    )
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
    from trl.chat_template_utils import qwen3_vl_chat_template

    names = ["vision_start", "vision_end", "image_pad", "video_pad"]
    tokenizer = load_policy("smollm2-135m", weights=False).tokenizer
    tokenizer.add_special_tokens({"additional_special_tokens": [f"<|{name}|>" for name in names]})
    start, end, image, video = tokenizer.convert_tokens_to_ids([f"<|{name}|>" for name in names])

    class Processor(Qwen3VLProcessor):
        """Without its part for videos, which wants torchvision."""

        def __init__(self, image_processor=None, tokenizer=None, chat_template=None):
            ProcessorMixin.__init__(self, image_processor, tokenizer, chat_template=chat_template)
            self.vision_start_token, self.vision_end_token, self.image_token, self.video_token = (
                f"<|{name}|>" for name in names
            )
            self.vision_start_token_id, self.vision_end_token_id = start, end
            self.image_token_id, self.video_token_id = image, video

    torch.manual_seed(seed)
    model = Qwen3VLForConditionalGeneration(
        Qwen3VLConfig(
            text_config={
                "vocab_size": len(tokenizer),
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
            },
            vision_config={
                "depth": 2,
                "hidden_size": 32,
                "num_heads": 4,
                "intermediate_size": 64,
                "out_hidden_size": 64,
                "patch_size": 16,
                "spatial_merge_size": 2,
                "num_position_embeddings": 256,
                "deepstack_visual_indexes": [0],
            },
            image_token_id=image,
            video_token_id=video,
            vision_start_token_id=start,
            vision_end_token_id=end,
            tie_word_embeddings=True,
        )
    )
    pictures = Qwen2VLImageProcessorPil(
        patch_size=16, merge_size=2, size={"shortest_edge": 32**2, "longest_edge": 256**2}
    )
    return model, Processor(pictures, tokenizer, chat_template=qwen3_vl_chat_template)


def load_with_processor(name: str, profile: Profile) -> tuple[Any, Any]:
    """Model and processor of a policy with eyes (``small-with-eyes``: random weights), model and tokenizer of one without; raises
    `PolicyError`."""
    if name == "small-with-eyes":
        return small_policy_with_eyes()
    if name in POLICIES and not POLICIES[name].vision:
        policy = load_policy(name, profile.dtype, profile.device)
        return policy.model, policy.tokenizer
    import torch
    from transformers import AutoModelForImageTextToText, AutoProcessor

    quiet_transformers()
    path = policy_path(name)
    try:
        model = AutoModelForImageTextToText.from_pretrained(
            path, dtype=getattr(torch, profile.dtype)
        ).to(profile.device)
        return model, AutoProcessor.from_pretrained(path)
    except (OSError, ValueError) as error:
        raise PolicyError(
            f"{name!r} ({path}) could not be loaded as a policy with eyes: it needs weights and a processor "
            f"({str(error).splitlines()[0][:150]})."
        ) from error
