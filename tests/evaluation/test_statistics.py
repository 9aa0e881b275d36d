"""Intervals: against published values, at the edges, and by how often they hold the truth."""

import math

import numpy
import pytest

from helpers.evaluation.statistics import (
    change_of_pairs,
    macro_mean,
    paired_interval,
    share,
    wilson_interval,
)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        # Newcombe (1998), Statistics in Medicine 17, 857-872, Table I, method 3 (the score method
        # of Wilson), 95 %
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_interval_against_published_values(successes, n, low, high):
    assert wilson_interval(successes, n) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize(("successes", "n"), [(3, 10), (50, 100), (99, 100)])
def test_wilson_interval_is_where_the_score_test_rejects(successes, n):
    for bound in wilson_interval(successes, n):
        standard_error = math.sqrt(bound * (1 - bound) / n)
        assert abs(successes / n - bound) / standard_error == pytest.approx(1.96, abs=1e-6)


def test_wilson_interval_at_the_edges():
    assert wilson_interval(0, 0) == (0.0, 1.0)
    assert wilson_interval(7, 7)[1] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("gained", "lost", "n", "low", "high"),
    [
        # Fagerland, Lydersen and Laake (2017), Statistical Analysis of Contingency Tables, Chapter
        # 8: Tango's asymptotic score interval, of Cavo et al. (2012) and of Bentur et al. (2009)
        (6, 16, 161, -0.1240, -0.0054),
        (1, 7, 21, -0.517, -0.026),
    ],
)
def test_paired_interval_against_published_values(gained, lost, n, low, high):
    assert paired_interval(gained, lost, n) == pytest.approx((low, high), abs=5e-4)


@pytest.mark.parametrize("n", [1, 20, 100, 1000])
def test_where_no_page_changed_sides_the_change_is_not_known_to_be_zero(n):
    wilson_of_none = wilson_interval(0, n)[1]
    assert paired_interval(0, 0, n) == pytest.approx((-wilson_of_none, wilson_of_none), abs=1e-6)


def test_where_every_page_was_gained_the_change_is_not_known_to_be_whole():
    low, high = paired_interval(100, 0, 100)
    assert high == 1.0
    assert 0.9 < low < 0.95


@pytest.mark.parametrize(("gained", "lost", "n"), [(8, 1, 10), (50, 0, 100), (0, 3, 200)])
def test_paired_interval_turns_around_with_its_sides(gained, lost, n):
    low, high = paired_interval(gained, lost, n)
    assert low < (gained - lost) / n < high
    assert paired_interval(lost, gained, n) == pytest.approx((-high, -low), abs=1e-9)


def test_paired_interval_of_no_pages():
    assert paired_interval(0, 0, 0) == (-1.0, 1.0)


def test_macro_mean_gives_every_task_the_same_weight():
    mean, low, high = macro_mean([(0.5, 100), (1.0, 20), (0.3, 0)])
    assert mean == 0.75
    # By hand: 1.96²/4 successes and failures for each task, so (50.9604 of 101.9208) and
    # (20.9604 of 21.9208); the centre is 0.72810, the standard error 0.033029.
    assert (low, high) == pytest.approx((0.66336, 0.79283), abs=2e-5)


@pytest.mark.parametrize("rate", [0.0, 1.0])
@pytest.mark.parametrize("tasks", [1, 5, 14])
def test_where_all_tasks_are_at_an_edge_the_mean_still_has_an_interval(rate, tasks):
    mean, low, high = macro_mean([(rate, 200)] * tasks)
    assert mean == rate
    assert low <= mean <= high
    # At most what the pages of all tasks would say in one: Wilson's interval, which is narrower
    # than the one of Agresti and Coull.
    alone = wilson_interval(rate * 200 * tasks, 200 * tasks)
    assert alone[1] - alone[0] <= high - low < 2 * (alone[1] - alone[0])


def test_one_tasks_macro_mean_is_about_wilsons_interval():
    _, low, high = macro_mean([(0.3, 200)])
    assert (low, high) == pytest.approx(wilson_interval(60, 200), abs=1e-3)


def test_macro_mean_of_nothing():
    assert macro_mean([]) == macro_mean([(0.0, 0)]) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    "rates",
    [[0.9995] * 14, [0.995] * 14, [0.5] * 14, [1.0, 1.0, 0.999, 0.99, 0.9, 0.5, 0.01, 0.0]],
)
def test_the_interval_of_a_macro_mean_holds_the_true_mean(rates):
    """In 19 of 20 evaluations, or in more of them; 0.93 leaves room for the simulation's own
    error."""
    draw = numpy.random.default_rng(0)
    held = 0
    for solved in draw.binomial(200, rates, size=(2_000, len(rates))):
        _, low, high = macro_mean([(count / 200, 200) for count in solved])
        held += low <= numpy.mean(rates) <= high
    assert held / 2_000 >= 0.93


@pytest.mark.parametrize(
    ("gain", "loss", "n"),
    [(0.002, 0.001, 100), (0.01, 0.0, 100), (0.3, 0.05, 100), (0.9, 0.01, 50)],
)
def test_the_interval_of_a_change_holds_the_true_change(gain, loss, n):
    draw = numpy.random.default_rng(0)
    held = 0
    for gained, lost, _ in draw.multinomial(n, [gain, loss, 1 - gain - loss], size=1_000):
        low, high = paired_interval(int(gained), int(lost), n)
        held += low <= gain - loss <= high
    assert held / 1_000 >= 0.93


def test_a_share_and_a_change_are_kept_with_four_digits_and_their_counts():
    assert share([True, False, False]) == {
        "n": 3,
        "count": 1,
        "rate": 0.3333,
        "low": 0.0615,
        "high": 0.7923,
    }
    assert share([])["rate"] == 0
    change = change_of_pairs([(False, True), (True, True), (None, True), (True, None)])
    assert (change["n"], change["gained"], change["lost"], change["change"]) == (4, 2, 1, 0.25)
