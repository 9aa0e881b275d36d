"""Advantages other than GRPO's, for ``COURSE_ADVANTAGES``; the loss stays what it is.

TRL computes GRPO's advantages, one per episode. What is here takes their place in the batch:

- turns: an advantage per turn is added to them, from the turns of a group that were taken on the
  same page (`turn_advantages`: GiGPO, arXiv 2505.10978).
- solved: 1 for an episode that was solved, 0 for any other (`solved_advantages`): each update is a
  step of fine-tuning on the policy's own solved episodes, which is rejection sampling (RAFT, arXiv
  2304.06767) with a batch of episodes per step.
- shuffled: GRPO's own, dealt out anew within the batch (`shuffled`). A control: their sizes are
  right and which episode has which is chance, so what is learned all the same is not learned from
  the rewards.
"""

from __future__ import annotations

import itertools
import os
import random
import statistics
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.nn.functional import pad

from helpers.episodes.advantages import EPSILON
from helpers.episodes.ledger import POLICY

if TYPE_CHECKING:
    from helpers.episodes.episode import Episode
    from helpers.learning.trainer import BrowserGRPOTrainer

Batch = dict[str, Any]

DISCOUNT = 0.95  # gamma, of a reward that comes one turn later
TURN_WEIGHT = 1.0  # omega, of a turn's advantage beside its episode's

# Both are the paper's values.


def turn_advantages(
    episodes: Sequence[Episode], group_size: int, discount: float = DISCOUNT
) -> list[list[float]]:
    """The step relative advantage of every turn of every episode.

    ``episodes``: groups of ``group_size`` next to each other. Turns of a group whose pages are
    equal, line by line, form a group of their own (the paper's anchor state groups); with R_t the
    discounted return from turn t on, the advantage of a turn is

        A^S(a_t) = (R_t - mean of the R in its turn group) / (their standard deviation + 1e-4)

    The standard deviation (n - 1) is the paper's F_norm as GRPO has it here. A turn whose page no
    other turn of the group was taken on has advantage 0, and so have those of an episode that the
    infrastructure lost, which count in no mean.

    Source: Feng et al. (2025), Group-in-Group Policy Optimization, arXiv 2505.10978: the section
    on the step relative advantage.
    """
    advantages = [[0.0] * len(episode.turns) for episode in episodes]
    for start in range(0, len(episodes), group_size):
        places: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
        for i in range(start, start + group_size):
            if episodes[i].reward is None:
                continue
            for t, turn in enumerate(episodes[i].turns):
                places[tuple(turn.page)].append((i, t))
        for together in places.values():
            values = [_return(episodes[i], t, discount) for i, t in together]
            for (i, t), value in zip(together, _relative(values), strict=True):
                advantages[i][t] = value
    return advantages


def _return(episode: Episode, turn: int, discount: float) -> float:
    """R_t: the reward, which a page pays at the end, discounted by the turns until then."""
    return discount ** (len(episode.turns) - 1 - turn) * (episode.reward or 0.0)


def _relative(values: Sequence[float]) -> list[float]:
    """Values against their mean, in standard deviations; 0 for one alone."""
    if len(values) < 2:
        return [0.0] * len(values)
    mean = statistics.fmean(values)
    deviation = statistics.stdev(values)
    return [(value - mean) / (deviation + EPSILON) for value in values]


def solved_advantages(episodes: Sequence[Episode]) -> list[float]:
    """1 for each episode that was solved, 0 for any other."""
    return [float(episode.solved) for episode in episodes]


def shuffled(advantages: Sequence[float], counts: Sequence[bool], draw: random.Random) -> list:
    """The advantages in another order; where ``counts`` is False they stay in their place."""
    places = [place for place, counted in enumerate(counts) if counted]
    others = draw.sample(places, len(places))
    mixed = list(advantages)
    for place, other in zip(places, others, strict=True):
        mixed[place] = advantages[other]
    return mixed


# The same in a batch of the trainer; each takes the place of ``batch["advantages"]``.


def with_turns(trainer: BrowserGRPOTrainer, batch: Batch) -> Batch:
    """Advantages per token, (batch, tokens): A(a_t) = A^E + omega A^S(a_t) for those of turn t.

    A^E is the advantage of the episode, as GRPO has it: the paper's combination of both levels.
    """
    episodes = trainer.recorder.episodes
    of_turns = turn_advantages(episodes, cast("int", trainer.num_generations))
    width = batch["completion_ids"].shape[1]
    rows = [
        pad(
            torch.tensor(_per_token(episode, float(whole), turns)),
            (0, width - max(1, episode.ledger.completion_length)),
        )
        for episode, whole, turns in zip(episodes, batch["advantages"], of_turns, strict=True)
    ]
    return {**batch, "advantages": torch.stack(rows).to(batch["advantages"])}


def _per_token(episode: Episode, whole: float, turns: Sequence[float]) -> list[float]:
    """The advantage of each token of a completion; what is not the policy's has none."""
    owners = episode.ledger.owner[episode.ledger.prompt_length :]
    owners = owners[: episode.ledger.completion_length]
    if not owners:  # it ended without an answer, and one token stands in its place
        return [whole]
    values: list[float] = []
    of_turn = iter(turns)
    for owner, tokens in itertools.groupby(owners):
        value = whole + TURN_WEIGHT * next(of_turn) if owner == POLICY else 0.0
        values += [value] * len(list(tokens))
    return values


def with_solved(trainer: BrowserGRPOTrainer, batch: Batch) -> Batch:
    """Advantages of `solved_advantages`."""
    values = solved_advantages(trainer.recorder.episodes)
    return {**batch, "advantages": torch.tensor(values).to(batch["advantages"])}


def with_shuffled(trainer: BrowserGRPOTrainer, batch: Batch) -> Batch:
    """Advantages in an order that is fixed by the run's seed, its update and the process."""
    process = os.environ.get("RANK", "0")
    draw = random.Random(f"{trainer.args.seed} {trainer.state.global_step} {process}")
    counts = [episode.reward is not None for episode in trainer.recorder.episodes]
    values = shuffled(batch["advantages"].tolist(), counts, draw)
    return {**batch, "advantages": torch.tensor(values).to(batch["advantages"])}


INSTEAD = {"turns": with_turns, "solved": with_solved, "shuffled": with_shuffled}
"""What takes the place of GRPO's advantages, by the value of ``COURSE_ADVANTAGES``."""
