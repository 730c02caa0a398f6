"""Intervals over repetitions. Pure.

In: one value a repetition (a seed). Out: means with confidence intervals by Student's t, which hold for few
repetitions where the values are about normal; ratios are taken per seed first, so that what a seed does to both sides
cancels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import NamedTuple

from scipy.special import stdtrit

CONFIDENCE = 0.95


class Interval(NamedTuple):
    """A mean with its confidence interval; without bounds where one value says nothing about the spread."""

    mean: float
    low: float | None
    high: float | None
    n: int


def mean_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Mean and half width of its interval, t(n − 1)·s/√n; the half width of a single value is infinite."""
    if not values:
        raise ValueError("no values, so no mean")
    if len(values) == 1:
        return float(values[0]), math.inf
    quantile = float(stdtrit(len(values) - 1, 0.5 + confidence / 2))
    return fmean(values), quantile * stdev(values) / math.sqrt(len(values))


def interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """The mean with its confidence interval; ValueError without values."""
    mean, half = mean_interval(values, confidence)
    if math.isinf(half):
        return Interval(mean, None, None, len(values))
    return Interval(mean, mean - half, mean + half, len(values))


def paired_ratio(
    values: Mapping[int, float], reference: Mapping[int, float], confidence: float = CONFIDENCE
) -> Interval | None:
    """The interval of value/reference, each pair of the same seed; None without a common seed, or by zero."""
    ratios = [values[seed] / reference[seed] for seed in sorted(values.keys() & reference.keys()) if reference[seed]]
    return interval(ratios, confidence) if ratios else None
