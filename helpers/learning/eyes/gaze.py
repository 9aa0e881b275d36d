"""Where a policy with eyes looks for what it is asked: the attention of a few heads to the squares.

Left alone, a small model takes long to find out that it has to look for the goal's words among the
squares. It is told instead: from the end of a question to the bracket before the first number these
heads shall look at the squares that tell the answer. Told so any later, it would look only when the
first digit has given the place away.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

import torch
from torch import Tensor
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from helpers.policy.eyes import TOKENS

if TYPE_CHECKING:
    from transformers import LlavaForConditionalGeneration

LAYER = 10  # of SmolLM2's 30: the goal has been read, and there is time to write down the place
HEADS = 3  # those that share the first keys


class Gaze:
    """Watches the heads in the passes of a ``with`` block; the last one can then be asked."""

    def __init__(self, model: LlavaForConditionalGeneration) -> None:
        self._attention: Any = cast(Any, model).model.language_model.layers[LAYER].self_attn
        self._image_token = model.config.image_token_id

    def __enter__(self) -> Self:
        hook = self._attention.register_forward_pre_hook(self._remember, with_kwargs=True)
        self._hook = hook
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._hook.remove()

    def _remember(self, _: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._hidden: Tensor = arguments[0] if arguments else named["hidden_states"]
        self._turned: tuple[Tensor, Tensor] = named["position_embeddings"]

    def at(self, ids: Tensor, rows: Tensor, places: Tensor, sees: Tensor) -> Tensor:
        """Log of the share of attention that goes to each square, mean of the heads: (n, 64).

        ``ids``: (batch, length), as they were read. ``rows`` and ``places`` (n): the tokens that
        look; ``sees`` (batch, length, length): what each of them attends to.
        """
        size = self._attention.head_dim
        batch, length = ids.shape
        queries = self._attention.q_proj(self._hidden)[..., : HEADS * size]
        keys = self._attention.k_proj(self._hidden)[..., :size]
        queries = queries.view(batch, length, HEADS, size).transpose(1, 2)
        keys = keys.view(batch, length, 1, size).transpose(1, 2)
        queries, keys = apply_rotary_pos_emb(queries, keys, *self._turned)
        asked = queries.transpose(1, 2)[rows, places].float()  # (n, heads, size)
        scores = asked @ keys[rows, 0].float().transpose(1, 2) / size**0.5  # (n, heads, length)
        hidden = ~sees[rows, places]
        scores = scores.masked_fill(hidden[:, None], -torch.inf).log_softmax(-1)
        squares = (ids == self._image_token).nonzero()[:, 1].view(batch, TOKENS)
        seen = scores.gather(2, squares[rows][:, None].expand(-1, HEADS, -1))
        return seen.logsumexp(1) - torch.log(torch.tensor(float(HEADS)))
