"""Reward functions as `GRPOTrainer` calls them, and the group advantages it computes from them, written to be read.

A reward function gets the columns of the rollout as keyword arguments, one list entry per sample, and returns one number
per sample, or None for a sample that must not count (the infrastructure failed).
"""


def strict_success(strict_reward: list[float | None], **_) -> list[float | None]:
    """1 where the page's own record says the task is fully solved, 0 where not, None where the infrastructure failed."""
    return strict_reward


def naive_success(
    raw_reward: list[float | None], strict_reward: list[float | None], **_
) -> list[float | None]:
    """``raw > 0`` counted as success, as BrowserGym does it. Kept to show what it pays for; not for training."""
    return [
        None if strict is None else float((raw or 0.0) > 0)
        for raw, strict in zip(raw_reward, strict_reward, strict=True)
    ]


def _over_turns(turn_rewards: list[list[float | None]], combine) -> list[float | None]:
    return [
        None if any(r is None for r in rewards) else (float(combine(rewards)) if rewards else 0.0)
        for rewards in turn_rewards
    ]


def sum_of_turns(turn_rewards: list[list[float | None]], **_) -> list[float | None]:
    """Sum of the rewards of an episode's turns."""
    return _over_turns(turn_rewards, sum)


def mean_of_turns(turn_rewards: list[list[float | None]], **_) -> list[float | None]:
    """Mean of the rewards of an episode's turns: prefers short episodes."""
    return _over_turns(turn_rewards, lambda r: sum(r) / len(r))


def max_of_turns(turn_rewards: list[list[float | None]], **_) -> list[float | None]:
    """The best reward of any turn."""
    return _over_turns(turn_rewards, max)


def step_cost(turn_rewards: list[list[float | None]], cost: float = 0.1, **_) -> list[float | None]:
    """Minus ``cost`` for every turn."""
    return [
        None if any(r is None for r in rewards) else -cost * len(rewards)
        for rewards in turn_rewards
    ]


def valid_format(
    kinds: list[list[str]], strict_reward: list[float | None], **_
) -> list[float | None]:
    """The share of an episode's answers that were actions at all."""
    return [
        None if strict is None or not answers else answers.count("ok") / len(answers)
        for answers, strict in zip(kinds, strict_reward, strict=True)
    ]
