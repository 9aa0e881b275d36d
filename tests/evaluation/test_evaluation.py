"""Intervals against published values, paired differences, and infrastructure failures apart."""

import math

import pytest

from helpers.browser.actions import ParsedAction
from helpers.episodes.episode import Episode, Turn
from helpers.episodes.tasks import (
    TEST_SEEDS,
    TRAIN_SEEDS,
    VALIDATION_SEEDS,
    rollout_config,
    train_seeds,
)
from helpers.evaluation.evaluate import Evaluation, difference, evaluate
from helpers.evaluation.statistics import wilson_interval


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        # Newcombe (1998), Statistics in Medicine 17, 857-872, Table I, method 3 (the score method of Wilson), 95 %
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_interval_against_published_values(successes, n, low, high):
    assert wilson_interval(successes, n) == pytest.approx((low, high), abs=1e-4)


def test_wilson_interval_is_where_the_score_test_rejects():
    for successes, n in ((3, 10), (50, 100), (99, 100)):
        for bound in wilson_interval(successes, n):
            assert abs(successes / n - bound) / math.sqrt(bound * (1 - bound) / n) == pytest.approx(
                1.96, abs=1e-6
            )
    assert wilson_interval(0, 0) == (0.0, 1.0)
    assert wilson_interval(7, 7)[1] == pytest.approx(1.0)


def episode(seed, reward, kind="ok"):
    return Episode("click-test", seed, reward=reward, turns=[Turn([], "", ParsedAction(kind))])


def test_infrastructure_failures_are_apart():
    result = Evaluation(
        "x", [episode(0, 1.0), episode(1, 0.0, "no_call"), episode(2, None), episode(3, 1.0)]
    )
    assert (result.n, result.successes, result.failed_infrastructure) == (3, 2, 1)
    assert result.success == pytest.approx(2 / 3) and result.interval == wilson_interval(2, 3)
    assert result.kinds == {"ok": 2, "no_call": 1}
    assert not result.valid and "INVALID" in str(result) and result.summary()["valid"] is False


def test_one_percent_lost_is_still_a_result():
    result = Evaluation("x", [episode(i, 1.0) for i in range(99)] + [episode(99, None)])
    assert result.valid and "INVALID" not in str(result)


def test_nothing_scored():
    result = Evaluation("x", [])
    assert (result.success, result.interval, result.n) == (0.0, (0.0, 1.0), 0) and math.isnan(
        result.mean_turns
    )


def test_difference_pairs_by_seed():
    before = Evaluation(
        "before", [episode(i, float(i < 2)) for i in range(10)] + [episode(10, None)]
    )
    after = Evaluation("after", [episode(i, float(i > 0)) for i in range(12)])
    change = difference(before, after)
    assert (change["n"], change["gained"], change["lost"]) == (10, 8, 1)
    assert change["change"] == pytest.approx(0.7)
    half = 1.96 * math.sqrt((0.9 - 0.49) / 10)
    assert (change["low"], change["high"]) == (pytest.approx(0.7 - half), pytest.approx(0.7 + half))
    assert math.isnan(difference(before, Evaluation("other", [episode(99, 1.0)]))["change"])


def test_seeds_never_meet():
    for a, b in (
        (TEST_SEEDS, VALIDATION_SEEDS),
        (TEST_SEEDS, TRAIN_SEEDS),
        (VALIDATION_SEEDS, TRAIN_SEEDS),
    ):
        assert a[-1] < b[0] or b[-1] < a[0]


def test_chosen_training_pages_have_a_choice_and_are_training_pages(browsers):
    seeds = train_seeds("click-button")
    assert len(set(seeds)) == len(seeds) >= 400 and all(seed in TRAIN_SEEDS for seed in seeds)
    for seed in seeds[:: len(seeds) // 5]:
        assert (
            sum(e.role == "button" for e in browsers[0].reset("click-button", seed).elements) >= 3
        )
    assert train_seeds("click-button", "all") == train_seeds("click-test") == TRAIN_SEEDS


def test_a_greedy_evaluation_repeats(policy, generator, browsers):
    played = [
        evaluate(
            "x",
            "click-test",
            6,
            browsers,
            generator,
            policy.tokenizer,
            rollout_config("click-test", temperature=0.0),
        )
        for _ in range(2)
    ]
    assert [e.seed for e in played[0].episodes] == list(TEST_SEEDS[:6])
    assert [e.turns[0].answer for e in played[0].episodes] == [
        e.turns[0].answer for e in played[1].episodes
    ]
    assert played[0].summary() == played[1].summary()
