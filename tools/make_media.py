"""Draw every picture in media/: ``make media``, or some: ``python tools/make_media.py the_loop four_rollouts``.

The diagrams are drawn with matplotlib; pages come from a real browser. Episodes are scripted, or recorded ones played again: the
same task and seed give the same page, so a recording needs to hold actions only. Pictures are opaque, on a light card, so that
they read on light and on dark backgrounds.
"""

import argparse
import io
import statistics
import sys
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from PIL import Image

from helpers.browser import list_tasks, start_browser_server
from helpers.course.figures import BLACK, BLUE, GREEN, ORANGE, PAGE, PURPLE, SKY, VERMILLION
from helpers.episodes.advantages import group_advantages
from helpers.episodes.episode import Episode, read_episodes, write_episodes
from helpers.episodes.tasks import rollout_config
from helpers.evaluation.scripted import SCRIPTS
from tools.make_results import FOUR, ROOT, find_runs

MEDIA = ROOT / "media"
CARD, INK, GREY = "#FCFBF7", "#1A1A1A", "#6B6B6B"
STAGES = (  # the names and numbers of the loop, the same in prose, code and figures
    ("1 Reset", "task and seed\nfix the page"),
    ("2 Read", "goal and page\nbecome a prompt"),
    ("3 Answer", "the policy samples\ntokens + logprobs"),
    ("4 Act", "parse, step the\nbrowser, reward"),
    ("5 Learn", "advantages, update,\nnew weights"),
)
STAGE_COLOURS = (BLUE, SKY, GREEN, ORANGE, VERMILLION)
GLANCE, LOOKING, READING, ENDING = 1200, 1800, 2400, 4500  # how long a frame stays, in milliseconds
ADDITION = ("fill('26', '8')", "click('27')")  # visual-addition with seed 3: one block and seven
GALLERY = (
    "click-button",
    "click-link",
    "click-dialog-2",
    "click-tab-2",
    "click-checkboxes",
    "enter-text",
    "login-user",
    "choose-list",
    "email-inbox",
    "social-media",
    "tic-tac-toe",
    "book-flight",
)
SAMPLES, PROMPTS = (
    12,
    (281_493, 413_958, 451_001),
)  # how many rollouts of which training prompts the four are chosen from
GIF_EPISODES = 8


# Drawing


def canvas(width: float, height: float):
    """A figure in inches and axes whose units are inches, too."""
    figure = plt.figure(figsize=(width, height), facecolor=CARD)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.axis("off")
    return figure, axes


def card(
    axes,
    x: float,
    y: float,
    width: float,
    height: float,
    colour: str,
    title: str,
    text: str = "",
    fill: str = "white",
    top: bool = False,
) -> None:
    """A rounded box with a coloured edge, its title in bold and lines of text below; ``top``: the title at its top edge."""
    axes.add_patch(
        FancyBboxPatch(
            (x, y),
            width,
            height,
            boxstyle="round,pad=0,rounding_size=0.12",
            facecolor=fill,
            edgecolor=colour,
            linewidth=2,
        )
    )
    lines = text.count("\n") + 1 if text else 0
    at = y + height - 0.12 if top else y + height / 2 + 0.085 * lines
    axes.text(
        x + width / 2,
        at,
        title,
        ha="center",
        va="top" if top else "center",
        fontsize=11,
        fontweight="bold",
        color=INK,
    )
    if text:
        axes.text(
            x + width / 2,
            at - (0.32 if top else 0.2),
            text,
            ha="center",
            va="top",
            fontsize=8.5,
            color=INK,
            linespacing=1.35,
        )


def arrow(
    axes,
    start,
    end,
    label: str = "",
    at=None,
    bend: float = 0.0,
    colour: str = INK,
    ha: str = "center",
) -> None:
    """An arrow from one point to another and its label at ``at`` (the middle where None)."""
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=13,
            linewidth=1.6,
            color=colour,
            connectionstyle=f"arc3,rad={bend}",
            shrinkA=3,
            shrinkB=3,
        )
    )
    x, y = at or ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    axes.text(x, y, label, ha=ha, va="center", fontsize=8.5, color=INK, linespacing=1.3)


