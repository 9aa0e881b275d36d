"""The task suite: scripts that solve it, their episodes as training data, several tasks in one
run, and its results."""

import json
from dataclasses import replace

import pytest

from helpers.browser import list_tasks
from helpers.command_line import run
from helpers.episodes.config import EpisodeSpec, RolloutConfig
from helpers.episodes.how_played import (
    HOW,
    Taught,
    keep_how,
    kept_how,
    rollout_config,
    taught_more,
)
from helpers.episodes.ledger import POLICY
from helpers.episodes.play import play
from helpers.episodes.players import ScriptPlayer
from helpers.episodes.tasks import TASKS, TEST_SEEDS, TRAIN_SEEDS, UNSEEN, read_tasks
from helpers.evaluation.evaluate import OWN_PROMPTS, play_policy
from helpers.evaluation.scripted import SCRIPTS
from helpers.learning.warm_up import demonstrate, fit, to_example
from helpers.policy.prompts import PromptConfig
from helpers.settings.files import RunFileError
from helpers.settings.profiles import ProfileError, get_profile
from scripts.evaluate import main as evaluate_command

SUITE = tuple(TASKS)


@pytest.fixture(scope="module")
def demonstrations(browsers, policy):
    return demonstrate(SUITE, 1, browsers, policy.tokenizer)


def test_the_suite_is_three_tiers_of_real_tasks_and_keeps_some_apart():
    assert len(TASKS) >= 12
    assert {spec.tier for spec in TASKS.values()} == {1, 2, 3}
    assert not set(TASKS) & set(UNSEEN)
    assert set(TASKS) | set(UNSEEN) <= set(list_tasks())


def test_a_command_lines_tasks_are_read_once():
    assert read_tasks("suite") == SUITE
    assert read_tasks("click-test, suite") == SUITE
    assert read_tasks("unseen,book-flight") == (*UNSEEN, "book-flight")
    with pytest.raises(ProfileError, match="click-nothing"):
        read_tasks("click-test,click-nothing")


def test_scripts_solve_training_pages_of_every_task_of_the_suite(demonstrations):
    assert set(TASKS) <= set(SCRIPTS)
    assert [e.task for e in demonstrations] == list(TASKS)
    assert all(e.seed in TRAIN_SEEDS for e in demonstrations)
    assert all(e.raw_reward == 1.0 for e in demonstrations)
    assert max(len(e.turns) for e in demonstrations) >= 3


def test_only_the_scripts_tokens_are_taught(demonstrations, policy):
    end = policy.tokenizer.eos_token
    for episode in demonstrations:
        example = to_example(episode)
        ids, labels = example["input_ids"], example["labels"]
        assert len(ids) == len(labels) <= len(episode.ledger.ids)
        assert all(label in (-100, token) for token, label in zip(ids, labels, strict=True))
        taught = policy.tokenizer.decode([label for label in labels if label != -100])
        assert taught == "".join(turn.answer + end for turn in episode.turns)
        assert labels[-1] == policy.tokenizer.eos_token_id


def test_every_task_reads_the_same_system_prompt_without_examples(demonstrations, policy):
    starts = {tuple(e.ledger.ids[:30]) for e in demonstrations}
    assert len(starts) == 1
    text = policy.tokenizer.decode(demonstrations[0].ledger.ids)
    assert "fill(" in text
    assert text.count("Goal:") == 1


def test_each_task_keeps_its_own_number_of_turns(browsers, policy):
    def waits(seen, turn):
        return "noop(10)"

    tasks = ("click-button", "enter-text")
    pages = [EpisodeSpec(task, TEST_SEEDS[0]) for task in tasks]
    player = ScriptPlayer(waits, policy.tokenizer)
    episodes = play(pages, browsers, player, rollout_config(tasks))
    assert [len(e.turns) for e in episodes] == [1, 3]
    assert [TASKS[task].max_turns for task in tasks] == [1, 3]
    assert all(e.ended == "turn_limit" for e in episodes)
    assert all(e.ledger.owner[-1] == POLICY for e in episodes)


@pytest.mark.slow
def test_a_warm_up_makes_the_scripts_answers_likelier(demonstrations, policy, tmp_path):
    """Real trainer, real demonstrations, a small random policy of the same family with the same
    words."""
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
    tiny = Policy("tiny", "", policy.tokenizer, model)
    short = sorted(demonstrations, key=lambda e: len(e.ledger.ids))[:6]
    metrics = fit(tiny, short, tmp_path, 15, 1e-2, seed=0)
    assert metrics["last_loss"] < metrics["first_loss"] - 2  # nats, in 15 steps
    saved = load_policy(str(tmp_path / "policy"))
    assert saved.tokenizer.eos_token == policy.tokenizer.eos_token


