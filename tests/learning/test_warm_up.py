"""The demonstrations of a warm-up, and how much of them an update takes."""

from types import SimpleNamespace

import torch

from helpers.learning import warm_up
from helpers.learning.warm_up import demonstrate, script_of


def test_a_script_that_raises_loses_its_episode_and_not_the_run(browsers, policy, monkeypatch):
    def fails(observation, turn):
        raise IndexError("there is no such movie")

    monkeypatch.setitem(warm_up.SCRIPTS, "click-test", fails)
    assert script_of(SimpleNamespace(task="click-test"), 0) == ""
    shown = demonstrate(["click-test", "focus-text"], 2, browsers, policy.tokenizer)
    assert [episode.task for episode in shown] == ["focus-text"] * 2


def test_an_update_takes_as_many_episodes_as_it_is_told(tmp_path):
    policy = SimpleNamespace(model=SimpleNamespace(device=torch.device("cpu")))
    for batch in (1, 8, 10, 16):
        config = warm_up._sft_config(policy, tmp_path, 1, 1e-4, 0, "float32", 3, batch)
        assert config.per_device_train_batch_size * config.gradient_accumulation_steps == batch
        assert config.per_device_train_batch_size <= warm_up.MOST_AT_ONCE
        assert config.max_steps == 3
