"""The experiment of the arms: its rule, its comparisons, and the whole of it at a tiny scale."""

import json
import shutil
from pathlib import Path

import pytest
from group_counts import teaching_groups
from tiny_models import tiny_policy_in

from helpers import command_line
from helpers.evaluation.statistics import paired_interval, wilson_interval
from helpers.learning.arms.choice import affordable, chosen_tasks
from helpers.learning.arms.groups import write_groups
from helpers.learning.arms.needs import Needs, config_of, measure_needs
from helpers.learning.arms.outcomes import Outcomes, compare, mean_success, measure_outcomes, rates
from helpers.learning.arms.plan import ARMS, arm_settings, hold_to_plan, planned, run_folder
from helpers.learning.arms.table import arm_rows, best_arm, run_all
from helpers.settings.errors import ProfileError
from scripts.experiment import ARMS_RECORDED, chosen_arms, chosen_seeds, keep_recording, main

PLAN = planned("smollm2-135m", ("click-test",), ["fewest=2", "most=4"])


def need(turns, tokens=200, solved=6):
    return Needs(6, solved, turns, float(turns), 12, tokens, ("click",))


# The rule


def test_tasks_between_the_limits_are_chosen_those_of_several_turns_first():
    success = {"a": 0.5, "b": 0.1, "c": 0.6, "d": 0.25, "e": 0.9, "f": 0.45, "g": 0.55}
    needs = {task: need(2 if task in "acd" else 1) for task in success}
    assert chosen_tasks(success, needs, PLAN) == ("a", "c", "d", "f")


def test_tasks_of_one_turn_stay_fewer():
    success = {"a": 0.5, "b": 0.5, "c": 0.5, "d": 0.5, "e": 0.5}
    needs = {task: need(2 if task in "ab" else 1) for task in success}
    assert chosen_tasks(success, needs, PLAN) == ("a", "b", "c")


def test_too_few_tasks_are_one_sentence():
    with pytest.raises(ProfileError, match="Only 1 tasks have a success of 20% to 80%"):
        chosen_tasks({"a": 0.5, "b": 0.95}, {"a": need(2), "b": need(2)}, PLAN)


def test_long_tasks_and_scripts_that_fail_are_left_out():
    needs = {"short": need(1), "long": need(1, tokens=500), "failing": need(1, solved=2)}
    assert list(affordable(needs, PLAN)) == ["short"]


def test_how_tasks_are_played_follows_from_what_their_scripts_used():
    needs = {"one": need(1), "five": Needs(6, 6, 5, 4.0, 30, 300, ("dblclick", "fill"))}
    config = config_of(needs)
    assert config.turns == {"one": 2, "five": 6}
    assert config.max_tokens == 34
    assert config.prompt.actions[-1] == "dblclick"
    assert config.prompt.examples == ()


def test_what_scripts_use_is_measured(browsers, policy):
    needs = measure_needs(["click-test", "click-option"], browsers, policy.tokenizer)
    assert needs["click-test"].turns == 1
    assert needs["click-option"].turns == 2  # the radio button, then Submit
    assert needs["click-option"].solved == needs["click-option"].played
    assert needs["click-option"].actions == ("click",)
    assert 0 < needs["click-test"].answer_tokens < 16
    assert needs["click-test"].episode_tokens < needs["click-option"].episode_tokens


# The plan


def test_no_arm_plays_more_episodes_than_grpo():
    episodes = PLAN.groups * PLAN.group_size
    for arm in ARMS:
        settings = arm_settings(arm, PLAN)
        own = settings.get("groups", PLAN.groups) * PLAN.group_size
        assert own + settings.get("resample", 0) <= episodes


def test_dynamic_sampling_plays_groups_again_and_only_the_curriculum_chooses_tasks():
    sampling, chosen = (arm_settings(arm, PLAN) for arm in ("dynamic sampling", "curriculum"))
    assert sampling["resample"] > 0
    assert chosen == sampling | {"curriculum": "success"}


def test_an_experiment_goes_on_with_its_own_plan_only(tmp_path):
    hold_to_plan(tmp_path, PLAN)
    hold_to_plan(tmp_path, PLAN)
    with pytest.raises(ProfileError, match="holds an experiment with updates=30, not 7"):
        hold_to_plan(tmp_path, planned("smollm2-135m", ("click-test",), [*SAME, "updates=7"]))