@pytest.mark.parametrize(
    ("taught", "reads_of_fill"),
    [
        (("click-test", "enter-text"), [True, True]),
        (OWN_PROMPTS, [False, True]),
        ("click-test", [False, False]),
    ],
)
def test_a_policy_reads_the_common_prompt_or_each_tasks_own(
    taught, reads_of_fill, policy, generator, browsers, monkeypatch
):
    monkeypatch.setattr(
        "helpers.evaluation.evaluate.standalone_generator", lambda *_: (policy.tokenizer, generator)
    )
    profile = replace(get_profile(scale="smoke"), max_turns=1)
    tasks = ("click-test", "enter-text")
    played = play_policy("any", tasks, 1, browsers, profile, 0.0, taught)
    prompts = [
        policy.tokenizer.decode(e.ledger.ids[: e.ledger.prompt_length]) for e in played.episodes
    ]
    assert [e.task for e in played.episodes] == list(tasks)
    assert ["fill(bid" in prompt for prompt in prompts] == reads_of_fill


def test_a_policy_whose_folder_says_how_it_was_taught_is_asked_so(
    tmp_path, policy, generator, browsers, monkeypatch
):
    monkeypatch.setattr(
        "helpers.evaluation.evaluate.standalone_generator", lambda *_: (policy.tokenizer, generator)
    )
    how = RolloutConfig(
        max_turns=3,
        max_tokens=9,
        turns={"click-test": 2},
        thinks=("focus-text",),
        prompt=PromptConfig(("click", "hover"), examples=("button", "field"), free_text=False),
    )
    keep_how(tmp_path, Taught(("click-test", "focus-text"), how))
    assert kept_how(str(tmp_path)) == Taught(("click-test", "focus-text"), how)
    profile = get_profile(scale="smoke")
    played = play_policy(str(tmp_path), ("click-test",), 1, browsers, profile, 0.0, "")
    ledger = played.episodes[0].ledger
    prompt = policy.tokenizer.decode(ledger.ids[: ledger.prompt_length])
    assert "hover(bid" in prompt
    assert 'Enter "sun"' in prompt  # of the example "field"
    assert len(played.episodes[0].turns) <= 2


@pytest.fixture
def first_lesson():
    return Taught(
        ("click-test", "choose-list"),
        RolloutConfig(
            max_turns=6,
            max_tokens=20,
            max_length=1_500,
            turns={"click-test": 2, "choose-list": 6},
            prompt=PromptConfig(("click", "select_option"), examples=()),
        ),
    )


def test_what_a_new_lesson_leaves_out_is_played_as_before(first_lesson):
    """A task that was too long for it, by its turns or its tokens."""
    how = RolloutConfig(
        max_turns=3,
        max_tokens=40,
        max_length=900,
        turns={"click-test": 3, "enter-text": 2},
        thinks=("enter-text",),
        prompt=PromptConfig(("click", "fill"), examples=()),
    )
    known = taught_more(first_lesson, Taught(("click-test", "enter-text"), how))
    turns = {task: known.config.turns_of(task) for task in known.tasks}
    assert turns == {"click-test": 3, "choose-list": 6, "enter-text": 2}
    assert (known.config.max_tokens, known.config.max_length) == (40, 1_500)
    assert known.thinking == ("enter-text",)
    assert set(known.config.prompt.actions) == {"click", "select_option", "fill"}


def test_a_task_that_was_taught_without_thoughts_stays_without_them(first_lesson):
    how = RolloutConfig(turns={"click-test": 3}, prompt=PromptConfig(thoughts=True))
    known = taught_more(first_lesson, Taught(("click-test",), how))
    asked = {task: known.config.prompt_of(task).thoughts for task in known.tasks}
    assert asked == {"click-test": True, "choose-list": False}
    whole = taught_more(known, Taught(known.tasks, how))
    assert whole.config.prompt.thoughts
    assert whole.thinking == known.tasks


def test_how_a_policy_was_taught_may_be_damaged_or_not_be_there(tmp_path):
    assert kept_how(str(tmp_path)) is None
    assert kept_how("smollm2-135m") is None
    for text in (
        "{",
        "{}",
        '{"tasks": [], "config": {"prompt": {}}}',
        '{"tasks": [], "config": 1}',
    ):
        (tmp_path / HOW).write_text(text)
        with pytest.raises(RunFileError, match=r"how_played.json is damaged: delete it"):
            kept_how(str(tmp_path))


def test_an_evaluation_of_an_agent_is_recorded(tmp_path, capsys):
    words = ["--agent", "oracle", "--task", "click-test,click-dialog", "--n", "2"]
    words += ["--output", str(tmp_path)]
    assert run(evaluate_command, words) == 0
    record = json.loads((tmp_path / "evaluation.json").read_text())
    assert record["command"] == f"python -m scripts.evaluate {' '.join(words)}"
    assert record["temperature"] == 0.0
    assert record["result"]["n"] == 4
    assert record["result"]["successes"] == 4
    assert record["result"]["macro"][0] == 1.0
    assert "click-dialog" in capsys.readouterr().out
    assert len((tmp_path / "episodes.jsonl").read_text().splitlines()) == 4


def test_a_policy_and_an_agent_cannot_be_evaluated_at_once(capsys):
    assert run(evaluate_command, ["--agent", "oracle", "--policy", "smollm2-135m"]) == 2
    assert "--policy and --agent" in capsys.readouterr().err
