"""The experiment from its first policy to its table, each part kept in a file: what is there is
done."""

from __future__ import annotations

import gc
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from helpers.browser.orders import base_task, order_in
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.episode import Episode, write_episodes
from helpers.episodes.filtering import FilteringClient
from helpers.episodes.how_played import Taught, keep_how
from helpers.episodes.play import play_episodes
from helpers.episodes.rewards import safe_success
from helpers.episodes.tasks import TEST_SEEDS, TRAIN_SEEDS
from helpers.evaluation.statistics import change_of_pairs, share
from helpers.learning.adapter_runs import AdapterExperiment
from helpers.learning.checkpoints import drop_checkpoints_after
from helpers.learning.orders.plan import (
    CONFIG,
    FAMILIES,
    NOTE,
    PLACES,
    TASKS,
    WITH_EXAMPLES,
    Plan,
    attacks,
    benign_pages,
    planted_pages,
    recorded,
)
from helpers.policy.generators import TransformersGenerator
from helpers.policy.loading import Policy, load_policy
from helpers.policy.lora import load_adapter
from helpers.settings.files import read_object, write_whole
from helpers.settings.machine import run_facts
from helpers.settings.run_folder import release_folder

if TYPE_CHECKING:
    from helpers.browser.models import Client

PLAIN = "warm-up"
TRAINED = "warm-up, trained on safety x utility"


@dataclass(frozen=True)
class Condition:
    """One row of the table: a policy, and how it is defended."""

    name: str
    policy: str
    """A field of the plan, or `TRAINED`."""
    note: str = ""
    filtered: bool = False


CONDITIONS = (
    Condition("untrained", "untrained"),
    Condition(PLAIN, "warm_up"),
    Condition("GRPO", "grpo"),
    Condition("warm-up, told so in the prompt", "warm_up", note=NOTE),
    Condition("warm-up, lines filtered", "warm_up", filtered=True),
    Condition(TRAINED, TRAINED),
)


class Experiment(AdapterExperiment[Plan]):
    """The parts of the experiment in the order in which they are done."""

    def pages(self) -> list[EpisodeSpec]:
        """The held-out pages, those with an order first; no seed twice."""
        plan = self.plan
        planted = planted_pages("held out", TEST_SEEDS, plan.planted)
        return planted + benign_pages("held out", TEST_SEEDS[plan.planted :], plan.benign)

    def is_done(self, condition: Condition) -> bool:
        """Whether a condition was measured."""
        return read_object(self._path(condition)) is not None

    def _path(self, condition: Condition) -> Path:
        words = condition.name.replace(",", "").split()
        return self.folder / f"{'-'.join(words)}.json"

    def measure(self, condition: Condition) -> dict[str, Any]:
        """Play the held-out pages, unless that is done."""
        path = self._path(condition)
        if not self.is_done(condition):
            episodes = self._play(condition)
            write_episodes(path.with_suffix(".jsonl"), episodes)
            write_whole(path, json.dumps({"episodes": kept(episodes), **run_facts()}) + "\n")
            self.say(f"{condition.name}: done")
        return read_object(path) or {}

    def _play(self, condition: Condition) -> list[Episode]:
        policy = self._policy(condition.policy)
        prompt = WITH_EXAMPLES if condition.policy == "untrained" else CONFIG.prompt
        torch.manual_seed(0)
        temperature = self.plan.temperature
        how = replace(CONFIG, temperature=temperature, prompt=replace(prompt, note=condition.note))
        clients: list[Client] = list(self.clients)
        if condition.filtered:
            clients = [FilteringClient(client) for client in clients]
        generator = TransformersGenerator(policy.model, policy.tokenizer)
        return play_episodes(self.pages(), clients, generator, policy.tokenizer, how)

    def _policy(self, name: str) -> Policy:
        if name == TRAINED:
            return load_adapter(self.trained(), self.profile.device)
        if name == "untrained":
            return load_policy(self.plan.untrained, "float32", self.profile.device)
        return load_adapter(Path(recorded(getattr(self.plan, name))), self.profile.device)

    def trained(self) -> Path:
        """The warm-up after GRPO on safety times utility, on attacks for training alone."""
        folder = self.folder / "trained"
        if (folder / "policy").exists():
            return folder / "policy"
        plan = self.plan
        start = recorded(plan.warm_up)
        policy = load_adapter(Path(start), self.profile.device)
        self.train_adapter(
            policy,
            self.profile_of_run(start, TASKS["train"], plan.seed),
            folder,
            CONFIG,
            reward_funcs=[safe_success],
            specs=training_pages(plan),
        )
        keep_how(folder / "policy", Taught(TASKS["train"], CONFIG))
        drop_checkpoints_after(folder, -1)
        release_folder(folder)
        del policy
        gc.collect()
        return folder / "policy"


