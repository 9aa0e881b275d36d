"""What a policy with eyes earns in the browser, on test pages, beside the same policy blind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch

from helpers.browser import start_browser_server
from helpers.episodes.play import play
from helpers.episodes.seeing import SeeingPlayer, seeing_config
from helpers.episodes.tasks import TEST_SEEDS, specs
from helpers.evaluation.statistics import wilson_interval
from helpers.output import Progress, table
from helpers.policy.eyes import policy_with_eyes

if TYPE_CHECKING:
    from helpers.browser.models import Client
    from helpers.episodes.config import EpisodeSpec

SESSIONS = 8


def play_tasks(eyes: Path, tasks: Sequence[str], n: int) -> dict[str, dict[str, Any]]:
    """``n`` test pages of each task, seen and blind, greedily: the answers, how many were solved,
    and the interval. What the infrastructure lost is counted in neither."""
    model, processor = policy_with_eyes(eyes)
    cast(Any, model).to(torch.bfloat16)
    found: dict[str, dict[str, Any]] = {}
    with start_browser_server(workers=2, timeout=120) as server:
        clients = server.clients(SESSIONS)
        for task in tasks:
            pages = specs(task, TEST_SEEDS, n)
            found[task] = {
                "seeing": _outcome(pages, clients, SeeingPlayer(model, processor)),
                "blind": _outcome(pages, clients, SeeingPlayer(model, processor, blind=True)),
            }
    return found


def _outcome(
    pages: Sequence[EpisodeSpec], clients: Sequence[Client], player: SeeingPlayer
) -> dict[str, Any]:
    """What came of one episode on each page."""
    what = f"{pages[0].task}, {'blind' if player.blind else 'seeing'}"
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
        "answers": [episode.turns[0].answer for episode in episodes if episode.turns],
    }


def show_played(found: dict[str, dict[str, Any]]) -> str:
    """A table: percent solved, with 95 % intervals."""
    rows = []
    for task, results in found.items():
        cells = []
        for result in results.values():
            low, high = result["interval"]
            rate = result["solved"] / max(1, result["n"])
            cells.append(f"{100 * rate:.0f} [{100 * low:.0f}, {100 * high:.0f}]")
        rows.append([task, max(result["n"] for result in results.values()), *cells])
    return table(["solved, %", "pages", "seeing", "blind"], rows)
