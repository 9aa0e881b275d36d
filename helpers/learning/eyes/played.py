"""What a policy with eyes earns in the browser, on test pages, beside the same policy blind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from helpers.browser import start_browser_server
from helpers.episodes.play import play
from helpers.episodes.seeing import SeeingPlayer, seeing_config
from helpers.episodes.tasks import TEST_SEEDS, specs
from helpers.evaluation.statistics import wilson_interval
from helpers.output import Progress, table

if TYPE_CHECKING:
    from transformers import LlavaForConditionalGeneration, LlavaProcessor

    from helpers.browser.models import Client
    from helpers.episodes.config import EpisodeSpec

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
    plays them again with white paper in their place. What the infrastructure lost is counted in
    neither.
    """
    found: dict[str, dict[str, Any]] = {}
    with start_browser_server(workers=2, timeout=120) as server:
        clients = server.clients(SESSIONS)
        for task in dict.fromkeys(tasks):
            pages = specs(task, TEST_SEEDS, n)
            found[task] = {"seeing": _outcome(pages, clients, SeeingPlayer(model, processor))}
            if blind:
                player = SeeingPlayer(model, processor, blind=True)
                found[task]["blind"] = _outcome(pages, clients, player)
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
        "pages": [episode.seed for episode in episodes],
        "rewards": [episode.reward for episode in episodes],
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
    return table(["solved, %", "pages", *next(iter(found.values()))], rows)
