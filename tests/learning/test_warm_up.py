"""The demonstrations of a warm-up, and how much of them an update takes."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file
from tiny_models import tiny_adapter, tiny_llama
from transformers import TrainerCallback

from helpers.command_line import run
from helpers.episodes.episode import read_episodes
from helpers.episodes.how_played import Taught, keep_how, kept_how, rollout_config
from helpers.episodes.tasks import TRAIN_SEEDS
from helpers.evaluation.scripted import SCRIPTS
from helpers.evaluation.standard_sets import standard_set
from helpers.learning import warm_up
from helpers.learning.arms.needs import measured_way
from helpers.learning.checkpoints import checkpoints
from helpers.learning.configuration import grpo_config
from helpers.learning.warm_up import Lesson, demonstrate, script_of
from helpers.policy.loading import Policy, load_policy
from helpers.policy.lora import load_to_train
from helpers.settings.errors import ProfileError
from helpers.settings.files import RunFileError
from helpers.settings.profiles import get_profile
from helpers.settings.run_folder import RUN, hold_to_settings
from scripts import warm_up as command

TASKS = ("click-test", "focus-text")


def test_a_script_that_raises_loses_its_episode_and_not_the_run(browsers, policy, monkeypatch):
    def fails(observation, turn):
        raise IndexError("there is no such movie")

    monkeypatch.setitem(warm_up.SCRIPTS, "click-test", fails)
    assert script_of(SimpleNamespace(task="click-test"), 0) == ""
    shown = demonstrate(["click-test", "focus-text"], 2, browsers, policy.tokenizer)
    assert [episode.task for episode in shown] == ["focus-text"] * 2


def test_of_the_scripted_tasks_a_half_can_be_kept_back():
    """What is taught of one half of BrowserGym's table is not in the set of the other."""
    held_out = set(standard_set("browsergym63").tasks)
    taught = command.tasks_of("scripted", "train")
    assert taught
    assert not held_out & set(taught)
    assert sorted(taught + command.tasks_of("scripted", "test")) == sorted(SCRIPTS)
    assert command.tasks_of("click-button,enter-text", "train") == ("enter-text",)
    with pytest.raises(ProfileError, match="click-button is in BrowserGym's train half"):
        command.tasks_of("click-button", "train")


def test_what_a_policy_knows_is_rehearsed_and_the_rest_is_shown_in_full(browsers, policy):
    lesson = Lesson(demos=3, rehearse=1)
    pages = warm_up.pages_of_each(TASKS, lesson, before=("focus-text",))
    assert pages == {"click-test": 3, "focus-text": 1}
    shown = demonstrate(TASKS, pages, browsers, policy.tokenizer)
    assert [episode.task for episode in shown] == ["click-test"] * 3 + ["focus-text"]
    # Without a number for them, what it was taught before is shown like the others.
    assert set(warm_up.pages_of_each(TASKS, Lesson(demos=3), TASKS).values()) == {3}


def test_the_less_is_solved_the_more_is_shown():
    success = {"click-test": 1.0, "focus-text": 0.75, "enter-text": 0.0}
    lesson = Lesson(demos=42, rehearse=2, success=success)
    tasks = (*success, "click-button", "click-option")
    pages = warm_up.pages_of_each(tasks, lesson, before=("click-test", "click-button"))
    # Two tasks were not measured: what it was taught before is rehearsed, and the other is new.
    assert list(pages.values()) == [2, 12, 42, 2, 42]


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        (None, "holds no evaluation"),
        ({"pages": "test", "result": {}}, "not played on validation pages"),
        ({"result": {}}, "not played on validation pages"),
    ],
)
def test_a_lesson_is_not_chosen_by_test_pages(tmp_path, capsys, record, complaint):
    if record is not None:
        (tmp_path / "evaluation.json").write_text(json.dumps(record))
    words = ["--evaluation", str(tmp_path), "--output", str(tmp_path / "x")]
    assert run(command.main, ["--policy", "smollm2-135m", *words]) != 0
    assert complaint in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_who_does_not_say_what_it_was_taught_rehearses_nothing(tmp_path, capsys):
    command_line = ["--policy", "smollm2-135m", "--rehearse", "2", "--output", str(tmp_path / "x")]
    assert run(command.main, command_line) != 0
    assert "smollm2-135m does not say what it was taught" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_thoughts_need_room_that_is_measured(tmp_path, capsys):
    assert run(command.main, ["--thoughts", "--output", str(tmp_path / "x")]) != 0
    assert "--thoughts needs room for longer answers: add --measured" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_tasks_are_chosen_for_thoughts_by_an_evaluation_alone(tmp_path, capsys):
    words = ["--measured", "--thoughts", "--thoughts-below", "0.5", "--output", str(tmp_path / "x")]
    assert run(command.main, words) != 0
    assert "add --thoughts and an --evaluation" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_a_task_thinks_that_is_not_solved_and_has_something_to_say():
    success = {"tic-tac-toe": 0.4, "find-word": 0.5, "click-test": 0.0, "simple-algebra": 1.0}
    tasks = (*success, "use-slider", "odd-or-even+text:Go:Stop")
    thinking = command.in_need_of_thoughts(tasks, success, 0.5)
    assert thinking == ("tic-tac-toe", "use-slider", "odd-or-even+text:Go:Stop")


