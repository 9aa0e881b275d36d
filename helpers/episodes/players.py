"""Who can answer pages: a policy, a script in a policy's place, an agent without tokens.

`helpers.episodes.play.Player` says what a player is. The ledger of an episode is written here:
what is read by `write_page`, what is answered by the player.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from helpers.episodes.ledger import ENVIRONMENT, POLICY, PROMPT
from helpers.episodes.running import RunningEpisode
from helpers.policy.prompts import (
    answer_text,
    build_messages,
    continuation_ids,
    observation_text,
    prompt_ids,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from helpers.browser.models import BrowserObservation
    from helpers.policy.generators import Generator

Agent = Callable[["BrowserObservation", int], str]  # (observation, turn) -> answer


def write_page(running: RunningEpisode, tokenizer: PreTrainedTokenizerBase) -> None:
    """Write what is read next into the ledger: at first the whole prompt, later the page as it is.

    Ends the episode instead where no room would be left for an answer.
    """
    config, ledger = running.config, running.episode.ledger
    if not ledger.ids:
        owner = PROMPT
        ids = prompt_ids(tokenizer, build_messages(running.observation, config.prompt))
    else:
        owner = ENVIRONMENT
        message = observation_text(running.observation, config.prompt, first=False)
        ended_itself = ledger.ids[-1] == tokenizer.eos_token_id
        ids = continuation_ids(tokenizer, message, ended_itself)
    if len(ledger.ids) + len(ids) + config.max_tokens <= config.max_length:
        ledger.append(ids, owner)
    else:
        running.episode.ended = "length_limit"


class PolicyPlayer:
    """A policy: reads and writes tokens, all of which stand in the episode's ledger."""

    answers_together = True

    def __init__(self, generator: Generator, tokenizer: PreTrainedTokenizerBase) -> None:
        self.generator = generator
        self.tokenizer = tokenizer

    def read(self, running: RunningEpisode) -> None:
        """Write the page into the ledger."""
        write_page(running, self.tokenizer)

    def answer(self, waiting: Sequence[RunningEpisode]) -> list[str]:
        """Sample one answer for each ledger, all in one call."""
        config = waiting[0].config  # those that are played together are played alike
        completions = self.generator.generate(
            [running.episode.ledger.ids for running in waiting],
            config.max_tokens,
            config.temperature,
            config.top_k,
        )
        for running, completion in zip(waiting, completions, strict=True):
            running.episode.ledger.append(completion.ids, POLICY, completion.logprobs)
        return [answer_text(self.tokenizer, completion.ids) for completion in completions]


class ScriptPlayer:
    """A script in a policy's place: its answers stand in the ledger as a policy's would.

    So a policy can be taught with them. Each token has logprob 0: the script was certain.
    """

    answers_together = True

    def __init__(self, script: Agent, tokenizer: PreTrainedTokenizerBase) -> None:
        self.script = script
        self.tokenizer = tokenizer

    def read(self, running: RunningEpisode) -> None:
        """Write the page into the ledger."""
        write_page(running, self.tokenizer)

    def answer(self, waiting: Sequence[RunningEpisode]) -> list[str]:
        """What the script says to each page."""
        return [self._answer_one(running) for running in waiting]

    def _answer_one(self, running: RunningEpisode) -> str:
        text = self.script(running.observation, len(running.episode.turns))
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        ids = [*ids, self.tokenizer.eos_token_id]
        running.episode.ledger.append(ids, POLICY, [0.0] * len(ids))
        return answer_text(self.tokenizer, ids)


class AgentPlayer:
    """An agent without tokens: a function of the observation and the number of the turn."""

    answers_together = False

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def read(self, running: RunningEpisode) -> None:
        """An agent keeps nothing of what it has seen."""

    def answer(self, waiting: Sequence[RunningEpisode]) -> list[str]:
        """What the agent says to each page."""
        return [self.agent(running.observation, len(running.episode.turns)) for running in waiting]
