"""Which generator samples the answers: the trainer's own, or one outside of a trainer."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from helpers.policy.generators import Generator, TransformersGenerator
from helpers.policy.loading import load_policy
from helpers.policy.vllm_engine import (
    MODEL_LENGTH,
    VLLMGenerator,
    cache_beside_nothing,
    start_vllm,
)
from helpers.policy.vllm_server import VLLMServerGenerator

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase
    from trl import GRPOConfig, GRPOTrainer

    from helpers.settings.profiles import Profile


def trainer_generator(trainer: GRPOTrainer, tokenizer: PreTrainedTokenizerBase) -> Generator:
    """The generator of a trainer: its colocated vLLM engine, its vLLM server, or its own model."""
    if not trainer.use_vllm:
        model = trainer.accelerator.unwrap_model(trainer.model)
        return TransformersGenerator(model, tokenizer)
    if trainer.vllm_mode == "server":
        settings = cast("GRPOConfig", trainer.args)
        return VLLMServerGenerator(cast(str, settings.vllm_server_base_url))
    return VLLMGenerator(trainer.vllm_generation.llm)


def standalone_generator(
    name: str, profile: Profile, max_length: int = 0
) -> tuple[PreTrainedTokenizerBase, Generator]:
    """Tokenizer and generator of a policy outside a trainer, as the profile's ``generator`` says.

    ``name``: see `helpers.policy.loading.policy_path`. ``max_length``: tokens of the longest
    episode, where it is longer than `MODEL_LENGTH`. Raises `PolicyError` and `GenerationError`.
    """
    with_vllm = profile.generator == "vllm"
    policy = load_policy(name, profile.dtype, profile.device, weights=not with_vllm)
    if with_vllm:
        length = max(MODEL_LENGTH, max_length)
        room = cache_beside_nothing(profile.memory_gb)
        engine = start_vllm(policy.path, profile.vllm_dtype, length, cpu_cache_gb=room)
        return policy.tokenizer, engine
    return policy.tokenizer, TransformersGenerator(policy.model, policy.tokenizer)
