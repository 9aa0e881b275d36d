"""Pictures of pages: how a record keeps them, and how far two of them are apart."""

import base64
import io
from collections.abc import Sequence

import numpy as np
from PIL import Image

VISIBLE = 16  # levels of 255: a pixel that differs by more can be told apart by eye
CARET_WIDTH, CARET_HEIGHT = 3, 49  # pixels of the widest and of the tallest one (simple-algebra's)

# (height, width, 3), 8 bits; the elements' type says nothing about the shape.
Picture = np.ndarray


def read_picture(png: bytes) -> Picture:
    """The pixels of a PNG (or of any other picture file)."""
    with Image.open(io.BytesIO(png)) as image:
        return np.array(image.convert("RGB"))


def pack(pictures: Sequence[Picture]) -> str:
    """The pictures of one episode, all of one size, as base64 of one lossless WebP: one below the
    other, for those of an episode have most of their pixels in common."""
    with io.BytesIO() as file:
        image = Image.fromarray(np.concatenate(pictures))
        image.save(file, "WEBP", lossless=True, quality=100, method=4)
        return base64.b64encode(file.getvalue()).decode()


def unpack(packed: str, count: int) -> list[Picture]:
    """Back from `pack`: ``count`` pictures."""
    return np.split(read_picture(base64.b64decode(packed)), count)


def differing_share(first: Picture, second: Picture, levels: int = VISIBLE) -> float:
    """The share of pixels that can be told apart: any of their colours differs by more than
    ``levels``. 1.0 where the sizes differ, and 0.0 where the difference is a caret, which blinks:
    of two recordings of stock BrowserGym it is nearly all that differs."""
    if first.shape != second.shape:
        return 1.0
    apart = np.abs(first.astype(np.int16) - second.astype(np.int16)).max(axis=2) > levels
    return 0.0 if _is_a_caret(apart) else float(apart.mean())


def _is_a_caret(apart: np.ndarray) -> bool:
    """Whether the pixels that are True lie in one upright line."""
    rows, columns = apart.nonzero()
    if not len(rows):
        return True
    width = columns.max() - columns.min() + 1
    height = rows.max() - rows.min() + 1
    return bool(width <= CARET_WIDTH and height <= CARET_HEIGHT)
