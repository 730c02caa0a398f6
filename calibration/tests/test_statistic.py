"""The statistics, against published values."""

from __future__ import annotations

import pytest

from ewan.calibration import statistic


def test_quantile() -> None:
    assert statistic.quantile(0.99) == pytest.approx(2.575829)
    # Ten statements at 99 % together: each at 99.9 %.
    assert statistic.quantile(0.99, 10) == pytest.approx(3.290527)


def test_wilson() -> None:
    # Newcombe 1998, table I: 81 of 263 at 95 %: 0.2553 to 0.3662; none of 20: 0 to 0.1611.
    assert statistic.wilson(81, 263, 1.959964) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert statistic.wilson(0, 20, 1.959964) == pytest.approx((0, 0.1611), abs=5e-5)
    assert statistic.wilson(0, 0, 2) == (0, 1)


def test_kolmogorov_by_hand() -> None:
    # Steps of 1/2 at 0.2 and 0.4 against the diagonal: the largest distance is 1 − 0.4.
    assert statistic.kolmogorov([0.4, 0.2], lambda x: min(max(x, 0), 1)) == pytest.approx(0.6)


def test_kolmogorov_of_a_distribution_with_steps() -> None:
    assert statistic.kolmogorov([5, 5, 5], lambda x: float(x >= 5)) == 0


def test_kolmogorov_limit() -> None:
    # The classic 1.36/√n at 5 % is √(−ln(0.025)/2).
    assert statistic.kolmogorov_limit(100, 0.95) == pytest.approx(0.1358, abs=1e-4)
