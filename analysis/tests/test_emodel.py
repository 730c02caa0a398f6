"""Opinions of calls against the values that ITU-T G.107 gives."""

from __future__ import annotations

import pytest

from ewan.analysis import emodel


@pytest.mark.parametrize(("rating", "score"), [(90, 4.34), (80, 4.03), (70, 3.60), (60, 3.10), (50, 2.58)])
def test_opinions_are_those_of_table_b_1(rating: float, score: float) -> None:
    assert emodel.opinion(rating) == pytest.approx(score, abs=0.01)


def test_opinions_have_bounds() -> None:
    assert (emodel.opinion(-10), emodel.opinion(120)) == (1, 4.5)
    assert all(1 <= emodel.opinion(rating / 10) <= 4.5 for rating in range(1000))


def test_a_call_without_delay_and_loss_has_the_default_rating() -> None:
    assert emodel.rating(100, 0) == 93.2
    assert emodel.opinion(93.2) == pytest.approx(4.41, abs=0.005)


def test_twice_the_perceived_delay_costs_three_points_and_a_loss_of_one_percent_nearly_four() -> None:
    assert emodel.delay_impairment(200) == pytest.approx(25 * (2 ** (1 / 6) - 3 * (1 + 3**-6) ** (1 / 6) + 2))
    assert emodel.delay_impairment(200) == pytest.approx(3.04, abs=0.01)
    assert 93.2 - emodel.rating(0, 0.01) == pytest.approx(95 / 26.1)
