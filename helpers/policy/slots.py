"""Answers one by one with transformers: continuous batching, written small.

Each lane has a slot, which keeps the keys and values of what was read and written there. A request
joins the answers that are being written as soon as it is there. Of its prompt only that is computed
which no slot holds yet: neither what all prompts begin with, nor the prompt that a group shares,
nor the turns before. A token's key and value are written in place, at the column that is its
position, so a token sees the columns up to its own, and nothing is padded in between.
"""

# torch takes seconds to import, so only what computes imports this module.
from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from helpers.policy.completions import Completion, token_logprobs
from helpers.policy.lengths import length_in_common, split_lengths
from helpers.policy.streams import Request, Sampling

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# Families (``config.model_type``) that hand the arguments of a forward pass on to their attention.
FAMILIES = {"llama", "qwen2", "qwen3"}

ATTENTION = "slots"  # the name of `slot_attention` among those of transformers
COLUMNS_AT_ONCE = 256  # by so many a slot grows
MOST_TOKENS = 2_048  # of one forward pass, padding included
MOST_PADDING = 1.5  # times the tokens that are no padding
WORTH_WAITING = 16  # tokens: what two new prompts share beyond this is computed once


# ---- keys and values ----


@dataclass
class Places:
    """Where the tokens of a forward pass stand; every layer looks here."""

    slots: Tensor
    """(rows): the slot of each row."""
    columns: Tensor
    """(rows, tokens): the column of each token."""
    length: int
    """The columns that can be seen by any of them."""
    in_all: bool
    """True: attention goes over all slots as they lie; False: over a copy of those of the rows."""


