"""Measures of any lab: metrics, values of series, and the exponent of a metric over a parameter. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ewan.extras.course.measures.base import MeasuredRun, NoValueError, TimeSeries, measure


@measure
def metric(run: MeasuredRun, words: str, step: str = "") -> float:
    """A metric of docs/reference/metrics.md: `metric("rtt p95", step="probe", buffer="10BDP")`."""
    return run.metric(f"{words} of {step}" if step else words)


@measure
def value(run: MeasuredRun, series: str, at: float, step: str = "", flow: str = "", link: str = "") -> float:
    """A series at so many seconds: its last sample until then."""
    found = run.series(series, step=step, flow=flow, link=link)
    before = found.values[found.times <= at]
    if not before.size:
        raise NoValueError(f"{series}: has no sample until {at:g} s")
    return float(before[-1])


@measure
def largest(
    run: MeasuredRun,
    series: str,
    from_: float = 0.0,
    to: float = float("inf"),
    step: str = "",
    flow: str = "",
    link: str = "",
) -> float:
    """The largest value of a series between two times (s)."""
    return float(_between(run.series(series, step=step, flow=flow, link=link), series, from_, to).max())


@measure
def least(
    run: MeasuredRun,
    series: str,
    from_: float = 0.0,
    to: float = float("inf"),
    step: str = "",
    flow: str = "",
    link: str = "",
) -> float:
    """The least value of a series between two times (s)."""
    return float(_between(run.series(series, step=step, flow=flow, link=link), series, from_, to).min())


@measure
def mean(
    run: MeasuredRun,
    series: str,
    from_: float = 0.0,
    to: float = float("inf"),
    step: str = "",
    flow: str = "",
    link: str = "",
) -> float:
    """The mean of the samples of a series between two times (s)."""
    return float(_between(run.series(series, step=step, flow=flow, link=link), series, from_, to).mean())


@measure
def power(runs: Sequence[MeasuredRun], words: str, by: str, step: str = "") -> float:
    """The exponent a of `metric ~ parameter^a`: the slope of the line of least squares through the logarithms."""
    pairs = [(run.parameters.get(by), metric(run, words, step)) for run in runs]
    numbers = [(float(x), y) for x, y in pairs if not isinstance(x, str | None) and x > 0 and y > 0]
    if len({x for x, _ in numbers}) < 2:
        raise NoValueError(f"{words}: has no two values of {by} with a logarithm")
    logs = np.log(np.array(numbers))
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


def _between(found: TimeSeries, name: str, from_: float, to: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    inside = found.values[(found.times >= from_) & (found.times <= to)]
    if not inside.size:
        raise NoValueError(f"{name}: has no sample between {from_:g} s and {to:g} s")
    return inside