def picture(figure, dpi: int = 100) -> Image.Image:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=dpi, facecolor=CARD)
    plt.close(figure)
    return Image.open(file).convert("RGB")


def save(figure, name: str, colours: int = 64, dpi: int = 110) -> None:
    """The figure as a PNG of few colours: a third of the size."""
    path = MEDIA / f"{name}.png"
    picture(figure, dpi).quantize(colours, dither=Image.Dither.NONE).save(
        path, "PNG", optimize=True
    )
    said(path)


def save_gif(frames: list[tuple[Image.Image, int]], name: str, colours: int = 64) -> None:
    """Frames and their milliseconds, for ever in a loop. One palette for all, the commonest colours as they are: what does not
    change then costs nothing. The nearest of them is looked up here, because Pillow's own search is coarse and tints surfaces."""
    images, times = zip(*frames, strict=True)
    counts = Counter()
    for frame in images:
        counts.update({colour: n for n, colour in frame.getcolors(1 << 24)})
    palette = np.array([colour for colour, _ in counts.most_common(colours)])
    small = []
    for frame in images:
        found, where = np.unique(np.asarray(frame).reshape(-1, 3), axis=0, return_inverse=True)
        nearest = ((found[:, None].astype(int) - palette) ** 2).sum(-1).argmin(-1)
        small.append(
            Image.fromarray(
                nearest[where.ravel()].reshape(frame.height, frame.width).astype(np.uint8), "P"
            )
        )
        small[-1].putpalette(palette.ravel().tolist())
    path = MEDIA / f"{name}.gif"
    small[0].save(
        path, save_all=True, append_images=small[1:], duration=times, loop=0, optimize=True
    )
    said(path)


def said(path: Path) -> None:
    print(f"  {path.relative_to(ROOT)}  {path.stat().st_size / 1e3:.0f} kB", flush=True)


# The diagrams


def components() -> None:
    figure, axes = canvas(8.4, 4.3)
    card(
        axes,
        0.3,
        2.55,
        2.9,
        1.45,
        BLUE,
        "Environment",
        "web pages in Chromium\n(MiniWoB++, BrowserGym)\nbehind an OpenEnv server",
    )
    card(
        axes,
        5.2,
        2.55,
        2.9,
        1.45,
        GREEN,
        "Policy",
        "a small language model:\nprompt in, one action out\n(SmolLM2-135M, vLLM)",
    )
    card(
        axes,
        2.65,
        0.25,
        3.1,
        1.3,
        VERMILLION,
        "Algorithm",
        "GRPO: compares the rewards\nof a group, updates the weights\n(TRL, PyTorch)",
    )
    arrow(axes, (3.2, 3.65), (5.2, 3.65), "observation", (4.2, 3.79))
    arrow(axes, (5.2, 3.0), (3.2, 3.0), "action  click('15')", (4.2, 2.84))
    arrow(axes, (1.6, 2.55), (2.95, 1.55), "reward\n0 or 1", (1.75, 1.95))
    arrow(axes, (6.1, 2.55), (4.9, 1.55), "tokens,\nlogprobs", (4.85, 2.16))
    arrow(axes, (5.45, 1.55), (6.9, 2.55), "new\nweights", (6.75, 1.95))
    save(figure, "components")


def colocated_vllm() -> None:
    figure, axes = canvas(8.4, 4.9)
    card(
        axes,
        0.3,
        1.75,
        7.8,
        2.9,
        GREY,
        "One process: the notebook's kernel, on one GPU (or one CPU)",
        fill="#F1EFE8",
        top=True,
    )
    card(
        axes, 0.6, 2.0, 2.7, 2.1, VERMILLION, "Trainer (TRL)", "weights\ngradients\noptimizer state"
    )
    card(
        axes,
        5.1,
        2.0,
        2.7,
        2.1,
        GREEN,
        "vLLM engine",
        "its own copy of the weights\nkey-value cache\nbatched sampling",
    )
    arrow(axes, (3.3, 3.7), (5.1, 3.7), "prompts (token ids)", (4.2, 3.85))
    arrow(axes, (5.1, 3.1), (3.3, 3.1), "token ids + logprobs", (4.2, 3.25))
    arrow(axes, (3.3, 2.5), (5.1, 2.5), "new weights,", (4.2, 2.65), colour=VERMILLION)
    axes.text(4.2, 2.33, "after each update", ha="center", va="center", fontsize=8.5, color=INK)
    card(
        axes,
        0.3,
        0.2,
        7.8,
        0.95,
        BLUE,
        "Browser processes",
        "OpenEnv server, one Chromium per worker: stepped in parallel, on the CPU",
    )
    arrow(axes, (3.5, 1.75), (3.5, 1.15), "actions", (3.4, 1.45), ha="right")
    arrow(axes, (4.9, 1.15), (4.9, 1.75), "pages, rewards", (5.0, 1.45), ha="left")
    save(figure, "colocated_vllm")


