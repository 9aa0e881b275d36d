"""Which pages an update is played on: again where a group taught nothing, and by measured success.

A group in which all ended alike has no advantage, so no gradient. Two settings do something about
it, and neither touches the loss: the batch that the trainer gets is one that plain GRPO might have
been given, and its gradient is the one that plain GRPO has on those groups.

- ``COURSE_RESAMPLE``: silent groups are played again on other pages of their tasks, until none is
  silent or so many episodes have been played. This is the dynamic sampling of DAPO (arXiv
  2503.14476, equation 11), with a limit; what is silent after it stays in the batch, as in GRPO.
- ``COURSE_CURRICULUM=success``: tasks are drawn by how often their groups have had a signal, and a
  page that was solved by a part of its group may come again, as levels of which something can be
  learned do in prioritized level replay (arXiv 2010.03934), but once: a policy learns by heart what
  comes again and again (``recordings/arms/revisited``). No further episode is played for it.

Of many tasks most are solved or out of reach, and a curriculum needs updates to find out which.
``COURSE_SCOUT`` plays so many pages of each task before the first update, with a group each, and
leaves out the tasks in which none of these groups had a signal.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from helpers.episodes.config import EpisodeSpec
from helpers.episodes.episode import Episode
from helpers.episodes.ledger import check_rollout
from helpers.episodes.play import play_episodes
from helpers.episodes.rollout_func import rollout_columns
from helpers.episodes.tasks import train_seeds
from helpers.learning.configuration import process_count
from helpers.policy.choosing import trainer_generator
from helpers.settings.language import say

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from helpers.browser.models import Client
    from helpers.episodes.config import RolloutConfig
    from helpers.episodes.rewards import RewardFunction, Rewards
    from helpers.learning.trainer import BrowserGRPOTrainer
    from helpers.settings.profiles import Profile

Group = list[Episode]
PlayGroups = Callable[[Sequence[EpisodeSpec]], list[Group]]
"""Plays each page with a group of episodes; returns the groups in the order of the pages."""
Score = Callable[[Group], "Rewards"]
"""What the episodes of a group are paid in training."""

KEPT = 0.95  # of what is known about a task, when a group of it is played
REVISITS = 0.5  # share of a task's groups that are played on a page that had a signal before
MOST_PAGES = 32  # of each task that wait for their second visit
PRIOR = 0.5  # groups with a signal, and as many without, that each task is given (Jeffreys)


def has_signal(rewards: Rewards) -> bool:
    """Whether a group teaches something: two of its rewards differ; None counts for nothing."""
    return len({reward for reward in rewards if reward is not None}) > 1


def strict_rewards(group: Group) -> Rewards:
    """Strict success."""
    return [episode.reward for episode in group]


def paid_by(reward_funcs: Sequence[RewardFunction], tokenizer: PreTrainedTokenizerBase) -> Score:
    """The sum of a trainer's reward functions, as the trainer adds them up."""

    def score(group: Group) -> Rewards:
        columns = rollout_columns(group, tokenizer)
        ids = columns["completion_ids"]
        paid = [
            reward_func(
                prompts=[str(EpisodeSpec(e.task, e.seed)) for e in group],
                completions=tokenizer.batch_decode(ids, skip_special_tokens=True),
                **columns,
            )
            for reward_func in reward_funcs
        ]
        return [_sum(rewards) for rewards in zip(*paid, strict=True)]

    return score


def _sum(rewards: Sequence[float | None]) -> float | None:
    """The sum of what is known; None where nothing is."""
    known = [reward for reward in rewards if reward is not None]
    return sum(known) if known else None


