"""The rule that ends repetition: further seeds until the confidence interval of a metric is narrow enough. Pure.

In: the condition, and each point's values so far. Out: the points that go on with their next seeds, no more at once
than can run at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from ewan.generator.scenario import Stop
from ewan.labs.record.summary import Summary

Point = tuple[tuple[str, str | int], ...]
Estimate = Callable[[Sequence[float], float], tuple[float, float]]


def point_of(parameters: Mapping[str, str | int]) -> Point:
    """Parameters as a key: the same for all seeds."""
    return tuple(sorted(parameters.items()))


def values(summary: Summary, metric: str) -> dict[Point, list[float]]:
    """Each point's values of a metric, over its runs."""
    result: dict[Point, list[float]] = {}
    for run in summary.runs:
        at = result.setdefault(point_of(run.parameters), [])
        measured = run.metrics.get(metric)
        if measured is not None and measured.value is not None:
            at.append(measured.value)
    return result


def reached(stop: Stop, measured: Sequence[float], estimate: Estimate) -> bool:
    """Return whether there are enough values and the half width of the interval is within the wanted share of the
    mean."""
    if len(measured) < max(stop.at_least, 2):
        return False
    mean, half = estimate(measured, stop.confidence.share)
    return not math.isnan(half) and half <= stop.within.share * abs(mean)


def further(
    stop: Stop,
    result: Mapping[Point, Sequence[float]],
    seeds: Mapping[Point, Sequence[int]],
    estimate: Estimate,
    at_once: int,
) -> list[tuple[Point, int]]:
    """Points and seeds of the next batch; empty when every point is narrow enough or has been repeated enough."""
    taken = {point: list(each) for point, each in seeds.items()}
    pending = [point for point in seeds if not reached(stop, result.get(point, ()), estimate)]
    batch: list[tuple[Point, int]] = []
    while len(batch) < at_once:
        open_points = [point for point in pending if len(taken[point]) < stop.at_most]
        if not open_points:
            break
        for point in open_points[: at_once - len(batch)]:
            seed = max(taken[point]) + 1
            taken[point].append(seed)
            batch.append((point, seed))
    return batch


def words(stop: Stop, result: Mapping[Point, Sequence[float]], estimate: Estimate) -> str:
    """The number of points that meet the condition, in one line."""
    done = sum(reached(stop, each, estimate) for each in result.values())
    within, confidence = stop.within.share, stop.confidence.share
    return (
        f"{stop.metric} within {within:.3g} of its mean ({confidence:.3g} confidence) at {done} of "
        f"{len(result)} points, after {sum(map(len, result.values()))} runs"
    )