def the_loop() -> None:
    figure, axes = canvas(9.4, 2.9)
    width, gap, y, height = 1.55, 0.32, 0.95, 1.05
    xs = [0.2 + i * (width + gap) for i in range(5)]
    for x, (title, text), colour in zip(xs, STAGES, STAGE_COLOURS, strict=True):
        card(axes, x, y, width, height, colour, title, text)
    for left, right in zip(xs, xs[1:], strict=False):
        arrow(axes, (left + width, y + height / 2), (right, y + height / 2))
    arrow(
        axes,
        (xs[3] + width / 2, y + height),
        (xs[1] + width / 2, y + height),
        "next turn, until the episode is over",
        (xs[2] + width / 2, 2.5),
        bend=0.17,
    )
    arrow(
        axes,
        (xs[4] + width / 2, y),
        (xs[0] + width / 2, y),
        "next update, with new prompts",
        (xs[2] + width / 2, 0.34),
        bend=-0.11,
    )
    save(figure, "the_loop")


def advantages_of_groups() -> None:
    figure, axes = canvas(8.6, 4.7)
    for x, title in (
        (1.45, "Rewards of a group"),
        (4.1, "Mean and deviation"),
        (6.95, "Advantage = (reward - mean) / std"),
    ):
        axes.text(
            x, 4.42, title, ha="center", va="center", fontsize=10.5, fontweight="bold", color=INK
        )
    for y, rewards, words in (
        (3.0, (1, 0, 0, 0), "one solved: it stands out"),
        (1.6, (1, 1, 1, 0), "one failed: it stands out"),
        (0.2, (0, 0, 0, 0), "a silent group: nothing to learn"),
    ):
        spread = statistics.stdev(rewards)
        axes.add_patch(
            Rectangle(
                (0.15, y), 8.3, 1.2, facecolor="white" if spread else "#E9E7E0", edgecolor="#C8C5BB"
            )
        )
        for i, (reward, value) in enumerate(
            zip(rewards, group_advantages(rewards, len(rewards)), strict=True)
        ):
            colour = GREY if not spread else BLUE if reward else VERMILLION
            axes.add_patch(
                Rectangle(
                    (0.4 + 0.55 * i, y + 0.5),
                    0.45,
                    0.45,
                    facecolor=colour if reward else "white",
                    edgecolor=colour,
                    linewidth=2,
                )
            )
            axes.text(
                0.625 + 0.55 * i,
                y + 0.725,
                reward,
                ha="center",
                va="center",
                fontsize=12,
                fontweight="bold",
                color="white" if reward else colour,
            )
            x, zero, sign = 5.68 + 0.68 * i, y + 0.6, -1 if value < 0 else 1
            axes.add_patch(Rectangle((x, zero), 0.5, 0.22 * value, facecolor=colour))
            axes.text(
                x + 0.25,
                zero + 0.22 * value + 0.05 * sign,
                f"{value:+.2f}" if value else "0.00",
                ha="center",
                va="top" if value < 0 else "bottom",
                fontsize=9.5,
                fontweight="bold",
                color=colour,
            )
        axes.plot((5.6, 8.3), (y + 0.6, y + 0.6), color=INK, linewidth=1)
        axes.text(1.45, y + 0.23, words, ha="center", va="center", fontsize=9.5, color=INK)
        axes.text(
            4.1,
            y + 0.6,
            f"mean {statistics.mean(rewards):.2f}\nstd {spread:.2f}",
            ha="center",
            va="center",
            fontsize=11,
            color=INK,
            linespacing=1.6,
        )
        arrow(axes, (2.7, y + 0.6), (3.4, y + 0.6))
        arrow(axes, (4.8, y + 0.6), (5.5, y + 0.6))
    save(figure, "advantages_of_groups")


