"""The pictures in media/: made by code that is here, small, readable on light and dark, and shown to readers."""

import ast
import re
import statistics
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from helpers.settings.paths import ROOT

PICTURES = sorted(path for path in (ROOT / "media").iterdir())
ANIMATED = {"browser_control_text", "browser_control_marks", "four_rollouts", "trained_policy"}


def made_by_code():
    """The names of PICTURES in tools/make_media.py, which is run by `make media`."""
    tree = ast.parse((ROOT / "scripts" / "make_media.py").read_text(encoding="utf-8"))
    table = next(
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PICTURES"
    )
    return {name.id for name in table.generators[0].iter.elts}


def frames(path):
    with Image.open(path) as image:
        for i in range(getattr(image, "n_frames", 1)):
            image.seek(i)
            yield image.info.get("duration", 0), np.asarray(image.convert("RGBA"))


def test_every_picture_is_made_by_code_and_every_function_has_its_picture():
    assert {path.stem for path in PICTURES} == made_by_code()
    assert {path.suffix for path in PICTURES} == {".png", ".gif"}
    assert {path.stem for path in PICTURES if path.suffix == ".gif"} == ANIMATED


@pytest.mark.parametrize("name", ["README.md", "README_zh.md"])
def test_every_picture_is_shown_with_words(name):
    shown = {
        Path(source).name: alt
        for alt, source in re.findall(
            r"!\[([^\]]*)\]\((media/[^)\s]+)\)", (ROOT / name).read_text(encoding="utf-8")
        )
    }
    assert set(shown) == {path.name for path in PICTURES}
    for source, alt in shown.items():
        words = (
            len(alt.split())
            if name == "README.md"
            else len(re.findall(r"[\u4e00-\u9fff]", alt)) / 1.6
        )
        assert 7 <= words <= 25, (source, alt)


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_pictures_are_small_and_stand_on_a_card_of_their_own(path):
    assert path.stat().st_size < 300_000
    for _, pixels in frames(path):
        edge = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
        assert (
            edge[:, 3] == 255
        ).all()  # a page in dark mode does not shine through behind dark letters
        assert statistics.median(edge[:, :3].mean(axis=1)) > 240
        assert (pixels[..., :3].max(axis=-1) < 90).mean() > 0.002  # letters


@pytest.mark.parametrize("name", sorted(ANIMATED))
def test_animations_move_slowly_and_for_ever(name):
    path = ROOT / "media" / f"{name}.gif"
    with Image.open(path) as image:
        assert image.info["loop"] == 0
    times, images = zip(*frames(path), strict=True)
    assert len(images) >= 4 and all(700 <= ms <= 6_000 for ms in times) and sum(times) <= 60_000
    assert all((one != other).any() for one, other in zip(images, images[1:], strict=False))