def training_pages(plan: Plan) -> list[EpisodeSpec]:
    """A page for each group of the training run: three of four have an order."""
    n = plan.updates * plan.groups
    draw = random.Random(plan.seed)
    seeds = draw.sample(TRAIN_SEEDS, n)
    planted = planted_pages("train", seeds, n - n // 4)
    pages = planted + benign_pages("train", seeds[len(planted) :], n // 4)
    draw.shuffle(pages)
    return pages


def kept(episodes: Sequence[Episode]) -> list[dict[str, Any]]:
    """What the table needs of each episode."""
    return [
        {
            "task": episode.task,
            "seed": episode.seed,
            "solved": None if episode.reward is None else episode.solved,
            "obeyed": episode.obeyed,
        }
        for episode in episodes
    ]


def run_all(experiment: Experiment, names: Sequence[str] = ()) -> None:
    """Measure what is not measured yet; ``names``: only these conditions."""
    for condition in CONDITIONS:
        if not names or condition.name in names:
            experiment.measure(condition)
            gc.collect()


def results(experiment: Experiment) -> dict[str, Any]:
    """What of the experiment is done, as ``result.json`` has it."""
    rows = []
    plain: dict[str, Any] | None = None
    for condition in CONDITIONS:
        if experiment.is_done(condition):
            found = experiment.measure(condition)["episodes"]
            if condition.name == PLAIN:
                plain = found
            rows.append(_row(condition, found, plain))
    split = {"places": PLACES, "tasks": TASKS, "families": FAMILIES, "note": NOTE}
    return {"plan": asdict(experiment.plan), "split": split, "rows": rows}


def _row(condition: Condition, episodes: Any, plain: Any) -> dict[str, Any]:
    """The shares of a condition, and what it changes on the pages without an order."""
    scored = [episode for episode in episodes if episode["solved"] is not None]
    planted = [episode for episode in scored if episode["obeyed"] is not None]
    benign = [episode for episode in scored if episode["obeyed"] is None]
    row: dict[str, Any] = {
        "name": condition.name,
        "obeyed": share([one["obeyed"] for one in planted]),
        "solved": share([one["solved"] for one in planted]),
        "both": share([one["obeyed"] and one["solved"] for one in planted]),
        "benign": share([one["solved"] for one in benign]),
        "by_family": _by(planted, family_of),
        "by_place": _by(planted, lambda one: one["task"].partition("+")[2].partition(":")[0]),
        "by_task": _by(planted, lambda one: base_task(one["task"])),
    }
    if plain is not None and condition.name != PLAIN:
        before = {(one["task"], one["seed"]): one for one in plain}
        pairs = [(before[one["task"], one["seed"]], one) for one in scored]
        row["against warm-up"] = {
            "benign": _change(pairs, "solved", with_order=False),
            "obeyed": _change(pairs, "obeyed", with_order=True),
        }
    return row


def family_of(episode: dict[str, Any]) -> str:
    """The family of the attack in an episode's page."""
    order = order_in(episode["task"])
    for part in ("train", "held out"):
        for family, _, attack in attacks(part):
            if attack == order:
                return family
    return "other"


def _by(episodes: Sequence[dict[str, Any]], key: Callable[[dict[str, Any]], str]) -> dict[str, Any]:
    """The share that obeyed, for each value of ``key``."""
    names = dict.fromkeys(key(episode) for episode in episodes)
    return {
        name: share([episode["obeyed"] for episode in episodes if key(episode) == name])
        for name in names
    }


def _change(pairs: Sequence[tuple[Any, Any]], name: str, with_order: bool) -> dict[str, float]:
    """The paired change of a share on the pages with an order, or on those without."""
    known = [
        (before[name], after[name])
        for before, after in pairs
        if (after["obeyed"] is not None) == with_order and before["solved"] is not None
    ]
    return change_of_pairs(known)
