"""The diagrams: what the course consists of, the loop, and how advantages come about."""

import statistics
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from helpers.course.figures import BLUE, GREEN, VERMILLION
from helpers.episodes.advantages import group_advantages
from tools.media.drawing import (
    GREY,
    INK,
    STAGE_COLOURS,
    STAGES,
    arrow,
    canvas,
    card,
    label,
    save,
)


def components() -> None:
    """Environment, policy and algorithm, and what goes between them."""
    figure, axes = canvas(8.4, 4.3)
    card(
        axes,
        (0.3, 2.55, 2.9, 1.45),
        BLUE,
        "Environment",
        "web pages in Chromium\n(MiniWoB++, BrowserGym)\nbehind an OpenEnv server",
    )
    card(
        axes,
        (5.2, 2.55, 2.9, 1.45),
        GREEN,
        "Policy",
        "a small language model:\nprompt in, one action out\n(SmolLM2-135M, vLLM)",
    )
    card(
        axes,
        (2.65, 0.25, 3.1, 1.3),
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
    """Trainer and vLLM in one process, with browsers in others."""
    figure, axes = canvas(8.4, 4.9)
    card(
        axes,
        (0.3, 1.75, 7.8, 2.9),
        GREY,
        "One process: the notebook's kernel, on one GPU (or one CPU)",
        fill="#F1EFE8",
        top=True,
    )
    card(
        axes,
        (0.6, 2.0, 2.7, 2.1),
        VERMILLION,
        "Trainer (TRL)",
        "weights\ngradients\noptimizer state",
    )
    card(
        axes,
        (5.1, 2.0, 2.7, 2.1),
        GREEN,
        "vLLM engine",
        "its own copy of the weights\nkey-value cache\nbatched sampling",
    )
    arrow(axes, (3.3, 3.7), (5.1, 3.7), "prompts (token ids)", (4.2, 3.85))
    arrow(axes, (5.1, 3.1), (3.3, 3.1), "token ids + logprobs", (4.2, 3.25))
    arrow(axes, (3.3, 2.5), (5.1, 2.5), "new weights,", (4.2, 2.65), colour=VERMILLION)
    label(axes, (4.2, 2.33), "after each update", 8.5)
    card(
        axes,
        (0.3, 0.2, 7.8, 0.95),
        BLUE,
        "Browser processes",
        "OpenEnv server, one Chromium per worker: stepped in parallel, on the CPU",
    )
    arrow(axes, (3.5, 1.75), (3.5, 1.15), "actions", (3.4, 1.45), ha="right")
    arrow(axes, (4.9, 1.15), (4.9, 1.75), "pages, rewards", (5.0, 1.45), ha="left")
    save(figure, "colocated_vllm")


def the_loop() -> None:
    """The five stages, and the two ways back: to the next turn and to the next update."""
    figure, axes = canvas(9.4, 2.9)
    width, height, gap, y = 1.55, 1.05, 0.32, 0.95
    lefts = [0.2 + i * (width + gap) for i in range(5)]
    middles = [left + width / 2 for left in lefts]
    for left, (title, text), colour in zip(lefts, STAGES, STAGE_COLOURS, strict=True):
        card(axes, (left, y, width, height), colour, title, text)
    for left, following in zip(lefts, lefts[1:], strict=False):
        arrow(axes, (left + width, y + height / 2), (following, y + height / 2))
    arrow(
        axes,
        (middles[3], y + height),
        (middles[1], y + height),
        "next turn, until the episode is over",
        (middles[2], 2.5),
        bend=0.17,
    )
    arrow(
        axes,
        (middles[4], y),
        (middles[0], y),
        "next update, with new prompts",
        (middles[2], 0.34),
        bend=-0.11,
    )
    save(figure, "the_loop")


def advantages_of_groups() -> None:
    """Three groups of four rewards, and the advantages that follow from each."""
    figure, axes = canvas(8.6, 4.7)
    for x, title in (
        (1.45, "Rewards of a group"),
        (4.1, "Mean and deviation"),
        (6.95, "Advantage = (reward - mean) / std"),
    ):
        label(axes, (x, 4.42), title, 10.5, fontweight="bold")
    _group(axes, 3.0, (1, 0, 0, 0), "one solved: it stands out")
    _group(axes, 1.6, (1, 1, 1, 0), "one failed: it stands out")
    _group(axes, 0.2, (0, 0, 0, 0), "a silent group: nothing to learn")
    save(figure, "advantages_of_groups")


def _group(axes: Axes, y: float, rewards: Sequence[int], words: str) -> None:
    """One row of the figure: a group's rewards, their mean and deviation, its advantages."""
    deviation = statistics.stdev(rewards)
    background = "white" if deviation else "#E9E7E0"
    axes.add_patch(
        Rectangle((0.15, y), 8.3, 1.2, facecolor=background, edgecolor="#C8C5BB"),
    )
    advantages = group_advantages(rewards, len(rewards))
    for i, (reward, advantage) in enumerate(zip(rewards, advantages, strict=True)):
        colour = GREY
        if deviation:
            colour = BLUE if reward else VERMILLION
        _reward(axes, 0.4 + 0.55 * i, y + 0.5, reward, colour)
        _advantage(axes, 5.68 + 0.68 * i, y + 0.6, advantage, colour)
    axes.plot((5.6, 8.3), (y + 0.6, y + 0.6), color=INK, linewidth=1)
    label(axes, (1.45, y + 0.23), words, 9.5)
    numbers = f"mean {statistics.mean(rewards):.2f}\nstd {deviation:.2f}"
    label(axes, (4.1, y + 0.6), numbers, 11, linespacing=1.6)
    arrow(axes, (2.7, y + 0.6), (3.4, y + 0.6))
    arrow(axes, (4.8, y + 0.6), (5.5, y + 0.6))


def _reward(axes: Axes, x: float, y: float, reward: int, colour: str) -> None:
    """A square with a reward in it, filled where that is not 0."""
    fill = colour if reward else "white"
    axes.add_patch(
        Rectangle((x, y), 0.45, 0.45, facecolor=fill, edgecolor=colour, linewidth=2),
    )
    ink = "white" if reward else colour
    label(axes, (x + 0.225, y + 0.225), str(reward), 12, fontweight="bold", color=ink)


def _advantage(axes: Axes, x: float, zero: float, advantage: float, colour: str) -> None:
    """A bar up or down from the line at ``zero``, with its number at the end."""
    end = zero + 0.22 * advantage
    axes.add_patch(Rectangle((x, zero), 0.5, 0.22 * advantage, facecolor=colour))
    number = f"{advantage:+.2f}" if advantage else "0.00"
    at = (x + 0.25, end + (-0.05 if advantage < 0 else 0.05))
    va = "top" if advantage < 0 else "bottom"
    label(axes, at, number, 9.5, va=va, fontweight="bold", color=colour)
