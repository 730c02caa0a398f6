"""The few statistics a verdict needs. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist


def quantile(confidence: float, comparisons: int = 1) -> float:
    """Two-sided normal quantile for `comparisons` statements that hold together with `confidence` (Bonferroni)."""
    return NormalDist().inv_cdf(1 - (1 - confidence) / max(comparisons, 1) / 2)


def wilson(count: float, total: float, z: float) -> tuple[float, float]:
    """Interval of a probability after `count` of `total` (Wilson 1927); (0, 1) without observations."""
    if total <= 0:
        return 0.0, 1.0
    share = count / total
    centre = share + z * z / (2 * total)
    half = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    return max((centre - half) / scale, 0.0), min((centre + half) / scale, 1.0)


def kolmogorov(values: Sequence[float], distribution: Callable[[float], float]) -> float:
    """Largest distance between the empirical and the given distribution function, which may have steps."""
    ordered = sorted(values)
    total = len(ordered)
    largest = 0.0
    for rank, value in enumerate(ordered):
        before, at = distribution(math.nextafter(value, -math.inf)), distribution(value)
        if rank == 0 or ordered[rank - 1] < value:
            largest = max(largest, abs(before - rank / total))
        if rank + 1 == total or ordered[rank + 1] > value:
            largest = max(largest, abs(at - (rank + 1) / total))
    return largest


def kolmogorov_limit(total: float, confidence: float, comparisons: int = 1) -> float:
    """Above this a Kolmogorov distance is significant: √(−ln(α/2) / 2n), from Massart 1990, valid for every n."""
    alpha = (1 - confidence) / max(comparisons, 1)
    return math.sqrt(math.log(2 / alpha) / (2 * total))
