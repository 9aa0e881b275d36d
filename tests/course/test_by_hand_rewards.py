"""Notebook 4's own pieces agree with those of the pipeline, and with the loss of notebook 5."""

import math
import random

import pytest
import torch

from helpers.course.by_hand import grpo_loss
from helpers.course.by_hand_rewards import advantages, early, objective
from helpers.episodes.advantages import group_advantages


@pytest.mark.parametrize("seed", range(20))
def test_advantages_are_those_of_the_pipeline(seed):
    draw = random.Random(seed)
    size = draw.randint(1, 8)
    rewards = [draw.choice([0.0, 1.0, 0.37, None]) for _ in range(size)]
    assert advantages(rewards) == pytest.approx(group_advantages(rewards, size))


def test_a_solved_episode_earns_more_if_it_is_short_and_no_other_earns_anything():
    strict = [1.0, 1.0, 1.0, 0.0, 0.0, None]
    turns = [[1.0], [0.0, 1.0], [0.0, 0.0, 1.0], [0.0], [0.0, 0.0], [0.0, None]]
    assert early(strict, turns, kinds=[]) == [1.0, 0.75, 0.5, 0.0, 0.0, None]


@pytest.mark.parametrize("ratio", [0.5, 0.8, 1.0, 1.1, 1.2, 2.0])
@pytest.mark.parametrize("advantage", [-2.0, 0.0, 1.5])
def test_the_objective_of_a_token_is_minus_the_loss_of_a_batch_of_one(ratio, advantage):
    arguments = torch.tensor([[math.log(ratio)]]), torch.zeros(1, 1), torch.tensor([advantage])
    loss = grpo_loss(*arguments, torch.ones(1, 1), 0.2)
    assert objective(ratio, advantage, 0.2) == pytest.approx(-loss.item(), abs=1e-6)