# Pages


def page(axes, screenshot: bytes | None, box=None, colour: str = GREY, edge: float = 1.0) -> None:
    """The task's part of a screenshot (PNG bytes; grey where None), framed, with ``box`` (x, y, width, height) drawn on it."""
    left, top, right, bottom = PAGE
    if screenshot:
        shot = Image.open(io.BytesIO(screenshot)).convert("RGB").crop(PAGE)
        axes.imshow(shot, interpolation="lanczos", extent=(left, right, bottom, top))
    if box:
        axes.add_patch(Rectangle(box[:2], *box[2:], fill=False, edgecolor=colour, linewidth=2))
    axes.spines[:].set(visible=True, color=colour if edge > 1 else GREY, linewidth=edge)
    axes.set(
        xticks=[],
        yticks=[],
        xlim=(left, right),
        ylim=(bottom, top),
        facecolor="#DDDDDD",
        aspect="equal",
    )


def replay(episode: Episode, client) -> Episode:
    """Play a recorded episode again, for its screenshots and boxes. RuntimeError where the page answers otherwise."""
    seen = client.reset(episode.task, episode.seed, screenshot=True)
    for turn in episode.turns:
        turn.screenshot = seen.screenshot
        if turn.parsed.ok:
            turn.box = next(
                (e.box for e in seen.elements if turn.parsed.args and e.bid == turn.parsed.args[0]),
                None,
            )
            seen = client.step(turn.parsed.action, screenshot=True)
    episode.last_screenshot = seen.screenshot
    if episode.reward is not None and float(seen.done and seen.reward or 0.0) != episode.reward:
        raise RuntimeError(
            f"{episode.task} with seed {episode.seed} was recorded with reward {episode.reward:g} and earns "
            f"{seen.reward} now: record it again."
        )
    return episode


def task_gallery() -> None:
    with start_browser_server(workers=1) as server, server.client(screenshot=True) as client:
        pages = [client.reset(task, seed=3) for task in GALLERY]
    figure, grid = plt.subplots(2, 6, figsize=(10.4, 4.9), facecolor=CARD, layout="constrained")
    for axis, seen in zip(grid.flat, pages, strict=True):
        page(axis, seen.screenshot)
        axis.set_title(seen.task, fontsize=9)
        goal = textwrap.shorten(" ".join(seen.goal.split()), 60, placeholder=" …")
        axis.set_xlabel("\n".join(textwrap.wrap(goal, 31)[:2]), fontsize=7)
    figure.suptitle(
        f"Twelve of the {len(list_tasks())} MiniWoB++ tasks: the goal is below each page",
        fontsize=10,
    )
    figure.get_layout_engine().set(h_pad=0.07, w_pad=0.06, hspace=0.03)
    save(figure, "task_gallery", colours=128, dpi=95)


def sample_four() -> list[Episode]:
    """Sample 12 rollouts of one prompt from the untrained policy and keep four that differ in outcome and length; where there
    are none, of the next prompt. RuntimeError where no prompt has both solved and unsolved rollouts."""
    import torch

    from helpers.episodes.config import EpisodeSpec
    from helpers.episodes.play import play_episodes
    from helpers.policy.generators import TransformersGenerator
    from helpers.policy.loading import load_policy

    torch.manual_seed(0)
    policy, best = load_policy(), []
    generator = TransformersGenerator(policy.model, policy.tokenizer)
    with start_browser_server(workers=1) as server:
        clients = server.clients(SAMPLES)
        for seed in PROMPTS:
            played = play_episodes(
                [EpisodeSpec("click-button", seed)] * SAMPLES,
                clients,
                generator,
                policy.tokenizer,
                rollout_config("click-button", max_turns=3),
            )
            played.sort(key=lambda e: (not e.solved, len(e.turns)))
            first = {
                (e.solved, len(e.turns)): e for e in reversed(played)
            }  # of each outcome and length, one
            chosen = sorted(first.values(), key=played.index)
            four = sorted((chosen + [e for e in played if e not in chosen])[:4], key=played.index)
            if len(chosen) > 4:
                four = chosen[:2] + chosen[-2:]
            if len({e.solved for e in four}) == 2 and len(chosen) > (best[0] if best else 0):
                best = [len(chosen), four]
            if best and best[0] >= 4:
                break
    if not best:
        raise RuntimeError(
            "No prompt gave both solved and unsolved rollouts: add seeds to PROMPTS."
        )
    return best[1]


