"""Self-imitation: what the policy has solved before is learned from again.

``COURSE_SELF_IMITATION`` says how many episodes of that kind an update has. The formulation is that
of Oh et al. (2018), Self-Imitation Learning, arXiv 1806.05635, equation 2:

    loss = - log pi(a | s) (R - V(s))+

over episodes that are drawn from a memory with a probability in proportion to (R - V(s))+. Here R
is 1, because only solved episodes are kept, and V(s) is what the policy solves of the episode's
task at present, so that an episode weighs less the better its task is solved. There is no critic.
As in the paper nothing corrects for the older policy that played the episode: its ratio is 1. The
rows join the batch of an update with (R - V)+ in the place of an advantage; the loss is the
trainer's own, divided by the tokens of all rows. What is added costs no episode.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.nn.functional import pad

from helpers.episodes.episode import Episode

if TYPE_CHECKING:
    from helpers.learning.trainer import BrowserGRPOTrainer
    from helpers.settings.profiles import Profile

Batch = dict[str, Any]

REMEMBERED = 16  # solved episodes of each task, the newest
KEPT = 0.9  # of what is known about a task's success, when episodes of it are played


class SolvedEpisodes:
    """The memory of solved episodes, and of how well each task is solved."""

    def __init__(self) -> None:
        self.episodes: dict[str, list[Episode]] = {}
        self.success: dict[str, float] = {}

    def add(self, played: Sequence[Episode]) -> None:
        """Remember what is solved among the episodes of an update."""
        for episode in played:
            if episode.solved and episode.ledger.completion_length:
                kept = [*self.episodes.get(episode.task, []), episode]
                self.episodes[episode.task] = kept[-REMEMBERED:]

    def measure(self, played: Sequence[Episode]) -> None:
        """Bring V up to date: each task's success, in which what is older counts for less."""
        for task in dict.fromkeys(episode.task for episode in played):
            rewards = [e.reward for e in played if e.task == task and e.reward is not None]
            if rewards:
                now = sum(rewards) / len(rewards)
                before = self.success.get(task, now)
                self.success[task] = KEPT * before + (1 - KEPT) * now

    def weight(self, episode: Episode) -> float:
        """(R - V)+ of a remembered episode."""
        return max(0.0, 1.0 - self.success.get(episode.task, 0.0))

    def draw(self, n: int, draw: random.Random) -> list[Episode]:
        """At most ``n`` different episodes, each with a probability in proportion to its weight."""
        left = [episode for kept in self.episodes.values() for episode in kept]
        drawn: list[Episode] = []
        while left and len(drawn) < n:
            weights = [self.weight(episode) for episode in left]
            if not any(weights):
                break
            place = draw.choices(range(len(left)), weights)[0]
            drawn.append(left.pop(place))
        return drawn


