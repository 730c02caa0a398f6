"""The difference between two samples: its test, its size, and its size relative to the spread. Pure.

In: values of two sets of runs, paired by seed or not. Out: a `Difference` with its interval, the test that was made,
and an effect size; p-values of several tests together by Holm's correction.

Which test, by what the values ask for (`statistics.normal`, one rule for intervals and tests):

| | may be normal | not normal |
|---|---|---|
| paired by seed | Student's t of the differences; d_z | Wilcoxon's signed ranks; Cliff's delta |
| not paired | Welch's t; Hedges' g | Mann and Whitney's ranks; Cliff's delta |

Where all differences are equal, or all values on each side, there is no spread to go by. Then p is that of the exact
permutation test: 2 of the 2ⁿ ways to give n differences signs are as far from nothing.

Sources: B. L. Welch, Biometrika 34, 1947; F. Wilcoxon, Biometrics Bulletin 1, 1945; H. B. Mann and D. R. Whitney, Ann.
Math. Stat. 18, 1947; S. Holm, Scand. J. Stat. 6, 1979; L. V. Hedges, J. Educ. Stat. 6, 1981; J. Cohen, Statistical
Power Analysis, 1988, section 2.3.5 (d_z); N. Cliff, Psychol. Bull. 114, 1993."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev, variance
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ewan.analysis import statistics
from ewan.analysis.statistics import CONFIDENCE, Interval, bootstrapped
from ewan.labs.base import optional

Test = Literal["paired t", "Wilcoxon", "permutation", "Welch", "Mann–Whitney"]
Effect = Literal["d_z", "Hedges' g", "Cliff's delta"]


@dataclass(frozen=True, slots=True)
class Difference:
    """First less second. `p`: of the test, for both sides; None with `test` where there are too few values. `effect`:
    None where nothing spreads."""

    interval: Interval
    test: Test | None = None
    p: float | None = None
    effect: Effect | None = None
    size: float | None = None


def paired(first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE) -> Difference:
    """The difference of values in the same order; ValueError for lengths that differ, and without values."""
    apart = [own - other for own, other in zip(first, second, strict=True)]
    found = statistics.interval(apart, confidence)
    if len(apart) < 2:
        return Difference(found)
    if _constant(apart, [*first, *second]):
        p = 1.0 if _none(apart, [*first, *second]) else 2.0 * 0.5 ** len(apart)
        return Difference(found, "permutation", p)
    spread = stdev(apart)
    if statistics.normal(apart):
        statistic = found.mean / spread * math.sqrt(len(apart))
        return Difference(found, "paired t", _two_sided(statistic, len(apart) - 1), "d_z", found.mean / spread)
    with optional.wanted("comparisons need", "report"):
        from scipy import stats

    p = float(stats.wilcoxon(apart, zero_method="zsplit").pvalue)
    return Difference(found, "Wilcoxon", p, "Cliff's delta", cliffs_delta(first, second))


def unpaired(first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE) -> Difference:
    """The difference of two samples of any sizes; ValueError where one has no values."""
    mean = fmean(first) - fmean(second) if first and second else math.nan
    if math.isnan(mean):
        raise ValueError("no values, so no difference")
    least = min(len(first), len(second))
    if least < 2:
        return Difference(Interval(mean, None, None, least))
    if _constant(first, [*first, *second]) and _constant(second, [*first, *second]):
        # Of all ways to deal the values out, this one is as far apart, and its mirror where there is one.
        extreme = 2.0 if len(first) == len(second) else 1.0
        p = 1.0 if _none([mean], [*first, *second]) else extreme / math.comb(len(first) + len(second), len(first))
        return Difference(Interval(mean, mean, mean, least, "t"), "permutation", p)
    if statistics.normal(first) and statistics.normal(second):
        p, found = welch(first, second, confidence)
        return Difference(found, "Welch", p, "Hedges' g", hedges_g(first, second))
    with optional.wanted("comparisons need", "report"):
        from scipy import stats

    p = float(stats.mannwhitneyu(first, second).pvalue)
    return Difference(
        _resampled(first, second, confidence), "Mann–Whitney", p, "Cliff's delta", cliffs_delta(first, second)
    )


def welch(first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, Interval]:
    """p of both sides, and the interval of the difference of the means; two values at least of each, of which not all
    are equal."""
    parts = [variance(values) / len(values) for values in (first, second)]
    error = math.sqrt(sum(parts))
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(values) - 1) for part, values in zip(parts, (first, second), strict=True)
    )
    mean = fmean(first) - fmean(second)
    half = statistics.quantile(freedom, confidence) * error
    found = Interval(mean, mean - half, mean + half, min(len(first), len(second)), "t")
    return _two_sided(mean / error, freedom), found


def expanded(first: Sequence[float], second: Sequence[float], confidence: float) -> tuple[float, float, float]:
    """Welch's two-sided p, the half width U of the interval of the difference, and k, U divided by its standard
    error."""
    p, found = welch(first, second, confidence)
    assert found.high is not None
    half = found.high - found.mean
    error = math.sqrt(variance(first) / len(first) + variance(second) / len(second))
    return p, half, half / error


def _resampled(first: Sequence[float], second: Sequence[float], confidence: float) -> Interval:
    """The difference of the means with the bootstrap's BCa interval."""

    def apart(one: NDArray[np.float64], two: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
        found: NDArray[np.float64] = np.mean(one, axis=axis) - np.mean(two, axis=axis)
        return found

    bounds = bootstrapped([first, second], apart, confidence)
    if bounds is None:
        return welch(first, second, confidence)[1]
    return Interval(fmean(first) - fmean(second), *bounds, min(len(first), len(second)), "BCa")


def hedges_g(first: Sequence[float], second: Sequence[float]) -> float | None:
    """The difference of the means by the pooled deviation, corrected for few values by 1 − 3/(4·(n₁ + n₂) − 9)."""
    n = len(first) + len(second)
    pooled = ((len(first) - 1) * variance(first) + (len(second) - 1) * variance(second)) / (n - 2)
    if not pooled:
        return None
    return (fmean(first) - fmean(second)) / math.sqrt(pooled) * (1 - 3 / (4 * n - 9))


def cliffs_delta(first: Sequence[float], second: Sequence[float]) -> float:
    """Cliff's delta: the probability that a value of the first is above one of the second, less the probability that it
    is below: −1 to 1."""
    ordered = np.sort(np.asarray(second))
    below, not_above = (int(np.searchsorted(ordered, first, side).sum()) for side in ("left", "right"))
    return (below + not_above - len(first) * len(second)) / (len(first) * len(second))


def holm(values: Sequence[float]) -> list[float]:
    """p-values so that all together are wrong with no more than the level they are held against: the k-th least of m
    times m − k + 1, none less than those before it, at most 1."""
    found, largest = [0.0] * len(values), 0.0
    for rank, index in enumerate(sorted(range(len(values)), key=lambda each: values[each])):
        largest = max(largest, min(1.0, values[index] * (len(values) - rank)))
        found[index] = largest
    return found


def _two_sided(statistic: float, freedom: float) -> float:
    with optional.wanted("comparisons need", "report"):
        from scipy.special import stdtr  # as in statistics.quantile

    return 2 * float(stdtr(freedom, -abs(statistic)))


def _constant(values: Sequence[float], scale: Sequence[float]) -> bool:
    """Return whether the values differ by no more than the rounding of the values that they were computed from."""
    return max(values) - min(values) <= 1e-12 * max(map(abs, scale))


def _none(values: Sequence[float], scale: Sequence[float]) -> bool:
    return max(map(abs, values)) <= 1e-12 * max(map(abs, scale))
