"""The results of two experiments beside each other, point by point. Pure.

In: each experiment's points with values by seed, the quantities that are asked for. Out: rows with both means, their
difference (the second less the first) with its interval, test, p by Holm's correction over all rows, effect size.
Where both points have the same seeds, runs are paired by them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypedDict

from ewan.analysis import comparisons, differences, statistics
from ewan.analysis.points import BySeed, Point, Seeds, names, of_seed
from ewan.labs.record import quantities
from ewan.labs.record.scenario_requests import Values
from ewan.labs.record.summary import DifferenceRow


class MeanRow(TypedDict):
    """A mean with its interval."""

    mean: float
    low: float | None
    high: float | None
    n: int
    kind: str | None


class TwoResults(DifferenceRow):
    """A quantity at a point that both have."""

    parameters: Values
    metric: str
    unit: str
    better: str | None
    paired: bool
    first: MeanRow
    second: MeanRow


def matched(first: BySeed, second: BySeed) -> list[tuple[Point, Point]]:
    """Pairs of points with the same parameters. A parameter that has a single value, or none, in each of the two
    experiments is ignored: it may be the difference between them. Points that the other parameters do not distinguish
    are left unpaired."""
    varying = [
        name
        for name in dict.fromkeys(name for points in (first, second) for point in points for name, _ in point)
        if any(len({str(dict(point).get(name)) for point in points}) > 1 for points in (first, second))
    ]

    def key(point: Point) -> tuple[str, ...]:
        return tuple(str(dict(point).get(name)) for name in varying)

    keys = [[key(point) for point in points] for points in (first, second)]
    found = {key(point): point for point in second}
    counts = [Counter(each) for each in keys]
    return [
        (point, found[own]) for point, own in zip(first, keys[0], strict=True) if counts[0][own] == counts[1][own] == 1
    ]


def rows(
    first: BySeed, second: BySeed, pairs: Sequence[tuple[Point, Point]], wanted: Sequence[str], confidence: float
) -> list[TwoResults]:
    """A row for each pair of points and quantity that both have."""
    found = [
        _row(dict(one), first[one], second[two], name, confidence)
        for one, two in pairs
        for name in quantities.meant(wanted, [each for each in names(first[one]) if each in names(second[two])])
    ]
    comparisons.corrected(found)
    for row in found:
        row["outcome"] = comparisons.outcome(row, 1 - confidence, row["better"])
    return found


def _row(parameters: Values, first: Seeds, second: Seeds, name: str, confidence: float) -> TwoResults:
    before, after = of_seed(first, name), of_seed(second, name)
    metric = quantities.parse(name).metric
    seeds = sorted(before)
    paired = seeds == sorted(after)
    one = [before[seed] for seed in seeds]
    two = [after[seed] for seed in (seeds if paired else sorted(after))]
    test = differences.paired if paired else differences.unpaired
    return {
        "parameters": parameters,
        "metric": name,
        "unit": metric.unit,
        "better": metric.better,
        "paired": paired,
        "first": _mean(one, confidence, metric.bounds),
        "second": _mean(two, confidence, metric.bounds),
        **comparisons.record(test(two, one, confidence)),
    }


def _mean(values: Sequence[float], confidence: float, bounds: statistics.Bounds) -> MeanRow:
    mean, low, high, n, kind = statistics.interval(values, confidence, bounds)
    return {"mean": mean, "low": low, "high": high, "n": n, "kind": kind}
