"""Pages without end, kept on disk as arrays, with what is drawn in each square of them.

Drawn once (`helpers.browser.sheets`), a page is read in no time, so no browser runs while a policy
learns to see.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from helpers.browser.sheets import Drawn, draw_pages
from helpers.output import Progress
from helpers.policy.eyes import BELOW_THE_GOAL, PATCH, SIDE
from helpers.settings.files import write_whole

LEFT, TOP, RIGHT, BOTTOM = BELOW_THE_GOAL
GRID = SIDE // PATCH  # squares in a row, and in a column
# What SVG and HTML name otherwise than the goals of the tasks.
KINDS = {"rect": "rectangle", "polygon": "triangle", "circle": "circle", "div": "box"}
# What count-sides draws on a canvas, by the number of its lines.
POLYGONS = {"3": "triangle", "4": "square", "5": "pentagon", "6": "hexagon", "7": "heptagon"}
LARGE = 14  # pixels of height; of two sizes of a letter 11 is the small one, of a shape 10


@dataclass(frozen=True)
class KeptPages:
    """Pages of one task, with their pictures in one array."""

    task: str
    goals: list[str]
    drawn: list[list[Drawn]]
    pixels: np.ndarray
    """(n, 160, 160, 3), 8 bits, below the goal; read from disk as it is wanted."""

    def __len__(self) -> int:
        return len(self.goals)


def kept_pages(folder: Path, task: str, seeds: Sequence[int]) -> KeptPages:
    """The first page of an episode with each of the seeds, drawn at the first call.

    They stand in ``folder`` under the task's name and the first seed; 1,000 pages take 77 MB.
    """
    stem = folder / f"{task}-{seeds[0]}-{len(seeds)}"
    if not stem.with_suffix(".json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        _draw(stem, task, seeds)
    rows = json.loads(stem.with_suffix(".json").read_text())
    drawn = [[Drawn(**{**each, "box": tuple(each["box"])}) for each in row[1]] for row in rows]
    pixels = np.load(stem.with_suffix(".npy"), mmap_mode="r")
    return KeptPages(task, [row[0] for row in rows], drawn, pixels)


def _draw(stem: Path, task: str, seeds: Sequence[int]) -> None:
    """Write the pictures, then what is drawn in them: pages that have both are whole."""
    rows = []
    shape = (len(seeds), SIDE, SIDE, 3)
    pixels = np.lib.format.open_memmap(stem.with_suffix(".npy"), "w+", np.uint8, shape)
    with Progress(len(seeds), f"pages of {task}") as progress:
        for n, page in enumerate(draw_pages(task, seeds)):
            pixels[n] = page.pixels[TOP:BOTTOM, LEFT:RIGHT]
            rows.append([page.goal, [asdict(each) for each in page.drawn]])
            progress.reach(n + 1)
    pixels.flush()
    write_whole(stem.with_suffix(".json"), json.dumps(rows))


# ---- what is drawn, in words ----


def kind_of(thing: Drawn) -> str:
    """What a goal calls it: a kind of shape, "letter", "digit", "button"; "" for what is none."""
    if thing.tag == "text":
        return "digit" if thing.text.isdigit() else "letter"
    if thing.tag == "canvas":
        return POLYGONS.get(thing.text, "")
    return "button" if thing.tag == "button" else KINDS.get(thing.tag, "")


def size_of(thing: Drawn) -> str:
    """ "large" or "small"."""
    return "large" if thing.box[3] > LARGE else "small"


def square_of(thing: Drawn) -> tuple[int, int]:
    """Column and row of the square that its middle lies in."""
    x, y = thing.middle
    return min(int(x - LEFT) // PATCH, GRID - 1), min(max(int(y - TOP) // PATCH, 0), GRID - 1)


def squares_of(thing: Drawn) -> list[int]:
    """The squares that it is drawn in: those whose middle it covers, and the one of its own middle.

    Counted row by row from the top left."""
    x, y, width, height = thing.box
    middle_x, middle_y = thing.middle
    found = {(int((middle_y - TOP) // PATCH), int((middle_x - LEFT) // PATCH))}
    for row in range(GRID):
        for column in range(GRID):
            inside = x <= LEFT + (column + 0.5) * PATCH < x + width
            if inside and y <= TOP + (row + 0.5) * PATCH < y + height:
                found.add((row, column))
    return sorted(r * GRID + c for r, c in found if 0 <= r < GRID and 0 <= c < GRID)
