"""The one loop that plays episodes: many at once, each in its own browser, answered by a player.

`play_episodes` plays with a policy, `play_agent` with a function of observation and turn; both are
`play` with one of the players in `helpers.episodes.players`. Stages 1 to 4 of an update are marked
where they happen; stage 5, Learn, is in `helpers.learning.trainer`. Whatever the order in which
pages are answered, all answers come from the same weights: a rollout is on-policy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Protocol

from helpers.browser import BrowserClient
from helpers.episodes.config import EpisodeSpec, RolloutConfig
from helpers.episodes.episode import Episode
from helpers.episodes.players import (
    Agent,
    AgentPlayer,
    PolicyPlayer,
    StreamPlayer,
    open_stream,
)
from helpers.episodes.running import RunningEpisode
from helpers.episodes.threads import Call, Ended, Threads
from helpers.output import at_work
from helpers.policy.lora import merged
from helpers.settings.language import say

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

    def answer(self, new: Sequence[RunningEpisode]) -> list[tuple[RunningEpisode, str]]:
        """Take on the pages of ``new``; returns the episodes that are answered by now.

        Who writes many answers at a time returns after a moment, with those that are done, and is
        called again, with or without new pages, until every page has its answer.
        """
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
    idle = [_held(client) for client in clients]
    waiting: list[RunningEpisode] = []  # their page is there, the player has not been asked
    asked = 0  # pages that the player has taken on and not answered
    ended = 0
    with (
        at_work(lambda: say("{done} of {all} episodes", done=ended, all=len(episodes))),
        Threads(len(clients)) as threads,
    ):
        busy: dict[Call[None], RunningEpisode] = {}  # their browser is at work
        done: Ended = SimpleQueue()  # those of them that have done their work
        while to_begin or busy or waiting or asked:
            while to_begin and idle:
                index, episode = to_begin.popleft()
                running = RunningEpisode(episode, idle.pop(), config, index)
                # Stage 1: Reset. Task and seed fix the page.
                busy[threads.start(running.reset, done)] = running
            for running in _ready(busy, done, at_least_one=not asked):
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
            more_pages_come = busy or (to_begin and idle)
            if not (waiting or asked) or (player.answers_together and more_pages_come):
                continue
            # Stage 3: Answer. What is sampled for a page does not depend on which page came first:
            # together they are asked for in a fixed order, else each has a seed of its own.
            waiting.sort(key=lambda running: running.index)
            answered = player.answer(waiting)
            asked += len(waiting) - len(answered)
            waiting = []
            for running, answer in answered:
                # Stage 4: Act. The browser steps, the page pays; then stage 2 again.
                busy[threads.start(partial(running.act, answer), done)] = running
    return episodes


def _held(client: Client) -> Client:
    """The client for this rollout alone.

    A rollout that is stopped may leave a thread behind that has not begun its work yet. It must not
    disturb the rollout that then plays with the same clients.
    """
    return client.hold() if isinstance(client, BrowserClient) else client


def _ready(
    busy: dict[Call[None], RunningEpisode], done: Ended, at_least_one: bool
) -> list[RunningEpisode]:
    """Take the episodes out of ``busy`` whose browsers have done their work.

    ``at_least_one``: wait for the first of them.
    """
    ready = []
    while busy:
        try:
            call = done.get(block=at_least_one and not ready)
        except Empty:
            break
        ready.append(busy.pop(call))
        call.outcome()  # raises here what the client raised in its thread
    return ready


def play_episodes(
    specs: Sequence[EpisodeSpec],
    clients: Sequence[Client],
    generator: Generator,
    tokenizer: PreTrainedTokenizerBase,
    config: RolloutConfig,
    progress: Callable[[int, int], None] | None = None,
) -> list[Episode]:
    """`play` with a policy: each page is answered when it is there.

    Where the generator can only answer all prompts of one call, there is one call per turn for all
    episodes that are running. Every token that the policy reads or writes is in the episodes'
    ledgers; torch's random numbers fix what is sampled, see `StreamPlayer`.
    """
    with merged(getattr(generator, "model", None)):
        stream = open_stream(generator, config)
        if stream is None:
            return play(specs, clients, PolicyPlayer(generator, tokenizer), config, progress)
        try:
            return play(specs, clients, StreamPlayer(stream, tokenizer), config, progress)
        finally:  # also where the rollout is interrupted: nothing is left behind in an engine
            stream.close()


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