def test_an_adapter_goes_on_unless_a_new_one_is_asked_for(policy, tmp_path):
    adapter = tiny_adapter(tmp_path, policy.tokenizer)
    kept = load_file(Path(adapter) / "adapter_model.safetensors")
    going_on = load_to_train(adapter, "cpu", adapted=True).model
    trained = {name: w for name, w in going_on.named_parameters() if w.requires_grad}
    assert len(trained) == len(kept)
    assert all("lora_" in name for name in trained)
    below = load_to_train(adapter, "cpu", adapted=False).model  # the adapter is part of the weights
    assert not any("lora_" in name for name, _ in below.named_parameters())


class StopsAt(TrainerCallback):
    """The stop button, pressed after a step."""

    def __init__(self, step):
        self.step = step

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == self.step:
            raise KeyboardInterrupt


def weights_in(folder):
    return load_policy(str(folder / "policy")).model.state_dict()


def test_a_warm_up_that_was_stopped_ends_as_one_that_was_not(
    browsers, policy, tmp_path, monkeypatch
):
    monkeypatch.setattr(warm_up, "STEPS_KEPT", 2)
    profile = replace(get_profile(scale="smoke"), dtype="float32")
    taught = Taught(TASKS, rollout_config(TASKS, examples=False))
    lesson = Lesson(demos=8, epochs=3, learning_rate=1e-2)

    def learn(folder, clients):
        tiny = Policy("tiny", "", policy.tokenizer, tiny_llama(policy.tokenizer))
        return warm_up.warm_up(profile, tiny, taught, folder, lesson, clients)

    whole = learn(tmp_path / "whole", browsers)
    shown = (tmp_path / "whole" / warm_up.DEMONSTRATED).read_text()

    folder = tmp_path / "stopped"
    with monkeypatch.context() as patched:
        patched.setattr(warm_up, "_Steps", lambda: StopsAt(5))
        with pytest.raises(KeyboardInterrupt):
            learn(folder, browsers)
    assert [path.name for path in checkpoints(folder)] == ["checkpoint-4"]
    again = learn(folder, [])  # nothing is played again: there is nobody to play it

    assert again["steps"] == whole["steps"] == 6
    assert (folder / warm_up.DEMONSTRATED).read_text() == shown
    before, after = weights_in(tmp_path / "whole"), weights_in(folder)
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert not checkpoints(folder)


def test_what_scripts_half_fail_is_not_shown_and_turns_are_those_they_need(
    browsers, policy, tmp_path, monkeypatch
):
    def fails_most(observation, turn):
        return 'click("a")' if observation.seed != TRAIN_SEEDS[0] else solves(observation, turn)

    solves = warm_up.SCRIPTS["click-test-2"]
    monkeypatch.setitem(warm_up.SCRIPTS, "click-test-2", fails_most)
    tasks = ("click-test", "click-test-2", "enter-text")
    taught = measured_way(tasks, tmp_path, browsers, policy.tokenizer)
    assert taught.tasks == ("click-test", "enter-text")
    assert [taught.config.turns_of(task) for task in taught.tasks] == [2, 3]
    assert json.loads((tmp_path / "needs.json").read_text())["click-test-2"]["solved"] == 1
    # What is kept is not measured again: there is nobody to play it.
    assert measured_way(tasks, tmp_path, [], policy.tokenizer) == taught


