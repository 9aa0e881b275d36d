"""Many pages at once, drawn side by side on one sheet: what a policy learns to see from.

An episode draws one page at a time, in a tenth of a second. Here one Chromium holds a page of 40
frames, 160 x 210 pixels each, and in each frame MiniWoB's own page of a task; a screenshot of it is
40 pictures. Task and seed give the same page as an episode's reset.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from browsergym.miniwob import ALL_MINIWOB_TASKS
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from helpers.browser.chromium import find_chromium
from helpers.browser.sandbox import launch_sandboxed
from helpers.browser.task_pages import serve_task_pages

COLUMNS = 8
ROWS = 5
PER_SHEET = COLUMNS * ROWS
WIDTH = 160  # pixels of a task's page
HEIGHT = 210

_FRAMES = """([address, count, width, height]) => {
    document.body.innerHTML = "";
    document.body.style.cssText = `margin: 0; width: ${8 * width}px; line-height: 0`;
    const loaded = [...Array(count)].map(() => new Promise(done => {
        const frame = document.createElement("iframe");
        Object.assign(frame, {width, height, scrolling: "no", onload: done, src: address});
        frame.style.cssText = "border: 0; vertical-align: top";
        document.body.append(frame);
    }));
    return Promise.all(loaded).then(() => {});
}"""
# Starts the episodes and says of each what it asks for and what is drawn below its goal. A box is
# x, y, width, height in pixels of the page. A canvas keeps no elements, so the ends of the lines
# are noted while they are drawn: its text is their number, and its box is around them.
_START = """seeds => seeds.map((seed, i) => {
    const {contentWindow: page, contentDocument: document} = window.frames[i].frameElement;
    const canvas = page.CanvasRenderingContext2D.prototype, lineTo = canvas.lineTo, ends = [];
    canvas.lineTo = function(x, y) {
        ends.push(this.getTransform().transformPoint({x, y}));
        lineTo.call(this, x, y);
    };
    page.Math.seedrandom(seed);
    page.core.EPISODE_MAX_TIME = 1e9;
    page.core.startEpisodeReal();
    canvas.lineTo = lineTo;
    const drawn = [];
    for (const element of document.querySelectorAll("#area *")) {
        if (element.children.length) continue;
        let {x, y, width, height} = element.getBoundingClientRect();
        let text = element.textContent.trim();
        if (element.tagName === "CANVAS") {
            const [xs, ys] = [ends.map(end => end.x), ends.map(end => end.y)];
            text = String(ends.length);
            [width, height] = [xs, ys].map(all => Math.max(...all) - Math.min(...all));
            [x, y] = [x + Math.min(...xs), y + Math.min(...ys)];
        }
        const colour = element.getAttribute("fill") || element.dataset.color || "";
        drawn.push({
            tag: element.tagName.toLowerCase(), id: element.id, colour, text,
            box: [x, y, width, height],
        });
    }
    return {goal: page.core.getUtterance(), drawn};
})"""
_NEXT_FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


@dataclass(frozen=True)
class Drawn:
    """One thing that a page shows: an element without others in it."""

    tag: str
    """Its kind in HTML or SVG, such as "circle"."""
    id: str
    colour: str
    """As the page names it; empty where it names none."""
    text: str
    """What is written in it; of a canvas, how many lines it shows."""
    box: tuple[float, float, float, float]
    """x, y, width, height in pixels of the page."""

    @property
    def middle(self) -> tuple[float, float]:
        """x and y in pixels of the page."""
        x, y, width, height = self.box
        return x + width / 2, y + height / 2


@dataclass(frozen=True)
class DrawnPage:
    """A page as it is drawn at the beginning of an episode."""

    task: str
    seed: int
    goal: str
    drawn: tuple[Drawn, ...]
    pixels: np.ndarray
    """(210, 160, 3), 8 bits."""


@contextmanager
def open_browser() -> Iterator[tuple[Browser, str]]:
    """A Chromium of its own, and the address of the task pages; both end with the context."""
    pages = serve_task_pages()
    with sync_playwright() as playwright:

        def launch(sandbox: bool) -> Browser:
            return playwright.chromium.launch(
                executable_path=find_chromium(), headless=True, chromium_sandbox=sandbox
            )

        browser, _ = launch_sandboxed(launch)
        yield browser, f"http://127.0.0.1:{pages.server_port}/miniwob/"
        browser.close()
    pages.shutdown()
    pages.server_close()


def draw_pages(task: str, seeds: Sequence[int]) -> Iterator[DrawnPage]:
    """The first page of an episode of ``task`` with each of the seeds, in their order.

    For a thread without an event loop, as all of Playwright's synchronous calls.
    """
    with open_browser() as (browser, address):
        sheet = browser.new_page(viewport={"width": COLUMNS * WIDTH, "height": ROWS * HEIGHT})
        sheet.goto(f"{address}{task}.html")
        sheet.evaluate(_FRAMES, [f"{address}{task}.html", PER_SHEET, WIDTH, HEIGHT])
        for start in range(0, len(seeds), PER_SHEET):
            yield from _draw_sheet(sheet, task, seeds[start : start + PER_SHEET])


def _draw_sheet(sheet: Page, task: str, seeds: Sequence[int]) -> Iterator[DrawnPage]:
    """At most `PER_SHEET` pages."""
    found = sheet.evaluate(_START, [_seed_of_page(task, seed) for seed in seeds])
    sheet.evaluate(_NEXT_FRAMES)
    with Image.open(io.BytesIO(sheet.screenshot())) as image:
        pixels = np.array(image.convert("RGB"))
    for place, (seed, page) in enumerate(zip(seeds, found, strict=True)):
        row, column = divmod(place, COLUMNS)
        top, left = row * HEIGHT, column * WIDTH
        yield DrawnPage(
            task,
            seed,
            page["goal"],
            tuple(_drawn(each) for each in page["drawn"]),
            pixels[top : top + HEIGHT, left : left + WIDTH].copy(),
        )


def _drawn(found: dict[str, Any]) -> Drawn:
    return Drawn(**{**found, "box": tuple(found["box"])})


def _seed_of_page(task: str, seed: int) -> int:
    """What BrowserGym hands to the page's random numbers in an episode with this seed."""
    tasks = {each.subdomain: each for each in ALL_MINIWOB_TASKS}
    return tasks[task](seed=seed, base_url="http://localhost/").random.randint(0, 1_000_000)