class SelfImitation:
    """Adds remembered episodes to the batches of a trainer, and remembers the new ones."""

    name = "self_imitation"

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.memory = SolvedEpisodes()

    def __call__(self, trainer: BrowserGRPOTrainer, batch: Batch) -> Batch:
        """The batch with its further rows; their number can be dealt out to its parts."""
        played = trainer.recorder.episodes
        self.memory.measure(played)
        process = os.environ.get("RANK", "0")
        draw = random.Random(f"{self.profile.seed} {trainer.state.global_step} {process}")
        again = self.memory.draw(self.profile.self_imitation, draw)
        again = again[: len(again) // self.profile.accumulate * self.profile.accumulate]
        self.memory.add(played)
        trainer.log_number("replayed", len(again))
        weights = [self.memory.weight(episode) for episode in again]
        return with_replayed(trainer, batch, again, weights)

    def state(self) -> dict[str, Any]:
        """What `load` needs to go on from here; ready for JSON."""
        episodes = {
            task: [episode.to_json() for episode in kept]
            for task, kept in self.memory.episodes.items()
        }
        return {"episodes": episodes, "success": self.memory.success}

    def load(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken."""
        self.memory.success = state["success"]
        self.memory.episodes = {
            task: [Episode.from_json(record) for record in kept]
            for task, kept in state["episodes"].items()
        }


def with_replayed(
    trainer: BrowserGRPOTrainer,
    batch: Batch,
    episodes: Sequence[Episode],
    advantages: Sequence[float],
) -> Batch:
    """A batch with a row more for each episode.

    ``replayed`` says which rows those are: (batch), True for one that was not played now. The
    tokens of the whole batch, by which the loss is divided, are counted anew.
    """
    tokens = sum(sum(episode.ledger.columns()["env_mask"]) for episode in episodes)
    count = torch.tensor(tokens, device=trainer.accelerator.device)
    more = cast("torch.Tensor", trainer.accelerator.gather(count)).sum()
    joined = {**batch, "num_items_in_batch": batch["num_items_in_batch"] + more}
    if not episodes:
        return joined
    old = len(batch["advantages"])
    rows = _rows(trainer, episodes)
    rows["advantages"] = _like(torch.tensor(list(advantages)), batch["advantages"], rows)
    if "old_per_token_logps" in batch:  # vLLM's correction: these rows need none
        rows["old_per_token_logps"] = _logprobs_now(trainer, rows)
        ratio = batch["importance_sampling_ratio"]
        rows["importance_sampling_ratio"] = ratio.new_ones(len(episodes), ratio.shape[1])
    for name, value in rows.items():
        if name in batch:
            side = "left" if name.startswith("prompt") else "right"
            filler = trainer.filler if name.endswith("_ids") else 0
            joined[name] = _stacked(batch[name], value, side, filler)
    joined["replayed"] = torch.arange(old + len(episodes), device=batch["advantages"].device) >= old
    return joined


def _rows(trainer: BrowserGRPOTrainer, episodes: Sequence[Episode]) -> dict[str, torch.Tensor]:
    """The tokens of episodes as the trainer has them: prompts and completions, and their masks."""
    columns = [episode.ledger.columns() for episode in episodes]
    filler = trainer.filler
    prompts = [column["prompt_ids"] for column in columns]
    completions = [column["completion_ids"] for column in columns]
    rows = {
        "prompt_ids": _padded(prompts, "left", filler),
        "prompt_mask": _padded([[1] * len(ids) for ids in prompts], "left", 0),
        "completion_ids": _padded(completions, "right", filler),
        "completion_mask": _padded([[1] * len(ids) for ids in completions], "right", 0),
        "tool_mask": _padded([column["env_mask"] for column in columns], "right", 0),
        "sampling_per_token_logps": _padded([c["logprobs"] for c in columns], "right", 0.0),
    }
    return {name: rows[name].to(trainer.accelerator.device) for name in rows}


def _padded(rows: Sequence[Sequence[float]], side: str, filler: float) -> torch.Tensor:
    """Rows of different lengths as one tensor (rows, longest)."""
    longest = max(map(len, rows), default=0)
    whole: list[list[float]] = []
    for row in rows:
        gap = [filler] * (longest - len(row))
        whole.append([*gap, *row] if side == "left" else [*row, *gap])
    kind = torch.float32 if isinstance(filler, float) else torch.long
    return torch.tensor(whole, dtype=kind).view(len(rows), longest)


def _like(
    values: torch.Tensor, advantages: torch.Tensor, rows: dict[str, torch.Tensor]
) -> torch.Tensor:
    """Advantages of rows in the shape of a batch's: (rows), or (rows, tokens)."""
    values = values.to(advantages)
    if advantages.dim() == 1:
        return values
    return values[:, None] * rows["tool_mask"].to(advantages)


def _logprobs_now(trainer: BrowserGRPOTrainer, rows: dict[str, torch.Tensor]) -> torch.Tensor:
    """The logprobs (rows, tokens) that the policy as it is now gives the rows."""
    with torch.no_grad():
        return trainer._get_per_token_logps_and_entropies(
            cast("torch.nn.Module", trainer.model),
            torch.cat([rows["prompt_ids"], rows["completion_ids"]], dim=1),
            torch.cat([rows["prompt_mask"], rows["completion_mask"]], dim=1),
            rows["completion_ids"].shape[1],
        )[0]


def _stacked(above: torch.Tensor, below: torch.Tensor, side: str, filler: float) -> torch.Tensor:
    """Two tensors of rows one above the other, each as wide as the wider one."""
    if above.dim() > 1:
        width = max(above.shape[1], below.shape[1])
        above, below = (_widened(part, width, side, filler) for part in (above, below))
    return torch.cat([above, below.to(above)])


def _widened(rows: torch.Tensor, width: int, side: str, filler: float) -> torch.Tensor:
    gap = width - rows.shape[1]
    return pad(rows, (gap, 0) if side == "left" else (0, gap), value=filler)
