"""The second and the third lesson: questions about a page. In the second the policy learns where to
look for what they ask for, in the third to answer with a click.

An adapter in the language model learns to read what the eyes say, by cross-entropy of looking at
the right squares, on the answers' tokens, and of noting the place. The eyes stay as they are:
taught together with the adapter they forget columns, long before anything has learned to read them.
A page is read once for all its questions: its 64 tokens are most of what a question costs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import Parameter
from torch.nn.functional import cross_entropy

from helpers.episodes.seeing import SEEING_PROMPT
from helpers.learning.eyes.encoder import PLACES, pixel_values, tokens_of
from helpers.learning.eyes.gaze import LAYER, Gaze
from helpers.learning.eyes.lessons import Question, questions
from helpers.learning.eyes.pages import KeptPages, square_of
from helpers.policy.eyes import ADAPTED, IMAGE_TOKEN, RANK, SCALING, TOKENS
from helpers.policy.prompts import system_prompt
from helpers.settings.machine import has_fast_bf16

if TYPE_CHECKING:
    from PIL.Image import Image
    from transformers import (
        LlavaForConditionalGeneration,
        LlavaProcessor,
        PreTrainedTokenizerBase,
    )

LOOKING = 10  # tokens before an answer: the last of the goal, and what begins the answer
BEGINNING = "mouse_click("  # of every answer: what is read when the place has to be known
NOTING = 20  # layers below which the place of the click shall have been noted, in words
NOT_TAUGHT = -100  # the label of a token that the loss leaves out


class Rows(NamedTuple):
    """Pages with their questions, padded on the right."""

    ids: Tensor
    """(n, longest) token ids."""
    labels: Tensor
    """(n, longest): the answers' tokens, `NOT_TAUGHT` elsewhere."""
    positions: Tensor
    """(n, longest): each question's begin where the page ends."""
    sees: Tensor
    """(n, longest, longest): whether a token attends to another. No question sees the others: of
    four boxes whose places are asked for, the last would be known without a look."""
    pixels: Tensor
    """(n, 3, 160, 160)."""
    looks: Tensor
    """(n, longest): whether the token looks for something: what is asked for has been read."""
    look_at: Tensor
    """(looking tokens, 64), in their order: the squares that tell the answer."""
    places: Tensor
    """(looking tokens, 2): column and row of the click, counted in squares."""
    words: Tensor
    """(2, 8): the token ids of the words for columns and rows."""


