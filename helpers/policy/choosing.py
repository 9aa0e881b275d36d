"""Plays many episodes at once: one generation call per turn for all that are alive, the browsers stepped in parallel."""

from typing import Any

from helpers.policy.generators import Generator, TransformersGenerator
from helpers.policy.loading import load_policy
from helpers.policy.vllm_engine import VLLMGenerator, VLLMServerGenerator, start_vllm


def trainer_generator(trainer: Any, tokenizer: Any) -> Generator:
    """The generator of a trainer: its colocated vLLM engine, its vLLM server, or its own model."""
    if trainer.use_vllm and trainer.vllm_mode == "server":
        return VLLMServerGenerator(trainer.args.vllm_server_base_url)
    if trainer.use_vllm:
        return VLLMGenerator(trainer.vllm_generation.llm)
    return TransformersGenerator(trainer.accelerator.unwrap_model(trainer.model), tokenizer)


def standalone_generator(name: str, profile):
    """Tokenizer and generator of a policy outside a trainer: vLLM where the profile says so, transformers elsewhere."""
    policy = load_policy(name, profile.dtype, profile.device, weights=profile.generator != "vllm")
    return policy.tokenizer, (
        TransformersGenerator(policy.model, policy.tokenizer)
        if policy.model is not None
        else start_vllm(policy.path, profile.dtype)
    )
