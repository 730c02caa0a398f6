"""Intervals over seeds, against tables of Student's t."""

from __future__ import annotations

import math

import pytest

from analysis import statistics


def test_an_interval_of_three_values() -> None:
    # s = 1, t(0.975; 2) = 4.3027, half width 4.3027/√3.
    mean, half = statistics.mean_interval([1.0, 2.0, 3.0])
    assert mean == 2
    assert half == pytest.approx(4.3027 / math.sqrt(3), rel=1e-4)


def test_confidence_widens_it() -> None:
    # t(0.995; 4) = 4.6041, s = √2.5.
    mean, half = statistics.mean_interval([1, 2, 3, 4, 5], 0.99)
    assert mean == 3
    assert half == pytest.approx(4.6041 * math.sqrt(2.5 / 5), rel=1e-4)


def test_one_value_says_nothing_of_the_spread() -> None:
    assert statistics.mean_interval([7.0]) == (7, math.inf)
    assert statistics.interval([7.0]) == (7, None, None, 1)


def test_no_value_has_no_mean() -> None:
    with pytest.raises(ValueError, match="no values"):
        statistics.mean_interval([])


def test_ratios_are_taken_seed_by_seed() -> None:
    # Seeds differ tenfold, and the ratio is 2 in each: nothing is uncertain about it.
    ratio = statistics.paired_ratio({1: 2.0, 2: 20.0, 3: 200.0}, {1: 1.0, 2: 10.0, 3: 100.0})
    assert ratio == (2, 2, 2, 3)


def test_only_seeds_of_both_count() -> None:
    assert statistics.paired_ratio({1: 3.0, 5: 9.0}, {1: 2.0, 4: 1.0}) == (1.5, None, None, 1)
    assert statistics.paired_ratio({1: 3.0}, {2: 2.0}) is None
    assert statistics.paired_ratio({1: 3.0}, {1: 0.0}) is None