def four_frame(episodes: list[Episode], turn: int, told: int) -> Image.Image:
    """One frame: four pages side by side at one turn (0: before the first), and below each its answer; ``told``: 1 with the
    rewards, 2 with the advantages, too."""
    rewards = [e.reward for e in episodes]
    mean, spread = statistics.mean(rewards), statistics.stdev(rewards)
    figure, row = plt.subplots(1, len(episodes), figsize=(9.0, 4.4), facecolor=CARD)
    figure.subplots_adjust(left=0.02, right=0.98, top=0.85, bottom=0.35, wspace=0.09)
    figure.text(
        0.5,
        0.955,
        f"Four rollouts of one prompt: {' '.join(episodes[0].goal.split())}",
        ha="center",
        va="center",
        fontsize=12,
        fontweight="bold",
        color=INK,
    )
    below = {
        0: f"turn {turn}" if turn else "one page and one prompt, sampled four times",
        1: "the page pays each rollout",
        2: f"advantage = (reward - mean) / std = (reward - {mean:.2f}) / {spread:.2f}",
    }[told]
    figure.text(0.5, 0.035, below, ha="center", va="center", fontsize=10.5, color=INK)
    for i, (axis, e, advantage) in enumerate(
        zip(row, episodes, group_advantages(rewards, len(rewards)), strict=True), 1
    ):
        now = e.turns[min(max(turn, 1), len(e.turns)) - 1]
        over, colour = told or turn > len(e.turns), BLUE if e.solved else VERMILLION
        page(axis, now.screenshot, now.box if turn else None, colour, 3.5 if over else 1)
        axis.set_title(f"rollout {i}", fontsize=10, color=INK)
        if turn:
            answer = textwrap.wrap(" ".join(now.answer.split()), 23, max_lines=2, placeholder=" …")
            lines = "\n".join(["action" if now.parsed.ok else now.parsed.kind, *answer])
            axis.text(
                0.5,
                -0.05,
                lines.replace("$", r"\$"),
                transform=axis.transAxes,
                ha="center",
                va="top",
                fontsize=9,
                family="monospace",
                color=INK,
                linespacing=1.3,
            )
        words = f"reward {e.reward:g}" if over else ""
        axis.text(
            0.5,
            -0.34,
            f"{words}\nadvantage {advantage:+.2f}" if told == 2 else words,
            transform=axis.transAxes,
            ha="center",
            va="top",
            fontsize=12,
            fontweight="bold",
            color=colour,
            linespacing=1.3,
        )
    return picture(figure)


def four_rollouts() -> None:
    if not FOUR.exists():
        write_episodes(FOUR, sample_four())
    episodes = read_episodes(FOUR)
    with start_browser_server(workers=1) as server, server.client() as client:
        episodes = [replay(episode, client) for episode in episodes]
    turns = max(len(e.turns) for e in episodes)
    frames = [(four_frame(episodes, turn, 0), READING) for turn in range(turns + 1)]
    frames += [(four_frame(episodes, turns, 1), READING), (four_frame(episodes, turns, 2), ENDING)]
    save_gif(frames, "four_rollouts")


# Browser control, turn by turn


