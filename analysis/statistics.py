"""Intervals over repetitions, and where the warm-up of a series ends. Pure.

In: one value a repetition (a seed), and between what bounds such values can be. Out: means with confidence intervals,
and of which kind each is; how many more repetitions a narrow one needs. Ratios are taken per seed first, so that what a
seed does to both sides cancels. analysis/differences.py tells whether two samples differ.

Which interval, by what the values ask for:

- of fewer than `LEAST_BOOTSTRAP` values Student's t: of so few a bootstrap's intervals are too narrow, and no test
  tells whether they are normal;
- of more, Student's t where the values may be normal (Shapiro–Wilk does not refuse it at `NORMALITY`) and it stays
  within the bounds; else the bootstrap's BCa (B. Efron, "Better bootstrap confidence intervals", J. Am. Stat. Assoc.
  82, 1987), which never leaves the range of the values;
- an interval by Student's t that would leave the bounds is cut at them: no mean lies beyond, so that what is cut away
  holds nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from statistics import NormalDist, fmean, stdev
from typing import Any, Literal, NamedTuple

import numpy as np

from ewan.labs.base import optional

CONFIDENCE = 0.95
MSER_BATCH = 5
LEAST_MSER_BATCHES = 10
"""Batches that are needed to find a warm-up."""
LEAST_BOOTSTRAP = 15
"""Values. Of lognormal ones (σ = 1) BCa is then at least as often right as Student's t (analysis/tests)."""
NORMALITY = 0.05
RESAMPLES = 1999
LEAST_IN_BATCHES = 1000
"""Values: of more the resamples are made in batches of `MOST_RESAMPLED` values, since all at once they, and the samples
without one value each, take gigabytes."""
MOST_RESAMPLED = 1 << 20
SEED = 1
"""The seed of the resampling, so that the same values have the same interval."""
NARROW = 0.05
"""Half the width of an interval, of its mean, that counts as narrow."""
MOST_SEEDS = 10_000
"""Seeds that a scenario may have: an interval that needs more cannot be reached by repetition."""
_QUANTILES: Mapping[float, float] = dict(
    enumerate(
        (
            12.706204736174694,
            4.302652729749462,
            3.1824463052837078,
            2.7764451051977934,
            2.5705818356363146,
            2.4469118511449786,
            2.364624251592784,
            2.306004135204166,
            2.262157162798205,
            2.228138851986274,
            2.200985160091639,
            2.1788128296672284,
            2.1603686564627913,
        ),
        1,
    )
)
"""`quantile` at `CONFIDENCE` by the degrees of freedom, of scipy.special.stdtrit: all that intervals over fewer than
`LEAST_BOOTSTRAP` values need, without loading SciPy."""

Kind = Literal["t", "t, cut", "BCa"]
Bounds = tuple[float, float]
UNBOUNDED: Bounds = (-math.inf, math.inf)
POSITIVE: Bounds = (0.0, math.inf)


class Interval(NamedTuple):
    """A mean with its confidence interval; without bounds and kind where there is one value, which has no spread."""

    mean: float
    low: float | None
    high: float | None
    n: int
    kind: Kind | None = None


def mean_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Mean and half width of its interval, t(n − 1)·s/√n; the half width of a single value is infinite."""
    if not values:
        raise ValueError("no values, so no mean")
    if len(values) == 1:
        return float(values[0]), math.inf
    return fmean(values), quantile(len(values) - 1, confidence) * stdev(values) / math.sqrt(len(values))


@cache
def quantile(freedom: float, confidence: float) -> float:
    """t of Student's distribution: between −t and t is the share `confidence` of it."""
    known = _QUANTILES.get(freedom) if confidence == CONFIDENCE else None
    if known is not None:
        return known
    with optional.wanted(f"intervals over many seeds, or of another confidence than {CONFIDENCE}, need", "report"):
        from scipy.special import stdtrit  # a quarter of a second, which processes without intervals need not wait for

    return float(stdtrit(freedom, 0.5 + confidence / 2))


def quantile_of_many(freedom: float, confidence: float) -> float:
    """The same to six digits for `freedom` of 14 and more, without SciPy: M. Abramowitz and I. A. Stegun, Handbook of
    Mathematical Functions, 1964, formula 26.7.5."""
    x = NormalDist().inv_cdf(0.5 + confidence / 2)
    terms = (
        x,
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
    )
    return sum(term / freedom**power for power, term in enumerate(terms))


def interval(values: Sequence[float], confidence: float = CONFIDENCE, bounds: Bounds = UNBOUNDED) -> Interval:
    """The mean with its confidence interval; ValueError without values. `bounds`: those of the quantity; a value beyond
    them moves them."""
    mean, half = mean_interval(values, confidence)
    if math.isinf(half):
        return Interval(mean, None, None, len(values))
    least, most = min(bounds[0], *values), max(bounds[1], *values)
    low, high = mean - half, mean + half
    inside = least <= low and high <= most
    if len(values) >= LEAST_BOOTSTRAP and not (inside and normal(values)):
        resampled = bca(values, confidence)
        if resampled is not None:
            return Interval(mean, *resampled, len(values), "BCa")
    return Interval(mean, max(low, least), min(high, most), len(values), "t" if inside else "t, cut")


