"""The pictures in media/: made by code, small, readable on light and dark, and shown to readers."""

import re
import statistics
from pathlib import Path

import numpy as np
import pytest
from documents import CJK, chinese_page, english_pages, read
from PIL import Image

from helpers.settings.paths import ROOT
from tools.make_media import PICTURES as MADE

pytestmark = pytest.mark.docs

PICTURES = sorted((ROOT / "media").iterdir())
ANIMATED = {"browser_control_text", "browser_control_marks", "four_rollouts", "trained_policy"}


def frames(path):
    """(milliseconds, pixels) of each frame."""
    with Image.open(path) as image:
        for i in range(getattr(image, "n_frames", 1)):
            image.seek(i)
            yield image.info.get("duration", 0), np.asarray(image.convert("RGBA"))


def test_every_picture_is_made_by_code_and_every_function_has_its_picture():
    assert {path.stem for path in PICTURES} == set(MADE)
    assert {path.suffix for path in PICTURES} == {".png", ".gif"}
    assert {path.stem for path in PICTURES if path.suffix == ".gif"} == ANIMATED


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_picture_is_shown_once_with_words(language):
    names = english_pages()
    if language == "zh":
        names = [chinese_page(name) for name in names]
    text = "\n".join(read(name) for name in names)
    found = re.findall(r"!\[([^\]]*)\]\((?:\.\./)*(media/[^)\s]+)\)", text)
    assert sorted(Path(source).name for _, source in found) == [path.name for path in PICTURES]
    for alt, source in found:
        # So many Chinese characters say what a word says.
        words = len(alt.split()) if language == "en" else len(CJK.findall(alt)) / 1.6
        assert 7 <= words <= 25, (source, alt)


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_pictures_are_small_and_stand_on_a_card_of_their_own(path):
    assert path.stat().st_size < 300_000
    for _, pixels in frames(path):
        edge = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
        # A page in dark mode does not shine through behind dark letters.
        assert (edge[:, 3] == 255).all()
        assert statistics.median(edge[:, :3].mean(axis=1)) > 240
        assert (pixels[..., :3].max(axis=-1) < 90).mean() > 0.002  # letters


@pytest.mark.parametrize("name", sorted(ANIMATED))
def test_animations_move_slowly_and_for_ever(name):
    path = ROOT / "media" / f"{name}.gif"
    with Image.open(path) as image:
        assert image.info["loop"] == 0
    times, images = zip(*frames(path), strict=True)
    assert len(images) >= 4
    assert all(700 <= milliseconds <= 6_000 for milliseconds in times)
    assert sum(times) <= 60_000
    for one, other in zip(images, images[1:], strict=False):
        assert (one != other).any()
