"""Answers one by one with a vLLM engine: requests join the batch that it is computing."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from helpers.policy.completions import Completion
from helpers.policy.streams import Request, Sampling

if TYPE_CHECKING:
    # Not installed everywhere, and the type checker passes there as well.
    from vllm import LLM, RequestOutput  # pyright: ignore[reportMissingImports]


class VLLMStream:
    """Requests to an engine in this process, which nobody else uses meanwhile.

    What prompts have in common is computed once: the engine's cache of prefixes finds it, also
    among requests of the same step.
    """

    def __init__(self, llm: LLM, sampling: Sampling) -> None:
        self.llm = llm
        self.sampling = sampling
        self._open: dict[str, tuple[str, Request]] = {}
        """By the number that answers come with: the engine's own name for it, and the request."""
        self.has_new = False
        """Whether the next step begins to read a prompt."""

    def add(self, request: Request) -> None:
        """As `Stream.add`; the engine's sampling parameters are those of the other generators."""
        # Seconds to import, and not installed everywhere.
        from vllm import SamplingParams  # pyright: ignore[reportMissingImports]

        params = SamplingParams(
            max_tokens=self.sampling.max_tokens,
            temperature=self.sampling.temperature,
            top_k=self.sampling.top_k,
            logprobs=0,
            seed=request.seed,
        )
        prompt: list[Any] = [{"prompt_token_ids": list(request.prompt)}]
        with interrupts_held():
            [name] = self.llm.enqueue(prompt, params, use_tqdm=False)
            number = name.partition("-")[0]  # vLLM 0.29 puts random letters behind it
            self._open[number] = (name, request)
        self.has_new = True

    def step(self) -> list[tuple[Request, Completion]]:
        """As `Stream.step`: one step of the engine."""
        self.has_new = False
        if not self._open:
            return []
        with interrupts_held():
            outputs: list[Any] = self.llm.llm_engine.step()
        answered = []
        for output in outputs:
            if output.finished:
                _, request = self._open.pop(output.request_id)
                answered.append((request, completion(output)))
        return answered

    def close(self) -> None:
        """As `Stream.close`; the engine is then ready for others."""
        names = [name for name, _ in self._open.values()]
        self._open.clear()
        if names:
            self.llm.llm_engine.abort_request(names, internal=True)


def completion(output: RequestOutput) -> Completion:
    """The answer in what vLLM returns for one prompt."""
    answer = output.outputs[0]
    ids = list(answer.token_ids)
    steps: list[Any] = list(answer.logprobs or ())  # of each token, by its id
    logprobs = [step[token].logprob for token, step in zip(ids, steps, strict=True)]
    return Completion(ids, logprobs)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hear of an interrupt (Ctrl-C, the stop button of a notebook) when the block is over.

    A step that was left in its middle would leave an engine that nobody can use again.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # interrupts reach the main thread alone
        return
    came: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda *interrupt: came.append(interrupt))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came and callable(before):
            before(*came[0])
