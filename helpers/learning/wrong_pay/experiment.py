"""The experiment from its pages to its table, each part kept in a file: what is there is done."""

from __future__ import annotations

import gc
import itertools
import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from helpers.episodes.config import EpisodeSpec
from helpers.episodes.episode import Episode, write_episodes
from helpers.episodes.how_played import Taught, keep_how
from helpers.episodes.ledger import Ledger
from helpers.episodes.play import play_episodes
from helpers.episodes.rewards import strict_success
from helpers.episodes.tasks import TEST_SEEDS, TRAIN_SEEDS
from helpers.evaluation.statistics import change_of_pairs, share
from helpers.learning.adapter_runs import AdapterExperiment
from helpers.learning.checkpoints import drop_checkpoints_after
from helpers.learning.wrong_pay.plan import BOXES, CONFIG, CURED, PAYS, RUNS, TASK, Plan
from helpers.policy.generators import TransformersGenerator
from helpers.policy.lora import load_adapter
from helpers.settings.files import read_object, write_whole
from helpers.settings.machine import run_facts
from helpers.settings.paths import ROOT
from helpers.settings.run_folder import release_folder

if TYPE_CHECKING:
    from helpers.browser.models import BrowserObservation, Client
    from helpers.policy.loading import Policy

MEASURES = ("strict", "raw", "untouched")
"""Solved; paid anything; Submit pressed on the page as it was."""
BEFORE = "before"
Counts = dict[str, list[int]]  # {measure: [episodes, of how many]}


def wants_one_box(page: BrowserObservation) -> bool:
    """Whether a page of the task has one box to tick, of at least `BOXES`."""
    boxes = [element for element in page.elements if element.role == "checkbox"]
    named = re.match(r"Select (.+) and click Submit", page.goal)
    wanted = named[1].split(", ") if named else []
    return len(boxes) >= BOXES and len(wanted) == 1 and wanted != ["nothing"]


def find_pages(seeds: range, n: int, client: Client) -> list[int]:
    """The first ``n`` seeds of a range whose page `wants_one_box`."""
    found = (seed for seed in seeds if wants_one_box(client.reset(TASK, seed)))
    return list(itertools.islice(found, n))


def submitted_untouched(episode: Episode) -> bool:
    """Whether Submit is the first thing that is done to the page; answers that are no action do
    nothing to it."""
    done = [turn for turn in episode.turns if turn.parsed.ok]
    if not done:
        return False
    submit = re.search(r'"Submit" button (\w+)', "\n".join(done[0].page))
    return submit is not None and done[0].parsed.args[:1] == (submit[1],)


def outcomes(episodes: Sequence[Episode]) -> dict[str, list[bool]]:
    """Each measure of `MEASURES`, episode by episode; lost episodes are left out."""
    scored = [episode for episode in episodes if episode.reward is not None]
    return {
        "strict": [episode.solved for episode in scored],
        "raw": [(episode.raw_reward or 0.0) > 0 for episode in scored],
        "untouched": [submitted_untouched(episode) for episode in scored],
    }


