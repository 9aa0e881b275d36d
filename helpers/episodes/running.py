"""One episode while it is played: the page as it is now, and what an answer does to it.

Every way to play goes through `RunningEpisode`: the loop of `helpers.episodes.play`, OpenEnv's
harness and TRL's tools. So the same answer means the same everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from helpers.browser.actions import ParsedAction, actions_beside, parse_action
from helpers.episodes.config import EpisodeSpec, RolloutConfig
from helpers.episodes.episode import Episode, Turn
from helpers.policy.prompts import PromptConfig, shown_lines

if TYPE_CHECKING:
    from helpers.browser.models import BrowserObservation, Client

    Box = tuple[float, float, float, float]

OVER = "The episode is over."  # what a policy is told by a door through which it gets no more pages


@dataclass(eq=False)
class RunningEpisode:
    """An episode being played, the client that plays it and how it is played.

    ``index``: its place among the episodes that are played together.
    """

    episode: Episode
    client: Client
    config: RolloutConfig
    index: int = 0
    observation: BrowserObservation = field(init=False, repr=False)
    """The page as it is now; there is none before `reset`."""

    @classmethod
    def of(cls, spec: EpisodeSpec, client: Client, config: RolloutConfig) -> RunningEpisode:
        """A new episode that has not begun."""
        return cls(Episode(spec.task, spec.seed), client, config)

    @property
    def prompt(self) -> PromptConfig:
        """What the policy reads in this episode."""
        return self.config.prompt_of(self.episode.task)

    @property
    def over(self) -> bool:
        """Whether the episode has ended; it then takes no more answers."""
        return bool(self.episode.ended)

    @property
    def last_turn(self) -> bool:
        """Whether the next answer is the last that the episode takes."""
        return len(self.episode.turns) + 1 >= self.config.turns_of(self.episode.task)

    def reset(self) -> None:
        """Load the page of the episode's task and seed."""
        self.observation = self.client.reset(
            self.episode.task, self.episode.seed, screenshot=self.config.screenshots
        )
        self.episode.goal = self.observation.goal
        self._take_outcome()

    def parse(self, answer: str) -> ParsedAction:
        """What an answer is on the page as it is now."""
        # A server that lists no elements cannot say which numbers exist.
        bids = frozenset(element.bid for element in self.observation.elements) or None
        if self.prompt.thoughts:
            answer = answer.strip().rpartition("\n")[2]
        return parse_action(answer, bids, actions_beside(self.prompt.actions))

    def act(self, answer: str) -> None:
        """Take one answer: one turn.

        An answer that is no action on this page is never sent to the browser. It costs its turn;
        the page stays as it was, and the reason is the observation's error, which the policy is
        told.
        """
        before, parsed = self.observation, self.parse(answer)
        turn = Turn(
            page=self._lines_of(before),
            answer=answer,
            parsed=parsed,
            screenshot=before.screenshot,
            box=self._box_of(parsed),
        )
        if parsed.ok:
            self.observation = self.client.step(
                parsed.action,
                screenshot=self.config.screenshots,
                observe=not self.last_turn,  # nobody reads the page after the last turn
            )
            turn.reward = self.observation.reward
        else:
            self.observation = before.model_copy(
                update={"error": parsed.reason, "last_action_error": True}
            )
            turn.reward = 0.0
        turn.error = self.observation.error
        self.episode.turns.append(turn)
        self._take_outcome()
        if not self.over and len(self.episode.turns) >= self.config.turns_of(self.episode.task):
            self.episode.ended = "turn_limit"

    def _lines_of(self, seen: BrowserObservation) -> list[str]:
        """The page for whoever reads the episode: with its free text, also where the policy gets
        none."""
        return shown_lines(seen, replace(self.prompt, free_text=True))

    def _box_of(self, action: ParsedAction) -> Box | None:
        """Where the element is drawn that an action is about."""
        if not action.ok or not action.args:
            return None
        boxes = {element.bid: element.box for element in self.observation.elements}
        bid = action.args[0]
        return boxes.get(bid) if isinstance(bid, str) else None

    def _take_outcome(self) -> None:
        """Copy into the episode what the observation says about its outcome."""
        seen, episode = self.observation, self.episode
        episode.last_screenshot = seen.screenshot or episode.last_screenshot
        episode.raw_reward = seen.raw_reward
        episode.stock_reward = seen.stock_reward
        episode.obeyed = seen.obeyed
        if seen.infrastructure_error:
            episode.reward = None
            episode.ended = "infrastructure_error"
            episode.infrastructure_error = seen.infrastructure_error
        elif seen.done:
            episode.reward = seen.reward
            episode.ended = seen.ended