class SlotCache:
    """Keys and values of all layers, each (slots, heads, columns, dimension).

    The last column is for padding: what is written there is never seen.
    """

    def __init__(self) -> None:
        self.slots = 0
        self.columns = 0
        self.layers: list[tuple[Tensor, Tensor]] = []
        self.places: Places

    def reserve(self, slots: int, columns: int) -> None:
        """Make room for so many, and for padding; what is there stays."""
        if slots <= self.slots and columns < self.columns:
            return
        self.slots = max(slots, self.slots)
        self.columns = (max(columns, self.columns - 1) // COLUMNS_AT_ONCE + 1) * COLUMNS_AT_ONCE
        self.layers = [(self._grown(keys), self._grown(values)) for keys, values in self.layers]

    def _grown(self, old: Tensor) -> Tensor:
        new = old.new_zeros(self.slots, old.shape[1], self.columns, old.shape[3])
        new[: old.shape[0], :, : old.shape[2]] = old
        return new

    def copy(self, source: int, target: int, columns: int) -> None:
        """Let a slot begin as another one does."""
        for layer in self.layers:
            for tensor in layer:
                tensor[target, :, :columns] = tensor[source, :, :columns]

    def update(
        self, keys: Tensor, values: Tensor, layer: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """What the attention of transformers asks a cache for.

        Writes ``keys`` and ``values``, each (rows, heads, tokens, dimension), to their places;
        returns those of all slots.
        """
        if layer == len(self.layers):
            empty = keys.new_zeros(self.slots, keys.shape[1], self.columns, keys.shape[3])
            self.layers.append((empty, empty.clone()))
        at = self.places
        all_keys, all_values = self.layers[layer]
        all_keys[at.slots[:, None], :, at.columns] = keys.transpose(1, 2)
        all_values[at.slots[:, None], :, at.columns] = values.transpose(1, 2)
        return all_keys[:, :, : at.length], all_values[:, :, : at.length]


def slot_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor,
    scaling: float | None = None,
    places: Places | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attention of some rows to their slots; returns (rows, tokens, heads, dimension).

    ``query``: (rows, heads, tokens, dimension). ``key``, ``value``: of all slots, as `SlotCache`
    has them. ``attention_mask``: as `_mask` makes it.
    """
    assert places is not None
    rows, heads, tokens, dimension = query.shape
    # Heads that share a key stand one after another like further tokens: no key is repeated.
    grouped = query.reshape(rows, key.shape[1], -1, dimension)
    if places.in_all:
        spread = grouped.new_zeros(len(key), *grouped.shape[1:])
        spread[places.slots] = grouped
        output = scaled_dot_product_attention(spread, key, value, attention_mask, scale=scaling)
        output = output[places.slots]
    else:
        output = scaled_dot_product_attention(
            grouped, key[places.slots], value[places.slots], attention_mask, scale=scaling
        )
    return output.reshape(rows, heads, tokens, dimension).transpose(1, 2), None


def _mask(places: Places, slots: int, positions: Tensor, shared: int, dtype: torch.dtype) -> Tensor:
    """What is added to the attention scores: 0 up to a token's own position, -inf behind it.

    ``positions``: (rows, tokens). ``shared``: heads that share a key. The shape is that of the
    grouped queries of `slot_attention`, (rows or slots, 1, shared * tokens, columns).
    """
    if places.in_all:  # a slot without a row sees its first column, and nobody looks at the outcome
        of_all = positions.new_zeros(slots, positions.shape[1])
        of_all[places.slots] = positions
        positions = of_all
    columns = torch.arange(places.length, device=positions.device)
    hidden = columns > positions.repeat(1, shared)[:, None, :, None]
    return torch.zeros(hidden.shape, dtype=dtype, device=positions.device).masked_fill_(
        hidden, float("-inf")
    )


# ---- the stream ----


@dataclass
class _Slot:
    """A slot, and the tokens whose keys and values it holds."""

    number: int
    ids: list[int] = field(default_factory=list)


@dataclass
class _Answer:
    """An answer that is being written."""

    request: Request
    slot: _Slot
    numbers: random.Random
    """Where its random numbers come from: nobody else draws there."""
    completion: Completion = field(default_factory=lambda: Completion([], []))

    @property
    def unread(self) -> list[int]:
        """The tokens whose keys and values are not in the slot yet."""
        return [*self.request.prompt, *self.completion.ids][len(self.slot.ids) :]


class SlotStream:
    """A `helpers.policy.streams.Stream` of a transformers model, which is left as it was."""

    def __init__(self, model: PreTrainedModel, eos: int, pad: int, sampling: Sampling) -> None:
        self.model = model
        self.eos = eos
        self.pad = pad
        self.sampling = sampling
        config = model.config
        self._shared = config.num_attention_heads // config.num_key_value_heads
        self._cache = SlotCache()
        self._slots: dict[int, _Slot] = {}  # by lane
        self._waiting: list[Request] = []
        self._writing: list[_Answer] = []
        ALL_ATTENTION_FUNCTIONS.register(ATTENTION, slot_attention)

    @property
    def has_new(self) -> bool:
        """Whether the next step begins to read a prompt."""
        return bool(self._waiting)

    def add(self, request: Request) -> None:
        """As `Stream.add`."""
        self._waiting.append(request)

    def step(self) -> list[tuple[Request, Completion]]:
        """As `Stream.step`: new prompts are read, then each answer gets a token."""
        waiting, self._waiting = self._waiting, []
        with computing(self.model):
            while waiting:
                begun, waiting = self._begin(waiting)
                for part in _parts(begun):
                    self._write(part)
                self._writing += begun
            if self._writing:
                self._write([answer for answer in self._writing if not self._is_done(answer)])
        done = [answer for answer in self._writing if self._is_done(answer)]
        self._writing = [answer for answer in self._writing if not self._is_done(answer)]
        return [(answer.request, answer.completion) for answer in done]

    def close(self) -> None:
        """As `Stream.close`; the memory of the slots is given back."""
        self._waiting.clear()
        self._writing.clear()
        self._slots.clear()
        self._cache = SlotCache()

    # Reading ------------------------------------------------------------------------------------

    def _begin(self, requests: list[Request]) -> tuple[list[_Answer], list[Request]]:
        """Begin requests; returns their answers, and the requests that rather wait for those.

        What shares much with a prompt that is about to be read waits until it can be copied.
        """
        now: list[_Answer] = []
        later: list[Request] = []
        for request in requests:
            source = max(
                self._slots.values(),
                key=lambda slot: length_in_common(slot.ids, request.prompt),
                default=_Slot(-1),
            )
            known = length_in_common(source.ids, request.prompt)
            soon = max((length_in_common(a.request.prompt, request.prompt) for a in now), default=0)
            if soon > known + WORTH_WAITING:
                later.append(request)
            else:
                now.append(self._take_slot(request, source, known))
        return now, later

    def _take_slot(self, request: Request, source: _Slot, known: int) -> _Answer:
        """Begin a request in the slot of its lane, with the first ``known`` tokens of another."""
        slot = self._slots.setdefault(request.lane, _Slot(len(self._slots)))
        longest = len(request.prompt) + self.sampling.max_tokens
        self._cache.reserve(len(self._slots), longest)
        # The last token is read in any case: what comes after it is what is sampled.
        known = min(known, len(request.prompt) - 1)
        if source is not slot and known:
            self._cache.copy(source.number, slot.number, known)
        slot.ids = request.prompt[:known]
        return _Answer(request, slot, random.Random(request.seed))

    # Writing ------------------------------------------------------------------------------------

    def _write(self, answers: Sequence[_Answer]) -> None:
        """Read what is unread of each answer, and add a token to it."""
        if not answers:
            return
        logits = self._logits_after(answers)
        logprobs = token_logprobs(logits.float(), self.sampling.temperature, self.sampling.top_k)
        if self.sampling.temperature > 0:
            numbers = [answer.numbers.random() for answer in answers]
            tokens = pick(logprobs, logprobs.new_tensor(numbers, dtype=torch.double))
        else:
            tokens = logprobs.argmax(-1)
        chosen = logprobs.gather(1, tokens[:, None])[:, 0]
        for answer, token, value in zip(answers, tokens.tolist(), chosen.tolist(), strict=True):
            answer.completion.ids.append(token)
            answer.completion.logprobs.append(value)

    def _is_done(self, answer: _Answer) -> bool:
        ids = answer.completion.ids
        return ids[-1] == self.eos or len(ids) == self.sampling.max_tokens

    def _logits_after(self, answers: Sequence[_Answer]) -> Tensor:
        """One forward pass over what is unread: logits (answers, vocabulary) for the next token."""
        unread = [answer.unread for answer in answers]
        width = max(map(len, unread))
        tokens, positions = [], []
        for answer, ids in zip(answers, unread, strict=True):
            padding = width - len(ids)
            first = len(answer.slot.ids)
            tokens.append([self.pad] * padding + ids)
            positions.append([-1] * padding + list(range(first, first + len(ids))))
            answer.slot.ids = answer.slot.ids + ids
        return self._forward([answer.slot.number for answer in answers], tokens, positions)

    def _forward(
        self, slots: list[int], tokens: list[list[int]], positions: list[list[int]]
    ) -> Tensor:
        """Logits (rows, vocabulary) after the last token of each row; position -1 is padding."""
        device = self.model.device
        at = torch.tensor(positions, device=device)
        places = Places(
            slots=torch.tensor(slots, device=device),
            columns=at.where(at >= 0, self._cache.columns - 1),
            length=int(at.max()) + 1,
            # Of few slots a copy is cheaper than looking at all of them.
            in_all=len(tokens[0]) == 1 and 3 * len(slots) > self._cache.slots,
        )
        at = at.clamp(min=0)
        self._cache.places = places
        output = self.model(
            torch.tensor(tokens, device=device),
            attention_mask=_mask(places, self._cache.slots, at, self._shared, self.model.dtype),
            position_ids=at,
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=1,
            places=places,
        )
        return output.logits[:, -1]


def _parts(answers: list[_Answer]) -> Iterator[list[_Answer]]:
    """Answers that are read in one forward pass: about as long as each other, and not too many."""
    lengths = [len(answer.unread) for answer in answers]
    for part in split_lengths(lengths, MOST_TOKENS, MOST_PADDING):
        yield [answers[row] for row in part]


def pick(logprobs: Tensor, numbers: Tensor) -> Tensor:
    """The token (rows) at which the probabilities of ``logprobs`` (rows, vocabulary), added up,
    pass the number of the row, which is from 0 to 1: one random number samples one token."""
    passed = logprobs.double().exp().cumsum(-1)
    numbers = numbers * passed[:, -1]
    return (passed <= numbers[:, None]).sum(-1)


@contextmanager
def computing(model: PreTrainedModel) -> Iterator[None]:
    """The model as a stream wants it: not training, without gradients, with `slot_attention`."""
    was_training = model.training
    attention = model.config._attn_implementation
    model.eval()
    model.config._attn_implementation = ATTENTION
    try:
        with torch.inference_mode():
            yield
    finally:
        model.config._attn_implementation = attention
        model.train(was_training)
