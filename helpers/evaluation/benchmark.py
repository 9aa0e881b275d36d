"""Play a standard set from beginning to end, and go on where an earlier run was stopped.

The pages are played in parts whose limits do not depend on what is done already, so a run that was
stopped has the same result as one that was not. A part's outcomes are written when it is done; a
part that was stopped in its middle is played again.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from helpers.episodes.config import EpisodeSpec, RolloutConfig
from helpers.episodes.episode import Episode
from helpers.episodes.how_played import evaluation_config, rollout_config, taught_config
from helpers.episodes.play import play, play_episodes
from helpers.episodes.players import Agent, AgentPlayer
from helpers.episodes.tasks import task_names
from helpers.evaluation.agents import noop_on_error
from helpers.evaluation.evaluate import OWN_PROMPTS
from helpers.evaluation.outcomes import Outcome, append_outcomes, read_outcomes
from helpers.evaluation.standard_sets import StandardSet
from helpers.output import Progress
from helpers.policy.choosing import standalone_generator
from helpers.settings.language import say

if TYPE_CHECKING:
    from helpers.browser.models import Client
    from helpers.settings.profiles import Profile

PART = 64  # pages of one part, unless a caller says otherwise
TRIES = 3  # of a page that the infrastructure loses
FILE = "outcomes.jsonl"

Report = Callable[[int, int], None]  # (done, of), as episodes end
Players = Callable[[Sequence[EpisodeSpec], Report | None], list[Episode]]
"""How pages are played; all of one call together."""


def agent_plays(agent: Agent, chosen: StandardSet, clients: Sequence[Client]) -> Players:
    """Pages are played by an agent. Where it raises it waits: its episode is lost, not the run."""
    config = _with_turns_of(chosen, rollout_config(chosen.tasks))
    player = AgentPlayer(noop_on_error(agent))

    def play_part(pages: Sequence[EpisodeSpec], report: Report | None) -> list[Episode]:
        return play(pages, clients, player, config, report)

    return play_part


def policy_plays(
    name: str,
    chosen: StandardSet,
    clients: Sequence[Client],
    profile: Profile,
    temperature: float,
    taught: str | Sequence[str],
) -> Players:
    """Pages are played by a policy by name.

    ``taught``: the tasks that it was trained on, whose common prompt it reads; `OWN_PROMPTS`: each
    task with a prompt of its own, and then no part may hold two tasks; nothing: as the policy's
    folder says (`helpers.episodes.how_played.keep_how`), which it must. Then it also gives up where
    it was taught to, if that is before the set's last turn.
    """
    kept = None if taught else taught_config(name, temperature)
    longest = kept.max_length if kept else 0
    tokenizer, generator = standalone_generator(name, profile, longest)

    def asked(tasks: tuple[str, ...]) -> RolloutConfig:
        if kept is not None:
            return _at_most_turns_of(chosen, kept)
        prompt = tasks if taught == OWN_PROMPTS else task_names(taught)
        config = evaluation_config(tasks, prompt, profile, temperature)
        return _with_turns_of(chosen, config)

    def play_part(pages: Sequence[EpisodeSpec], report: Report | None) -> list[Episode]:
        config = asked(tuple(dict.fromkeys(page.task for page in pages)))
        _fix_what_is_sampled(pages)
        return play_episodes(pages, clients, generator, tokenizer, config, report)

    return play_part


def _with_turns_of(chosen: StandardSet, config: RolloutConfig) -> RolloutConfig:
    """The config with the set's number of turns, where it has one for all tasks."""
    if chosen.turns is None:
        return config
    return replace(config, max_turns=chosen.turns, turns={})


def _at_most_turns_of(chosen: StandardSet, config: RolloutConfig) -> RolloutConfig:
    """The config with no more turns than the set's, where it has a number for all tasks."""
    if chosen.turns is None:
        return config
    most = chosen.turns
    turns = {task: min(turns, most) for task, turns in config.turns.items()}
    return replace(config, max_turns=min(config.max_turns, most), turns=turns)


def _fix_what_is_sampled(pages: Sequence[EpisodeSpec]) -> None:
    """Set torch's random numbers by the pages, so that a part is sampled alike in every run."""
    import torch  # takes seconds, and an agent needs none of it

    torch.manual_seed(zlib.crc32(" ".join(str(page) for page in pages).encode()))


def parts(
    pages: Sequence[EpisodeSpec], one_task_each: bool, size: int | None = None
) -> Iterator[list[int]]:
    """The places of the pages of each part: ``size`` of them (by default `PART`), or what is left.

    ``one_task_each``: no part holds two tasks.
    """
    size = size or PART
    part: list[int] = []
    for place, page in enumerate(pages):
        other_task = one_task_each and part and pages[part[0]].task != page.task
        if len(part) == size or other_task:
            yield part
            part = []
        part.append(place)
    if part:
        yield part


def play_set(
    chosen: StandardSet,
    players: Players,
    folder: Path,
    one_task_each: bool = False,
    part_size: int | None = None,
) -> list[Outcome]:
    """Play what is not yet in ``folder``; returns the outcomes of all pages, in their order.

    Pages that the infrastructure lost are played again at the end, up to `TRIES` times in all.
    Raises `RunFileError` where the disk refuses.
    """
    path, pages = folder / FILE, chosen.pages
    outcomes = read_outcomes(path, pages)
    what = say("{name}: episodes", name=chosen.name)
    with Progress(len(pages), what, initial=len(outcomes)) as bar:
        for part in parts(pages, one_task_each, part_size):
            if not all(place in outcomes for place in part):
                before = len(set(outcomes) - set(part))
                outcomes |= _play_places(path, pages, part, players, _report(bar, before))
        bar.reach(len(outcomes))
    for _ in range(TRIES - 1):
        lost = [place for place, outcome in outcomes.items() if outcome.lost]
        if not lost:
            break
        print(
            say("{n} episodes that the infrastructure lost are played again.", n=len(lost)),
            flush=True,
        )
        for task in dict.fromkeys(pages[place].task for place in lost):
            those = [place for place in lost if pages[place].task == task]
            outcomes |= _play_places(path, pages, those, players, None)
    return [outcomes[place] for place in range(len(pages))]


def _report(bar: Progress, before: int) -> Report:
    return lambda done, of: bar.reach(before + done)


def _play_places(
    path: Path,
    pages: Sequence[EpisodeSpec],
    places: Sequence[int],
    players: Players,
    report: Report | None,
) -> dict[int, Outcome]:
    """Play the pages at these places and write down what came of them."""
    episodes = players([pages[place] for place in places], report)
    played = {
        place: Outcome.of(place, episode) for place, episode in zip(places, episodes, strict=True)
    }
    append_outcomes(path, played.values())
    return played
