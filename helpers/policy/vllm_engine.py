"""Sampling with a vLLM engine in this process."""

from __future__ import annotations

import errno
import os
import random
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from helpers.output import hide_other_bars
from helpers.policy.completions import Completion
from helpers.policy.generators import GenerationError, Prompt, common_prefix
from helpers.policy.streams import Sampling
from helpers.policy.vllm_stream import VLLMStream, completion
from helpers.settings.errors import first_line
from helpers.settings.imports import without_collecting
from helpers.settings.machine import vllm_problem

if TYPE_CHECKING:
    # Not installed everywhere, and the type checker passes there as well.
    from vllm import LLM, RequestOutput, SamplingParams  # pyright: ignore[reportMissingImports]


MODEL_LENGTH = 2_048  # tokens of prompt and answer, unless a caller needs more
_PORTS = range(20_000, 32_000)
_RENDEZVOUS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class VLLMGenerator:
    """Sampling with an engine: one of `start_vllm`, or the trainer's."""

    def __init__(self, llm: LLM) -> None:
        self.llm = llm

    def generate(
        self, prompts: list[list[int]], max_tokens: int, temperature: float = 1.0, top_k: int = 0
    ) -> list[Completion]:
        """As `helpers.policy.generators.Generator.generate`."""
        # Seconds to import, and not installed everywhere.
        from vllm import SamplingParams  # pyright: ignore[reportMissingImports]

        if not prompts:
            return []
        every = [tuple(prompt) for prompt in prompts]
        self._fill_cache(every, SamplingParams(max_tokens=1))
        sampling = SamplingParams(
            max_tokens=max_tokens, temperature=temperature, top_k=top_k, logprobs=0
        )
        return [completion(output) for output in self._run(every, sampling)]

    def stream(self, sampling: Sampling) -> VLLMStream:
        """As `helpers.policy.streams.StreamingGenerator.stream`."""
        return VLLMStream(self.llm, sampling)

    def _fill_cache(self, prompts: list[Prompt], one_token: SamplingParams) -> None:
        """Compute what prompts share before they are read.

        vLLM reuses a prefix only once it is in its cache, not within one batch.
        """
        unique = list(dict.fromkeys(prompts))
        shared = common_prefix(unique) if len(unique) > 1 else 0
        if shared:
            self._run([unique[0][:shared]], one_token)
        if 2 * len(unique) <= len(prompts):
            self._run(unique, one_token)

    def _run(self, prompts: list[Prompt], sampling: SamplingParams) -> list[RequestOutput]:
        return self.llm.generate(self._inputs(prompts), sampling, use_tqdm=False)

    def _inputs(self, prompts: list[Prompt]) -> list[Any]:
        """The prompts as the engine takes them."""
        return [{"prompt_token_ids": list(prompt)} for prompt in prompts]