class SuccessRecord:
    """What the policy has solved lately, task by task.

    ``groups`` and ``signals`` count the groups of a task, and those with a signal; what is older
    counts for less. ``pages``: seeds of pages that were solved by a part of their only group;
    ``revisited``: of those that were given their second visit.
    """

    def __init__(self) -> None:
        self.groups: dict[str, float] = {}
        self.signals: dict[str, float] = {}
        self.pages: dict[str, list[int]] = {}
        self.revisited: dict[str, list[int]] = {}

    def add(self, page: EpisodeSpec, signal: bool) -> None:
        """Take note of a group that was played."""
        task = page.task
        self.groups[task] = KEPT * self.groups.get(task, 0.0) + 1
        self.signals[task] = KEPT * self.signals.get(task, 0.0) + signal
        waiting = [seed for seed in self.pages.get(task, []) if seed != page.seed]
        if signal and page.seed not in self.revisited.get(task, []):
            waiting.append(page.seed)
        self.pages[task] = waiting[-MOST_PAGES:]

    def chance(self, task: str) -> float:
        """How likely a group of the task has a signal; 0.5 for one that was never played."""
        signals = self.signals.get(task, 0.0) + PRIOR
        return signals / (self.groups.get(task, 0.0) + 2 * PRIOR)

    def take_page(self, task: str) -> int | None:
        """The page of a task that has waited longest for a second visit, which it is given now."""
        waiting = self.pages.get(task, [])
        if not waiting:
            return None
        seed = waiting.pop(0)
        self.revisited.setdefault(task, []).append(seed)
        return seed


@dataclass
class Played:
    """How the groups of one update came about."""

    silent_before: float = 0.0
    """Share of the groups without a signal among those that were played first."""
    silent: float = 0.0
    """The same of those that are trained on."""
    extra_episodes: int = 0
    extra_seconds: float = 0.0

    def metrics(self) -> dict[str, float]:
        """The numbers under the names that they have in ``metrics.csv``."""
        return {
            "pages/silent_before": self.silent_before,
            "pages/silent": self.silent,
            "pages/extra_episodes": float(self.extra_episodes),
            "pages/extra_seconds": self.extra_seconds,
        }


