"""A policy that is asked by hand what it would do, page after page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from helpers.episodes.ledger import POLICY, Ledger
from helpers.episodes.players import length_with, page_ids
from helpers.policy.prompts import answer_text
from helpers.settings.errors import CourseError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from helpers.browser.models import BrowserObservation
    from helpers.episodes.config import RolloutConfig
    from helpers.policy.generators import Generator


class AskedPolicy:
    """Answers greedily to a page, in the conversation that the policy would have had by itself.

    So what it did on earlier pages of the episode stands in its prompt, as in training. It takes
    for granted that each of its answers was the action taken; of actions that were taken without
    asking it, it sees what became of the page.
    """

    def __init__(
        self, generator: Generator, tokenizer: PreTrainedTokenizerBase, config: RolloutConfig
    ) -> None:
        """``config``: how the policy was taught (`helpers.episodes.how_played.kept_how`)."""
        self._generator = generator
        self._tokenizer = tokenizer
        self._config = config
        self._ledger = Ledger()
        self._seen: BrowserObservation | None = None
        self._answer = ""

    def __call__(self, seen: BrowserObservation) -> str:
        """The answer to a page.

        The same observation gets the same answer; one that is not later in the same episode begins
        a new conversation.

        Raises:
            CourseError: the conversation has no room for another answer.
        """
        if seen is self._seen:
            return self._answer
        if not self._goes_on(seen):
            self._ledger = Ledger()
        shown = self._config.prompt_of(seen.task)
        owner, ids = page_ids(self._ledger, seen, shown, self._tokenizer)
        length = length_with(self._ledger, ids, self._config)
        if length > self._config.max_length:
            raise CourseError(
                f"The conversation would have {length} tokens, and the policy was taught with "
                f"{self._config.max_length} at most: reset the page."
            )
        prompt = [*self._ledger.ids, *ids]
        completion = self._generator.generate([prompt], self._config.max_tokens, temperature=0.0)[0]
        self._ledger.append(ids, owner)
        self._ledger.append(completion.ids, POLICY, completion.logprobs)
        self._answer = answer_text(self._tokenizer, completion.ids)
        self._seen = seen
        return self._answer

    def _goes_on(self, seen: BrowserObservation) -> bool:
        """Whether the page comes later in the episode that the policy was asked about last."""
        last = self._seen
        return (
            last is not None
            and (seen.task, seen.seed) == (last.task, last.seed)
            and seen.step > last.step
        )