class _StdoutWithFileno:
    """A notebook's stdout with the ``fileno`` that vLLM asks for.

    What is written still goes to the notebook.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def fileno(self) -> int:
        return sys.__stdout__.fileno() if sys.__stdout__ else 1


CPU_CACHE = "VLLM_CPU_KVCACHE_SPACE"  # GB
COMPILE_NOTHING = "TORCH_COMPILE_DISABLE"


def prepare_vllm() -> None:
    """Set what vLLM needs before it is imported or started; safe to call twice."""
    hide_other_bars()
    compile_nothing_on_a_cpu()
    defaults = {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the engine lives in this process, by the trainer
        CPU_CACHE: "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "TRL_EXPERIMENTAL_SILENCE": "1",
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)
    try:
        sys.stdout.fileno()
    except Exception:  # a notebook kernel's stdout has none, and raises an error of its own
        sys.stdout = _StdoutWithFileno(sys.stdout)


def compile_nothing_on_a_cpu() -> None:
    """Let vLLM compile nothing where there is no GPU; has to come before vLLM is imported.

    There, an engine compiles one function, which draws tokens: that takes ten seconds of processor
    time in every process that has an engine, and draws no faster. ``TORCH_COMPILE_DISABLE=0``
    compiles it all the same.
    """
    import torch

    if torch.cuda.is_available():
        return
    os.environ.setdefault(COMPILE_NOTHING, "1")
    compiler = sys.modules.get("torch._dynamo")
    if compiler is not None:  # which has read the variable already
        compiler.config.disable = os.environ[COMPILE_NOTHING] == "1"


@contextmanager
def own_rendezvous() -> Iterator[None]:
    """Give a trainer that is made in this block a port of its own for torch.distributed.

    TRL takes 29500 where it is free at that moment: two runs that start together collide. One that
    the user has set stays. For vLLM it also says in the environment that this process is rank 0 of
    1, and leaves that there: each process that is started later (a command run from a notebook, a
    kernel) would take it for itself, and listen where this one listens. So all is as before
    afterwards.
    """
    before = {name: os.environ.get(name) for name in _RENDEZVOUS}
    os.environ.setdefault("MASTER_PORT", str(free_port()))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def free_port() -> int:
    """A TCP port of this machine that nobody listens on.

    It is not one of those that the system gives to connections (from 32768 on Linux), of which any
    may be taken before the caller listens.

    Raises:
        OSError: a hundred ports are in use.
    """
    for port in random.SystemRandom().sample(_PORTS, 100):
        with socket.socket() as listener:
            try:
                listener.bind(("", port))
            except OSError:
                continue
            return port
    raise OSError(errno.EADDRINUSE, f"No free port in {len(_PORTS):,} from {_PORTS.start}")


def engine_settings() -> dict[str, Any]:
    """What every vLLM engine of the course is started with.

    On a CPU without compiling, which takes longer than it saves, and with the smallest cache blocks
    that its attention takes, so that more of a shared prompt is reused.
    """
    import torch

    settings: dict[str, Any] = {"use_tqdm_on_load": False}
    if not torch.cuda.is_available():
        settings |= {"enforce_eager": True, "block_size": 32}
    return settings


def precision_settings(dtype: str) -> dict[str, Any]:
    """What makes an engine of vLLM sample in a precision: float32, bfloat16 or float16.

    The output head computes in fp32 whatever the layers compute in. A logit of 20 has neighbours
    0.125 away in bf16, so rounding the logits moves the logprobs on top of what the layers do.
    """
    return {"dtype": dtype, "hf_overrides": {"head_dtype": "float32"}}


def cache_beside_nothing(machine_gb: float) -> int:
    """GB for the cache of an engine that has a CPU's memory to itself, as in an evaluation.

    32 episodes of 1,500 tokens are 2 GB of keys and values of smollm2-135m. Where they have no
    room, each page is read again in every later turn of its episode.
    """
    return max(1, min(4, int(machine_gb / 5)))


def start_vllm(
    path: str,
    dtype: str = "float32",
    max_model_len: int = MODEL_LENGTH,
    gpu_memory: float = 0.3,
    cpu_cache_gb: int = 1,
) -> VLLMGenerator:
    """Start a vLLM engine outside of a trainer; takes 10 to 60 s.

    ``path``: a policy's folder or Hub id. ``gpu_memory``: its share of the GPU's memory;
    ``cpu_cache_gb``: on a CPU, the room for keys and values, unless VLLM_CPU_KVCACHE_SPACE says it.
    Raises `GenerationError` where vLLM is not there or does not start.
    """
    problem = vllm_problem()
    if problem:
        raise GenerationError(problem)
    os.environ.setdefault(CPU_CACHE, str(cpu_cache_gb))
    prepare_vllm()
    try:
        with without_collecting():
            # Seconds to import, and `prepare_vllm` goes before.
            from vllm import LLM  # pyright: ignore[reportMissingImports]

            engine = LLM(
                model=path,
                max_model_len=max_model_len,
                gpu_memory_utilization=gpu_memory,
                max_num_seqs=64,
                max_num_batched_tokens=4096,
                logprobs_mode="processed_logprobs",
                **precision_settings(dtype),
                **engine_settings(),
            )
    except Exception as error:
        raise GenerationError(
            f"vLLM did not start ({first_line(error)[:160]}): set "
            "COURSE_GENERATOR=transformers to go on without it."
        ) from error
    return VLLMGenerator(engine)