class Experiment(AdapterExperiment[Plan]):
    """The parts of the experiment in the order in which they are done."""

    def pages(self) -> dict[str, list[int]]:
        """The seeds of the pages that are trained on and tested on; they are looked for once."""
        path = self.folder / "pages.json"
        known = read_object(path)
        if known is None:
            client = self.clients[0]
            known = {
                "train": find_pages(TRAIN_SEEDS, self.plan.train_pages, client),
                "test": find_pages(TEST_SEEDS, self.plan.test_pages, client),
            }
            write_whole(path, json.dumps(known) + "\n")
        return known

    def start(self, run: str, seed: int) -> Path:
        """The adapter that a run begins with."""
        if run == CURED:
            return self.run_folder("raw", seed) / "policy"
        return ROOT / self.plan.start

    def run_folder(self, run: str, seed: int) -> Path:
        """Where a run is kept."""
        return self.folder / "runs" / f"{run.replace(', ', '-').replace(' ', '-')}-seed{seed}"

    def before(self) -> dict[str, Any]:
        """What the policy does on the test pages that all runs begin with."""
        path = self.folder / "before.json"
        if read_object(path) is None:
            policy = load_adapter(self.start("strict", 0), self.profile.device)
            write_whole(path, json.dumps(self._test(policy, self.folder)) + "\n")
        return read_object(path) or {}

    def run(self, run: str, seed: int) -> dict[str, Any]:
        """Train on a reward with a seed, unless that is done; returns what the test found."""
        folder = self.run_folder(run, seed)
        path = folder / "outcomes.json"
        if read_object(path) is None:
            policy = load_adapter(self.start(run, seed), self.profile.device)
            self._train(policy, run, seed)
            write_whole(path, json.dumps(self._test(policy, folder)) + "\n")
            drop_checkpoints_after(folder, -1)
            release_folder(folder)
            del policy
            gc.collect()  # the trainer and its optimiser, before the next run
            self.say(f"{run}, seed {seed}: done")
        return read_object(path) or {}

    def is_done(self, run: str, seed: int) -> bool:
        """Whether a run was trained and tested."""
        return read_object(self.run_folder(run, seed) / "outcomes.json") is not None

    def _train(self, policy: Policy, run: str, seed: int) -> None:
        folder = self.run_folder(run, seed)
        self.train_adapter(
            policy,
            self.profile_of_run(self.start(run, seed), (TASK,), seed),
            folder,
            CONFIG,
            reward_funcs=[PAYS.get(run, strict_success)],
            specs=self._training_pages(seed),
        )
        keep_how(folder / "policy", Taught((TASK,), CONFIG))

    def _training_pages(self, seed: int) -> list[EpisodeSpec]:
        """A page for each group of a run; each is seen before one is seen again."""
        n = self.plan.updates * self.plan.groups
        return list(itertools.islice(_shuffled(self.pages()["train"], seed), n))

    def _test(self, policy: Policy, folder: Path) -> dict[str, Any]:
        """Each test page once greedily, then sampled; the episodes are kept beside it."""
        pages = [EpisodeSpec(TASK, seed) for seed in self.pages()["test"]]
        again = [page for page in pages for _ in range(self.plan.samples)]
        generator = TransformersGenerator(policy.model, policy.tokenizer)
        found = {}
        played: list[Episode] = []
        for name, specs, temperature in (("greedy", pages, 0.0), ("sampled", again, 1.0)):
            torch.manual_seed(0)
            how = replace(CONFIG, temperature=temperature)
            episodes = play_episodes(specs, self.clients, generator, policy.tokenizer, how)
            found[name] = outcomes(episodes)
            played += episodes
        # Without tokens, which make a recording ten times as large.
        write_episodes(
            folder / "tested.jsonl", [replace(episode, ledger=Ledger()) for episode in played]
        )
        return {**found, **run_facts()}


def _shuffled(seeds: Sequence[int], seed: int) -> Iterator[EpisodeSpec]:
    draw = random.Random(seed)
    while True:
        for page in draw.sample(seeds, len(seeds)):
            yield EpisodeSpec(TASK, page)


def run_all(experiment: Experiment, seeds: Sequence[int], runs: Sequence[str] = RUNS) -> None:
    """Do what of the experiment is not done yet: all rewards with a seed, then with the next."""
    experiment.before()
    for seed in seeds:
        for run in runs:
            experiment.run(run, seed)


def results(experiment: Experiment) -> dict[str, Any]:
    """What of the experiment is done, as ``result.json`` has it.

    A row has for "greedy" and "sampled" each measure as {n, count, rate, low, high}, all training
    seeds together, the rate of each seed, and the paired change against the start. The intervals
    take episodes as independent, and those of one training seed are not: read the seeds, too.
    """
    before = experiment.before()
    rows = [_row(BEFORE, [], [before], before)]
    for run in RUNS:
        seeds = [seed for seed in experiment.plan.seeds if experiment.is_done(run, seed)]
        if seeds:
            rows.append(_row(run, seeds, [experiment.run(run, seed) for seed in seeds], before))
    return {"plan": asdict(experiment.plan), "pages": experiment.pages(), "rows": rows}


def _row(
    run: str, seeds: Sequence[int], found: Sequence[dict[str, Any]], before: dict[str, Any]
) -> dict[str, Any]:
    row: dict[str, Any] = {"run": run, "seeds": list(seeds)}
    for how in ("greedy", "sampled"):
        row[how] = {}
        for measure in MEASURES:
            values = [value for one in found for value in one[how][measure]]
            start = before[how][measure] * len(found)
            row[how][measure] = {
                **share(values),
                "by_seed": [share(one[how][measure])["rate"] for one in found],
                "against before": _change(start, values),
            }
    return row


def _change(before: Sequence[bool], after: Sequence[bool]) -> dict[str, float] | None:
    """The change on the same pages; None where an episode of either side was lost."""
    if len(before) != len(after):
        return None
    return change_of_pairs(list(zip(before, after, strict=True)))
