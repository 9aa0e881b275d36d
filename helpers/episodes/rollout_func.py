"""The ``rollout_func`` of `GRPOTrainer`: prompts in, played episodes as columns out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from helpers.episodes.config import EpisodeSpec, RolloutConfig
from helpers.episodes.episode import Episode
from helpers.episodes.ledger import check_rollout
from helpers.episodes.play import play_episodes
from helpers.policy.choosing import trainer_generator

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase
    from trl import GRPOTrainer

    from helpers.browser.models import Client


def rollout_columns(
    episodes: Sequence[Episode], tokenizer: PreTrainedTokenizerBase
) -> dict[str, list]:
    """What ``rollout_func`` returns: the trainer's four columns, and one more per fact.

    The reward functions read the others. An episode that ended before the policy said a word still
    needs a token, since TRL refuses an empty completion: where the infrastructure ended it, its
    reward is None, which keeps it out of the group's baseline and sets its advantage to 0.
    """
    rows = [_row(episode, cast(int, tokenizer.eos_token_id)) for episode in episodes]
    return {name: [row[name] for row in rows] for name in rows[0]}


def _row(episode: Episode, filler: int) -> dict[str, Any]:
    """One episode as the trainer's columns; ``filler``: the token of one without an answer."""
    if episode.ledger.completion_length:
        tokens = episode.ledger.columns()
    else:
        tokens = {
            "prompt_ids": [filler],
            "completion_ids": [filler],
            "env_mask": [1],
            "logprobs": [0.0],
        }
    return {
        **tokens,
        "task": episode.task,
        "seed": episode.seed,
        "strict_reward": episode.reward,
        "raw_reward": episode.raw_reward,
        "obeyed": episode.obeyed,
        "turn_rewards": [turn.reward for turn in episode.turns],
        "kinds": episode.kinds,
        "ended": episode.ended,
    }


def make_rollout_func(
    clients: Sequence[Client],
    tokenizer: PreTrainedTokenizerBase,
    config: RolloutConfig,
    on_batch: Callable[[list[Episode]], None] | None = None,
) -> Callable[[list[str], GRPOTrainer], dict[str, list]]:
    """Build the ``rollout_func`` of `GRPOTrainer`.

    The trainer calls it with prompts (``str(EpisodeSpec)``) that it has already repeated
    ``num_generations`` times, in group order; it gets back exactly one sample per prompt, checked
    by `check_rollout`. ``on_batch`` sees every batch of episodes.
    """

    def rollout_func(prompts: list[str], trainer: GRPOTrainer) -> dict[str, list]:
        specs = [EpisodeSpec.read(prompt) for prompt in prompts]
        generator = trainer_generator(trainer, tokenizer)
        episodes = play_episodes(specs, clients, generator, tokenizer, config)
        columns = rollout_columns(episodes, tokenizer)
        check_rollout(columns, cast(int, trainer.num_generations))
        if on_batch:
            on_batch(episodes)
        return columns

    return rollout_func
