"""Rows in parts of about equal length, and what two of them begin with."""

import math
import random

import pytest

from helpers.policy.lengths import length_in_common, split_lengths


@pytest.fixture
def lengths():
    draw = random.Random(0)
    return [draw.randrange(1, 40) for _ in range(50)]


def padded(part, lengths):
    return len(part) * max(lengths[row] for row in part)


@pytest.mark.parametrize("most_padding", [math.inf, 1.1])
def test_each_row_is_in_one_part_and_the_next_part_is_longer(lengths, most_padding):
    parts = split_lengths(lengths, 60, most_padding)
    assert sorted(row for part in parts for row in part) == list(range(50))
    in_order = [lengths[row] for part in parts for row in part]
    assert in_order == sorted(in_order)


def test_no_part_is_larger_than_allowed_and_none_could_take_one_more(lengths):
    parts = split_lengths(lengths, 60)
    for part, following in zip(parts, [*parts[1:], None], strict=True):
        assert padded(part, lengths) <= 60
        assert following is None or padded([*part, following[0]], lengths) > 60


def test_no_part_is_padded_more_than_allowed(lengths):
    parts = split_lengths(lengths, 10_000, 1.1)
    assert 1 < len(parts) < 20
    for part in parts:
        assert padded(part, lengths) <= 1.1 * sum(lengths[row] for row in part)


def test_what_is_longer_than_allowed_goes_alone():
    assert split_lengths([100, 3, 100, 3], 60) == [[1, 3], [0], [2]]
    assert split_lengths([], 60) == []


@pytest.mark.parametrize("kind", [list, tuple])
@pytest.mark.parametrize("shared", [0, 1, 6, 7])
def test_what_two_rows_begin_with_ends_where_they_first_differ(kind, shared):
    """Also where they are alike again after it, and where one of them ends there."""
    row = kind(range(7))
    other = row[:shared] + kind([-1]) + row[shared + 1 :]
    assert length_in_common(row, other) == shared
    assert length_in_common(row[:shared], row) == shared
    assert length_in_common(row, row) == 7
