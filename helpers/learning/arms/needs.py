"""What a task needs to be played, measured on the episodes of its script.

How many turns, how long an answer, how long an episode: none of it is written down by hand. The
script plays a few training pages with room to spare, and what it used is what a policy is given.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from helpers.episodes.config import EpisodeSpec, RolloutConfig
from helpers.episodes.how_played import LONGEST_SHOWN, Taught, thinking_on
from helpers.episodes.ledger import POLICY
from helpers.episodes.play import play
from helpers.episodes.players import ScriptPlayer
from helpers.episodes.tasks import train_seeds
from helpers.learning.warm_up import script_for
from helpers.policy.prompts import PromptConfig
from helpers.settings.files import read_object, write_json

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from helpers.browser.models import Client
    from helpers.episodes.episode import Episode

ROOM = RolloutConfig(max_turns=16, max_tokens=64)
ROOM_TO_THINK = 256  # tokens of an answer that begins with a thought
PAGES = 12  # of each task that its script plays
SPARE_TURNS = 1  # beyond the script's, for a policy that errs once
SPARE_LENGTH = 136  # tokens of an episode, beyond the longest that is shown
SPARE_TOKENS = 4  # of an answer, for an element with a longer number

TAUGHT = ("click", "fill", "press", "select_option")  # shown in every prompt, used or not


@dataclass(frozen=True)
class Needs:
    """What the script of a task used in the episodes that it solved, at most."""

    played: int
    solved: int
    turns: int
    mean_turns: float
    answer_tokens: int
    """Of the longest answer."""
    episode_tokens: int
    """Of the longest episode: the prompt, the answers and the pages between them."""
    actions: tuple[str, ...]


def measure_needs(
    tasks: Sequence[str],
    clients: Sequence[Client],
    tokenizer: PreTrainedTokenizerBase,
    listeners: bool = False,
    longest: int = LONGEST_SHOWN,
    thinks: Sequence[str] = (),
) -> dict[str, Needs]:
    """Let the script of each task play a few training pages; {task: what it used}.

    ``listeners``: a field of `PromptConfig`, ``thinks``: one of `RolloutConfig`. ``longest``:
    tokens that an episode may have. A task whose script solved none of them is left out.
    """
    prompt = PromptConfig(TAUGHT, examples=(), listeners=listeners)
    config = replace(ROOM, max_length=longest, prompt=prompt, thinks=tuple(thinks))
    if thinks:
        config = replace(config, max_tokens=ROOM_TO_THINK)
    specs = [EpisodeSpec(task, seed) for task in tasks for seed in train_seeds(task)[:PAGES]]
    episodes = play(specs, clients, ScriptPlayer(script_for(config), tokenizer), config)
    needs = {}
    for task in tasks:
        own = [episode for episode in episodes if episode.task == task]
        if any(episode.solved for episode in own):
            needs[task] = _needs_of(own)
    return needs


def keep_needs(path: Path, needs: dict[str, Needs]) -> dict[str, Needs]:
    """Write what was measured into a file, for `kept_needs`; returns it."""
    known = {task: asdict(need) for task, need in needs.items()}
    write_json(path, known)
    return needs


def kept_needs(path: Path) -> dict[str, Needs] | None:
    """What `keep_needs` has written; None where it has not."""
    known = read_object(path)
    if known is None:
        return None
    return {
        task: Needs(**{**need, "actions": tuple(need["actions"])}) for task, need in known.items()
    }


def measured_way(
    tasks: Sequence[str],
    folder: Path,
    clients: Sequence[Client],
    tokenizer: PreTrainedTokenizerBase,
    longest: int = LONGEST_SHOWN,
    thinks: Sequence[str] = (),
) -> Taught:
    """The tasks that can be shown, and how all of them are played together (`config_of`).

    The prompt shows every element that listens to clicks: scripts act on those, too. Left out are
    tasks whose script solves less than half of its pages, or whose episodes are longer than
    ``longest`` tokens. ``thinks``: the tasks whose answers begin with a thought (`thinking_on`).
    What was measured is kept in ``folder``/needs.json.
    """
    path = folder / "needs.json"
    needs = kept_needs(path)
    if needs is None:
        measured = measure_needs(tasks, clients, tokenizer, True, longest, thinks)
        needs = keep_needs(path, measured)
    shown = {task: need for task, need in needs.items() if need.solved >= need.played / 2}
    config = config_of(shown)
    prompt = replace(config.prompt, listeners=True)
    config = replace(config, prompt=prompt, max_length=longest + SPARE_LENGTH)
    return thinking_on(thinks, Taught(tuple(shown), config))


def _needs_of(episodes: Sequence[Episode]) -> Needs:
    solved = [episode for episode in episodes if episode.solved]
    turns = [len(episode.turns) for episode in solved]
    answers = [length for episode in solved for length in _answer_lengths(episode)]
    actions = {turn.parsed.name for episode in solved for turn in episode.turns}
    return Needs(
        played=len(episodes),
        solved=len(solved),
        turns=max(turns),
        mean_turns=round(sum(turns) / len(turns), 2),
        answer_tokens=max(answers),
        episode_tokens=max(len(episode.ledger.ids) for episode in solved),
        actions=tuple(sorted(actions)),
    )


def _answer_lengths(episode: Episode) -> list[int]:
    """The tokens of each answer of an episode."""
    runs = itertools.groupby(episode.ledger.owner)
    return [len(list(tokens)) for owner, tokens in runs if owner == POLICY]


def config_of(needs: dict[str, Needs], temperature: float = 1.0) -> RolloutConfig:
    """How tasks are played together: one prompt for all, and for each the turns that it needs."""
    used = {action for need in needs.values() for action in need.actions}
    further = tuple(sorted(used - set(TAUGHT)))
    return RolloutConfig(
        max_turns=max(need.turns for need in needs.values()) + SPARE_TURNS,
        max_tokens=max(need.answer_tokens for need in needs.values()) + SPARE_TOKENS,
        temperature=temperature,
        prompt=PromptConfig(actions=(*TAUGHT, *further), examples=()),
        turns={task: need.turns + SPARE_TURNS for task, need in needs.items()},
    )
