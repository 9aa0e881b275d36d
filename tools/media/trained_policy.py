"""A recorded policy at work, before and after its training, on the same test pages."""

import textwrap
from dataclasses import dataclass, replace

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from PIL import Image

from helpers.browser import start_browser_server
from helpers.course.figures import BLACK, BLUE, PURPLE, VERMILLION
from helpers.episodes.episode import Episode, read_episodes
from tools.media.drawing import CARD, GLANCE, INK, Box, label, picture, save_gif
from tools.media.pages import draw_page, escaped, one_line, play_again
from tools.recorded import Run, find_runs

EPISODES = 8


@dataclass(frozen=True)
class Moment:
    """One moment of an episode; ``solved`` is None until it is over."""

    screenshot: bytes | None
    box: Box | None
    text: str
    solved: bool | None = None


def trained_policy() -> None:
    """The animation, of the first recorded run (of all weights, if there is one)."""
    runs = [run for run in find_runs() if (run.folder / "after.jsonl").exists()]
    if not runs:
        print(
            "  media/trained_policy.gif  skipped: recordings/ has no run with after.jsonl "
            "(make train makes one)"
        )
        return
    run = next((run for run in runs if not run.result["lora"]), runs[0])
    before, after = "before training", f"after {run.result['profile']['updates']} updates"
    solved = {before: 0, after: 0}
    frames = []
    for number, (untrained, trained) in enumerate(played_pairs(run), 1):
        sides = {after: moments(trained)}
        if untrained is not None:
            sides = {before: moments(untrained), **sides}
        longest = max(len(shown) for shown in sides.values())
        for i in range(longest):
            over = i == longest - 1
            if over:
                solved[before] += untrained is not None and untrained.solved
                solved[after] += trained.solved
            now = {name: shown[min(i, len(shown) - 1)] for name, shown in sides.items()}
            pages_done = number if over else number - 1
            frames.append((frame(trained.goal, pages_done, now, solved), GLANCE))
    save_gif(frames, "trained_policy")


def played_pairs(run: Run) -> list[tuple[Episode | None, Episode]]:
    """The first recorded test pages, played again: before (None: not recorded) and after."""
    after = read_episodes(run.folder / "after.jsonl")[:EPISODES]
    recorded = run.folder / "before.jsonl"
    untrained = {}
    if recorded.exists():
        untrained = {episode.seed: episode for episode in read_episodes(recorded)}
    pairs = []
    with start_browser_server(workers=1) as server, server.client() as client:
        for episode in after:
            before = untrained.get(episode.seed)
            if before is not None:
                before = play_again(before, client)
            pairs.append((before, play_again(episode, client)))
    return pairs


def moments(episode: Episode) -> list[Moment]:
    """The page before the first answer, each answer, and the last one with the verdict."""
    shown = [Moment(episode.turns[0].screenshot, None, " ")]
    for turn in episode.turns:
        answer = textwrap.shorten(turn.answer, 34, placeholder=" …")
        text = turn.parsed.action or answer or "(nothing)"
        shown.append(Moment(turn.screenshot, turn.box, text))
    shown.append(replace(shown[-1], solved=episode.solved))
    return shown


def frame(goal: str, number: int, sides: dict[str, Moment], solved: dict[str, int]) -> Image.Image:
    """One frame: the goal above, and for each side a page, its answer and how many are solved.

    ``number``: how many pages are done; ``solved``: how many of them each side has solved.
    """
    size = (2.75 * len(sides), 3.75)
    figure, grid = plt.subplots(1, len(sides), figsize=size, facecolor=CARD, squeeze=False)
    figure.subplots_adjust(left=0.05, right=0.95, top=0.84, bottom=0.16, wspace=0.1)
    title = textwrap.shorten(one_line(goal), 62, placeholder=" …")
    label(figure, (0.5, 0.95), title, 11, va="baseline", fontweight="bold")
    for axes, (name, moment) in zip(grid[0], sides.items(), strict=True):
        _draw_side(axes, name, moment)
        count = f"{solved[name]} of {number} solved" if number else ""
        label(axes, (0.5, -0.16), count, 10, transform=axes.transAxes)
    return picture(figure)


def _draw_side(axes: Axes, name: str, moment: Moment) -> None:
    """One page with its name above and its answer below."""
    over = moment.solved is not None
    colour = BLACK
    verdict = ""
    if over:
        colour = BLUE if moment.solved else VERMILLION
        verdict = "  solved" if moment.solved else "  not solved"
    edge = 3.5 if over else 1
    draw_page(axes, moment.screenshot, moment.box, colour if over else PURPLE, edge)
    axes.set_title(name, fontsize=10, color=INK)
    weight = "bold" if over else "normal"
    style = {"family": "monospace", "color": colour, "fontweight": weight}
    text = escaped(moment.text) + verdict
    label(axes, (0.5, -0.07), text, 9, transform=axes.transAxes, **style)
