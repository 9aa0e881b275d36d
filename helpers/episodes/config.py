"""Plays many episodes at once: one generation call per turn for all that are alive, the browsers stepped in parallel."""

from dataclasses import dataclass, field

from helpers.policy.prompts import PromptConfig


@dataclass(frozen=True)
class EpisodeSpec:
    """Which episode to play: a MiniWoB task and the seed that fixes its instance."""

    task: str
    seed: int

    def __str__(self) -> str:
        return f"{self.task}#{self.seed}"

    @classmethod
    def read(cls, text: str) -> "EpisodeSpec":
        """Read back ``str(spec)``."""
        task, _, seed = text.rpartition("#")
        return cls(task, int(seed))


@dataclass(frozen=True)
class RolloutConfig:
    """How episodes are played. ``max_turns``: actions per episode; ``max_tokens``: tokens per answer; ``max_length``: tokens
    of a whole episode; ``temperature`` 0 is greedy; ``top_k`` 0 is off, and has to be off while training. ``turns``: tasks
    whose episodes have another number of turns, where one config serves several."""

    max_turns: int = 1
    max_tokens: int = 16
    temperature: float = 1.0
    top_k: int = 0
    max_length: int = 1536
    prompt: PromptConfig = field(default_factory=PromptConfig)
    screenshots: bool = False
    turns: dict[str, int] = field(default_factory=dict)

    def turns_of(self, task: str) -> int:
        return self.turns.get(task, self.max_turns)
