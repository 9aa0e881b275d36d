"""The task suite: scripts that solve it, their episodes as training data, several tasks in one run, and its results."""

import json
import math
from dataclasses import replace

import pytest

from helpers.browser import list_tasks
from helpers.episodes.config import EpisodeSpec
from helpers.episodes.episode import Episode
from helpers.episodes.ledger import POLICY
from helpers.episodes.play import play_episodes
from helpers.episodes.tasks import (
    TASKS,
    TEST_SEEDS,
    TRAIN_SEEDS,
    UNSEEN,
    read_tasks,
    rollout_config,
)
from helpers.evaluation.evaluate import Evaluation, play_policy
from helpers.evaluation.scripted import SCRIPTS
from helpers.learning.warm_up import demonstrate, fit, to_example
from helpers.settings.profiles import ProfileError, get_profile
from scripts.evaluate import main as evaluate_main

SUITE = ",".join(TASKS)


@pytest.fixture(scope="module")
def demonstrations(browsers, policy):
    return demonstrate(SUITE, 1, browsers, policy.tokenizer)


def test_the_suite_is_three_tiers_of_real_tasks_and_keeps_some_apart():
    assert len(TASKS) >= 12 and {spec.tier for spec in TASKS.values()} == {1, 2, 3}
    assert not set(TASKS) & set(UNSEEN) and set(TASKS) | set(UNSEEN) <= set(list_tasks())
    assert read_tasks("suite") == read_tasks("click-test,suite") == SUITE
    assert read_tasks("unseen,book-flight").split(",") == [*UNSEEN, "book-flight"]
    with pytest.raises(ProfileError, match="click-nothing"):
        read_tasks("click-test,click-nothing")


def test_scripts_solve_training_pages_of_every_task_of_the_suite(demonstrations):
    assert set(TASKS) <= set(SCRIPTS)
    assert [e.task for e in demonstrations] == list(TASKS)
    assert all(e.seed in TRAIN_SEEDS and e.raw_reward == 1.0 for e in demonstrations)
    assert max(len(e.turns) for e in demonstrations) >= 3


def test_only_the_scripts_tokens_are_taught(demonstrations, policy):
    for episode in demonstrations:
        example = to_example(episode)
        assert len(example["input_ids"]) == len(example["labels"]) <= len(episode.ledger.ids)
        assert all(
            label in (-100, token)
            for token, label in zip(example["input_ids"], example["labels"], strict=True)
        )
        taught = policy.tokenizer.decode([label for label in example["labels"] if label != -100])
        assert taught == "".join(turn.answer + policy.tokenizer.eos_token for turn in episode.turns)
        assert example["labels"][-1] == policy.tokenizer.eos_token_id


def test_every_task_reads_the_same_system_prompt_without_examples(demonstrations, policy):
    starts = {tuple(e.ledger.ids[:30]) for e in demonstrations}
    assert len(starts) == 1
    text = policy.tokenizer.decode(demonstrations[0].ledger.ids)
    assert "fill(" in text and text.count("Goal:") == 1


class Looks:
    """A script that never does anything."""

    def answer(self, observation, turn):
        return "noop(10)"


def test_each_task_keeps_its_own_number_of_turns(browsers, policy):
    tasks = ("click-button", "enter-text")
    episodes = play_episodes(
        [EpisodeSpec(task, TEST_SEEDS[0]) for task in tasks],
        browsers,
        Looks(),
        policy.tokenizer,
        rollout_config(",".join(tasks)),
    )
    assert [len(e.turns) for e in episodes] == [TASKS[task].max_turns for task in tasks] == [1, 3]
    assert all(e.ended == "turn_limit" and e.ledger.owner[-1] == POLICY for e in episodes)


def test_macro_weighs_tasks_alike():
    episodes = [Episode("a", i, reward=float(i < 50)) for i in range(100)] + [
        Episode("b", i, reward=1.0) for i in range(20)
    ]
    mean, low, high = Evaluation("x", [*episodes, Episode("b", 99, reward=None)]).macro
    half = 1.96 * math.sqrt(0.25 / 100) / 2
    assert (mean, low, high) == (
        pytest.approx(0.75),
        pytest.approx(0.75 - half),
        pytest.approx(0.75 + half),
    )
    summary = Evaluation("x", episodes).summary()
    assert summary["by_task"]["a"]["success"] == 0.5 and summary["by_task"]["b"]["n"] == 20
    assert "by_task" not in Evaluation("x", episodes[:10]).summary()


def test_a_warm_up_makes_the_scripts_answers_likelier(demonstrations, policy, tmp_path):
    """Real trainer, real demonstrations, a small random policy of the same family with the same words."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from helpers.policy.loading import Policy, load_policy

    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(policy.tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
        )
    )
    short = sorted(demonstrations, key=lambda e: len(e.ledger.ids))[:6]
    metrics = fit(Policy("tiny", "", policy.tokenizer, model), short, tmp_path, 15, 1e-2, seed=0)
    assert metrics["last_loss"] < metrics["first_loss"] - 2  # nats, in 15 steps
    assert load_policy(str(tmp_path / "policy")).tokenizer.eos_token == policy.tokenizer.eos_token


def test_a_policy_reads_the_common_prompt_or_each_tasks_own(
    policy, generator, browsers, monkeypatch
):
    monkeypatch.setattr(
        "helpers.evaluation.evaluate.standalone_generator", lambda *_: (policy.tokenizer, generator)
    )
    tasks, profile = "click-test,enter-text", replace(get_profile(scale="smoke"), max_turns=1)
    for taught, told in (
        (tasks, [True, True]),
        ("own", [False, True]),
        ("click-test", [False, False]),
    ):
        played = play_policy("any", tasks, 1, browsers, profile, 0.0, taught)
        ledgers = [e.ledger for e in played.episodes]
        prompts = [
            policy.tokenizer.decode(ledger.ids[: ledger.prompt_length]) for ledger in ledgers
        ]
        assert [e.task for e in played.episodes] == tasks.split(",")
        assert ["fill(bid" in prompt for prompt in prompts] == told


def test_an_evaluation_of_an_agent_is_recorded(tmp_path, capsys):
    assert (
        evaluate_main(
            [
                "--agent",
                "oracle",
                "--task",
                "click-test,click-dialog",
                "--n",
                "2",
                "--output",
                str(tmp_path),
            ]
        )
        == 0
    )
    result = json.loads((tmp_path / "evaluation.json").read_text())["result"]
    assert result["n"] == 4 and result["successes"] == 4 and result["macro"][0] == 1.0
    assert "click-dialog" in capsys.readouterr().out
    assert len((tmp_path / "episodes.jsonl").read_text().splitlines()) == 4
