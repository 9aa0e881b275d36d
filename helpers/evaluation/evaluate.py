"""Held-out evaluation: strict success with an interval, kinds of answers, and episodes that the
infrastructure lost counted apart."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from helpers.episodes.config import EpisodeSpec, RolloutConfig
from helpers.episodes.episode import Episode
from helpers.episodes.how_played import evaluation_config, taught_config
from helpers.episodes.play import play_episodes
from helpers.episodes.tasks import TEST_SEEDS, specs, task_names
from helpers.evaluation.statistics import macro_mean, paired_change, wilson_interval
from helpers.output import Progress
from helpers.policy.choosing import standalone_generator
from helpers.settings.language import say

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from helpers.browser.models import Client
    from helpers.policy.generators import Generator
    from helpers.settings.profiles import Profile

MAX_INFRASTRUCTURE_RATE = 0.01
OWN_PROMPTS = "own"  # in the place of the tasks that a policy was taught: each task's own prompt


@dataclass
class Evaluation:
    """The outcome of an evaluation.

    Episodes that the infrastructure ended are in `failed_infrastructure` and in no other number.
    """

    name: str
    episodes: list[Episode]

    @property
    def scored(self) -> list[Episode]:
        """The episodes that count: those with a reward."""
        return [e for e in self.episodes if e.reward is not None]

    @property
    def n(self) -> int:
        """How many episodes count."""
        return len(self.scored)

    @property
    def failed_infrastructure(self) -> int:
        """How many episodes were lost to the infrastructure."""
        return len(self.episodes) - self.n

    @property
    def valid(self) -> bool:
        """False where more than 1 % of the episodes were lost: the number is then no result."""
        return self.failed_infrastructure <= MAX_INFRASTRUCTURE_RATE * len(self.episodes)

    @property
    def successes(self) -> int:
        """How many episodes were solved."""
        return sum(e.solved for e in self.scored)

    @property
    def success(self) -> float:
        """The share of the episodes that were solved; 0 where there are none."""
        return self.successes / self.n if self.n else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval (low, high) of `success`."""
        return wilson_interval(self.successes, self.n)

    @property
    def kinds(self) -> dict[str, int]:
        """How many answers there were of each kind, see `helpers.browser.actions.KINDS`."""
        return dict(Counter(kind for e in self.scored for kind in e.kinds))

    @property
    def first_button(self) -> float:
        """Share of the episodes that begin with the first button of the page: the shortcut that
        reads no goal."""
        return sum(_begins_with_first_button(e) for e in self.scored) / max(1, self.n)

    @property
    def mean_turns(self) -> float:
        """Mean number of turns of the solved episodes; nan where none was solved."""
        turns = [len(e.turns) for e in self.scored if e.solved]
        return sum(turns) / len(turns) if turns else math.nan

    @property
    def by_task(self) -> dict[str, Evaluation]:
        """One evaluation per task, in the order in which they were played."""
        parts: dict[str, Evaluation] = {}
        for episode in self.episodes:
            part = parts.setdefault(episode.task, Evaluation(episode.task, []))
            part.episodes.append(episode)
        return parts

    @property
    def macro(self) -> tuple[float, float, float]:
        """`macro_mean` over the tasks."""
        return macro_mean([(part.success, part.n) for part in self.by_task.values()])

    def summary(self) -> dict[str, Any]:
        """The numbers of a result row, ready for JSON.

        With several tasks it has ``macro`` and ``by_task`` too.
        """
        low, high = self.interval
        numbers = {
            "name": self.name,
            "tasks": sorted({e.task for e in self.episodes}),
            "n": self.n,
            "successes": self.successes,
            "success": round(self.success, 4),
            "low": round(low, 4),
            "high": round(high, 4),
            "kinds": self.kinds,
            "first_button": round(self.first_button, 4),
            "failed_infrastructure": self.failed_infrastructure,
            "mean_turns": round(self.mean_turns, 2) if self.successes else None,
            "valid": self.valid,
        }
        parts = self.by_task
        if len(parts) > 1:
            numbers["macro"] = [round(value, 4) for value in self.macro]
            numbers["by_task"] = {task: part.summary() for task, part in parts.items()}
        return numbers

    @override
    def __str__(self) -> str:
        low, high = self.interval
        text = say(
            "{name}: {rate:.0f} % solved [{low:.0f}, {high:.0f}], n = {n}",
            name=self.name,
            rate=100 * self.success,
            low=100 * low,
            high=100 * high,
            n=self.n,
        )
        if self.failed_infrastructure:
            text += say(", {n} episodes lost to the infrastructure", n=self.failed_infrastructure)
        if not self.valid:
            text += say(" - INVALID: more than 1 % were lost")
        return text


