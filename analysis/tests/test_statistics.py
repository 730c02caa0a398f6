"""Intervals over seeds, against tables of Student's t, and how often they hold the mean."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from ewan.analysis import statistics


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
    assert statistics.interval([7.0]) == (7, None, None, 1, None)


def test_no_value_has_no_mean() -> None:
    with pytest.raises(ValueError, match="no values"):
        statistics.mean_interval([])


def test_ratios_are_taken_seed_by_seed() -> None:
    # Seeds differ tenfold, and the ratio is 2 in each: nothing is uncertain about it.
    ratio = statistics.paired_ratio({1: 2.0, 2: 20.0, 3: 200.0}, {1: 1.0, 2: 10.0, 3: 100.0})
    assert ratio == (2, 2, 2, 3, "t")


def test_only_seeds_of_both_count() -> None:
    assert statistics.paired_ratio({1: 3.0, 5: 9.0}, {1: 2.0, 4: 1.0}) == (1.5, None, None, 1, None)
    assert statistics.paired_ratio({1: 3.0}, {2: 2.0}) is None
    assert statistics.paired_ratio({1: 3.0}, {1: 0.0}) is None


def test_an_interval_of_a_share_is_cut_at_its_bounds() -> None:
    # s = 0.02646, half width 4.3027·s/√3 = 0.0657: by Student's t up to 1.046.
    found = statistics.interval([0.95, 0.99, 1.0], bounds=(0.0, 1.0))
    assert found.mean == pytest.approx(0.98) and found.low == pytest.approx(0.98 - 0.0657, abs=1e-4)
    assert (found.high, found.kind) == (1.0, "t, cut")
    assert statistics.interval([0.95, 0.99, 1.0]).kind == "t"


def test_a_value_beyond_the_bounds_moves_them() -> None:
    found = statistics.interval([0.999, 1.001], bounds=(0.0, 1.0))
    assert found.high == 1.001 and found.mean == pytest.approx(1.0)


def test_the_bootstrap_is_for_many_values_that_are_not_normal() -> None:
    skewed = [1.0] * 18 + [50.0, 60.0]
    found = statistics.interval(skewed, bounds=statistics.POSITIVE)
    assert found.kind == "BCa" and found.low is not None and found.high is not None
    assert 1.0 <= found.low < found.mean < found.high <= 60.0
    assert found == statistics.interval(skewed, bounds=statistics.POSITIVE), "the same at every call"
    assert statistics.interval(skewed[-5:]).kind == "t", "too few"
    bell = [float(value) for value in np.random.default_rng(1).normal(10, 1, 20)]
    assert statistics.interval(bell).kind == "t"
    assert statistics.interval([2.0] * 20) == (2, 2, 2, 20, "t")


def test_quantiles_without_scipy_are_those_of_scipy() -> None:
    from scipy.special import stdtrit

    for freedom in range(1, statistics.LEAST_BOOTSTRAP - 1):
        expected = float(stdtrit(freedom, 0.5 + statistics.CONFIDENCE / 2))
        assert statistics.quantile(freedom, statistics.CONFIDENCE) == pytest.approx(expected, rel=1e-9)
    for confidence in (0.9, 0.95, 0.99):
        for freedom in (14, 20, 100, 9_999):
            expected = float(stdtrit(freedom, 0.5 + confidence / 2))
            assert statistics.quantile_of_many(freedom, confidence) == pytest.approx(expected, rel=1e-5)


def test_how_many_more_seeds_a_narrow_interval_needs() -> None:
    # s = 10 of 100: 10·t/√n ≤ 5 takes n = 18, t(0.975; 17) = 2.1098; with 17 it is 10·2.1199/√17 = 5.14.
    assert statistics.more_seeds([90, 100, 110]) == 15
    assert statistics.more_seeds([100, 100.1, 99.9]) == 0
    assert statistics.more_seeds([100]) is None
    assert statistics.more_seeds([-1, 0, 1]) is None, "of nothing there is no share"


@pytest.mark.parametrize(
    ("law", "mean", "n", "least"), [("normal", 5.0, 5, 0.92), ("lognormal", math.exp(0.5), 15, 0.83)]
)
def test_intervals_hold_the_mean_as_often_as_they_say(law: str, mean: float, n: int, least: float) -> None:
    """The share of intervals that hold the mean is 95 % for normal values. For so few lognormal ones every interval is
    too narrow: BCa is no worse than Student's t."""
    draw = np.random.default_rng(7)
    held = by_t = 0
    trials = 300
    for _ in range(trials):
        values = [float(each) for each in (draw.normal(mean, 1, n) if law == "normal" else draw.lognormal(0, 1, n))]
        found = statistics.interval(values, bounds=statistics.POSITIVE)
        middle, half = statistics.mean_interval(values)
        assert found.low is not None and found.high is not None
        held += found.low <= mean <= found.high
        by_t += abs(middle - mean) <= half
    assert held / trials >= least and held >= by_t


def test_thousands_of_values_are_resampled_in_little_memory() -> None:
    """At once the samples without one of 6,000 values each would take 600 MB."""
    values = np.random.default_rng(1).lognormal(0, 1, 6_000)
    tracemalloc.start()
    low, high = statistics.bca(values.tolist()) or (0, 0)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert low < values.mean() < high < values.mean() * 1.06
    assert most < 100 << 20
