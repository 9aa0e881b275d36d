"""Token ids in, token ids and logprobs out: one call for one prompt or two hundred.

Here with transformers; with vLLM in `vllm_engine`. What answers one prompt after another, as they
come in, is in `streams`. All generators sample from the plain softmax
(temperature 1, no top-k, no top-p unless asked), because the logprobs they return are what the
importance-sampling correction of the trainer divides by.
"""

# torch takes seconds to import, so it is imported where it computes.
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from helpers.policy.completions import Completion, token_logprobs
from helpers.policy.lengths import length_in_common
from helpers.settings.errors import CourseError

if TYPE_CHECKING:
    from torch import LongTensor, Tensor
    from transformers import Cache, PreTrainedModel, PreTrainedTokenizerBase

    from helpers.policy.slots import SlotStream
    from helpers.policy.streams import Sampling

Prompt = tuple[int, ...]  # token ids; hashable, so that equal prompts can be found


class Generator(Protocol):
    """What a rollout needs of whatever samples the answers."""

    def generate(
        self, prompts: list[list[int]], max_tokens: int, temperature: float = 1.0, top_k: int = 0
    ) -> list[Completion]:
        """One answer of at most ``max_tokens`` for each prompt.

        ``temperature`` 0 is greedy, the logprobs are then those of temperature 1. ``top_k``: sample
        from so many tokens only; 0 is off.
        """
        ...


class GenerationError(CourseError, RuntimeError):
    """The generator cannot be had; the message is one sentence with the next step."""


def common_prefix(prompts: Sequence[Prompt]) -> int:
    """How many tokens all prompts share, one less than the shortest at most.

    A prompt's last token has to be computed for itself: the logits after it are what is sampled.
    """
    first, last = min(prompts), max(prompts)  # the two that differ earliest, as in a dictionary
    return min(length_in_common(first, last), min(map(len, prompts)) - 1)


@dataclass
class _ReadTokens:
    """What the model keeps of the tokens that it has read: one row per sequence."""

    cache: Cache
    mask: Tensor
    """(n, longest): 1 for a token, 0 for padding, which is on the left."""
    logits: Tensor
    """(n, vocabulary): for the token that comes next."""

    def select(self, rows: list[int]) -> _ReadTokens:
        """The given rows, of which one may be wanted several times."""
        import torch

        index = cast("LongTensor", torch.tensor(rows, device=self.mask.device))
        self.cache.reorder_cache(index)
        return _ReadTokens(self.cache, self.mask[index], self.logits[index])


