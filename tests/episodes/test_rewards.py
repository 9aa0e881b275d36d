"""Reward functions, and advantages against the trainer's own computation."""

import random

import pytest
from trl import GRPOTrainer

from helpers.episodes.advantages import group_advantages, no_signal_probability
from helpers.episodes.rewards import (
    max_of_turns,
    mean_of_turns,
    raw_success,
    safe_success,
    step_cost,
    strict_success,
    sum_of_turns,
    valid_format,
)

GROUP, GROUPS = 4, 3


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_advantages_are_the_trainers_own(tiny_trainer, scale):
    given: list[float | None] = []

    def rollout_func(prompts, trainer):
        n = len(prompts)
        return {
            "prompt_ids": [[5, 6]] * n,
            "completion_ids": [[7, 8, 9]] * n,
            "logprobs": [[-1.0] * 3] * n,
        }

    trainer = tiny_trainer(
        GRPOTrainer,
        GROUP,
        GROUPS,
        rollout_func,
        [lambda **_: list(given)],
        scale_rewards=scale,
        max_completion_length=8,
    )
    trainer.model.train()
    inputs = [{"prompt": str(i)} for i in range(GROUPS) for _ in range(GROUP)]
    draw = random.Random(0)
    batches = [[draw.choice([0.0, 1.0, 0.3, -1.0, None]) for _ in inputs] for _ in range(20)]
    batches.append([1.0] * len(inputs))
    batches.append([None] * GROUP + [0.0, 1.0] * GROUP)
    batches.append([None, None, None, 1.0] + [0.0, 1.0] * GROUP)
    for batch in batches:
        given[:] = batch
        scored = trainer._generate_and_score_completions([dict(row) for row in inputs])
        theirs = scored["advantages"].tolist()
        assert theirs == pytest.approx(group_advantages(batch, GROUP, scale), abs=1e-4)


def test_a_lost_episode_neither_learns_nor_moves_the_baseline():
    assert group_advantages([1.0, 0.0, None, 1.0, 0.0], 5, "none") == [0.5, -0.5, 0.0, 0.5, -0.5]
    assert group_advantages([None, None, None], 3) == [0.0] * 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([1.0] * 5, 2), "groups of 2"),
        (([1.0] * 4, 2, "std"), "'std'"),
        (([1.0], 0), "groups of 0"),
    ],
)
def test_wrong_arguments_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        group_advantages(*arguments)


COLUMNS = {
    "strict_reward": [1.0, 0.0, 0.0, None],
    "raw_reward": [1.0, 0.37, None, None],
    "task": ["x"] * 4,
    "turn_rewards": [[0.0, 1.0], [0.0, 0.0, 0.0], [], [0.0, None]],
    "kinds": [["ok", "ok"], ["ok", "no_call", "ok", "ok"], ["no_call"], []],
}


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (strict_success, [1.0, 0.0, 0.0, None]),
        (sum_of_turns, [1.0, 0.0, 0.0, None]),
        (mean_of_turns, [0.5, 0.0, 0.0, None]),
        (max_of_turns, [1.0, 0.0, 0.0, None]),
        (valid_format, [1.0, 0.75, 0.0, None]),
    ],
)
def test_reward_functions(function, wanted):
    assert function(**COLUMNS) == wanted


def naive_success(raw_reward, strict_reward, **_):
    """``raw > 0`` counted as success, as BrowserGym does it; None where there is no outcome."""
    return [
        None if strict is None else float((raw or 0.0) > 0)
        for raw, strict in zip(raw_reward, strict_reward, strict=True)
    ]


def test_a_part_of_the_raw_reward_is_no_success():
    assert naive_success(**COLUMNS) == [1.0, 1.0, 0.0, None]
    assert strict_success(**COLUMNS) == [1.0, 0.0, 0.0, None]


def test_step_cost():
    assert step_cost(**COLUMNS) == [-0.2, pytest.approx(-0.3), 0.0, None]


def test_no_signal_probability_against_simulation():
    draw = random.Random(0)
    for p, size in ((0.1, 8), (0.5, 4), (0.9, 8)):
        solved = [sum(draw.random() < p for _ in range(size)) for _ in range(20_000)]
        without_signal = sum(k in (0, size) for k in solved) / 20_000
        assert without_signal == pytest.approx(no_signal_probability(p, size), abs=0.01)


def test_raw_success_is_anything_that_the_page_pays():
    raw = [1.0, 0.2, 0.0, -1.0, None]
    assert raw_success(strict_reward=[1.0, 0.0, 0.0, 0.0, None], raw_reward=raw) == [
        1,
        1,
        0,
        0,
        None,
    ]
    assert raw_success(strict_reward=[None], raw_reward=[1.0]) == [None]


def test_safety_times_utility_pays_a_solved_task_without_an_obeyed_order():
    strict = [1.0, 1.0, 1.0, 0.0, None]
    obeyed = [False, True, None, False, True]
    assert safe_success(strict_reward=strict, obeyed=obeyed) == [1, 0, 1, 0, None]
