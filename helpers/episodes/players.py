"""Who can answer pages: a policy, a script in a policy's place, an agent without tokens.

`helpers.episodes.play.Player` says what a player is. The ledger of an episode is written here:
what is read by `write_page`, what is answered by `write_answer`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from helpers.episodes.ledger import ENVIRONMENT, POLICY, PROMPT, Ledger
from helpers.episodes.running import RunningEpisode
from helpers.policy.completions import Completion
from helpers.policy.prompts import (
    PromptConfig,
    answer_text,
    build_messages,
    continuation_ids,
    observation_text,
    prompt_ids,
)
from helpers.policy.streams import Request, Sampling, StreamingGenerator, draw_seed, request_seed

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from helpers.browser.models import BrowserObservation
    from helpers.episodes.config import RolloutConfig
    from helpers.policy.generators import Generator
    from helpers.policy.streams import Stream

Agent = Callable[["BrowserObservation", int], str]  # (observation, turn) -> answer


def page_ids(
    ledger: Ledger,
    observation: BrowserObservation,
    prompt: PromptConfig,
    tokenizer: PreTrainedTokenizerBase,
) -> tuple[int, list[int]]:
    """What is read next, and who has written it: at first the whole prompt, later the page as it is
    after the last answer of the ledger."""
    if not ledger.ids:
        return PROMPT, prompt_ids(tokenizer, build_messages(observation, prompt))
    message = observation_text(observation, prompt, first=False)
    ended_itself = ledger.ids[-1] == tokenizer.eos_token_id
    return ENVIRONMENT, continuation_ids(tokenizer, message, ended_itself)


def length_with(ledger: Ledger, ids: Sequence[int], config: RolloutConfig) -> int:
    """Tokens that a conversation has at most once ``ids`` are read and answered."""
    return len(ledger.ids) + len(ids) + config.max_tokens


def write_page(running: RunningEpisode, tokenizer: PreTrainedTokenizerBase) -> None:
    """Write what is read next into the ledger (`page_ids`).

    Ends the episode instead where no room would be left for an answer.
    """
    config, ledger = running.config, running.episode.ledger
    owner, ids = page_ids(ledger, running.observation, running.prompt, tokenizer)
    if length_with(ledger, ids, config) <= config.max_length:
        ledger.append(ids, owner)
    else:
        running.episode.ended = "length_limit"


def write_answer(
    running: RunningEpisode, completion: Completion, tokenizer: PreTrainedTokenizerBase
) -> str:
    """Write an answer into the ledger; returns its text."""
    running.episode.ledger.append(completion.ids, POLICY, completion.logprobs)
    return answer_text(tokenizer, completion.ids)


class PolicyPlayer:
    """A policy that answers all pages of a turn in one call.

    What it reads and writes are tokens, all of which stand in the episode's ledger.
    """

    answers_together = True

    def __init__(self, generator: Generator, tokenizer: PreTrainedTokenizerBase) -> None:
        self.generator = generator
        self.tokenizer = tokenizer

    def read(self, running: RunningEpisode) -> None:
        """Write the page into the ledger."""
        write_page(running, self.tokenizer)

    def answer(self, new: Sequence[RunningEpisode]) -> list[tuple[RunningEpisode, str]]:
        """Sample one answer for each ledger, all in one call."""
        config = new[0].config  # those that are played together are played alike
        completions = self.generator.generate(
            [running.episode.ledger.ids for running in new],
            config.max_tokens,
            config.temperature,
            config.top_k,
        )
        return [
            (running, write_answer(running, completion, self.tokenizer))
            for running, completion in zip(new, completions, strict=True)
        ]


def open_stream(generator: Generator, config: RolloutConfig) -> Stream | None:
    """A stream of the generator for episodes that are played so; None where it has none."""
    if not isinstance(generator, StreamingGenerator):
        return None
    return generator.stream(Sampling(config.max_tokens, config.temperature, config.top_k))


class StreamPlayer:
    """A policy that takes on each page when it is there, and answers as soon as it has.

    One number of torch's random numbers is drawn for all; it, the episode's place among the others
    and the turn are the seed of an answer. So a page is answered alike whichever other pages are
    answered with it, except that logprobs differ in their last digits with the size of a batch:
    where two tokens are that close to each other, the other one may be sampled.

    ``together``: ask for the answers of a turn when all pages are there, to compare.
    """

    def __init__(
        self, stream: Stream, tokenizer: PreTrainedTokenizerBase, together: bool = False
    ) -> None:
        self.stream = stream
        self.tokenizer = tokenizer
        self.answers_together = together
        self._lanes: dict[int, int] = {}  # by client, whose episodes come one after another
        self._asked: dict[Request, RunningEpisode] = {}

    @cached_property
    def _seed(self) -> int:
        return draw_seed()

    def read(self, running: RunningEpisode) -> None:
        """Write the page into the ledger."""
        write_page(running, self.tokenizer)

    def answer(self, new: Sequence[RunningEpisode]) -> list[tuple[RunningEpisode, str]]:
        """Hand the ledgers of ``new`` to the stream; returns what it has answered in a step."""
        for running in new:
            self._ask(running)
        answered = self._step()
        while self.answers_together and self._asked:
            answered += self._step()
        return answered

    def _ask(self, running: RunningEpisode) -> None:
        lane = self._lanes.setdefault(id(running.client), len(self._lanes))
        seed = 0  # an answer without chance draws no random number
        if running.config.temperature > 0:
            seed = request_seed(self._seed, running.index, len(running.episode.turns))
        request = Request(list(running.episode.ledger.ids), seed, lane)
        self._asked[request] = running
        self.stream.add(request)

    def _step(self) -> list[tuple[RunningEpisode, str]]:
        answered = []
        for request, completion in self.stream.step():
            running = self._asked.pop(request)
            answered.append((running, write_answer(running, completion, self.tokenizer)))
        return answered


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

    def answer(self, new: Sequence[RunningEpisode]) -> list[tuple[RunningEpisode, str]]:
        """What the script says to each page."""
        return [(running, self._answer_one(running)) for running in new]

    def _answer_one(self, running: RunningEpisode) -> str:
        text = self.script(running.observation, len(running.episode.turns))
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        ids = [*ids, self.tokenizer.eos_token_id]
        return write_answer(running, Completion(ids, [0.0] * len(ids)), self.tokenizer)


class AgentPlayer:
    """An agent without tokens: a function of the observation and the number of the turn."""

    answers_together = False

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def read(self, running: RunningEpisode) -> None:
        """An agent keeps nothing of what it has seen."""

    def answer(self, new: Sequence[RunningEpisode]) -> list[tuple[RunningEpisode, str]]:
        """What the agent says to each page."""
        return [
            (running, self.agent(running.observation, len(running.episode.turns)))
            for running in new
        ]
