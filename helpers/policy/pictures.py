"""Pictures as tokens: a policy with eyes, called as if it read text alone.

What shares prompts in this course (`helpers.policy.generators`, `helpers.learning.prefix_tree`)
takes two prompts for the same where their token ids are. In a policy with eyes they are the same
for any two pictures, as one id stands for every square of every picture. Here each square of each
picture gets an id of its own, beyond the vocabulary: prompts with equal pictures stay equal, others
are told apart, and what shares them need not know of pictures.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from typing_extensions import override

from helpers.policy.eyes import TOKENS

FAMILIES = {"llava"}  # ``config.model_type``: one vector for each square, in the place of a token


class ReadsPictures(nn.Module):
    """A policy with eyes and the pictures of a batch, in the place of a causal language model.

    Its ids are those of `numbered`. The pictures are looked at once, when it is made, so gradients
    flow through them into the vision encoder.
    """

    def __init__(self, model: nn.Module, pixels: Tensor) -> None:
        """``pixels``: (rows, 3, height, width), one picture for each row of the batch; equal ones
        are looked at once."""
        super().__init__()
        self.model = model
        distinct, self.picture_of = torch.unique(pixels, dim=0, return_inverse=True)
        seen = cast(Any, model).get_image_features(distinct, return_dict=True).pooler_output
        self.squares = torch.cat(list(seen))  # (pictures * TOKENS, width)

    @property
    def config(self) -> Any:
        """The model's."""
        return self.model.config

    @property
    def device(self) -> torch.device:
        """Where the model computes."""
        return self.squares.device

    @property
    def first(self) -> int:
        """The id of the first square of the first picture: the first that is no token's."""
        return cast(Any, self.model).get_input_embeddings().num_embeddings

    def numbered(self, ids: Tensor, row: int | None = None) -> Tensor:
        """Ids (rows, length), or those of one ``row`` (length), with the squares numbered."""
        square = ids == self.config.image_token_id
        picture = self.picture_of[:, None] if row is None else self.picture_of[row]
        number = self.first + picture * TOKENS + square.cumsum(-1) - 1
        return torch.where(square, number, ids)

    @override
    def forward(self, input_ids: Tensor, **others: Any) -> Any:
        """As the model's own, with ids of `numbered`."""
        return self.model(inputs_embeds=self.embedded(input_ids), **others)

    def embedded(self, ids: Tensor) -> Tensor:
        """What the language model reads in the place of ids of `numbered`: as many vectors."""
        table = cast(Any, self.model).get_input_embeddings()
        square = ids >= self.first
        words = table(ids.masked_fill(square, 0))
        seen = self.squares[(ids - self.first).clamp(min=0)].to(words.dtype)
        return torch.where(square[..., None], seen, words)
