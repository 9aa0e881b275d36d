"""Token ids in, token ids and logprobs out: one call for one prompt or two hundred, with vLLM or with transformers.

Both generators sample from the plain softmax (temperature 1, no top-k, no top-p unless asked), because the logprobs they
return are what the importance-sampling correction of the trainer divides by.
"""

import os
import sys
from typing import Any

from helpers.policy.generators import Completion, GenerationError, common_prefix
from helpers.settings.machine import vllm_problem


class VLLMGenerator:
    """Sampling with vLLM: ``llm`` is a standalone_generator engine (`start_vllm`) or the trainer's (``trainer.vllm_generation.llm``)."""

    def __init__(self, llm: Any):
        self.llm = llm

    def generate(
        self, prompts: list[list[int]], max_tokens: int, temperature: float = 1.0, top_k: int = 0
    ) -> list[Completion]:
        from vllm import SamplingParams

        if not prompts:
            return []
        # vLLM reuses a prefix only once it is in its cache, not within one batch: what prompts share is computed first.
        unique = list(dict.fromkeys(map(tuple, prompts)))
        shared = common_prefix(unique) if len(unique) > 1 else 0
        first = SamplingParams(max_tokens=1)
        for ahead in (
            [unique[0][:shared]] if shared else [],
            unique if 2 * len(unique) <= len(prompts) else [],
        ):
            if ahead:
                self.llm.generate(
                    [{"prompt_token_ids": list(p)} for p in ahead], first, use_tqdm=False
                )
        sampling = SamplingParams(
            max_tokens=max_tokens, temperature=temperature, top_k=top_k, logprobs=0
        )
        outputs = self.llm.generate(
            [{"prompt_token_ids": list(p)} for p in prompts], sampling, use_tqdm=False
        )
        return [
            Completion(
                list(o.outputs[0].token_ids),
                [
                    step[t].logprob
                    for t, step in zip(o.outputs[0].token_ids, o.outputs[0].logprobs, strict=True)
                ],
            )
            for o in outputs
        ]


class VLLMServerGenerator:
    """Sampling with a vLLM server on GPUs of its own, started with ``trl vllm-serve``; ``url``: where it answers."""

    def __init__(self, url: str):
        from trl.generation.vllm_client import VLLMClient

        self.client = VLLMClient(base_url=url)

    def generate(
        self, prompts: list[list[int]], max_tokens: int, temperature: float = 1.0, top_k: int = 0
    ) -> list[Completion]:
        answer = self.client.generate(
            prompts, max_tokens=max_tokens, temperature=temperature, top_k=top_k
        )
        return [
            Completion(ids, [sampled for sampled, *_ in logprobs])
            for ids, logprobs in zip(answer["completion_ids"], answer["logprobs"], strict=True)
        ]


class _StdoutWithFileno:
    """A notebook's stdout with the ``fileno`` that vLLM asks for; what is written still goes to the notebook."""

    def __init__(self, stream: Any):
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def fileno(self) -> int:
        return sys.__stdout__.fileno() if sys.__stdout__ else 1


def prepare_vllm() -> None:
    """Set what vLLM needs before it is imported or started; safe to call twice."""
    os.environ.setdefault(
        "VLLM_ENABLE_V1_MULTIPROCESSING", "0"
    )  # the engine lives in this process, next to the trainer
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")  # GB
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    try:
        sys.stdout.fileno()
    except Exception:  # a notebook kernel's stdout has none
        sys.stdout = _StdoutWithFileno(sys.stdout)


def start_vllm(
    path: str, dtype: str = "float32", max_model_len: int = 2048, gpu_memory: float = 0.3
) -> VLLMGenerator:
    """Start a standalone_generator vLLM engine on a policy's folder or Hub id; takes 10 to 60 s.

    Raises `GenerationError` where vLLM is not there or does not start.
    """
    if problem := vllm_problem():
        raise GenerationError(problem)
    prepare_vllm()
    try:
        from vllm import LLM

        return VLLMGenerator(
            LLM(
                model=path,
                dtype=dtype,
                max_model_len=max_model_len,
                gpu_memory_utilization=gpu_memory,
                max_num_seqs=64,
                max_num_batched_tokens=4096,
                logprobs_mode="processed_logprobs",
                **engine_settings(),
            )
        )
    except Exception as error:
        raise GenerationError(
            f"vLLM did not start ({str(error).splitlines()[0][:160]}): set COURSE_GENERATOR=transformers to "
            "go on without it."
        ) from error


def engine_settings() -> dict[str, Any]:
    """What every vLLM engine of the course is started with: on a CPU without compiling, which takes longer than it saves, and
    with the smallest cache blocks that its attention takes, so that more of a shared prompt is reused."""
    import torch

    on_cpu = {} if torch.cuda.is_available() else {"enforce_eager": True, "block_size": 32}
    return {"use_tqdm_on_load": False} | on_cpu
