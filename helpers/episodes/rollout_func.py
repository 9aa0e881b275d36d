"""Plays many episodes at once: one generation call per turn for all that are alive, the browsers stepped in parallel."""

from collections.abc import Callable, Sequence
from typing import Any

from helpers.episodes.config import EpisodeSpec, RolloutConfig
from helpers.episodes.episode import Episode
from helpers.episodes.ledger import check_rollout
from helpers.episodes.play import play_episodes
from helpers.policy.choosing import trainer_generator


def rollout_columns(episodes: Sequence[Episode], tokenizer: Any) -> dict[str, list]:
    """The dict that ``rollout_func`` returns: the trainer's four columns and, for the reward functions, one more per fact.

    An episode that the infrastructure ended before the policy said a word still needs a token (TRL refuses an empty
    completion); its reward is None, which keeps it out of the group's baseline and sets its advantage to 0.
    """
    filler = {
        "prompt_ids": [tokenizer.eos_token_id],
        "completion_ids": [tokenizer.eos_token_id],
        "env_mask": [1],
        "logprobs": [0.0],
    }
    rows = [
        {
            **(e.ledger.columns() if e.ledger.completion_length else filler),
            "task": e.task,
            "seed": e.seed,
            "strict_reward": e.reward,
            "raw_reward": e.raw_reward,
            "turn_rewards": [t.reward for t in e.turns],
            "kinds": e.kinds,
            "ended": e.ended,
        }
        for e in episodes
    ]
    return {key: [row[key] for row in rows] for key in rows[0]}


def make_rollout_func(
    clients: Sequence[Any],
    tokenizer: Any,
    config: RolloutConfig,
    on_batch: Callable[[list[Episode]], None] | None = None,
) -> Callable[[list[str], Any], dict]:
    """Build the ``rollout_func`` of `GRPOTrainer`.

    The trainer calls it with prompts (``str(EpisodeSpec)``) that it has already repeated ``num_generations`` times, in group
    order; it gets back exactly one sample per prompt, checked by `check_rollout`. ``on_batch`` sees every batch of episodes.
    """

    def rollout_func(prompts: list[str], trainer: Any) -> dict[str, list]:
        generator = trainer_generator(trainer, tokenizer)
        episodes = play_episodes(
            [EpisodeSpec.read(p) for p in prompts], clients, generator, tokenizer, config
        )
        columns = rollout_columns(episodes, tokenizer)
        check_rollout(columns, trainer.num_generations)
        if on_batch:
            on_batch(episodes)
        return columns

    return rollout_func