def control_frame(seen: Any, turn: int, reads: Any, answer: str, state: str) -> Image.Image:
    """One frame: the page, beside it what the policy reads (text, or a picture and text), beside that its answer."""
    figure, axes = canvas(9.6, 4.5)
    inches = lambda x, y, width, height: figure.add_axes(
        (x / 9.6, y / 4.5, width / 9.6, height / 4.5)
    )  # noqa: E731
    axes.text(
        4.8,
        4.28,
        " ".join(seen.goal.split()),
        ha="center",
        va="center",
        fontsize=11.5,
        fontweight="bold",
        color=INK,
    )
    for x, width, title, colour in (
        (3.5, 3.5, STAGES[1][0], STAGE_COLOURS[1]),
        (7.3, 2.1, STAGES[2][0], STAGE_COLOURS[2]),
    ):
        axes.add_patch(
            Rectangle((x, 0.5), width, 3.3, facecolor="white", edgecolor=colour, linewidth=2)
        )
        axes.text(x + width / 2, 3.97, title, ha="center", va="center", fontsize=10.5, color=INK)
    axes.text(1.7, 3.97, "The page", ha="center", va="center", fontsize=10.5, color=INK)
    box = next((e.box for e in seen.elements if f"'{e.bid}'" in answer), None)
    page(inches(0.2, 0.65, 3.0, 3.0), seen.screenshot, box, PURPLE)
    text, left, columns = reads, 3.6, 37
    if not isinstance(reads, str):
        shown, text, left, columns = inches(3.55, 0.55, 2.44, 3.2), reads[1]["text"], 6.05, 12
        shown.imshow(reads[0]["image"], interpolation="lanczos")
        shown.axis("off")
    indent = "  " if columns > 12 else ""
    lines = [
        "\n".join(textwrap.wrap(line, columns, subsequent_indent=indent))
        for line in text.splitlines()
    ]
    axes.text(
        left,
        3.65,
        "\n".join(lines),
        va="top",
        fontsize=9.5 if columns > 12 else 9,
        family="monospace",
        color=INK,
        linespacing=1.5,
    )
    axes.text(
        8.35,
        2.15,
        answer,
        ha="center",
        va="center",
        fontsize=11,
        family="monospace",
        fontweight="bold",
        color=INK,
    )
    arrow(axes, (3.2, 2.15), (3.5, 2.15))
    arrow(axes, (7.0, 2.15), (7.3, 2.15))
    axes.text(
        4.8,
        0.24,
        f"turn {turn}{state}",
        ha="center",
        va="center",
        fontsize=11.5,
        fontweight="bold",
        color=INK,
    )
    return picture(figure)


def control(
    name: str, task: str, seed: int, act: Callable[[Any, int], str], observation: str
) -> None:
    """An episode of a scripted policy as a GIF, two frames a turn; RuntimeError where it is not solved."""
    from helpers.episodes.tools import content

    frames, turn = [], 0
    with start_browser_server(workers=1) as server, server.client(screenshot=True) as client:
        seen = client.reset(task, seed)
        while not seen.done:
            before, reads, answer = (
                seen,
                content(seen, rollout_config(task), observation, first=turn == 0),
                act(seen, turn),
            )
            seen, turn = client.step(answer), turn + 1
            act_words = f"  |  {STAGES[3][0]}: " + (
                "the page says solved, reward 1" if seen.done else "the browser executes it"
            )
            frames.append((control_frame(before, turn, reads, "", ""), READING))
            frames.append(
                (
                    control_frame(before, turn, reads, answer, act_words),
                    ENDING if seen.done else LOOKING,
                )
            )
    if seen.reward != 1:
        raise RuntimeError(
            f"The script does not solve {task} with seed {seed} (ended: {seen.ended})."
        )
    save_gif(frames, name)


def browser_control_text() -> None:
    control("browser_control_text", "login-user", 3, SCRIPTS["login-user"], "tree")


def browser_control_marks() -> None:
    control(
        "browser_control_marks", "visual-addition", 3, lambda seen, turn: ADDITION[turn], "marks"
    )


# The trained policy at work


def moments(episode: Episode | None) -> list[tuple]:
    """(screenshot, box, text, verdict) for each moment of one episode; the verdict is None until it is over."""
    if episode is None:
        return [(None, None, "", None)]
    shots = [(episode.turns[0].screenshot, None, " ", None)]
    for turn in episode.turns:
        text = (
            turn.parsed.action or textwrap.shorten(turn.answer, 34, placeholder=" …") or "(nothing)"
        )
        shots.append((turn.screenshot, turn.box, text, None))
    return [*shots, (*shots[-1][:3], episode.solved)]


