"""What a policy with eyes earns in the browser, on test pages, beside the same policy blind and
beside clicks anywhere."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from helpers.browser import start_browser_server
from helpers.browser.actions import format_action
from helpers.browser.options import SCALE
from helpers.episodes.play import play
from helpers.episodes.players import AgentPlayer
from helpers.episodes.seeing import SeeingPlayer, seeing_config
from helpers.episodes.tasks import TEST_SEEDS, specs
from helpers.evaluation.statistics import wilson_interval
from helpers.output import Progress, percent, table
from helpers.policy.eyes import BELOW_THE_GOAL

if TYPE_CHECKING:
    from transformers import LlavaForConditionalGeneration, LlavaProcessor

    from helpers.browser.models import BrowserObservation, Client
    from helpers.episodes.config import EpisodeSpec
    from helpers.episodes.play import Player

SESSIONS = 25  # pages that are answered in one call


def play_tasks(
    model: LlavaForConditionalGeneration,
    processor: LlavaProcessor,
    tasks: Sequence[str],
    n: int,
    blind: bool = True,
) -> dict[str, dict[str, Any]]:
    """``n`` test pages of each task, greedily: the answers, how many were solved, the interval.

    A task that is named twice is played once. The policy sees its pages; with ``blind`` it then
    plays them again with white paper in their place, and clicks anywhere play them as well. What
    the infrastructure lost is counted in none of them.
    """
    found: dict[str, dict[str, Any]] = {}
    with start_browser_server(workers=2, timeout=120) as server:
        clients = server.clients(SESSIONS)
        for task in dict.fromkeys(tasks):
            pages = specs(task, TEST_SEEDS, n)
            players: dict[str, Player] = {"seeing": SeeingPlayer(model, processor)}
            if blind:
                players["blind"] = SeeingPlayer(model, processor, blind=True)
                players["random"] = AgentPlayer(click_anywhere)
            found[task] = {
                name: _outcome(pages, clients, player, f"{task}, {name}")
                for name, player in players.items()
            }
    return found


def click_anywhere(seen: BrowserObservation, turn: int) -> str:
    """A click at a place below the goal, all places alike; on the same page always the same."""
    draw = random.Random(seen.screenshot)
    left, top, right, bottom = (SCALE * edge for edge in BELOW_THE_GOAL)
    x, y = draw.uniform(left, right), draw.uniform(top, bottom)
    return format_action("mouse_click", int(x), int(y))


def _outcome(
    pages: Sequence[EpisodeSpec], clients: Sequence[Client], player: Player, what: str
) -> dict[str, Any]:
    """What came of one episode on each page."""
    with Progress(len(pages), what) as progress:
        episodes = play(
            pages, clients, player, seeing_config(), lambda done, _: progress.reach(done)
        )
    paid = [episode.reward for episode in episodes if episode.reward is not None]
    solved = int(sum(paid))
    return {
        "n": len(paid),
        "solved": solved,
        "interval": wilson_interval(solved, len(paid)),
        "pages": [episode.seed for episode in episodes],
        "rewards": [episode.reward for episode in episodes],
        "answers": [episode.turns[0].answer for episode in episodes if episode.turns],
    }


def show_played(found: dict[str, dict[str, Any]]) -> str:
    """A table: percent solved, with 95 % intervals."""
    rows = []
    for task, results in found.items():
        pages = max(result["n"] for result in results.values())
        rows.append([task, pages, *map(_percent, results.values())])
    return table(["solved, %", "pages", *next(iter(found.values()))], rows)


def _percent(result: dict[str, Any]) -> str:
    rate = result["solved"] / max(1, result["n"])
    return percent(rate, *result["interval"], sign="")
