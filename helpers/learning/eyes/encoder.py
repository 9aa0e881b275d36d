"""The first lesson: what stands in each square of a page.

The language model takes no part in it, which makes it cheap. Each square becomes a vector that lies
near the words for what is drawn there ("large", "red", "circle", and where), among the word vectors
that the language model reads: so it finds in a picture what it knows from texts.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from helpers.learning.eyes.pages import KeptPages, kind_of, size_of, square_of, squares_of
from helpers.policy.eyes import TOKENS

if TYPE_CHECKING:
    from PIL.Image import Image
    from transformers import (
        LlavaForConditionalGeneration,
        LlavaProcessor,
        PreTrainedTokenizerBase,
    )

NOTHING = "nothing"
COLOURS = (
    *("red", "green", "blue", "aqua", "black", "magenta", "yellow", "olive", "lime", "white"),
    *("grey", "purple", "orange", "cyan", "pink"),
)
GLYPHS = "qwertyuiopasdfghjklzxcvbnmQWERTYUIOPASDFGHJKLZXCVBNM1234567890"
GROUPS: dict[str, tuple[str, ...]] = {
    "kind": (
        *(NOTHING, "circle", "rectangle", "triangle", "letter", "digit", "box", "button"),
        *("square", "pentagon", "hexagon", "heptagon"),
    ),
    "colour": (NOTHING, *COLOURS),
    "size": (NOTHING, "large", "small"),
    "text": (NOTHING, *GLYPHS),
}
# Of the middle of what is drawn, counted in squares. Words, too: vectors that are drawn at random
# would do to tell places apart, and the language model would not learn to read them.
PLACES: dict[str, tuple[str, ...]] = {
    "column": ("one", "two", "three", "four", "five", "six", "seven", "eight"),
    "row": ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"),
}
SHARPNESS = 10.0  # of a choice between words: of two vectors' cosine, -1 to 1


def labels_of(pages: KeptPages, n: int) -> np.ndarray:
    """For each square of a page the number of the word in each group, then column and row, 0 where
    nothing is drawn: (64, 6) whole numbers."""
    found = np.zeros((TOKENS, len(GROUPS) + len(PLACES)), dtype=np.int64)
    for thing in pages.drawn[n]:
        words = {
            "kind": kind_of(thing),
            "colour": thing.colour,
            "size": size_of(thing),
            "text": thing.text,
        }
        if not words["kind"]:
            continue
        squares = squares_of(thing)
        place = square_of(thing)
        for square in squares:
            for column, (group, choices) in enumerate(GROUPS.items()):
                word = words[group]
                found[square, column] = choices.index(word) if word in choices else 0
            found[square, -2:] = place
    return found


@dataclass
class Dictionary:
    """The vectors that the squares shall lie near."""

    groups: list[Tensor]
    """One (words of the group, width) for each of `GROUPS` and `PLACES`."""

    @classmethod
    def of(
        cls, model: LlavaForConditionalGeneration, tokenizer: PreTrainedTokenizerBase
    ) -> Dictionary:
        """The vectors of a policy."""
        table = cast(Tensor, model.get_input_embeddings().weight).detach().float()

        def vector(word: str) -> Tensor:
            text = word if len(word) == 1 and not word.isalpha() else f" {word}"
            ids = cast("list[int]", tokenizer(text, add_special_tokens=False)["input_ids"])
            return table[ids].mean(0)

        return cls(
            [
                torch.stack([vector(word) for word in group])
                for group in (*GROUPS.values(), *PLACES.values())
            ]
        )


def pixel_values(pixels: np.ndarray) -> Tensor:
    """Pictures (n, 160, 160, 3) of 8 bits as the encoder reads them: (n, 3, 160, 160), -1 to 1."""
    return torch.from_numpy(pixels.astype(np.float32) / 127.5 - 1).permute(0, 3, 1, 2).contiguous()


def batches(
    sets: Sequence[KeptPages], size: int, draw: random.Random
) -> Iterator[tuple[Tensor, Tensor]]:
    """Pictures and labels of ``size`` pages without end, of all tasks alike."""
    known: dict[tuple[int, int], np.ndarray] = {}
    while True:
        chosen = []
        for _ in range(size):
            which = draw.randrange(len(sets))
            chosen.append((which, draw.randrange(len(sets[which]))))
        for key in chosen:
            if key not in known:
                known[key] = labels_of(sets[key[0]], key[1])
        pixels = np.stack([sets[which].pixels[n] for which, n in chosen])
        yield pixel_values(pixels), torch.from_numpy(np.stack([known[key] for key in chosen]))


def tokens_of(model: LlavaForConditionalGeneration, pixels: Tensor) -> Tensor:
    """What stands for each square in the language model: (n, 64, width)."""
    seen = cast(Any, model).get_image_features(pixels, return_dict=True).pooler_output
    return torch.stack(list(seen))


def choices(tokens: Tensor, dictionary: Dictionary) -> list[Tensor]:
    """How near the tokens (n, width) are to each word of each group, as logits."""
    directions = normalize(tokens, dim=-1)
    return [SHARPNESS * 3 * directions @ normalize(group, dim=-1).T for group in dictionary.groups]


def lesson_loss(tokens: Tensor, labels: Tensor, dictionary: Dictionary) -> Tensor:
    """Cross-entropy of the right words; squares with nothing in them count as much as the others
    together, and of them only that they are empty."""
    tokens = tokens.flatten(0, 1)
    labels = labels.flatten(0, 1)
    full = labels[:, 0] > 0
    said = choices(tokens, dictionary)
    loss = torch.zeros(())
    for column, logits in enumerate(said):
        loss = loss + cross_entropy(logits[full], labels[full, column])
    loss = loss + cross_entropy(said[0][~full], labels[~full, 0])
    target = sum(group[labels[full, i]] for i, group in enumerate(dictionary.groups))
    # Vectors of the length of a few words, lest the language model reads them as it reads none.
    norms = tokens.norm(dim=-1)
    return loss + 0.1 * (norms - cast(Tensor, target).norm(dim=-1).mean()).square().mean()


def accuracy(tokens: Tensor, labels: Tensor, dictionary: Dictionary) -> dict[str, tuple[int, int]]:
    """For each group: in how many squares that are not empty the nearest word is right, and of how
    many; where a group has no word for what is drawn it is not counted."""
    tokens, labels = tokens.flatten(0, 1), labels.flatten(0, 1)
    full = labels[:, 0] > 0
    counts = {}
    for column, (name, logits) in enumerate(
        zip((*GROUPS, *PLACES), choices(tokens[full], dictionary), strict=True)
    ):
        right = logits.argmax(-1) == labels[full, column]
        counted = (labels[full, column] > 0) if name in GROUPS else torch.ones_like(right)
        counts[name] = (int((right & counted).sum()), int(counted.sum()))
    return counts


def named(
    model: LlavaForConditionalGeneration, processor: LlavaProcessor, page: Image
) -> list[str]:
    """What each of the 64 squares of a page (160 x 160 pixels) says, in the words that it lies
    nearest to, such as "large red circle"; empty where it says that there is nothing."""
    dictionary = Dictionary.of(model, processor.tokenizer)
    with torch.inference_mode():
        squares = tokens_of(model, pixel_values(np.array(page)[None]))[0]
        nearest = [logits.argmax(-1).tolist() for logits in choices(squares, dictionary)]
    words: dict[str, list[str]] = {
        group: ["" if n == 0 else GROUPS[group][n] for n in numbers]
        for group, numbers in zip(GROUPS, nearest, strict=False)
    }
    said = zip(words["size"], words["colour"], words["kind"], words["text"], strict=True)
    return [
        " ".join(word for word in each if word) if words["kind"][square] else ""
        for square, each in enumerate(said)
    ]
