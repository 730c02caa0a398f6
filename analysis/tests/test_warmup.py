"""Cuts of MSER-5, in cases worked out by hand."""

from __future__ import annotations

import numpy as np

from ewan.analysis.statistics import mser5

SETTLED = [0.0, 2.0] * 45


def test_what_is_far_from_the_rest_is_cut() -> None:
    # Two means of 100, then eighteen of 0.8 and 1.2: without the two, 18·0.04/18² is the least.
    assert mser5([100.0] * 10 + SETTLED) == 10


def test_a_series_that_is_settled_is_kept() -> None:
    assert mser5(SETTLED) == 0
    assert mser5([7.0] * 60) == 0


def test_a_series_that_never_settles_says_so() -> None:
    assert mser5([float(value**2) for value in range(100)]) is None


def test_of_few_values_nothing_is_told() -> None:
    assert mser5([1.0] * 49) is None


def test_slow_start_is_cut() -> None:
    """Doubling to a plateau with noise, as a flow does: the cut is near the end of the doubling."""
    draw = np.random.default_rng(2)
    ramp = [min(100.0, 2.0 ** (step / 3)) for step in range(200)]  # 100 from the twentieth on
    found = mser5([value * draw.uniform(0.95, 1.05) for value in ramp])
    assert found is not None and 15 <= found <= 30
