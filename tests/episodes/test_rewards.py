"""Reward functions, and advantages against the trainer's own computation."""

import random

import pytest
from trl import GRPOTrainer

from helpers.episodes import rewards as R
from helpers.episodes.advantages import group_advantages, no_signal_probability

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
    batches += [
        [1.0] * len(inputs),
        [None] * GROUP + [0.0, 1.0] * GROUP,
        [None, None, None, 1.0] + [0.0, 1.0] * GROUP,
    ]
    for batch in batches:
        given[:] = batch
        theirs = trainer._generate_and_score_completions([dict(row) for row in inputs])[
            "advantages"
        ].tolist()
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
        (R.strict_success, [1.0, 0.0, 0.0, None]),
        (R.naive_success, [1.0, 1.0, 0.0, None]),
        (R.sum_of_turns, [1.0, 0.0, 0.0, None]),
        (R.mean_of_turns, [0.5, 0.0, 0.0, None]),
        (R.max_of_turns, [1.0, 0.0, 0.0, None]),
        (R.valid_format, [1.0, 0.75, 0.0, None]),
    ],
)
def test_reward_functions(function, wanted):
    assert function(**COLUMNS) == wanted


def test_step_cost():
    assert R.step_cost(**COLUMNS) == [-0.2, pytest.approx(-0.3), 0.0, None]


def test_no_signal_probability_against_simulation():
    draw = random.Random(0)
    for p, size in ((0.1, 8), (0.5, 4), (0.9, 8)):
        groups = [sum(draw.random() < p for _ in range(size)) for _ in range(20_000)]
        assert sum(k in (0, size) for k in groups) / 20_000 == pytest.approx(
            no_signal_probability(p, size), abs=0.01
        )
