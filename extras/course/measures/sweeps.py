"""Measures of a whole sweep: where a metric crosses a level, and which value of a parameter is best.

In: the runs of a scenario and a metric in words. Out: a value of the parameter that the runs differ in. Pure.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from ewan.extras.course.measures.base import MeasuredRun, NoValueError, measure


@measure
def crossing(runs: Sequence[MeasuredRun], words: str, level: float, by: str, step: str = "") -> float:
    """The value of a parameter at which a metric passes `level`: on the straight line between the two neighbouring runs
    of which one is below it and one is not, over the logarithm of the parameter. The first such pair counts."""
    whole = f"{words} of {step}" if step else words
    points = sorted((_number(run, by), run.metric(whole)) for run in runs)
    for (x, y), (next_x, next_y) in itertools.pairwise(points):
        if (y < level) != (next_y < level):
            along = (level - y) / (next_y - y)
            return math.exp(math.log(x) + along * (math.log(next_x) - math.log(x)))
    raise NoValueError(f"{whole} does not pass {level:g} between the values of {by}")


@measure
def best(runs: Sequence[MeasuredRun], words: str, by: str, among: str = "", most: bool = False) -> str:
    """The word of a parameter with the least value of a metric, or with the largest (`most`); `among`: words, with
    spaces between, of which one is meant."""
    wanted = among.split()
    points = [(run.metric(words), str(run.parameters[by])) for run in runs if by in run.parameters]
    points = [(value, word) for value, word in points if not wanted or word in wanted]
    if len({word for _, word in points}) < 2:
        raise NoValueError(f"{words}: has no two values of {by}")
    return (max if most else min)(points)[1]


def _number(run: MeasuredRun, by: str) -> float:
    value = run.parameters.get(by)
    if isinstance(value, str | None) or value <= 0:
        raise NoValueError(f"{by} is no number above 0 in run {run.number}: {value}")
    return float(value)
