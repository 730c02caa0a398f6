"""Stop conditions: which points are repeated, with which seeds."""

from __future__ import annotations

from ewan.experiments.engine import stop_rule
from ewan.experiments.tests.engines import half_of_range
from ewan.generator.scenario import Stop

STOP = Stop(metric="mean goodput", within="5%", confidence="95%", at_least=3, at_most=6)
A: stop_rule.Point = (("cc", "reno"),)
B: stop_rule.Point = (("cc", "bic"),)


def test_points_that_are_narrow_enough_are_not_repeated() -> None:
    result = {A: [100.0, 101.0, 99.0], B: [100.0, 130.0, 70.0]}
    seeds = {A: [1, 2, 3], B: [1, 2, 3]}
    assert stop_rule.further(STOP, result, seeds, half_of_range, at_once=2) == [(B, 4), (B, 5)]


def test_as_many_runs_as_fit_at_once_and_no_more_than_allowed() -> None:
    result = {A: [1.0, 9.0], B: [1.0, 9.0]}
    seeds = {A: [1, 2], B: [1, 2]}
    assert stop_rule.further(STOP, result, seeds, half_of_range, at_once=4) == [(A, 3), (B, 3), (A, 4), (B, 4)]
    assert stop_rule.further(STOP, result, {A: [1, 2, 3, 4, 5, 6], B: [1, 2, 3, 4, 5]}, half_of_range, 4) == [(B, 6)]
    assert stop_rule.further(STOP, result, {A: list(range(6)), B: list(range(6))}, half_of_range, 4) == []


def test_one_value_is_never_enough() -> None:
    assert not stop_rule.reached(STOP.model_copy(update={"at_least": 1}), [100.0], half_of_range)
    assert not stop_rule.reached(STOP, [100.0, 100.0], half_of_range), "at least three"
    assert stop_rule.reached(STOP, [100.0, 100.0, 100.0], half_of_range)