def test_the_longest_episode_says_which_tasks_are_shown_and_what_the_engine_holds(
    browsers, policy, tmp_path
):
    tasks = ("click-test", "scroll-text-2")  # of which the second has a text to read
    short, long = (
        measured_way(tasks, tmp_path / str(longest), browsers, policy.tokenizer, longest)
        for longest in (200, 2_500)
    )
    assert (short.tasks, long.tasks) == (("click-test",), tasks)
    assert 200 < short.config.max_length < 2_500 < long.config.max_length
    folder = tmp_path / "policy"
    folder.mkdir()
    keep_how(folder, long)
    config = grpo_config(replace(get_profile(), policy=str(folder)), tmp_path)
    assert config.vllm_max_model_length == long.config.max_length


def test_a_folder_with_another_warm_up_is_refused(tmp_path):
    hold_to_settings(tmp_path, {"tasks": ("click-test",), "demos": 3})
    hold_to_settings(tmp_path, {"tasks": ("click-test",), "demos": 3})
    kept = (tmp_path / RUN).read_text()
    with pytest.raises(RunFileError, match=r"other settings \(demos\)"):
        hold_to_settings(tmp_path, {"tasks": ("click-test",), "demos": 4})
    assert (tmp_path / RUN).read_text() == kept


@pytest.fixture
def half_solved(tmp_path):
    """A folder with an evaluation that has solved half of click-test's validation pages."""
    half = {"pages": "validation", "result": {"tasks": ["click-test"], "success": 0.5}}
    (tmp_path / "evaluation.json").write_text(json.dumps(half))
    return tmp_path


@pytest.mark.slow
def test_the_command_has_thoughts_where_they_are_needed(policy, half_solved):
    folder = half_solved / "some"
    words = ["--task", "click-test,simple-arithmetic", "--measured", "--rank", "2", "--thoughts"]
    words += ["--thoughts-below", "0.7", "--evaluation", str(half_solved), "--demos", "2"]
    assert run(command.main, [*words, "--output", str(folder)]) == 0
    how = kept_how(str(folder / "policy"))
    assert (how.config.thinks, how.config.prompt.thoughts) == (("simple-arithmetic",), False)
    shown = read_episodes(folder / "demonstrations.jsonl")
    thought = {"click-test": False, "simple-arithmetic": True}
    assert {episode.task: "\n" in episode.turns[0].answer for episode in shown} == thought


@pytest.mark.slow
def test_the_command_makes_an_adapter_that_says_how_it_is_asked(policy, half_solved, tmp_path):
    folder = tmp_path / "warm"
    words = ["--task", "click-test", "--measured", "--thoughts", "--rank", "2", "--epochs", "1"]
    words += ["--demos", "3", "--rehearse", "1", "--evaluation", str(half_solved)]  # 2 pages, then
    command_line = [*words, "--output", str(folder)]
    assert run(command.main, command_line) == 0
    how = kept_how(str(folder / "policy"))
    assert how.tasks == ("click-test",)
    assert how.config.prompt.thoughts
    assert all("\n" in e.turns[0].answer for e in read_episodes(folder / "demonstrations.jsonl"))
    assert how.config.max_turns == 2  # the script's one, and one to spare
    adapter = json.loads((folder / "policy" / "adapter_config.json").read_text())
    assert (adapter["r"], adapter["base_model_name_or_path"]) == (2, "smollm2-135m")
    result = json.loads((folder / "warm_up.json").read_text())
    assert result["command"].split()[3:] == command_line
    assert result["demonstrations"] == 2

    more = tmp_path / "more"
    words = ["--policy", str(folder / "policy"), "--task", "focus-text", "--measured"]
    words += ["--demos", "3", "--rehearse", "1", "--epochs", "1", "--output", str(more)]
    assert run(command.main, words) == 0
    how = kept_how(str(more / "policy"))
    assert how.tasks == ("click-test", "focus-text")
    assert how.config.thinks == ("click-test",)  # as it did before this lesson
    result = json.loads((more / "warm_up.json").read_text())
    assert (result["demonstrations"], result["rehearsed"]) == (4, ["click-test"])
    assert json.loads((more / "policy" / "adapter_config.json").read_text())["r"] == 2

    other = tmp_path / "other"
    words = ["--policy", str(folder / "policy"), "--task", "focus-text", "--measured"]
    assert run(command.main, [*words, "--demos", "1", "--output", str(other)]) == 0
    how = kept_how(str(other / "policy"))
    assert how.tasks == ("click-test", "focus-text")  # not rehearsed, and still known
    assert how.config.thinks == ("click-test",)
