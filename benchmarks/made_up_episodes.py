"""Made-up episodes of an update, in the lengths of click-button, for policies that cannot play."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from benchmarks.published_configs import Architecture
from helpers.settings.predictions import ANSWER_TOKENS, PAGE_TOKENS, SHARED_TOKENS
from helpers.settings.profiles import Profile

if TYPE_CHECKING:
    from torch import Tensor

    from helpers.learning.trainer import Batch

PATCHES = (20, 32)  # rows and columns of patches of a page, 498 x 321 made 512 x 320
PATCHES_PER_TOKEN = 4


def prompts_of(profile: Profile, architecture: Architecture, seed: int = 0) -> Tensor:
    """Token ids (episodes, length): as long as prompts of click-button, the same within a group.

    The picture of a policy with eyes stands in front, as one token for four patches.
    """
    drawn = torch.Generator().manual_seed(seed)

    def tokens(rows: int, length: int) -> Tensor:
        return torch.randint(1_000, 16_000, (rows, length), generator=drawn)

    pages = tokens(profile.groups, PAGE_TOKENS).repeat_interleave(profile.group_size, 0)
    parts = [tokens(1, SHARED_TOKENS).expand(profile.batch, -1), pages]
    if architecture.vision:
        length = PATCHES[0] * PATCHES[1] // PATCHES_PER_TOKEN
        image = architecture.config["image_token_id"]
        parts.insert(0, torch.full((profile.batch, length), image))
    return torch.cat(parts, 1)


def pictures_of(rows: int, architecture: Architecture) -> dict[str, Any]:
    """A random picture for each row, cut into patches as the model's processor would."""
    patches = PATCHES[0] * PATCHES[1]
    size = architecture.config["vision_config"]["patch_size"] ** 2 * 3  # red, green and blue
    drawn = torch.Generator().manual_seed(0)
    if architecture.model_type == "lfm2_vl":
        return {
            "pixel_values": torch.rand(rows, patches, size, generator=drawn),
            "pixel_attention_mask": torch.ones(rows, patches, dtype=torch.long),
            "spatial_shapes": torch.tensor([PATCHES] * rows),
        }
    frames = architecture.config["vision_config"]["temporal_patch_size"]
    return {
        "pixel_values": torch.rand(rows * patches, frames * size, generator=drawn),
        "image_grid_thw": torch.tensor([[1, *PATCHES]] * rows),
    }


def picture_tokens(ids: Tensor, architecture: Architecture) -> dict[str, Tensor]:
    """Which tokens (rows, length) stand for a picture, for the family that asks."""
    if architecture.model_type != "qwen3_vl":
        return {}
    return {"mm_token_type_ids": (ids == architecture.config["image_token_id"]).long()}


def batch_of(profile: Profile, architecture: Architecture) -> Batch:
    """A batch of played episodes, as TRL hands it to the loss; each has an advantage."""
    rows = profile.batch
    prompts = prompts_of(profile, architecture)
    answers = torch.randint(
        1_000, 16_000, (rows, ANSWER_TOKENS), generator=torch.Generator().manual_seed(1)
    )
    batch: Batch = {
        "prompt_ids": prompts,
        "prompt_mask": torch.ones_like(prompts),
        "completion_ids": answers,
        "completion_mask": torch.ones_like(answers),
        "advantages": torch.tensor([1.0, -1.0]).repeat(rows)[:rows],
        "num_items_in_batch": torch.tensor(answers.numel()),
    }
    if architecture.vision:
        batch |= pictures_of(rows, architecture)
        batch |= picture_tokens(torch.cat([prompts, answers], 1), architecture)
        batch["num_images"] = [1] * rows
    if architecture.model_type == "lfm2_vl":
        batch["num_tiles"] = [1] * rows
    return batch