SAME = ["fewest=2", "most=4"]
BAD = ["updates=0", "nothing=1", "updates", "seeds=", "low=0.9", "learning_rate=nan"]


@pytest.mark.parametrize("change", BAD)
def test_a_number_that_the_plan_cannot_have_is_one_sentence(change):
    with pytest.raises(ProfileError) as error:
        planned("smollm2-135m", (), [change])
    assert "\n" not in str(error.value)


# Outcomes


def test_a_page_counts_once_greedily_and_is_passed_by_any_sample():
    outcomes = Outcomes(
        {"a#1": [True], "b#1": [False]},
        {"a#1": [False, True], "b#1": [False, None], "c#1": [None, None]},
    )
    assert rates(outcomes.measure("greedy")) == {"a": (1.0, 1), "b": (0.0, 1)}
    assert rates(outcomes.measure("sampled")) == {"a": (0.5, 2), "b": (0.0, 1), "c": (0.0, 0)}
    assert outcomes.measure("pass") == {"a#1": [True], "b#1": [False], "c#1": [None]}


def test_arms_are_compared_on_the_same_seed_page_and_try():
    before = [{"a#1": [True, False], "a#2": [False, None]}, {"a#1": [False, False]}]
    after = [{"a#1": [True, True], "a#2": [False, True]}, {"a#1": [True, False]}]
    change = compare(before, after)
    assert (change["n"], change["gained"], change["lost"]) == (5, 2, 0)
    assert change["change"] == 0.4
    assert (change["low"], change["high"]) == paired_interval(2, 0, 5)


def test_an_arm_that_changes_nothing_has_an_interval_all_the_same():
    """Nobody gained and nobody lost on 40 pages: as wide as Wilson's interval of 0 in 40."""
    same = [{f"a#{i}": [True] for i in range(40)}]
    change = compare(same, same)
    assert change["change"] == 0
    assert change["high"] == pytest.approx(wilson_interval(0, 40)[1])
    assert change["low"] == pytest.approx(-change["high"])


def test_runs_are_pooled_task_by_task():
    """a: 3 of 4, b: 0 of 2; each task weighs the same."""
    runs = [{"a#1": [True, True], "b#1": [False]}, {"a#1": [True, False], "b#1": [False]}]
    assert mean_success(runs)[0] == pytest.approx(0.375)


def test_the_control_and_the_demonstrations_are_never_the_best_arm():
    rows = rows_of_arms({"demonstrations": 0.9, "shuffled": 0.9, "turn groups": 0.6})
    assert best_arm([*rows, {"arm": "warm-up"}]) == "turn groups"


def test_an_arm_with_fewer_runs_than_others_is_not_the_best_one():
    rows = rows_of_arms({"turn groups": 0.9, "grpo": 0.6})
    for row in rows:
        row["seeds"] = [0, 1] if row["arm"] == "turn groups" else [0, 1, 2]
    assert best_arm(rows) == "grpo"


def rows_of_arms(greedy):
    """A row of each arm with its greedy success; 0.5 for the arms that are not in ``greedy``."""
    return [{"arm": arm, "seeds": [0], "greedy": [greedy.get(arm, 0.5), 0, 1]} for arm in ARMS]


def test_pages_are_played_once_greedily_and_often_at_temperature_one():
    from helpers.episodes.config import EpisodeSpec
    from helpers.episodes.episode import Episode

    asked = []

    def player(pages, temperature):
        asked.append((len(pages), temperature))
        return [Episode(page.task, page.seed, reward=float(temperature)) for page in pages]

    pages = [EpisodeSpec("a", 1), EpisodeSpec("a", 2)]
    outcomes = measure_outcomes(pages, pages[:1], 3, player)
    assert asked == [(2, 0.0), (3, 1.0)]
    assert outcomes.greedy == {"a#1": [False], "a#2": [False]}
    assert outcomes.sampled == {"a#1": [True] * 3}


