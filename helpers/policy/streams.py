"""Answers one by one: a request goes in when its page is there, its answer comes out when it is
written.

`helpers.policy.generators` answers all prompts of a turn in one call, which waits for the slowest
page and for the longest answer. A stream waits for neither: with vLLM it is the engine's own
scheduler (`vllm_stream`), with transformers `slots`. Weights never change while a stream is open,
so what it samples is as much on-policy as what one call samples.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from helpers.policy.completions import Completion


@dataclass(frozen=True)
class Sampling:
    """How all requests of a stream are sampled; the fields are those of `Generator.generate`."""

    max_tokens: int
    temperature: float = 1.0
    top_k: int = 0


@dataclass(frozen=True, eq=False)
class Request:
    """A prompt that waits for its answer."""

    prompt: list[int]
    seed: int
    """Whatever else is in the stream: the same prompt and seed are sampled with the same random
    numbers."""
    lane: int
    """Requests of one lane come one after another, and each mostly begins with the one before it
    and its answer, as the turns of an episode do."""


class Stream(Protocol):
    """Takes requests at any time, and answers each as soon as it can."""

    def add(self, request: Request) -> None:
        """Take a request; it is begun by the next `step`."""
        ...

    def step(self) -> list[tuple[Request, Completion]]:
        """Write about one token of every answer that is being written; returns what is done."""
        ...

    def close(self) -> None:
        """Forget all requests that are not answered. Is called before the weights change."""
        ...


@runtime_checkable
class StreamingGenerator(Protocol):
    """A generator that can answer in a stream as well."""

    def stream(self, sampling: Sampling) -> Stream | None:
        """A new stream; None where this policy can only be answered all together."""
        ...


def request_seed(seed: int, episode: int, turn: int) -> int:
    """The seed of one answer: the same on every machine, whatever is answered before it."""
    return random.Random(f"{seed} {episode} {turn}").getrandbits(63)


def draw_seed() -> int:
    """A seed for a whole rollout, drawn from torch's random numbers, which a trainer has seeded."""
    import torch

    return int(torch.randint(2**62, ()).item())
