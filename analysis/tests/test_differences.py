"""Tests of differences, against hand-computed cases and scipy's own."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from ewan.analysis import differences

LOW, HIGH = [1.0, 2.0, 3.0, 4.0, 5.0], [3.0, 4.0, 5.0, 6.0, 7.0]
SKEWED = [1.0, 1.1, 1.2, 1.3, 1.1, 1.4, 1.2, 1.0, 1.3, 1.1, 1.2, 1.5, 1.1, 9.0, 12.0, 30.0]


def test_pairs_by_student() -> None:
    # Differences 1, 2, 3: mean 2, s = 1, t = 2·√3 = 3.464 of two degrees, half width 4.3027/√3.
    found = differences.paired([11, 22, 33], [10, 20, 30])
    assert found.test == "paired t" and found.p == pytest.approx(0.0742, abs=1e-4)
    assert (found.effect, found.size) == ("d_z", 2)
    assert found.interval.mean == 2 and found.interval.low == pytest.approx(2 - 4.3027 / math.sqrt(3), rel=1e-4)


def test_welch_as_scipy_has_it() -> None:
    wide = [0.0, 4.0, 9.0, 1.0]
    found, known = differences.unpaired(LOW, wide), stats.ttest_ind(LOW, wide, equal_var=False)
    bounds = known.confidence_interval(0.95)
    assert found.test == "Welch" and found.p == pytest.approx(float(known.pvalue))
    assert found.interval.low == pytest.approx(float(bounds.low))
    assert found.interval.high == pytest.approx(float(bounds.high))


def test_hedges_g() -> None:
    # −2/√2.5 = −1.2649, times 1 − 3/31.
    assert differences.hedges_g(LOW, HIGH) == pytest.approx(-1.2649 * 28 / 31, rel=1e-4)
    assert differences.hedges_g([1.0, 1.0], [2.0, 2.0]) is None


def test_cliffs_delta_counts_pairs() -> None:
    # 1 is below all three, 2 below two and equal to one, 3 above one and below one: −5 of 9.
    assert differences.cliffs_delta([1, 2, 3], [2, 3, 4]) == pytest.approx(-5 / 9)
    assert differences.cliffs_delta([5, 6], [1, 2]) == 1


def test_ranks_where_values_are_not_normal() -> None:
    other = [value + 0.5 for value in SKEWED]
    found = differences.unpaired(SKEWED, other)
    assert (found.test, found.effect) == ("Mann–Whitney", "Cliff's delta")
    assert found.p == pytest.approx(float(stats.mannwhitneyu(SKEWED, other).pvalue))
    assert found.interval.kind == "BCa" and found.interval.mean == pytest.approx(-0.5)
    nothing = [0.0] * len(SKEWED)
    signed = differences.paired(SKEWED, nothing)
    # All 16 differences have one sign: of 2¹⁶ ways two are as extreme, as far as ties let it be exact.
    assert signed.test == "Wilcoxon" and signed.p is not None and signed.p < 1e-3
    assert signed.size == 1


def test_equal_differences_have_the_signs_alone() -> None:
    found = differences.paired([2.0, 3.0, 4.0], [1.0, 2.0, 3.0])
    assert (found.test, found.p, found.size) == ("permutation", 0.25, None)
    assert differences.paired([2.0, 3.0], [2.0, 3.0]).p == 1
    # Of the 20 ways to deal six values out to three and three, two are as far apart.
    assert differences.unpaired([1.0] * 3, [2.0] * 3).p == pytest.approx(0.1)
    assert differences.unpaired([1.0] * 3, [1.0] * 4).p == 1


def test_one_value_has_a_difference_and_no_test() -> None:
    for found in (differences.paired([3.0], [1.0]), differences.unpaired([3.0], [1.0, 1.5])):
        assert found.test is None and found.p is None and found.interval.low is None
    assert differences.unpaired([3.0], [1.0, 1.5]).interval.mean == 1.75


def test_holm() -> None:
    # 0.01·3; 0.03·2; 0.04·1 is less than the one before.
    assert differences.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert differences.holm([0.6, 0.7]) == [1, 1]
    assert differences.holm([]) == []


def test_nothing_is_found_more_often_than_it_may_be() -> None:
    """Ten comparisons of samples of one law: with Holm's correction any is found in no more than about 5 % of cases."""
    draw = np.random.default_rng(3)
    wrong = 0
    for _ in range(200):
        tests = [differences.unpaired(list(draw.normal(0, 1, 5)), list(draw.normal(0, 1, 5))).p for _ in range(10)]
        wrong += min(differences.holm([p for p in tests if p is not None])) < 0.05
    assert wrong / 200 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 200)


def test_cliffs_delta_is_that_of_all_pairs() -> None:
    draw = np.random.default_rng(2)
    for _ in range(20):
        first, second = (draw.integers(0, 6, size).tolist() for size in draw.integers(1, 9, 2))
        pairs = [(own > other) - (own < other) for own in first for other in second]
        assert differences.cliffs_delta(first, second) == sum(pairs) / len(pairs)
