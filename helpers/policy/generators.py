"""Token ids in, token ids and logprobs out: one call for one prompt or two hundred, with vLLM or with transformers.

Both generators sample from the plain softmax (temperature 1, no top-k, no top-p unless asked), because the logprobs they
return are what the importance-sampling correction of the trainer divides by.
"""

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass
class Completion:
    """One answer: its token ids (with the end-of-turn token where the policy wrote one) and the logprob of each."""

    ids: list[int]
    logprobs: list[float]


class Generator(Protocol):
    """What a rollout needs. ``temperature`` 0 is greedy; logprobs are then those of temperature 1."""

    def generate(
        self, prompts: list[list[int]], max_tokens: int, temperature: float = 1.0, top_k: int = 0
    ) -> list[Completion]: ...


class GenerationError(RuntimeError):
    """The generator cannot be had; the message is one sentence with the next step."""


def common_prefix(prompts: list[tuple[int, ...]]) -> int:
    """How many tokens all prompts share, one less than the shortest at most (its last token has to be computed anew)."""
    shortest = min(map(len, prompts)) - 1
    first, last = min(prompts), max(prompts)  # the two that differ earliest, as in a dictionary
    return next((i for i in range(shortest) if first[i] != last[i]), shortest)


class TransformersGenerator:
    """Batched sampling with transformers. What prompts share is computed once: the words that all of them begin with, and a
    prompt that a whole group uses. ``model``: any causal language model with a key-value cache."""

    def __init__(self, model: Any, tokenizer: Any):
        self.model, self.eos, self.pad = model, tokenizer.eos_token_id, tokenizer.pad_token_id
        # Short convolutions (LFM2) keep a state that padding between two pieces of a prompt would spoil.
        self.shares_prefix = not getattr(model.config, "layer_types", None) or set(
            model.config.layer_types
        ) <= {"full_attention"}

    def generate(
        self, prompts: list[list[int]], max_tokens: int, temperature: float = 1.0, top_k: int = 0
    ) -> list[Completion]:
        import torch

        if not prompts:
            return []
        was_training = self.model.training
        self.model.eval()
        try:
            with torch.inference_mode():
                return self._generate([tuple(p) for p in prompts], max_tokens, temperature, top_k)
        finally:
            self.model.train(was_training)

    def _prefill(self, prompts: list[tuple[int, ...]]) -> tuple[Any, Any, Any]:
        """Cache, attention mask (n, longest) and last logits (n, vocabulary) for n prompts."""
        import torch

        unique = list(dict.fromkeys(prompts)) if self.shares_prefix else prompts
        device = self.model.device
        shared = common_prefix(unique) if self.shares_prefix and len(unique) > 1 else 0
        cache = None
        if shared:
            cache = self.model(
                torch.tensor([unique[0][:shared]], device=device), use_cache=True, logits_to_keep=1
            )
            cache = cache.past_key_values
            cache.reorder_cache(torch.zeros(len(unique), dtype=torch.long, device=device))
        rest = [p[shared:] for p in unique]
        width = max(map(len, rest))
        ids = torch.tensor([[self.pad] * (width - len(r)) + list(r) for r in rest], device=device)
        mask = torch.tensor(
            [[1] * shared + [0] * (width - len(r)) + [1] * len(r) for r in rest], device=device
        )
        positions = (mask.cumsum(1) - 1).clamp(min=0)[:, shared:]
        out = self.model(
            ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        cache, logits = out.past_key_values, out.logits[:, -1]
        if len(unique) < len(prompts):
            where = {p: i for i, p in enumerate(unique)}
            index = torch.tensor([where[p] for p in prompts], device=device)
            cache.reorder_cache(index)
            mask, logits = mask[index], logits[index]
        return cache, mask, logits

    def _generate(self, prompts, max_tokens, temperature, top_k) -> list[Completion]:
        import torch

        cache, mask, logits = self._prefill(prompts)
        position = mask.sum(1)
        done = torch.zeros(len(prompts), dtype=torch.bool, device=mask.device)
        ids, logprobs, alive = [], [], []
        for step in range(max_tokens):
            token, logprob = self._sample(logits.float(), temperature, top_k)
            token = torch.where(done, self.pad, token)
            ids.append(token), logprobs.append(logprob), alive.append(~done)
            done = done | (token == self.eos)
            if done.all() or step == max_tokens - 1:
                break
            mask = torch.cat([mask, torch.ones_like(mask[:, :1])], dim=1)
            out = self.model(
                token[:, None],
                attention_mask=mask,
                position_ids=position[:, None],
                past_key_values=cache,
                use_cache=True,
            )
            cache, logits, position = out.past_key_values, out.logits[:, -1], position + 1
        lengths = torch.stack(alive, 1).sum(1).tolist()
        rows = zip(
            torch.stack(ids, 1).tolist(), torch.stack(logprobs, 1).tolist(), lengths, strict=True
        )
        return [Completion(i[:n], lp[:n]) for i, lp, n in rows]

    @staticmethod
    def _sample(logits: Any, temperature: float, top_k: int) -> tuple[Any, Any]:
        import torch

        scaled = logits / temperature if temperature > 0 else logits
        if top_k:
            scaled = scaled.masked_fill(scaled < scaled.topk(top_k).values[:, -1:], float("-inf"))
        logprobs = torch.log_softmax(scaled, dim=-1)
        token = (
            torch.multinomial(logprobs.exp(), 1)[:, 0] if temperature > 0 else logprobs.argmax(-1)
        )
        return token, logprobs.gather(1, token[:, None])[:, 0]
