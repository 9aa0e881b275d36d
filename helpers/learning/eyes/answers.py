"""The second lesson: questions about a page, answered with a click.

Encoder, projector and an adapter in the language model learn together, by cross-entropy on the
answers' tokens. A page is read once for all its questions, which stand in one conversation: its 64
tokens are most of what a question costs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import Parameter
from torch.nn.functional import cross_entropy

from helpers.episodes.seeing import SEEING_PROMPT
from helpers.learning.eyes.encoder import pixel_values, tokens_of
from helpers.learning.eyes.lessons import Question, questions
from helpers.learning.eyes.pages import KeptPages
from helpers.policy.eyes import ADAPTED, IMAGE_TOKEN, RANK, SCALING, TOKENS
from helpers.policy.prompts import system_prompt

if TYPE_CHECKING:
    from transformers import LlavaForConditionalGeneration, PreTrainedTokenizerBase

NOT_TAUGHT = -100  # the label of a token that the loss leaves out


class Rows(NamedTuple):
    """Conversations about pages, padded on the right."""

    ids: Tensor
    """(n, longest) token ids."""
    labels: Tensor
    """(n, longest): the answers' tokens, `NOT_TAUGHT` elsewhere."""
    mask: Tensor
    """(n, longest): 1 for a token, 0 for padding."""
    pixels: Tensor
    """(n, 3, 160, 160)."""


def conversation(
    tokenizer: PreTrainedTokenizerBase, asked: Sequence[Question]
) -> tuple[list[int], list[int]]:
    """Token ids and labels of a page's questions and answers; the first question is, token by
    token, what a policy reads in an episode."""

    def encode(text: str) -> list[int]:
        return cast("list[int]", tokenizer(text, add_special_tokens=False)["input_ids"])

    ids = encode(f"<|im_start|>system\n{system_prompt(SEEING_PROMPT)}<|im_end|>\n")
    labels = [NOT_TAUGHT] * len(ids)
    for number, question in enumerate(asked):
        seen = "" if number else IMAGE_TOKEN * TOKENS
        before = encode(
            f"<|im_start|>user\n{seen}Goal: {question.goal}<|im_end|>\n<|im_start|>assistant\n"
        )
        answer = encode(f"{question.action}<|im_end|>")
        after = encode("\n")
        ids += before + answer + after
        labels += [NOT_TAUGHT] * len(before) + answer + [NOT_TAUGHT] * len(after)
    return ids, labels


def rows_of(
    tokenizer: PreTrainedTokenizerBase,
    pages: KeptPages,
    numbers: Sequence[int],
    most: int,
    draw: random.Random,
) -> Rows:
    """Conversations about these pages, with at most ``most`` questions each."""
    spoken = [conversation(tokenizer, questions(pages, n, most, draw)) for n in numbers]
    longest = max(len(ids) for ids, _ in spoken)
    pad = cast(int, tokenizer.pad_token_id)

    def padded(rows: Sequence[Sequence[int]], value: int) -> Tensor:
        return torch.tensor([[*row, *[value] * (longest - len(row))] for row in rows])

    return Rows(
        padded([ids for ids, _ in spoken], pad),
        padded([labels for _, labels in spoken], NOT_TAUGHT),
        padded([[1] * len(ids) for ids, _ in spoken], 0),
        pixel_values(np.stack([pages.pixels[n] for n in numbers])),
    )


def batches(
    tokenizer: PreTrainedTokenizerBase,
    sets: Sequence[KeptPages],
    size: int,
    most: int,
    draw: random.Random,
) -> Iterator[Rows]:
    """Batches without end, each of ``size`` pages of one task: the tasks take turns."""
    while True:
        for pages in sets:
            numbers = [draw.randrange(len(pages)) for _ in range(size)]
            yield rows_of(tokenizer, pages, numbers, most, draw)


def prepare(model: LlavaForConditionalGeneration) -> tuple[list[Parameter], list[Parameter]]:
    """Make the language model ready: its weights in bf16, which stay as they are, and an adapter in
    fp32. Returns the weights of the adapter, and those of encoder and projector."""
    from peft import LoraConfig, inject_adapter_in_model

    model.requires_grad_(False)
    inner: Any = model.model
    inner.language_model.to(torch.bfloat16)
    cast(Any, model.lm_head).to(torch.bfloat16)
    lora = LoraConfig(r=RANK, lora_alpha=int(RANK * SCALING), target_modules=list(ADAPTED))
    inject_adapter_in_model(lora, inner.language_model)
    adapter = [weight for name, weight in model.named_parameters() if "lora_" in name]
    for weight in adapter:
        weight.data = weight.data.float()
    eyes: list[Parameter] = [
        *inner.vision_tower.parameters(),
        *inner.multi_modal_projector.parameters(),
    ]
    for weight in adapter + eyes:
        weight.requires_grad_(True)
    return adapter, eyes


def answer_logits(model: LlavaForConditionalGeneration, rows: Rows) -> tuple[Tensor, Tensor]:
    """Logits (tokens, vocabulary) in fp32 of the answers' tokens, and these tokens."""
    inner: Any = model.model
    embedded = model.get_input_embeddings()(rows.ids).detach()
    seen = tokens_of(model, rows.pixels)
    where = (rows.ids == model.config.image_token_id)[..., None]
    taught = rows.labels[:, 1:] != NOT_TAUGHT
    with torch.autocast(rows.ids.device.type, dtype=torch.bfloat16):
        embedded = embedded.masked_scatter(where, seen.to(embedded.dtype))
        hidden = inner.language_model(
            inputs_embeds=embedded, attention_mask=rows.mask
        ).last_hidden_state
        logits = cast(Any, model.lm_head)(hidden[:, :-1][taught])
    return logits.float(), rows.labels[:, 1:][taught]


def answer_loss(model: LlavaForConditionalGeneration, rows: Rows) -> Tensor:
    """Cross-entropy of the answers' tokens."""
    logits, tokens = answer_logits(model, rows)
    return cross_entropy(logits, tokens)