def normal(values: Sequence[float]) -> bool:
    """Return whether values may be normal, by S. S. Shapiro and M. B. Wilk's test (Biometrika 52, 1965). For fewer than
    `LEAST_BOOTSTRAP` values, and for equal ones, the answer is yes."""
    if len(values) < LEAST_BOOTSTRAP or _equal(values):
        return True
    with optional.wanted("intervals over many seeds need", "report"):
        from scipy import stats  # a second, which commands that compare nothing need not wait for

    return float(stats.shapiro(values).pvalue) >= NORMALITY


def bca(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """The bias-corrected and accelerated bootstrap's interval of the mean; None where resamples do not differ enough
    to give one."""
    return None if _equal(values) else bootstrapped([values], np.mean, confidence)


def bootstrapped(
    samples: Sequence[Sequence[float]], statistic: Callable[..., Any], confidence: float
) -> tuple[float, float] | None:
    """The same of any statistic of samples, which takes them as arrays with an `axis`."""
    with optional.wanted("intervals over many seeds need", "report"):
        from scipy import stats

    longest = max(map(len, samples))
    batch = MOST_RESAMPLED // longest if longest > LEAST_IN_BATCHES else None
    with np.errstate(all="ignore"):
        found = stats.bootstrap(
            [np.asarray(values, dtype=np.float64) for values in samples],
            statistic,
            confidence_level=confidence,
            n_resamples=RESAMPLES,
            batch=batch,
            method="BCa",
            rng=np.random.default_rng(SEED),
        ).confidence_interval
    low, high = float(found.low), float(found.high)
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def _equal(values: Sequence[float]) -> bool:
    """Apart by no more than rounding."""
    return max(values) - min(values) <= 1e-12 * max(abs(value) for value in values)


def more_seeds(values: Sequence[float], within: float = NARROW, confidence: float = CONFIDENCE) -> int | None:
    """The number of further values that an interval needs whose half width is at most `within` of the mean, if their
    spread stays: the least n with t(n − 1)·s/√n ≤ within·mean. None where there is one value, which has no spread,
    where the mean is zero, and where it would be more than `MOST_SEEDS` in all."""
    n = len(values)
    if n < 2:
        return None
    wanted, spread = within * abs(fmean(values)), stdev(values)

    def reached(size: int) -> bool:
        few = size < LEAST_BOOTSTRAP
        t = quantile(size - 1, confidence) if few else quantile_of_many(size - 1, confidence)
        return t * spread <= wanted * math.sqrt(size)

    if reached(n):
        return 0
    if not reached(MOST_SEEDS):
        return None
    below, above = n, MOST_SEEDS
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if reached(middle) else (middle, above)
    return above - n


def paired_ratio(
    values: Mapping[int, float], reference: Mapping[int, float], confidence: float = CONFIDENCE
) -> Interval | None:
    """The interval of value/reference, each pair of the same seed; None without a common seed, or by zero."""
    ratios = [values[seed] / reference[seed] for seed in sorted(values.keys() & reference.keys()) if reference[seed]]
    return interval(ratios, confidence, POSITIVE) if ratios else None


def mser5(values: Sequence[float]) -> int | None:
    """The number of values at the beginning of a series at equal intervals that are warm-up: a multiple of five, at
    most half of them; None where that cannot be determined. The method is MSER-5: K. P. White, "An effective truncation
    heuristic for bias reduction in simulation output", Simulation 69, 1997.

    Means are taken of five values each. Of all cuts d the one with the least Σ(yⱼ − ȳ)²/(m − d)² over the m − d means
    that stay, the first of equal ones. A least one in the second half says that the series did not settle."""
    batches = len(values) // MSER_BATCH
    if batches < LEAST_MSER_BATCHES:
        return None
    means = np.asarray(values[: batches * MSER_BATCH], dtype=np.float64).reshape(batches, MSER_BATCH).mean(axis=1)
    # Sums from each cut to the end, of values about their mean, so that little is lost to rounding.
    centred = means - means.mean()
    staying = np.arange(batches, 0, -1, dtype=np.float64)
    sums = np.cumsum(centred[::-1])[::-1]
    squares = np.cumsum(centred[::-1] ** 2)[::-1]
    errors = np.maximum(squares - sums**2 / staying, 0.0) / staying**2
    # The last few cuts leave so few means that their spread is small by chance.
    found = int(np.argmin(errors[: batches - MSER_BATCH + 1]))
    return found * MSER_BATCH if found <= batches // 2 else None