def gif_frame(
    goal: str, number: int, sides: dict[str, tuple], solved: dict[str, int]
) -> Image.Image:
    """One frame: the goal above, one page for each side, what it answered and how many it has solved below."""
    figure, grid = plt.subplots(
        1, len(sides), figsize=(2.75 * len(sides), 3.75), facecolor=CARD, squeeze=False
    )
    figure.subplots_adjust(left=0.05, right=0.95, top=0.84, bottom=0.16, wspace=0.1)
    figure.text(
        0.5,
        0.95,
        textwrap.shorten(" ".join(goal.split()), 62, placeholder=" …"),
        ha="center",
        fontsize=11,
        fontweight="bold",
        color=INK,
    )
    for axis, (name, (screenshot, box, text, verdict)) in zip(grid[0], sides.items(), strict=True):
        colour = {None: BLACK, True: BLUE, False: VERMILLION}[verdict]
        page(
            axis,
            screenshot,
            box,
            PURPLE if verdict is None else colour,
            1 if verdict is None else 3.5,
        )
        axis.set_title(name, fontsize=10, color=INK)
        state = {None: "", True: "  solved", False: "  not solved"}[verdict]
        axis.text(
            0.5,
            -0.07,
            text.replace("$", r"\$") + state,
            transform=axis.transAxes,
            ha="center",
            va="center",
            fontsize=9,
            family="monospace",
            color=colour,
            fontweight="bold" if verdict is not None else "normal",
        )
        axis.text(
            0.5,
            -0.16,
            f"{solved[name]} of {number} solved" if number else "",
            transform=axis.transAxes,
            ha="center",
            va="center",
            fontsize=10,
            color=INK,
        )
    return picture(figure)


def trained_policy() -> None:
    runs = [run for run in find_runs() if (run.folder / "after.jsonl").exists()]
    if not runs:
        print(
            "  media/trained_policy.gif  skipped: recordings/ has no run with after.jsonl (make train makes one)"
        )
        return
    run = next((run for run in runs if not run.result["lora"]), runs[0])
    count = run.result["profile"]["updates"]
    with start_browser_server(workers=1) as server, server.client() as client:
        after = {e.seed: e for e in read_episodes(run.folder / "after.jsonl")[:GIF_EPISODES]}
        recorded = run.folder / "before.jsonl"
        before = (
            {e.seed: e for e in read_episodes(recorded) if e.seed in after}
            if recorded.exists()
            else {}
        )
        pairs = [
            (replay(before[s], client) if s in before else None, replay(after[s], client))
            for s in after
        ]
    images, times = [], []
    solved = {"before training": 0, f"after {count} updates": 0}
    for number, pair in enumerate(pairs, 1):
        sides = {name: moments(e) for name, e in zip(solved, pair, strict=True) if e is not None}
        longest = max(map(len, sides.values()))
        for i in range(longest):
            now = {name: shots[min(i, len(shots) - 1)] for name, shots in sides.items()}
            if i == longest - 1:
                for name, episode in zip(solved, pair, strict=True):
                    solved[name] += bool(episode and episode.solved)
            shown = number if i == longest - 1 else number - 1
            images.append(gif_frame(pair[1].goal, shown, now, solved))
            times.append(GLANCE)
    save_gif(list(zip(images, times, strict=True)), "trained_policy")


PICTURES = {
    f.__name__: f
    for f in (
        components,
        colocated_vllm,
        the_loop,
        browser_control_text,
        browser_control_marks,
        four_rollouts,
        advantages_of_groups,
        trained_policy,
        task_gallery,
    )
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help=f"pictures to draw (all): {', '.join(PICTURES)}")
    names = parser.parse_args().names or list(PICTURES)
    if unknown := [name for name in names if name not in PICTURES]:
        print(f"There is no picture {unknown[0]!r}: use {', '.join(PICTURES)}.", file=sys.stderr)
        return 2
    MEDIA.mkdir(exist_ok=True)
    for name in names:
        PICTURES[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