def test_groups_are_told_by_how_many_of_their_episodes_were_solved(tmp_path):
    from helpers.episodes.episode import Episode

    outcomes = {1: (1.0, 0.0), 2: (1.0, 1.0), 3: (0.0, 0.0), 4: (None, 1.0), 5: (0.0, 0.0)}
    with (tmp_path / "episodes.jsonl").open("w") as file:
        for seed, rewards in outcomes.items():
            for reward in rewards:
                episode = Episode("click-test", seed, reward=reward)
                file.write(json.dumps({"update": 7, **episode.to_json()}) + "\n")
    path = write_groups(tmp_path / "episodes.jsonl")
    assert path.read_text().splitlines()[:3] == [
        "update,task,seed,solved,episodes",
        "7,click-test,1,1,2",
        "7,click-test,2,2,2",
    ]
    assert teaching_groups(path) == {"differ": 2, "all": 1, "none": 2}


# All of it

TINY = [
    *("demos=2", "other_demos=", "warm_up_epochs=4", "warm_up_rate=0.01", "warm_up_dtype=float32"),
    *("low=0", "high=1", "fewest=2", "choice_pages=1", "choice_samples=2"),
    *("updates=2", "groups=2", "group_size=2", "demo_batch=2", "seeds=0", "pages=1", "samples=2"),
    *("sampled_pages=1", "rank=8"),
]


@pytest.fixture
def small(policy, tmp_path):
    """The folder of a model of two layers, which learns to click click-test's only button."""
    return tiny_policy_in(tmp_path / "small", policy.tokenizer)


def experiment(folder, policy, *more):
    """The command with the tiny plan and ``more`` words; returns its exit code."""
    changes = [word for change in TINY for word in ("--change", change)]
    arguments = ["--folder", str(folder), "--task", "click-test,click-option", *changes]
    return command_line.run(main, [*arguments, "--policy", str(policy), *more])


@pytest.mark.slow
def test_the_whole_experiment_goes_on_where_it_was_stopped(tmp_path, small, monkeypatch, capsys):
    folder = tmp_path / "arms"
    monkeypatch.setenv("COURSE_CLIENTS", "8")
    from helpers.learning.arms.experiment import Experiment

    test, reinforce = Experiment._test, Experiment._reinforce
    tested, trained = [], []

    def stop_at_the_fourth(self, policy):
        tested.append(policy.path)
        if len(tested) == 4:
            raise KeyboardInterrupt
        return test(self, policy)

    def remember(self, policy, arm, demos, seed):
        trained.append(arm)
        return reinforce(self, policy, arm, demos, seed)

    monkeypatch.setattr(Experiment, "_test", stop_at_the_fourth)
    monkeypatch.setattr(Experiment, "_reinforce", remember)
    assert experiment(folder, small) == 130  # as a shell says it of a command that was interrupted
    done = {path: path.read_bytes() for path in folder.glob("runs/*/outcomes.json")}
    assert len(done) == 2
    assert experiment(folder, small) == 0
    assert len(tested) == 4 + len(ARMS) - 2  # the warm-up and two arms are not tested again
    assert {path: path.read_bytes() for path in done} == done
    # The arm whose test was stopped is not trained again.
    assert trained == [arm for arm in ARMS if arm != "demonstrations"]

    result = json.loads((folder / "result.json").read_text())
    assert result["tasks"] == ["click-option", "click-test"]
    assert [row["arm"] for row in result["rows"]] == ["warm-up", *ARMS]
    for row in result["rows"][1:]:
        assert row["updates"] == 2
        assert row["against warm-up"]["greedy"]["n"] == 2
        assert row["against warm-up"]["sampled"]["n"] == 4
        assert row["seeds"] == [0]
    assert "turn groups" in capsys.readouterr().out
    for policy in (folder / "warm-2" / "policy", *folder.glob("runs/*/policy")):
        assert json.loads((policy / "adapter_config.json").read_text())["r"] == 8
    assert not list(folder.glob("runs/*/checkpoint-*"))

    # The table of what is done is made without a browser.
    with monkeypatch.context() as patched:
        patched.setenv("COURSE_SERVERS", "http://127.0.0.1:9")  # where nobody answers
        assert experiment(folder, small, "--until", "now") == 0
    assert json.loads((folder / "result.json").read_text())["rows"] == result["rows"]

    # What is recorded is enough to go on elsewhere, and to be recorded again from there.
    recording, elsewhere = tmp_path / "recording", tmp_path / "elsewhere"
    keep_recording(folder, recording)
    for arm in trained:
        groups = run_folder(recording, arm, 2, 0) / "groups.csv"
        assert sum(teaching_groups(groups).values()) <= 2 * 2
        assert groups.read_text().count("click-") == sum(teaching_groups(groups).values()) > 0
    best = (recording / "best" / "adapter_model.safetensors").read_bytes()
    shutil.copytree(recording, elsewhere)
    (elsewhere / "runs" / "demonstrations-2-seed0" / "outcomes.json").unlink()
    assert experiment(elsewhere, small) == 0
    assert len(tested) == 5 + len(ARMS) - 2  # the demonstrations alone are learned again
    keep_recording(elsewhere, recording)
    assert (recording / "best" / "adapter_model.safetensors").read_bytes() == best


