"""A policy with eyes as a player of `helpers.episodes.play.play`: it sees a page and names a place.

Each episode has one turn: what it reads is the picture below the goal and the goal, what it writes
is an action such as ``mouse_click(120, 150)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from helpers.episodes.config import RolloutConfig
from helpers.episodes.ledger import POLICY, PROMPT
from helpers.episodes.running import RunningEpisode
from helpers.episodes.tools import picture
from helpers.policy.completions import token_logprobs
from helpers.policy.eyes import looked_at
from helpers.policy.loading import PolicyError
from helpers.policy.prompts import PromptConfig, answer_text, build_messages

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor
    from transformers import BatchFeature, LlavaForConditionalGeneration, LlavaProcessor

SEEING_PROMPT = PromptConfig(actions=("mouse_click",), examples=(), page=False)
MAX_TOKENS = 16  # of an answer: mouse_click(498, 321) has 13


def seeing_config(temperature: float = 0.0) -> RolloutConfig:
    """How a policy with eyes is played: one click, on a small picture."""
    return RolloutConfig(
        max_turns=1,
        max_tokens=MAX_TOKENS,
        temperature=temperature,
        prompt=SEEING_PROMPT,
        screenshots="small",
    )


@dataclass
class Answer:
    """What a policy with eyes wrote, and what it had read."""

    prompt: list[int]
    """Token ids; the image token stands once for each square."""
    ids: list[int]
    logprobs: list[float]
    """Of each token, at temperature 1."""


class SeeingPlayer:
    """A policy with eyes that answers all pages of a turn in one call.

    ``blind``: it is shown white paper in the place of every picture, to see what it needs its eyes
    for. Raises `PolicyError` for a processor that takes no pictures.
    """

    answers_together = True

    def __init__(
        self, model: LlavaForConditionalGeneration, processor: LlavaProcessor, blind: bool = False
    ) -> None:
        if not hasattr(processor, "image_processor"):
            raise PolicyError(
                "This policy has no processor for pictures: use one with eyes, such as "
                "helpers.policy.eyes.policy_with_eyes()."
            )
        self.model = model
        self.processor = processor
        self.blind = blind

    def read(self, running: RunningEpisode) -> None:
        """A page is read when it is answered, together with the others."""

    def answer(self, new: Sequence[RunningEpisode]) -> list[tuple[RunningEpisode, str]]:
        """One answer for each page, all in one call."""
        if not new:
            return []
        encoded = encode_pages(self.processor, new, self.blind)
        answers = write(self.model, self.processor, encoded, new[0].config)
        told = []
        for running, written in zip(new, answers, strict=True):
            running.episode.ledger.append(written.prompt, PROMPT)
            running.episode.ledger.append(written.ids, POLICY, written.logprobs)
            told.append((running, answer_text(self.processor.tokenizer, written.ids)))
        return told


def encode_pages(
    processor: LlavaProcessor, pages: Sequence[RunningEpisode], blind: bool = False
) -> BatchFeature:
    """Prompts and pictures of the pages, padded on the left."""
    processor.tokenizer.padding_side = "left"
    chats = []
    for running in pages:
        seen = looked_at(picture(running.observation))
        chats.append(_chat(running, _covered(seen) if blind else seen))
    encoded = processor.apply_chat_template(
        chats,
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        return_tensors="pt",
        padding=True,
    )
    return cast("BatchFeature", encoded)


def _chat(running: RunningEpisode, seen: Image) -> list[dict[str, Any]]:
    """The conversation before the answer: what a policy without eyes reads, and the picture."""
    *before, last = build_messages(running.observation, running.prompt)
    content = [{"type": "image", "image": seen}, {"type": "text", "text": last["content"]}]
    return [*before, {"role": "user", "content": content}]


def _covered(seen: Image) -> Image:
    """White paper of the same size."""
    from PIL import Image

    return Image.new("RGB", seen.size, "white")


def write(
    model: LlavaForConditionalGeneration,
    processor: LlavaProcessor,
    encoded: BatchFeature,
    config: RolloutConfig,
) -> list[Answer]:
    """An answer to each row of ``encoded``, sampled from the plain softmax, or greedy where the
    temperature is 0."""
    import torch

    model.eval()
    with torch.inference_mode():
        said = cast(Any, model).generate(
            **encoded,
            max_new_tokens=config.max_tokens,
            do_sample=config.temperature > 0,
            temperature=config.temperature or None,
            top_k=0,
            top_p=None,
            output_logits=True,
            return_dict_in_generate=True,
        )
    width = encoded["input_ids"].shape[1]
    logits = torch.stack(said.logits, dim=1).float()  # (rows, tokens, vocabulary)
    return [
        _answer(encoded, row, ids, logits[row], cast(int, processor.tokenizer.eos_token_id))
        for row, ids in enumerate(said.sequences[:, width:].tolist())
    ]


def _answer(encoded: BatchFeature, row: int, ids: list[int], logits: Tensor, end: int) -> Answer:
    """What stands in one row, up to the token that ends it."""
    length = ids.index(end) + 1 if end in ids else len(ids)
    known = encoded["attention_mask"][row].bool()
    logprobs = token_logprobs(logits, 1.0, 0)
    return Answer(
        encoded["input_ids"][row][known].tolist(),
        ids[:length],
        [float(logprobs[place, token]) for place, token in enumerate(ids[:length])],
    )
