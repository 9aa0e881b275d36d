"""Evaluations: what they count, what they leave out, and the change between two of them."""

import math

import pytest

from helpers.browser.actions import ParsedAction
from helpers.episodes.episode import Episode, Turn
from helpers.episodes.how_played import rollout_config
from helpers.episodes.tasks import TEST_SEEDS, TRAIN_SEEDS, VALIDATION_SEEDS, train_seeds
from helpers.evaluation.evaluate import Evaluation, difference, evaluate
from helpers.evaluation.report import task_report
from helpers.evaluation.statistics import paired_interval, wilson_interval


def episode(seed, reward, kind="ok", task="click-test"):
    return Episode(task, seed, reward=reward, turns=[Turn([], "", ParsedAction(kind))])


def test_infrastructure_failures_are_apart():
    episodes = [episode(0, 1.0), episode(1, 0.0, "no_call"), episode(2, None), episode(3, 1.0)]
    result = Evaluation("x", episodes)
    assert result.n == 3
    assert result.successes == 2
    assert result.failed_infrastructure == 1
    assert result.success == pytest.approx(2 / 3)
    assert result.interval == wilson_interval(2, 3)
    assert result.kinds == {"ok": 2, "no_call": 1}
    assert not result.valid
    assert "INVALID" in str(result)
    assert result.summary()["valid"] is False


def test_one_percent_lost_is_still_a_result():
    result = Evaluation("x", [episode(i, 1.0) for i in range(99)] + [episode(99, None)])
    assert result.valid
    assert "INVALID" not in str(result)


def test_nothing_scored():
    result = Evaluation("x", [])
    assert result.success == 0.0
    assert result.interval == (0.0, 1.0)
    assert result.n == 0
    assert math.isnan(result.mean_turns)


def test_the_first_button_is_counted_where_an_episode_begins_with_it():
    page = ['"Next" link 12', '"No" button 13', '"Ok" button 14']

    def begins_with(*bids):
        turns = [Turn(page, "", ParsedAction("ok", name="click", args=(bid,))) for bid in bids]
        return Episode("click-test", 0, reward=1.0, turns=turns)

    episodes = [begins_with("13", "14"), begins_with("14", "13"), begins_with("12"), begins_with()]
    assert Evaluation("x", episodes).first_button == 0.25


def test_difference_pairs_by_seed():
    before = Evaluation("before", [episode(i, float(i < 2)) for i in range(10)])
    before.episodes.append(episode(10, None))
    after = Evaluation("after", [episode(i, float(i > 0)) for i in range(12)])
    change = difference(before, after)
    assert (change["n"], change["gained"], change["lost"]) == (10, 8, 1)
    assert change["change"] == pytest.approx(0.7)
    assert (change["low"], change["high"]) == paired_interval(8, 1, 10)
    assert 0 < change["low"] < 0.7 < change["high"] < 1


def test_the_same_seed_of_another_task_is_another_page():
    before = Evaluation("before", [episode(1, 0.0, task="a"), episode(1, 1.0, task="b")])
    after = Evaluation("after", [episode(1, 1.0, task="b"), episode(1, 1.0, task="a")])
    change = difference(before, after)
    assert (change["n"], change["gained"], change["lost"]) == (2, 1, 0)


def test_a_difference_without_common_pages_is_no_number():
    change = difference(Evaluation("x", [episode(0, 1.0)]), Evaluation("y", [episode(99, 1.0)]))
    assert change["n"] == 0
    assert math.isnan(change["change"])
    assert math.isnan(change["low"])
    assert math.isnan(change["high"])


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_no_change_on_a_hundred_pages_is_not_a_change_of_exactly_zero(reward):
    same = Evaluation("x", [episode(i, reward) for i in range(100)])
    change = difference(same, same)
    assert change["change"] == 0.0
    assert change["low"] < -0.03
    assert change["high"] > 0.03


def test_all_solved_on_every_task_is_not_a_success_of_exactly_one():
    result = Evaluation("x", [episode(i, 1.0, task=task) for task in "abc" for i in range(100)])
    mean, low, high = result.macro
    assert mean == high == 1.0
    assert 0.97 < low < 0.995


def test_macro_weighs_tasks_alike():
    episodes = [episode(i, float(i < 50), task="a") for i in range(100)]
    episodes += [episode(i, 1.0, task="b") for i in range(20)]
    mean, low, high = Evaluation("x", [*episodes, episode(99, None, task="b")]).macro
    assert mean == pytest.approx(0.75)
    assert (low, high) == pytest.approx((0.66336, 0.79283), abs=2e-5)
    summary = Evaluation("x", episodes).summary()
    assert summary["by_task"]["a"]["success"] == 0.5
    assert summary["by_task"]["b"]["n"] == 20
    assert summary["macro"][0] == 0.75
    assert "by_task" not in Evaluation("x", episodes[:10]).summary()


def test_the_report_has_a_row_per_task_and_counts_what_was_lost():
    episodes = [episode(0, 1.0, task="a"), episode(1, 0.0, task="b"), episode(2, None, task="b")]
    lines = task_report(Evaluation("x", episodes)).splitlines()
    assert [line.split()[0] for line in lines] == ["task", "a", "b", "mean", "1"]
    assert lines[1].split() == ["a", "100", "%", "[21,", "100]", "1", "1.0", "ok", "1"]
    assert "50.0 %" in lines[3]
    assert "lost to the infrastructure" in lines[4]


def test_seeds_never_meet():
    ranges = (TEST_SEEDS, VALIDATION_SEEDS, TRAIN_SEEDS)
    for i, one in enumerate(ranges):
        for other in ranges[i + 1 :]:
            assert one[-1] < other[0] or other[-1] < one[0]


def test_chosen_training_pages_have_a_choice_and_are_training_pages(browsers):
    seeds = train_seeds("click-button")
    assert len(seeds) >= 400
    assert len(set(seeds)) == len(seeds)
    assert all(seed in TRAIN_SEEDS for seed in seeds)
    for seed in seeds[:: len(seeds) // 5]:
        elements = browsers[0].reset("click-button", seed).elements
        assert sum(e.role == "button" for e in elements) >= 3
    assert train_seeds("click-button", "all") == train_seeds("click-test") == TRAIN_SEEDS


def test_a_greedy_evaluation_repeats(policy, generator, browsers):
    config = rollout_config("click-test", temperature=0.0)
    first, second = (
        evaluate("x", "click-test", 6, browsers, generator, policy.tokenizer, config)
        for _ in range(2)
    )
    assert [e.seed for e in first.episodes] == list(TEST_SEEDS[:6])
    answers = [e.turns[0].answer for e in first.episodes]
    assert answers == [e.turns[0].answer for e in second.episodes]
    assert first.summary() == second.summary()