class TransformersGenerator:
    """Batched sampling with transformers.

    What prompts share is computed once: the tokens that all of them begin with, and a prompt that a
    whole group uses. ``model``: any causal language model with a key-value cache.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self.model = model
        self.eos = cast(int, tokenizer.eos_token_id)
        self.pad = cast(int, tokenizer.pad_token_id)
        # Short convolutions (LFM2) keep a state that padding between two pieces of a prompt would
        # spoil.
        config = model.config.get_text_config()
        kinds_of_layers = getattr(config, "layer_types", None) or []
        self.shares_prefix = set(kinds_of_layers) <= {"full_attention"}

    def generate(
        self, prompts: list[list[int]], max_tokens: int, temperature: float = 1.0, top_k: int = 0
    ) -> list[Completion]:
        """As `Generator.generate`; the model is left in the mode (training or not) it was in."""
        import torch

        if not prompts:
            return []
        was_training = self.model.training
        self.model.eval()
        try:
            with torch.inference_mode():
                read = self._read_prompts([tuple(prompt) for prompt in prompts])
                return self._write_answers(read, max_tokens, temperature, top_k)
        finally:
            self.model.train(was_training)

    def stream(self, sampling: Sampling) -> SlotStream | None:
        """As `helpers.policy.streams.StreamingGenerator.stream`; None for a policy whose layers are
        not all attention to everything before."""
        from helpers.policy.slots import FAMILIES, SlotStream

        if not self.shares_prefix or self.model.config.model_type not in FAMILIES:
            return None
        return SlotStream(self.model, self.eos, self.pad, sampling)

    def _read_prompts(self, prompts: list[Prompt]) -> _ReadTokens:
        """Compute each prompt once, and what all of them begin with once."""
        if not self.shares_prefix:
            return self._read_rest(prompts, 0, None)
        unique = list(dict.fromkeys(prompts))
        shared = common_prefix(unique) if len(unique) > 1 else 0
        cache = self._read_shared(unique[0][:shared], len(unique)) if shared else None
        read = self._read_rest([prompt[shared:] for prompt in unique], shared, cache)
        if len(unique) == len(prompts):
            return read
        row_of = {prompt: row for row, prompt in enumerate(unique)}
        return read.select([row_of[prompt] for prompt in prompts])

    def _read_shared(self, prefix: Prompt, n: int) -> Cache:
        """The cache of a prefix, once for each of ``n`` prompts."""
        import torch

        device = self.model.device
        output = self.model(torch.tensor([prefix], device=device), use_cache=True, logits_to_keep=1)
        cache = output.past_key_values
        cache.reorder_cache(torch.zeros(n, dtype=torch.long, device=device))
        return cache

    def _read_rest(self, rest: list[Prompt], shared: int, cache: Cache | None) -> _ReadTokens:
        """Read what follows the ``shared`` tokens that are in the cache already."""
        import torch

        width = max(map(len, rest))
        padding = [width - len(tokens) for tokens in rest]
        rows = [[self.pad] * gap + list(tokens) for gap, tokens in zip(padding, rest, strict=True)]
        masks = [[1] * shared + [0] * gap + [1] * (width - gap) for gap in padding]
        device = self.model.device
        mask = torch.tensor(masks, device=device)
        positions = (mask.cumsum(1) - 1).clamp(min=0)[:, shared:]
        output = self.model(
            torch.tensor(rows, device=device),
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return _ReadTokens(output.past_key_values, mask, output.logits[:, -1])

    def _write_answers(
        self, read: _ReadTokens, max_tokens: int, temperature: float, top_k: int
    ) -> list[Completion]:
        """Sample token after token, for all sequences together, until each has ended."""
        import torch

        ended = torch.zeros(len(read.mask), dtype=torch.bool, device=read.mask.device)
        tokens, logprobs, kept = [], [], []  # a tensor (n,) per step
        for step in range(max_tokens):
            token, logprob = _sample(read.logits.float(), temperature, top_k)
            token = torch.where(ended, self.pad, token)
            tokens.append(token)
            logprobs.append(logprob)
            kept.append(~ended)
            ended = ended | (token == self.eos)
            if ended.all() or step == max_tokens - 1:
                break
            read = self._read_token(read, token)
        lengths = torch.stack(kept, 1).sum(1).tolist()
        rows = zip(
            torch.stack(tokens, 1).tolist(),
            torch.stack(logprobs, 1).tolist(),
            lengths,
            strict=True,
        )
        return [Completion(ids[:length], values[:length]) for ids, values, length in rows]

    def _read_token(self, read: _ReadTokens, token: Tensor) -> _ReadTokens:
        """Read one more token of each sequence."""
        import torch

        position = read.mask.sum(1)
        mask = torch.cat([read.mask, torch.ones_like(read.mask[:, :1])], dim=1)
        output = self.model(
            token[:, None],
            attention_mask=mask,
            position_ids=position[:, None],
            past_key_values=read.cache,
            use_cache=True,
        )
        return _ReadTokens(output.past_key_values, mask, output.logits[:, -1])


def _sample(logits: Tensor, temperature: float, top_k: int) -> tuple[Tensor, Tensor]:
    """A token (n,) of each row of ``logits`` (n, vocabulary), and its logprob."""
    import torch

    logprobs = token_logprobs(logits, temperature, top_k)
    token = torch.multinomial(logprobs.exp(), 1)[:, 0] if temperature > 0 else logprobs.argmax(-1)
    return token, logprobs.gather(1, token[:, None])[:, 0]