def test_a_seed_that_the_plan_has_not_is_one_sentence():
    assert chosen_seeds(PLAN, None) == (0, 1, 2)
    assert chosen_seeds(PLAN, [2]) == (2,)
    with pytest.raises(ProfileError, match=r"no training seed 7: choose among 0, 1, 2"):
        chosen_seeds(PLAN, [0, 7])


def test_an_arm_that_there_is_not_is_one_sentence():
    assert chosen_arms(None) == tuple(ARMS)
    assert chosen_arms(["own solved", "grpo"]) == ("own solved", "grpo")
    with pytest.raises(ProfileError, match=r"no arm 'ppo': choose among demonstrations, grpo, "):
        chosen_arms(["grpo", "ppo"])


def test_a_table_of_nothing_is_one_sentence(tmp_path, capsys):
    assert experiment(tmp_path / "arms", "smollm2-135m", "--until", "now") == 2
    assert "has no tasks yet: run make arms UNTIL=tasks first" in capsys.readouterr().err


def test_the_recorded_experiment_goes_on_though_scripts_were_added_since(tmp_path):
    folder = tmp_path / "arms"
    recorded = json.loads((ARMS_RECORDED / "result.json").read_text())
    arguments = ["--policy", "smollm2-135m", "--folder", str(folder), "--until", "now"]
    assert command_line.run(main, [*arguments, "--from-recording"]) == 0
    assert command_line.run(main, arguments) == 0  # its own candidates, without being told so
    again = json.loads((folder / "result.json").read_text())
    assert again["plan"] == recorded["plan"]
    assert again["rows"] == recorded["rows"]


class Recorded:
    """An experiment of which some runs are done; each solves a page more than its seed."""

    plan = planned("smollm2-135m", ("click-test",), ["fewest=1", "seeds=0,1", "other_demos="])
    done = (("demonstrations", 0), ("demonstrations", 1), ("grpo", 0))

    def before(self, demos):
        return Outcomes({f"a#{i}": [False] for i in range(4)}, {})

    def is_done(self, arm, demos, seed):
        return (arm, seed) in self.done

    def run_folder(self, arm, demos, seed):
        return Path("nowhere")

    def run(self, arm, demos, seed):
        assert self.is_done(arm, demos, seed)
        return Outcomes({f"a#{i}": [i <= seed] for i in range(4)}, {})


def test_a_table_of_what_is_done_compares_the_seeds_that_both_arms_have():
    rows = {row["arm"]: row for row in arm_rows(Recorded(), 16, tuple(ARMS))}
    assert list(rows) == ["warm-up", "demonstrations", "grpo"]
    assert rows["demonstrations"]["greedy_by_seed"] == [0.25, 0.5]
    assert rows["grpo"]["seeds"] == [0]
    against = rows["grpo"]["against demonstrations"]["greedy"]
    assert (against["n"], against["gained"], against["lost"]) == (4, 0, 0)
    against = rows["demonstrations"]["against warm-up"]["greedy"]
    assert (against["n"], against["gained"]) == (8, 3)


class OnlyNotes(Recorded):
    """Takes note of what is to be run."""

    def __init__(self):
        self.asked = []

    def run(self, arm, demos, seed):
        self.asked.append((arm, demos, seed))
        return super().run("grpo", demos, 0)


def test_only_the_arms_that_were_asked_for_are_run():
    experiment = OnlyNotes()
    run_all(experiment, (1, 0), ("own solved", "grpo"))
    expected = [(arm, 16, seed) for seed in (1, 0) for arm in ("own solved", "grpo")]
    assert experiment.asked == expected
