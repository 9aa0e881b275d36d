"""Held-out evaluation: strict success with an interval, failure kinds, and infrastructure failures counted apart."""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from openenv.core.harness import (
    HarnessRunLimits,
)

from helpers.episodes.config import EpisodeSpec, RolloutConfig
from helpers.episodes.episode import Episode
from helpers.episodes.harness import BrowserSessions, black_box
from helpers.episodes.play import play_episodes
from helpers.episodes.tasks import TEST_SEEDS, evaluation_config, specs
from helpers.evaluation.statistics import macro_mean, wilson_interval
from helpers.policy.choosing import standalone_generator
from helpers.policy.generators import Generator

MAX_INFRASTRUCTURE_RATE = 0.01


@dataclass
class Evaluation:
    """The outcome of an evaluation. Episodes that the infrastructure ended are in ``failed_infrastructure`` only."""

    name: str
    episodes: list[Episode]

    @property
    def scored(self) -> list[Episode]:
        return [e for e in self.episodes if e.reward is not None]

    @property
    def n(self) -> int:
        return len(self.scored)

    @property
    def failed_infrastructure(self) -> int:
        return len(self.episodes) - self.n

    @property
    def valid(self) -> bool:
        """False where more than 1 % of the episodes were lost to the infrastructure: the number is then no result."""
        return self.failed_infrastructure <= MAX_INFRASTRUCTURE_RATE * len(self.episodes)

    @property
    def successes(self) -> int:
        return sum(e.solved for e in self.scored)

    @property
    def success(self) -> float:
        return self.successes / self.n if self.n else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        return wilson_interval(self.successes, self.n)

    @property
    def kinds(self) -> dict[str, int]:
        """How many answers there were of each kind, see `helpers.browser.actions.KINDS`."""
        return dict(Counter(kind for e in self.scored for kind in e.kinds))

    @property
    def first_button(self) -> float:
        """Share of the episodes that begin with the first button of the page: the shortcut that reads no goal."""
        first = [
            (e.turns[0].parsed.args[:1], re.search(r'" button (\w+)', "\n".join(e.turns[0].page)))
            for e in self.scored
            if e.turns
        ]
        return sum(bool(button) and args == (button[1],) for args, button in first) / max(1, self.n)

    @property
    def mean_turns(self) -> float:
        """Mean number of turns of the solved episodes; nan where none was solved."""
        turns = [len(e.turns) for e in self.scored if e.solved]
        return sum(turns) / len(turns) if turns else math.nan

    @property
    def by_task(self) -> dict[str, "Evaluation"]:
        """One evaluation per task, in the order in which they were played."""
        return {
            task: Evaluation(task, [e for e in self.episodes if e.task == task])
            for task in dict.fromkeys(e.task for e in self.episodes)
        }

    @property
    def macro(self) -> tuple[float, float, float]:
        """`macro_mean` over the tasks."""
        return macro_mean([(part.success, part.n) for part in self.by_task.values()])

    def summary(self) -> dict[str, Any]:
        """The numbers of a result row, ready for JSON; with several tasks, ``by_task`` and ``macro`` too."""
        low, high = self.interval
        parts = self.by_task
        several = (
            {
                "macro": [round(v, 4) for v in self.macro],
                "by_task": {task: part.summary() for task, part in parts.items()},
            }
            if len(parts) > 1
            else {}
        )
        return {
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
        } | several

    def __str__(self) -> str:
        low, high = self.interval
        text = f"{self.name}: {100 * self.success:.0f} % solved [{100 * low:.0f}, {100 * high:.0f}], n = {self.n}"
        if self.failed_infrastructure:
            text += f", {self.failed_infrastructure} episodes lost to the infrastructure"
        return text if self.valid else text + " - INVALID: more than 1 % were lost"


def evaluate(
    name: str,
    task: str,
    n: int,
    clients: Sequence[Any],
    generator: Generator,
    tokenizer: Any,
    config: RolloutConfig,
    seeds: range = TEST_SEEDS,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Play ``n`` episodes of a task (of each, where there are several with commas) on ``seeds``, the test seeds by default; one
    try each, at the config's temperature."""
    todo = [spec for one in task.split(",") for spec in specs(one, seeds, n)]
    return Evaluation(name, play_episodes(todo, clients, generator, tokenizer, config, progress))


def difference(before: Evaluation, after: Evaluation) -> dict[str, float]:
    """Change in success on the seeds that both played, with a 95 % interval for paired proportions (normal approximation).

    Keys: change, low, high, n, gained (solved only after), lost (solved only before).
    """
    first = {(e.task, e.seed): e.solved for e in before.scored}
    pairs = [(first[e.task, e.seed], e.solved) for e in after.scored if (e.task, e.seed) in first]
    n = len(pairs)
    gained, lost = sum(b < a for b, a in pairs), sum(b > a for b, a in pairs)
    if n == 0:
        return {
            "change": math.nan,
            "low": math.nan,
            "high": math.nan,
            "n": 0,
            "gained": 0,
            "lost": 0,
        }
    change = (gained - lost) / n
    half = 1.96 * math.sqrt(max(0.0, (gained + lost) / n - change**2) / n)
    return {
        "change": change,
        "low": change - half,
        "high": change + half,
        "n": n,
        "gained": gained,
        "lost": lost,
    }


def play_policy(
    name: str, tasks: str, n: int, clients, profile, temperature: float, taught: str
) -> Evaluation:
    """A policy on the test pages; ``taught``: the tasks whose common prompt it reads; "own": each task's own prompt."""
    tokenizer, generator = standalone_generator(name, profile)
    rounds = [(task, task) for task in tasks.split(",")] if taught == "own" else [(tasks, taught)]
    return Evaluation(
        name,
        [
            episode
            for part, prompt in rounds
            for episode in evaluate(
                name,
                part,
                n,
                clients,
                generator,
                tokenizer,
                evaluation_config(part, prompt, profile, temperature),
                progress=lambda done, of, part=part: print(
                    f"\r{part if taught == 'own' else name}: {done} of {of} episodes",
                    end="",
                    flush=True,
                ),
            ).episodes
        ],
    )


def evaluate_black_box(
    name: str,
    todo: Sequence[EpisodeSpec],
    client: Any,
    tokenizer: Any,
    config: RolloutConfig,
    generator: Any,
) -> Evaluation:
    """Play ``todo`` through the harness, one after another, and score it as `helpers.evaluation.evaluate` does."""
    adapter, sessions, episodes = (
        black_box(tokenizer, config, generator),
        BrowserSessions(client, tokenizer, config),
        [],
    )
    for spec in todo:
        session = sessions.create(str(spec))
        if not session.run.episode.ended:
            adapter.run_black_box(session, HarnessRunLimits(max_turns=config.turns_of(spec.task)))
        episodes.append(session.run.episode)
    return Evaluation(name, episodes)