def _begins_with_first_button(episode: Episode) -> bool:
    """Whether the first action names the first button of the page that the policy read."""
    if not episode.turns:
        return False
    first = episode.turns[0]
    button = re.search(r'" button (\w+)', "\n".join(first.page))
    return button is not None and first.parsed.args[:1] == (button[1],)


def evaluate(
    name: str,
    task: str | Sequence[str],
    n: int,
    clients: Sequence[Client],
    generator: Generator,
    tokenizer: PreTrainedTokenizerBase,
    config: RolloutConfig,
    seeds: range = TEST_SEEDS,
) -> Evaluation:
    """Play ``n`` episodes of a task, or of each of several, one try each, with a line of progress.

    ``seeds``: the range they are taken from, the test seeds by default. The temperature is the
    config's.
    """
    pages = [spec for each in task_names(task) for spec in specs(each, seeds, n)]
    with Progress(len(pages), say("{name}: episodes", name=name)) as bar:

        def reach(done: int, _of: int) -> None:
            bar.reach(done)

        return Evaluation(name, play_episodes(pages, clients, generator, tokenizer, config, reach))


def difference(before: Evaluation, after: Evaluation) -> dict[str, float]:
    """Change in success on the pages that both played, with its 95 % interval for pairs.

    Keys: change, low, high, n, gained (solved only after), lost (solved only before). Without
    common pages n is 0 and change, low and high are nan.
    """
    solved_before = {(e.task, e.seed): e.solved for e in before.scored}
    n = gained = lost = 0
    for episode in after.scored:
        was_solved = solved_before.get((episode.task, episode.seed))
        if was_solved is None:
            continue
        n += 1
        gained += episode.solved and not was_solved
        lost += was_solved and not episode.solved
    change = paired_change(gained, lost, n)
    return change if n else change | dict.fromkeys(("change", "low", "high"), math.nan)


def play_policy(
    name: str,
    tasks: str | Sequence[str],
    n: int,
    clients: Sequence[Client],
    profile: Profile,
    temperature: float,
    taught: str | Sequence[str],
    seeds: range = TEST_SEEDS,
) -> Evaluation:
    """Play ``n`` pages of each task with a policy by name, of ``seeds``, by default test pages.

    ``taught``: the tasks that it was trained on, whose common prompt it reads; `OWN_PROMPTS`: each
    task with a prompt of its own; nothing: as its folder says (`keep_how`), else by ``tasks``.
    """
    kept = None if taught else taught_config(name, temperature)
    longest = kept.max_length if kept else 0
    tokenizer, generator = standalone_generator(name, profile, longest)
    taught = taught or tasks
    if taught == OWN_PROMPTS:
        rounds = [(task, (task,), (task,)) for task in task_names(tasks)]
    else:
        rounds = [(name, task_names(tasks), task_names(taught))]
    episodes: list[Episode] = []
    for label, part, prompt in rounds:
        config = kept or evaluation_config(part, prompt, profile, temperature)
        played = evaluate(label, part, n, clients, generator, tokenizer, config, seeds)
        episodes += played.episodes
    return Evaluation(name, episodes)


def evaluate_black_box(
    name: str,
    pages: Sequence[EpisodeSpec],
    client: Client,
    tokenizer: PreTrainedTokenizerBase,
    config: RolloutConfig,
    generator: Generator,
) -> Evaluation:
    """Play ``pages`` through OpenEnv's harness, one after another, and score them as `evaluate`
    does."""
    # Here, because it imports OpenEnv, which takes seconds, and most evaluations need none of it.
    from openenv.core.harness import HarnessRunLimits

    from helpers.episodes.harness import BrowserSessions, black_box

    adapter = black_box(tokenizer, config, generator)
    sessions = BrowserSessions(client, tokenizer, config)
    episodes = []
    for spec in pages:
        session = sessions.create(str(spec))
        if not session.running.over:
            limits = HarnessRunLimits(max_turns=config.turns_of(spec.task))
            adapter.run_black_box(session, limits)
        episodes.append(session.running.episode)
    return Evaluation(name, episodes)
