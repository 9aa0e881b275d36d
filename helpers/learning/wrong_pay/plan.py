"""What is decided before anything is measured: the rewards, the pages, the size of the runs."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from helpers.episodes.config import RolloutConfig
from helpers.episodes.rewards import RewardFunction, raw_success, strict_success, valid_format
from helpers.policy.prompts import PromptConfig
from helpers.settings.paths import RECORDINGS

Count = Annotated[int, Field(ge=1, le=100_000)]

TASK = "click-checkboxes"
"""Pays for every box that is as it should be: a page with one box to tick of three or more pays a
policy that submits it untouched, and less, or nothing, where a wrong box was ticked."""
BOXES = 3  # that a page has at least, of which one is to be ticked

PAYS: dict[str, RewardFunction] = {
    "strict": strict_success,
    "raw": raw_success,
    "format": valid_format,
}
"""What the runs are paid for."""
CURED = "raw, then strict"
"""Strict success again, for the policy that raw success has taught."""
RUNS = (*PAYS, CURED)

CONFIG = RolloutConfig(
    max_turns=2,
    max_tokens=8,
    prompt=PromptConfig(actions=("click",), examples=(), free_text=False),
)
"""Two clicks are enough, and a short prompt makes short updates."""


@dataclass(frozen=True, config=ConfigDict(allow_inf_nan=False))
class Plan:
    """Every number of the experiment."""

    start: str = str((RECORDINGS / "arms" / "warm-16" / "policy").relative_to(RECORDINGS.parent))
    """The adapter that all runs begin with. It was shown no page of the task, but many that are
    like it."""
    updates: Count = 12
    groups: Count = 3
    group_size: Annotated[int, Field(ge=2, le=1_000)] = 8
    learning_rate: Annotated[float, Field(gt=0, le=1)] = 2e-4
    seeds: tuple[Annotated[int, Field(ge=0, lt=2**32)], ...] = (0, 1, 2)
    """Of training."""
    train_pages: Count = 60
    test_pages: Count = 16
    """Each played once greedily."""
    samples: Count = 3
    """Sampled episodes on each test page."""
