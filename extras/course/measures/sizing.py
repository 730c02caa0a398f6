"""Measures of how large a parameter must be. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import exp, log

from ewan.extras.course.measures.base import MeasuredRun, NoValueError, measure


@measure
def enough(runs: Sequence[MeasuredRun], words: str, reach: float, by: str) -> float:
    """The value of a parameter from which on a metric reaches a value, between two runs by a straight line over the
    parameter's logarithm: the last crossing, as a buffer is enough only if all larger ones are."""
    points = []
    for run in runs:
        value = run.parameters.get(by)
        if not isinstance(value, float) or value <= 0:
            raise NoValueError(f"{by}: is no number above zero at run {run.number}")
        points.append((log(value), run.metric(words)))
    points.sort()
    if not points or points[-1][1] < reach:
        raise NoValueError(f"{words}: does not reach {reach:g} at the largest {by}")
    if all(metric >= reach for _, metric in points):
        raise NoValueError(f"{words}: reaches {reach:g} at every {by}")
    (low, below), (high, above) = [(a, b) for a, b in pairwise(points) if a[1] < reach <= b[1]][-1]
    return exp(low + (high - low) * (reach - below) / (above - below))