def page_ids(tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """What is read before any question: the system message, and the squares of a page."""
    before = f"<|im_start|>system\n{system_prompt(SEEING_PROMPT)}<|im_end|>\n<|im_start|>user\n"
    return _encode(tokenizer, before + IMAGE_TOKEN * TOKENS)


def question_ids(
    tokenizer: PreTrainedTokenizerBase, question: Question
) -> tuple[list[int], list[int]]:
    """A question behind a page, and its answer; together with the page this is, token by token,
    what a policy reads in an episode and what it shall write."""
    return goal_ids(tokenizer, question.goal), _encode(tokenizer, f"{question.action}<|im_end|>")


def goal_ids(tokenizer: PreTrainedTokenizerBase, goal: str) -> list[int]:
    """A goal behind a page, and what begins the answer."""
    return _encode(tokenizer, f"Goal: {goal}<|im_end|>\n<|im_start|>assistant\n")


def _encode(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    return cast("list[int]", tokenizer(text, add_special_tokens=False)["input_ids"])


def rows_of(
    tokenizer: PreTrainedTokenizerBase,
    pixels: Sequence[np.ndarray],
    asked: Sequence[Sequence[Question]],
) -> Rows:
    """Pages, 160 x 160 pixels each, and the questions of each of them."""
    page = page_ids(tokenizer)
    beginning = len(_encode(tokenizer, BEGINNING))
    spoken = [[question_ids(tokenizer, question) for question in each] for each in asked]
    lengths = [len(page) + sum(len(q) + len(a) for q, a in each) for each in spoken]
    shape = len(spoken), max(lengths)
    ids = torch.full(shape, cast(int, tokenizer.pad_token_id))
    labels = torch.full(shape, NOT_TAUGHT)
    looks = torch.zeros(shape, dtype=torch.bool)
    positions = torch.zeros(shape, dtype=torch.long)
    # Padding sees itself, because a softmax over nothing is no number.
    sees = torch.eye(shape[1], dtype=torch.bool).repeat(shape[0], 1, 1)
    for row, each in enumerate(spoken):
        starts = _lay_out(page, each, ids[row], labels[row], positions[row], sees[row])
        for start in starts:
            looks[row, start - LOOKING : start + beginning] = True
    look_at = torch.zeros(int(looks.sum()), TOKENS, dtype=torch.bool)
    places = torch.zeros(len(look_at), 2, dtype=torch.long)
    every_question = [question for each in asked for question in each]
    each_looking = LOOKING + beginning
    for looking, place, question in zip(
        look_at.split(each_looking), places.split(each_looking), every_question, strict=True
    ):
        looking[:, question.look_at] = True
        place[:] = torch.tensor(square_of(question.answers[0]))
    return Rows(
        ids=ids,
        labels=labels,
        positions=positions,
        sees=sees,
        pixels=pixel_values(np.stack(pixels)),
        looks=looks,
        look_at=look_at,
        places=places,
        words=place_words(tokenizer),
    )


def place_words(tokenizer: PreTrainedTokenizerBase) -> Tensor:
    """(2, 8): the token ids of the words for columns and rows."""
    return torch.tensor(
        [[_encode(tokenizer, f" {word}")[0] for word in group] for group in PLACES.values()]
    )


def _lay_out(
    page: list[int],
    spoken: Sequence[tuple[list[int], list[int]]],
    ids: Tensor,
    labels: Tensor,
    positions: Tensor,
    sees: Tensor,
) -> list[int]:
    """Write one page and its questions and answers into a row; returns where each answer starts."""
    width = len(page)
    ids[:width] = torch.tensor(page)
    positions[:width] = torch.arange(width)
    sees[:width, :width] = torch.ones(width, width, dtype=torch.bool).tril()
    start = width
    answers = []
    for question, answer in spoken:
        length = len(question) + len(answer)
        here = slice(start, start + length)
        ids[here] = torch.tensor(question + answer)
        labels[start + len(question) : start + length] = torch.tensor(answer)
        answers.append(start + len(question))
        positions[here] = torch.arange(width, width + length)
        sees[here, :width] = True
        sees[here, here] = torch.ones(length, length, dtype=torch.bool).tril()
        start += length
    return answers


def batches(
    tokenizer: PreTrainedTokenizerBase,
    sets: Sequence[KeptPages],
    size: int,
    most: int,
    draw: random.Random,
) -> Iterator[Rows]:
    """Batches without end, each of ``size`` pages of one task: the tasks take turns. Each page has
    ``most`` questions at most."""
    while True:
        for pages in sets:
            numbers = [draw.randrange(len(pages)) for _ in range(size)]
            asked = [questions(pages, n, most, draw) for n in numbers]
            yield rows_of(tokenizer, [pages.pixels[n] for n in numbers], asked)


def prepare(
    model: LlavaForConditionalGeneration, kept: Mapping[str, Tensor] | None = None
) -> list[Parameter]:
    """Make the language model ready: its weights, which stay as they are, in bf16 where that is
    fast, and an adapter in fp32, whose weights are returned.

    ``kept``: the weights of an adapter to go on with, by their names; a new one without them.
    """
    from peft import LoraConfig, inject_adapter_in_model

    model.requires_grad_(False)
    inner: Any = model.model
    if has_fast_bf16(model.device.type):
        inner.language_model.to(torch.bfloat16)
        cast(Any, model.lm_head).to(torch.bfloat16)
    lora = LoraConfig(r=RANK, lora_alpha=int(RANK * SCALING), target_modules=list(ADAPTED))
    inject_adapter_in_model(lora, inner.language_model)
    named = {name: weight for name, weight in model.named_parameters() if "lora_" in name}
    for name, weight in named.items():
        weight.data = (kept[name] if kept else weight.data).float()
        weight.requires_grad_(True)
    return list(named.values())


class Answered(NamedTuple):
    """What a policy makes of the answers' tokens, given all before them."""

    logits: Tensor
    """(tokens, vocabulary), fp32."""
    tokens: Tensor
    """(tokens): the right ones."""
    seen: Tensor
    """(looking tokens, 64): log of the share of attention that goes to each square (`gaze`)."""
    noted: Tensor
    """(looking tokens, 2, 8): logits of the words for columns and rows, half-way up."""


def answer(model: LlavaForConditionalGeneration, rows: Rows) -> Answered:
    """One pass over pages and questions."""
    with _precision(rows):
        hidden, seen = _read(model, rows, every_layer=True)
        taught = rows.labels[:, 1:] != NOT_TAUGHT
        logits = cast(Any, model.lm_head)(hidden[-1][:, :-1][taught])
        noted = _noted(model, hidden[NOTING][rows.looks], rows.words)
    return Answered(logits.float(), rows.labels[:, 1:][taught], seen, noted.float())


def _noted(model: LlavaForConditionalGeneration, half_way: Tensor, words: Tensor) -> Tensor:
    """Logits of the words for columns and rows (2, 8), from what the model holds half-way up for
    some tokens (n, width), as if it were to be said there: (n, 2, 8)."""
    language_model: Any = cast(Any, model).model.language_model
    read = cast(Any, model.lm_head).weight[words]
    return torch.einsum("nd,gwd->ngw", language_model.norm(half_way), read)


def _precision(rows: Rows) -> torch.autocast:
    """bf16 where that is fast."""
    device = rows.ids.device.type
    return torch.autocast(device, dtype=torch.bfloat16, enabled=has_fast_bf16(device))


def _read(
    model: LlavaForConditionalGeneration, rows: Rows, every_layer: bool
) -> tuple[tuple[Tensor, ...], Tensor]:
    """What every layer makes of the rows (the last one with its norm), where that is asked for, and
    `Answered.seen`."""
    inner: Any = model.model
    embedded = model.get_input_embeddings()(rows.ids).detach()
    squares = tokens_of(model, rows.pixels)
    where = (rows.ids == model.config.image_token_id)[..., None]
    with Gaze(model) as gaze:
        hidden = inner.language_model(
            inputs_embeds=embedded.masked_scatter(where, squares.to(embedded.dtype)),
            attention_mask=rows.sees[:, None],
            position_ids=rows.positions,
            output_hidden_states=every_layer,
        ).hidden_states
        row, place = rows.looks.nonzero().T
        return hidden, gaze.at(rows.ids, row, place, rows.sees)


def look_loss(model: LlavaForConditionalGeneration, rows: Rows) -> Tensor:
    """Of looking at the squares that tell the answers, and of nothing else.

    The layers above the one that looks are left out: so a step costs less than half.
    """
    language_model: Any = cast(Any, model).model.language_model
    whole = language_model.layers
    language_model.layers = whole[: LAYER + 1]
    try:
        with _precision(rows):
            # The layers are not asked for: transformers goes on watching those of the first pass
            # that asks, and the others would be missing later.
            _, seen = _read(model, rows, every_layer=False)
    finally:
        language_model.layers = whole
    return -_at_them(seen, rows).mean()


def answer_loss(model: LlavaForConditionalGeneration, rows: Rows) -> Tensor:
    """Cross-entropy of the answers' tokens, of looking at the squares that tell them, and of noting
    the column and the row of the click.

    What is not looked at cannot be noted: each token notes as far as it looks at the right squares.
    """
    answered = answer(model, rows)
    at_them = _at_them(answered.seen, rows)
    places = rows.places.flatten()
    noted = cross_entropy(answered.noted.flatten(0, 1), places, reduction="none").view(-1, 2)
    noting = (at_them.detach().exp() * noted.mean(1)).mean()
    return cross_entropy(answered.logits, answered.tokens) - at_them.mean() + noting


def _at_them(seen: Tensor, rows: Rows) -> Tensor:
    """Log of the share of attention that goes to the right squares: (looking tokens)."""
    return seen.masked_fill(~rows.look_at, -torch.inf).logsumexp(1)


class Thought(NamedTuple):
    """What goes on in a policy just before it answers."""

    looks: list[float]
    """The share of attention that goes to each of the 64 squares, in the heads that look."""
    column: str
    """The word that it has noted for the column of the click, half-way up."""
    row: str
    """And for its row."""


def thought_of(
    model: LlavaForConditionalGeneration, processor: LlavaProcessor, page: Image, goal: str
) -> Thought:
    """What a policy makes of a page (160 x 160 pixels) and a goal before it answers."""
    tokenizer = processor.tokenizer
    ids = torch.tensor([page_ids(tokenizer) + goal_ids(tokenizer, goal)])
    length = ids.shape[1]
    places = torch.arange(length - LOOKING, length)
    sees = torch.ones(1, length, length, dtype=torch.bool).tril()
    pixels = pixel_values(np.array(page)[None])
    with torch.inference_mode(), Gaze(model) as gaze:
        hidden = model(input_ids=ids, pixel_values=pixels, output_hidden_states=True).hidden_states
        seen = gaze.at(ids, torch.zeros_like(places), places, sees)
        noted = _noted(model, hidden[NOTING][0, -1:], place_words(tokenizer))[0].argmax(1).tolist()
    column, row = (words[number] for words, number in zip(PLACES.values(), noted, strict=True))
    return Thought(seen.exp().mean(0).tolist(), column, row)