class PageChoice:
    """Chooses the pages of each update as the profile says, and plays its groups.

    What is drawn depends on the profile's seed, the update and what was recorded before, so a run
    that is resumed with the `state` of its checkpoint chooses what it would have chosen.
    """

    def __init__(
        self,
        profile: Profile,
        score: Score = strict_rewards,
        on_extra: Callable[[Group], None] | None = None,
    ) -> None:
        """``on_extra`` gets the episodes that were played and are not trained on."""
        self.profile = profile
        self.score = score
        self.on_extra = on_extra
        self.record = SuccessRecord()
        self.played = Played()

    def play(self, pages: Sequence[EpisodeSpec], play: PlayGroups, update: int) -> list[Group]:
        """The groups of an update, as many as ``pages``, which are those that come in turn."""
        begin = time.monotonic()
        scouts = self._scout(play)
        scouting = time.monotonic() - begin
        if self.profile.curriculum == "success":
            pages = self._draw([None] * len(pages), update, 0)
        groups = play(pages)
        taught = self._take_note(groups)
        silent = [place for place, teaches in enumerate(taught) if not teaches]
        self.played = Played(silent_before=len(silent) / len(groups), extra_episodes=scouts)
        begin = time.monotonic()
        self._fill(groups, silent, play, update)
        if self.played.extra_episodes:
            self.played.extra_seconds = scouting + time.monotonic() - begin
        self.played.silent = len(silent) / len(groups)
        return groups

    def with_signal(self) -> list[str]:
        """The tasks of which a group has had a signal."""
        return [task for task in self.profile.tasks if self.record.signals.get(task)]

    def _scout(self, play: PlayGroups) -> int:
        """Find out in which tasks groups have a signal, unless something is known already; returns
        how many episodes it took."""
        if not self.profile.scout or self.record.groups:
            return 0
        draw = self._dice("scout")
        tasks = [task for task in self.profile.tasks for _ in range(self.profile.scout)]
        groups = play([self._new_page(task, draw) for task in tasks])
        self._take_note(groups)
        for group in groups:
            self._leave_out(group)
        found = self.with_signal()
        print(
            say(
                "{found} of {tasks} tasks are solved now and then: {names}",
                found=len(found),
                tasks=len(self.profile.tasks),
                names=", ".join(found) or "-",
            ),
            flush=True,
        )
        return sum(len(group) for group in groups)

    def _fill(self, groups: list[Group], silent: list[int], play: PlayGroups, update: int) -> None:
        """Put groups with a signal in the ``silent`` places while episodes are left; what remains
        in that list is silent still."""
        left = self.profile.resample // process_count()
        size = self.profile.group_size
        attempt = 0
        while silent and left >= size:
            attempt += 1
            places = silent[: left // size]
            tasks = [groups[place][0].task for place in places]
            played = play(self._draw(tasks, update, attempt))
            left -= size * len(played)
            self.played.extra_episodes += size * len(played)
            taught = self._take_note(played)
            for place, group, teaches in zip(places, played, taught, strict=True):
                if not teaches:
                    self._leave_out(group)
                    continue
                self._leave_out(groups[place])
                groups[place] = group
                silent.remove(place)

    def _draw(self, tasks: Sequence[str | None], update: int, attempt: int) -> list[EpisodeSpec]:
        """A page for each of ``tasks``; with a curriculum the tasks are drawn as well."""
        draw = self._dice(f"{update} {attempt}")
        if self.profile.curriculum == "success":
            names = self._within_reach()
            chances = [self.record.chance(name) for name in names]
            drawn = draw.choices(names, chances, k=len(tasks))
            return [self._again_or_new(task, draw) for task in drawn]
        return [self._new_page(cast(str, task), draw) for task in tasks]

    def _within_reach(self) -> Sequence[str]:
        """What a curriculum draws from: all tasks, or those in which scouting found a signal."""
        found = self.with_signal() if self.profile.scout else []
        return found or self.profile.tasks

    def _dice(self, of_what: str) -> random.Random:
        """Of one purpose: each process and each seed throws others."""
        return random.Random(f"{self.profile.seed} {of_what} {os.environ.get('RANK', '0')}")

    def _again_or_new(self, task: str, draw: random.Random) -> EpisodeSpec:
        """A page that has had a signal before, or another one."""
        if draw.random() < REVISITS:
            seed = self.record.take_page(task)
            if seed is not None:
                return EpisodeSpec(task, seed)
        return self._new_page(task, draw)

    def _new_page(self, task: str, draw: random.Random) -> EpisodeSpec:
        return EpisodeSpec(task, draw.choice(train_seeds(task, self.profile.pages)))

    def _take_note(self, groups: Sequence[Group]) -> list[bool]:
        """Record groups that were played; one that the infrastructure lost says nothing. Returns
        for each whether it teaches something."""
        taught = []
        for group in groups:
            rewards = self.score(group)
            taught.append(has_signal(rewards))
            if any(reward is not None for reward in rewards):
                self.record.add(EpisodeSpec(group[0].task, group[0].seed), taught[-1])
        return taught

    def _leave_out(self, group: Group) -> None:
        if self.on_extra:
            self.on_extra(group)

    # What a checkpoint keeps

    name = "page_choice"

    def state(self) -> dict[str, Any]:
        """What `load` needs to go on from here; ready for JSON."""
        return dict(vars(self.record))

    def load(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken."""
        vars(self.record).update(state)


def choosing_rollout_func(
    clients: Sequence[Client],
    tokenizer: PreTrainedTokenizerBase,
    config: RolloutConfig,
    choice: PageChoice,
    on_batch: Callable[[list[Episode]], None],
) -> Callable[[list[str], BrowserGRPOTrainer], dict[str, list]]:
    """A ``rollout_func`` as `helpers.episodes.rollout_func` makes it, on pages that are chosen.

    Where the trainer's prompts name other pages than those that were played, the columns task and
    seed say which.
    """

    def rollout_func(prompts: list[str], trainer: BrowserGRPOTrainer) -> dict[str, list]:
        size = cast(int, trainer.num_generations)
        generator = trainer_generator(trainer, tokenizer)

        def play_groups(pages: Sequence[EpisodeSpec]) -> list[Group]:
            specs = [page for page in pages for _ in range(size)]
            episodes = play_episodes(specs, clients, generator, tokenizer, config)
            return [episodes[i : i + size] for i in range(0, len(episodes), size)]

        pages = [EpisodeSpec.read(prompt) for prompt in prompts[::size]]
        groups = choice.play(pages, play_groups, trainer.state.global_step)
        episodes = [episode for group in groups for episode in group]
        columns = rollout_columns(episodes, tokenizer)
        check_rollout(columns, size)
        for name, value in choice.played.metrics().items():
            trainer.log_number(name, value)
        on_batch(episodes)
        return columns

    return rollout_func
