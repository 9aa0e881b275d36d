"""What is played and how: `EpisodeSpec` names one episode, `RolloutConfig` says how episodes go.

The functions that make a `RolloutConfig` for a task or a profile are in `how_played`.
"""

from dataclasses import dataclass, field, replace

from typing_extensions import override

from helpers.browser.orders import base_task
from helpers.policy.prompts import PromptConfig


@dataclass(frozen=True)
class EpisodeSpec:
    """Which episode to play: a MiniWoB task and the seed that fixes its instance."""

    task: str
    seed: int

    @override
    def __str__(self) -> str:
        return f"{self.task}#{self.seed}"

    @classmethod
    def read(cls, text: str) -> "EpisodeSpec":
        """Read back ``str(spec)``."""
        task, _, seed = text.rpartition("#")
        return cls(task, int(seed))


@dataclass(frozen=True)
class RolloutConfig:
    """How episodes are played."""

    max_turns: int = 1
    """Actions per episode."""
    max_tokens: int = 16
    """Tokens per answer."""
    temperature: float = 1.0
    """Of sampling; 0 is greedy."""
    top_k: int = 0
    """Sample from so many tokens only; 0 is off, and has to be off while training."""
    max_length: int = 1536
    """Tokens of a whole episode."""
    prompt: PromptConfig = field(default_factory=PromptConfig)
    """What the policy reads."""
    screenshots: bool | str = False
    """Keep a picture of every page; "small" for pictures of 332 x 214."""
    turns: dict[str, int] = field(default_factory=dict)
    """Tasks whose episodes have another number of turns, where one config serves several."""
    thinks: tuple[str, ...] = ()
    """Tasks whose answers begin with a line of thought, where those of the others do not."""

    def turns_of(self, task: str) -> int:
        """How many actions an episode of ``task`` has, with an order or without."""
        return self.turns.get(base_task(task), self.max_turns)

    def prompt_of(self, task: str) -> PromptConfig:
        """What the policy reads in an episode of ``task``, with an order or without."""
        if base_task(task) not in self.thinks:
            return self.prompt
        return replace(self.prompt, thoughts=True)
