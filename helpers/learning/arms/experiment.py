"""The experiment from its beginning to its table, each part kept in a file: what is there is done.

Stopped at any moment and called again, it goes on: with the part it was in, and within the run of
an arm with the last checkpoint.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from helpers.episodes.config import EpisodeSpec, RolloutConfig
from helpers.episodes.episode import Episode, read_episodes, write_episodes
from helpers.episodes.how_played import Taught, keep_how
from helpers.episodes.play import play_episodes
from helpers.episodes.tasks import TEST_SEEDS, VALIDATION_SEEDS, specs
from helpers.learning.adapter_runs import AdapterExperiment
from helpers.learning.arms.choice import affordable, chosen_tasks
from helpers.learning.arms.needs import Needs, config_of, keep_needs, kept_needs, measure_needs
from helpers.learning.arms.outcomes import Outcomes, Player, measure_outcomes, outcomes_of, rates
from helpers.learning.arms.plan import DEMONSTRATIONS, Plan, arm_settings, run_folder
from helpers.learning.checkpoints import drop_checkpoints_after
from helpers.learning.recorder import read_metrics
from helpers.learning.warm_up import demonstrate, fit
from helpers.policy.generators import TransformersGenerator
from helpers.policy.loading import Policy, load_policy
from helpers.policy.lora import load_adapter
from helpers.settings.files import read_object, write_json
from helpers.settings.machine import has_fast_bf16, run_facts
from helpers.settings.run_folder import release_folder

if TYPE_CHECKING:
    from helpers.settings.profiles import Profile

DEMONSTRATED = "demonstrations.jsonl"  # in the folder of a warm-up
OUTCOMES = "outcomes.json"  # in the folder of a warm-up or of a run


class Experiment(AdapterExperiment[Plan]):
    """The parts of the experiment in the order in which they are done."""

    # 1. The tasks

    def needs(self) -> dict[str, Needs]:
        """What the candidates need, of those that are affordable."""
        path = self.folder / "needs.json"
        needs = kept_needs(path)
        if needs is None:
            tokenizer = load_policy(self.plan.policy, weights=False).tokenizer
            measured = measure_needs(self.plan.candidates, self.clients, tokenizer)
            needs = keep_needs(path, measured)
        return affordable(needs, self.plan)

    def config(self) -> RolloutConfig:
        """How all episodes are played: as the candidates need it, whichever are chosen."""
        return config_of(self.needs())

    def warm_up(self, demos: int) -> Path:
        """The folder of the policy after ``demos`` demonstrations of each task.

        Other numbers than the plan's are for the chosen tasks only: the others keep theirs.
        """
        folder = self.folder / f"warm-{demos}"
        if (folder / "warm_up.json").exists():
            return folder / "policy"
        begin = time.monotonic()
        policy = load_policy(self.plan.policy, "float32", self.profile.device)
        episodes = self._demonstrations(demos, policy)
        playing = time.monotonic() - begin
        self.say(f"warm-up: {len(episodes)} demonstrations in {playing:.0f} s")
        plan = self.plan
        metrics = fit(
            policy,
            episodes,
            folder,
            plan.warm_up_epochs,
            plan.warm_up_rate,
            seed=0,
            dtype=self.warm_up_dtype(),
            rank=plan.rank,
        )
        keep_how(folder / "policy", Taught(tuple(self.needs()), self.config()))
        tokens = sum(len(episode.ledger.ids) for episode in episodes)
        record = {"demonstrations": len(episodes), "tokens": tokens, **metrics, **run_facts()}
        self.say(f"warm-up: {tokens} tokens, {metrics['seconds']:.0f} s")
        write_json(folder / "warm_up.json", record)
        return folder / "policy"

    def warm_up_dtype(self) -> str:
        """What demonstrations are learned in: the plan's precision, fp32 where bf16 is slow."""
        return self.plan.warm_up_dtype if has_fast_bf16(self.profile.device) else "float32"

    def _demonstrations(self, demos: int, policy: Policy) -> list[Episode]:
        """The episodes of a warm-up; they are played where they are not there, as after a recording
        was taken up, which has none."""
        path = self.folder / f"warm-{demos}" / DEMONSTRATED
        if not path.exists():
            write_episodes(path, self._demonstrate(demos, policy))
        return read_episodes(path)

    def _demonstrate(self, demos: int, policy: Policy) -> list[Episode]:
        """Episodes of the scripts: ``demos`` of the chosen tasks, the plan's number of others."""
        numbers = dict.fromkeys(self.needs(), self.plan.demos)
        if demos != self.plan.demos:
            numbers |= dict.fromkeys(self.tasks(), demos)
        episodes: list[Episode] = []
        for number in dict.fromkeys(numbers.values()):
            names = [task for task in numbers if numbers[task] == number]
            episodes += demonstrate(
                names, number, self.clients, policy.tokenizer, config=self.config()
            )
        return episodes

    def tasks(self) -> tuple[str, ...]:
        """The chosen tasks; the sampled success of each candidate is measured the first time."""
        known = read_object(self.folder / "choice.json")
        if known is None:
            known = self._choose()
            write_json(self.folder / "choice.json", known)
        return tuple(known["tasks"])

    def _choose(self) -> dict[str, Any]:
        plan, needs = self.plan, self.needs()
        policy = load_adapter(self.warm_up(plan.demos), self.profile.device)
        begin = time.monotonic()
        pages = _pages(tuple(needs), VALIDATION_SEEDS, plan.choice_pages)
        again = [page for page in pages for _ in range(plan.choice_samples)]
        solved = outcomes_of(self.player(policy)(again, 1.0))
        success = {task: rate for task, (rate, _) in rates(solved).items()}
        tasks = chosen_tasks(success, needs, plan)
        seconds = time.monotonic() - begin
        self.say(f"chosen in {seconds:.0f} s: {', '.join(tasks)}")
        return {
            "tasks": tasks,
            "success": {task: round(rate, 3) for task, rate in success.items()},
            "turns": {task: needs[task].mean_turns for task in success},
            "outcomes": solved,
            "seconds": round(seconds, 1),
        }

    def player(self, policy: Policy) -> Player:
        """Plays pages with a policy; the same pages are sampled alike each time."""
        generator = TransformersGenerator(policy.model, policy.tokenizer)
        config = self.config()

        def play(pages: Sequence[EpisodeSpec], temperature: float) -> list[Episode]:
            torch.manual_seed(0)
            how = replace(config, temperature=temperature)
            return play_episodes(pages, self.clients, generator, policy.tokenizer, how)

        return play

    # 2. The arms

    def before(self, demos: int) -> Outcomes:
        """How the warm-up does on the test pages."""
        folder = self.folder / f"warm-{demos}"
        if read_object(folder / OUTCOMES) is None:
            policy = load_adapter(self.warm_up(demos), self.profile.device)
            write_json(folder / OUTCOMES, self._test(policy))
        return _read_outcomes(folder)

    def run(self, arm: str, demos: int, seed: int) -> Outcomes:
        """Train an arm with a seed, and test it."""
        folder = self.run_folder(arm, demos, seed)
        if not self.is_done(arm, demos, seed):
            record = self._train(arm, demos, seed)
            # What is tested is what is kept.
            policy = load_adapter(folder / "policy", self.profile.device)
            write_json(folder / OUTCOMES, {**self._test(policy), **record})
            release_folder(folder)
            self.say(f"{arm}, {demos} demonstrations, seed {seed}: done")
        return _read_outcomes(folder)

    def _train(self, arm: str, demos: int, seed: int) -> dict[str, Any]:
        """Train an arm with a seed, unless that is done; returns what the run says of itself."""
        folder = self.run_folder(arm, demos, seed)
        record = read_object(folder / "trained.json")
        if record is None:
            begin = time.monotonic()
            policy = load_adapter(self.warm_up(demos), self.profile.device)
            train = self._fine_tune if arm == DEMONSTRATIONS else self._reinforce
            record = train(policy, arm, demos, seed)
            record |= {"seconds_training": round(time.monotonic() - begin, 1), **run_facts()}
            keep_how(folder / "policy", Taught(self.tasks(), self.config()))
            write_json(folder / "trained.json", record)
            drop_checkpoints_after(folder, -1)
            del policy
            gc.collect()  # the trainer and its optimiser, before the test
        return record

    def is_done(self, arm: str, demos: int, seed: int) -> bool:
        """Whether a run has been trained and tested."""
        return read_object(self.run_folder(arm, demos, seed) / OUTCOMES) is not None

    def run_folder(self, arm: str, demos: int, seed: int) -> Path:
        """Where the run of an arm is kept."""
        return run_folder(self.folder, arm, demos, seed)

    def _fine_tune(self, policy: Policy, arm: str, demos: int, seed: int) -> dict[str, Any]:
        """More epochs of the demonstrations of the chosen tasks, those of the warm-up."""
        plan = self.plan
        shown = self._demonstrations(demos, policy)
        episodes = [episode for episode in shown if episode.task in self.tasks()]
        folder = self.run_folder(arm, demos, seed)
        metrics = fit(
            policy,
            episodes,
            folder,
            epochs=1,
            learning_rate=plan.learning_rate,
            seed=seed,
            dtype=self.warm_up_dtype(),
            updates=plan.updates,
            batch=plan.demo_batch,
        )
        return {"episodes": 0, "demonstrations": len(episodes), "updates": metrics["steps"]}

    def arm_profile(self, arm: str, demos: int, seed: int) -> Profile:
        """The settings of an arm's run."""
        plan = self.plan
        return replace(
            self.profile_of_run(self.warm_up(demos), self.tasks(), seed),
            examples="none",
            warmup=min(self.profile.warmup, plan.updates // 5),
            **arm_settings(arm, plan),
        )

    def _reinforce(self, policy: Policy, arm: str, demos: int, seed: int) -> dict[str, Any]:
        """GRPO, or what the arm has made of it."""
        folder = self.run_folder(arm, demos, seed)
        profile = self.arm_profile(arm, demos, seed)
        self.train_adapter(policy, profile, folder, self.config())
        return arm_numbers(read_metrics(folder), profile)

    def _test(self, policy: Policy) -> dict[str, Any]:
        plan = self.plan
        pages = _pages(self.tasks(), TEST_SEEDS, plan.pages)
        sampled = _pages(self.tasks(), TEST_SEEDS, plan.sampled_pages)
        begin = time.monotonic()
        outcomes = measure_outcomes(pages, sampled, plan.samples, self.player(policy))
        return {**asdict(outcomes), "seconds_testing": round(time.monotonic() - begin, 1)}


def arm_numbers(rows: Sequence[dict[str, float]], profile: Profile) -> dict[str, Any]:
    """What a run's metrics say in all: episodes, updates, and the share of silent groups."""
    extra = sum(row.get("pages/extra_episodes", 0.0) for row in rows)
    silent = [row["frac_reward_zero_std"] for row in rows]
    return {
        "episodes": int(len(rows) * profile.batch + extra),
        "extra_episodes": int(extra),
        "updates": len(rows),
        "silent": round(sum(silent) / len(silent), 3),
        "seconds_updates": round(sum(row["step_time"] for row in rows), 1),
    }


def _read_outcomes(folder: Path) -> Outcomes:
    known = read_object(folder / OUTCOMES) or {}
    return Outcomes(known["greedy"], known["sampled"])


def _pages(tasks: Sequence[str], seeds: range, n: int) -> list[EpisodeSpec]:
    """The first ``n`` pages of each task on a range of seeds."""
    return [page for task in tasks for page in specs(task, seeds, n)]
