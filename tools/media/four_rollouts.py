"""Four rollouts of one prompt side by side, turn by turn, then their rewards and advantages."""

import statistics
import textwrap
from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from PIL import Image

from helpers.browser import start_browser_server
from helpers.course.figures import BLUE, VERMILLION
from helpers.episodes.advantages import group_advantages
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.episode import Episode, Turn, read_episodes, write_episodes
from helpers.episodes.how_played import rollout_config
from tools.media.drawing import CARD, ENDING, INK, READING, label, picture, save_gif
from tools.media.pages import draw_page, escaped, one_line, play_again
from tools.recorded import FOUR_ROLLOUTS

TASK = "click-button"
SAMPLES = 12  # rollouts of a prompt that the four are chosen from
PROMPTS = (281_493, 413_958, 451_001)  # seeds of training pages to try, in this order
# What a frame tells besides the pages and the answers.
NOTHING, REWARDS, ADVANTAGES = range(3)


def four_rollouts() -> None:
    """The animation; without a recording four rollouts are sampled and recorded first."""
    if not FOUR_ROLLOUTS.exists():
        write_episodes(FOUR_ROLLOUTS, sample_four())
    with start_browser_server(workers=1) as server, server.client() as client:
        episodes = [play_again(episode, client) for episode in read_episodes(FOUR_ROLLOUTS)]
    turns = max(len(episode.turns) for episode in episodes)
    frames = [(four_frame(episodes, turn, NOTHING), READING) for turn in range(turns + 1)]
    frames.append((four_frame(episodes, turns, REWARDS), READING))
    frames.append((four_frame(episodes, turns, ADVANTAGES), ENDING))
    save_gif(frames, "four_rollouts")


def sample_four() -> list[Episode]:
    """Four rollouts of one prompt by the untrained policy that differ in outcome and length.

    Of the prompts in `PROMPTS` the first is taken that has four such rollouts, else the one that
    has most. RuntimeError where none has both solved and unsolved ones.
    """
    import torch  # these take seconds, and only who records needs them

    from helpers.episodes.play import play_episodes
    from helpers.policy.generators import TransformersGenerator
    from helpers.policy.loading import load_policy

    torch.manual_seed(0)
    policy = load_policy()
    generator = TransformersGenerator(policy.model, policy.tokenizer)
    config = rollout_config(TASK, max_turns=3)
    most = 0
    best: list[Episode] = []
    with start_browser_server(workers=1) as server:
        clients = server.clients(SAMPLES)
        for seed in PROMPTS:
            specs = [EpisodeSpec(TASK, seed)] * SAMPLES
            played = play_episodes(specs, clients, generator, policy.tokenizer, config)
            four, kinds = choose_four(played)
            if len({episode.solved for episode in four}) == 2 and kinds > most:
                most, best = kinds, four
            if most >= 4:
                break
    if not best:
        raise RuntimeError(
            "No prompt gave both solved and unsolved rollouts: add seeds to PROMPTS."
        )
    return best


def choose_four(played: list[Episode]) -> tuple[list[Episode], int]:
    """Four rollouts of as many kinds as there are, and how many kinds there are.

    A kind is an outcome and a number of turns; solved and short ones come first.
    """
    played = sorted(played, key=lambda episode: (not episode.solved, len(episode.turns)))
    first_of_kind: dict[tuple[bool, int], Episode] = {}
    for episode in played:
        first_of_kind.setdefault((episode.solved, len(episode.turns)), episode)
    chosen = list(first_of_kind.values())
    if len(chosen) > 4:
        return chosen[:2] + chosen[-2:], len(chosen)
    others = [episode for episode in played if episode not in chosen]
    four = (chosen + others)[:4]
    return sorted(four, key=played.index), len(chosen)


def four_frame(episodes: list[Episode], turn: int, told: int) -> Image.Image:
    """One frame: four pages at one turn (0: before the first), and below each its answer.

    ``told`` is NOTHING, REWARDS or ADVANTAGES.
    """
    rewards = [episode.reward for episode in episodes]
    advantages = group_advantages(rewards, len(rewards))
    figure, row = plt.subplots(1, len(episodes), figsize=(9.0, 4.4), facecolor=CARD)
    figure.subplots_adjust(left=0.02, right=0.98, top=0.85, bottom=0.35, wspace=0.09)
    goal = one_line(episodes[0].goal)
    title = f"Four rollouts of one prompt: {goal}"
    label(figure, (0.5, 0.955), title, 12, fontweight="bold")
    label(figure, (0.5, 0.035), _caption(rewards, turn, told), 10.5)
    columns = zip(row, episodes, advantages, strict=True)
    for number, (axes, episode, advantage) in enumerate(columns, 1):
        axes.set_title(f"rollout {number}", fontsize=10, color=INK)
        over = told != NOTHING or turn > len(episode.turns)
        colour = BLUE if episode.solved else VERMILLION
        now = episode.turns[min(max(turn, 1), len(episode.turns)) - 1]
        draw_page(axes, now.screenshot, now.box if turn else None, colour, 3.5 if over else 1)
        if turn:
            _write_answer(axes, now)
        words = f"reward {episode.reward:g}" if over else ""
        if told == ADVANTAGES:
            words += f"\nadvantage {advantage:+.2f}"
        place = {"transform": axes.transAxes, "va": "top", "linespacing": 1.3}
        label(axes, (0.5, -0.34), words, 12, fontweight="bold", color=colour, **place)
    return picture(figure)


def _caption(rewards: Sequence[float | None], turn: int, told: int) -> str:
    """The line below a frame."""
    if told == REWARDS:
        return "the page pays each rollout"
    if told == ADVANTAGES:
        known = [reward for reward in rewards if reward is not None]
        mean = statistics.mean(known)
        deviation = statistics.stdev(known)
        return f"advantage = (reward - mean) / std = (reward - {mean:.2f}) / {deviation:.2f}"
    return f"turn {turn}" if turn else "one page and one prompt, sampled four times"


def _write_answer(axes: Axes, turn: Turn) -> None:
    """Below a page: what was answered, and whether that is an action."""
    answer = textwrap.wrap(one_line(turn.answer), 23, max_lines=2, placeholder=" …")
    lines = ["action" if turn.parsed.ok else turn.parsed.kind, *answer]
    place = {"transform": axes.transAxes, "va": "top", "linespacing": 1.3}
    label(axes, (0.5, -0.05), escaped("\n".join(lines)), 9, family="monospace", **place)
