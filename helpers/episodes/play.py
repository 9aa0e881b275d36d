"""The one loop that plays episodes: many at once, each in its own browser, answered by a player.

`play_episodes` plays with a policy, `play_agent` with a function of observation and turn; both are
`play` with one of the players in `helpers.episodes.players`. Stages 1 to 4 of an update are marked
where they happen; stage 5, Learn, is in `helpers.learning.trainer`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Protocol

from helpers.episodes.config import EpisodeSpec, RolloutConfig
from helpers.episodes.episode import Episode
from helpers.episodes.players import Agent, AgentPlayer, PolicyPlayer
from helpers.episodes.running import RunningEpisode

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from helpers.browser.models import Client
    from helpers.policy.generators import Generator


class Player(Protocol):
    """Who answers the pages. One player plays many episodes at once."""

    answers_together: bool
    """True: it is asked once for all running episodes, when the last of them has its page, as a
    model reads many prompts in little more time than one. False: it is asked as soon as a page is
    there."""

    def read(self, running: RunningEpisode) -> None:
        """Take note of a new page: the first, or what an answer made of it.

        May end the episode, where the player cannot go on.
        """
        ...

    def answer(self, waiting: Sequence[RunningEpisode]) -> list[str]:
        """One answer for the page of each episode, in their order."""
        ...


def play(
    specs: Sequence[EpisodeSpec],
    clients: Sequence[Client],
    player: Player,
    config: RolloutConfig,
    progress: Callable[[int, int], None] | None = None,
) -> list[Episode]:
    """Play every episode of ``specs``; returns them in that order.

    ``clients``: open browser sessions; as many episodes run at once. When one ends, its client
    takes the next. ``progress(done, of)`` is called as episodes end. Raises ValueError without a
    client, and whatever a client or the player raises.
    """
    if specs and not clients:
        raise ValueError("Episodes need at least one open browser session to be played in.")
    episodes = [Episode(spec.task, spec.seed) for spec in specs]
    to_begin = deque(enumerate(episodes))
    idle = list(clients)
    waiting: list[RunningEpisode] = []  # their page is there, the player has not answered it
    ended = 0
    with ThreadPoolExecutor(max_workers=max(1, len(clients))) as threads:
        busy: dict[Future[None], RunningEpisode] = {}  # their browser is at work
        while to_begin or busy or waiting:
            while to_begin and idle:
                index, episode = to_begin.popleft()
                running = RunningEpisode(episode, idle.pop(), config, index)
                # Stage 1: Reset. Task and seed fix the page.
                busy[threads.submit(running.reset)] = running
            for running in _next_ready(busy):
                if not running.over:
                    # Stage 2: Read. The page becomes the prompt, or its continuation.
                    player.read(running)
                if not running.over:
                    waiting.append(running)
                    continue
                idle.append(running.client)
                ended += 1
                if progress:
                    progress(ended, len(episodes))
            more_will_wait = busy or (to_begin and idle)
            if not waiting or (player.answers_together and more_will_wait):
                continue
            # Stage 3: Answer. In a fixed order: which page came first must not change what a seed
            # samples.
            asked, waiting = sorted(waiting, key=lambda running: running.index), []
            for running, answer in zip(asked, player.answer(asked), strict=True):
                # Stage 4: Act. The browser steps, the page pays; then stage 2 again.
                busy[threads.submit(running.act, answer)] = running
    return episodes


def _next_ready(busy: dict[Future[None], RunningEpisode]) -> list[RunningEpisode]:
    """Wait until a browser has done its work, and take its episode (or several) out of ``busy``."""
    ready = []
    for future in wait(busy, return_when=FIRST_COMPLETED).done:
        ready.append(busy.pop(future))
        future.result()  # raises here what the client raised in its thread
    return ready


def play_episodes(
    specs: Sequence[EpisodeSpec],
    clients: Sequence[Client],
    generator: Generator,
    tokenizer: PreTrainedTokenizerBase,
    config: RolloutConfig,
    progress: Callable[[int, int], None] | None = None,
) -> list[Episode]:
    """`play` with a policy: one generation call per turn for all episodes that are running.

    Every token that the policy reads or writes is in the episodes' ledgers.
    """
    return play(specs, clients, PolicyPlayer(generator, tokenizer), config, progress)


def play_agent(
    agent: Agent,
    specs: Sequence[EpisodeSpec],
    clients: Sequence[Client],
    max_turns: int = 3,
    screenshots: bool = False,
) -> list[Episode]:
    """`play` with an agent, a function ``(observation, turn) -> answer``: no tokens, no ledger."""
    config = RolloutConfig(max_turns=max_turns, screenshots=screenshots)
    return play(specs, clients, AgentPlayer(agent), config)
