"""vLLM for a policy with eyes: its engine holds the language model, and reads vectors.

vLLM 0.29 has an architecture for Llava, which cannot be imported beside transformers 5. It is not
needed: what reads the pictures is small, and the trainer has it. So the trainer's own encoder, with
the weights of this very update, makes vectors of the squares, and a prompt is handed to the engine
as all the vectors that the language model reads (vLLM's ``prompt_embeds``). Its cache of prefixes
knows vectors that are alike, so a page is read once for its group.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from typing_extensions import override

from helpers.policy.vllm_engine import VLLMGenerator

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
    from trl.generation.vllm_generation import VLLMGeneration
    from vllm import LLM  # pyright: ignore[reportMissingImports]

    from helpers.policy.generators import Prompt
    from helpers.policy.pictures import ReadsPictures

# What an engine needs to be started with; the trainer gives it its weights before the first answer.
SETTINGS = {"enable_prompt_embeds": True, "load_format": "dummy"}
_LANGUAGE_MODEL = "model.language_model."


class VLLMSeeingGenerator(VLLMGenerator):
    """Sampling with an engine, for prompts of `ReadsPictures.numbered`."""

    def __init__(self, llm: LLM, seeing: ReadsPictures) -> None:
        super().__init__(llm)
        self.seeing = seeing

    @override
    def _inputs(self, prompts: list[Prompt]) -> list[Any]:
        import torch

        known: dict[Prompt, Tensor] = {}
        for prompt in prompts:
            if prompt not in known:
                ids = torch.tensor(prompt, device=self.seeing.device)
                known[prompt] = self.seeing.embedded(ids).detach().cpu()
        return [{"prompt_embeds": known[prompt]} for prompt in prompts]


@contextmanager
def language_model_alone(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> Iterator[None]:
    """In this block ``model.name_or_path`` is a folder that an engine for its language model can be
    started with: it has the configuration and the tokenizer, and no weights."""
    from transformers import LlamaConfig

    settings = model.config.get_text_config().to_dict()
    settings["vocab_size"] = cast(Any, model.get_input_embeddings()).num_embeddings
    settings["eos_token_id"] = tokenizer.eos_token_id
    config = LlamaConfig(**settings)
    config.architectures = ["LlamaForCausalLM"]
    before = model.name_or_path
    with tempfile.TemporaryDirectory() as folder:
        config.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        model.name_or_path = folder
        try:
            yield
        finally:
            model.name_or_path = before
            for adapter in getattr(model, "peft_config", {}).values():
                adapter.base_model_name_or_path = before  # PEFT has taken the folder's name


def hand_over_language_model(generation: VLLMGeneration) -> None:
    """Let a trainer give vLLM the weights of its language model, and those alone."""
    every = generation._iter_named_params

    def language_model() -> Generator[tuple[str, Tensor], None, None]:
        for name, weights in every():
            if name.startswith(_LANGUAGE_MODEL):
                yield f"model.{name.removeprefix(_LANGUAGE_MODEL)}", weights

    generation._iter_named_params = language_model
