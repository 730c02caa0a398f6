"""Protocols in the order of an experiment's results, and the places where the order may be chance. Pure.

In: an experiment's summary, the metric that decides, and the comparison of points (analysis/comparisons.py). Out: a row
for each protocol, the best first: its metrics, its difference to the best one paired by seed, with Holm's correction
over all of them. A protocol whose difference is not shown counts as equal to the best one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ewan.labs.base.units.shown import percent, with_interval
from ewan.labs.record.metrics import METRICS
from ewan.labs.record.scenario_requests import Comparison, Parameter
from ewan.labs.record.summary import ComparisonRow, Mean, Number, Summary

PARAMETER = "congestion"
SHOWN_NOT = ("no difference shown", "not tested")

Point = tuple[tuple[str, Parameter], ...]
Compare = Callable[
    [Sequence[Comparison], Mapping[Point, Mapping[int, Mapping[str, float]]], Sequence[str], float],
    list[ComparisonRow],
]
"""Entries of `compare:`, values of each point by seed, the scenario's metrics, a confidence → rows."""


@dataclass(frozen=True, slots=True)
class RankedProtocol:
    """`rank`: 1 for all that are not shown to be worse than the best; None: there is no value. `apart`: the difference
    to the best one, as analysis/comparisons.py gives it; None for the best itself."""

    protocol: str
    rank: int | None
    metrics: Mapping[str, Mean]
    apart: ComparisonRow | None = None

    @property
    def tie(self) -> bool:
        """Return whether it is behind the best by no more than chance explains."""
        return self.apart is not None and self.apart["outcome"] in SHOWN_NOT


def ranked(summary: Summary, metric: str, compare: Compare) -> list[RankedProtocol]:
    """The best first; those without a value last."""
    points = {str(each.parameters[PARAMETER]): each.metrics for each in summary.points}
    more = METRICS[metric].better == "more"
    known = [name for name, metrics in points.items() if metric in metrics]
    known.sort(key=lambda name: points[name][metric].mean or 0.0, reverse=more)
    if not known:
        return [RankedProtocol(name, None, metrics) for name, metrics in points.items()]
    entry = Comparison(PARAMETER, known[0], (metric,), False)
    rows = {str(row["value"]): row for row in compare([entry], by_seed(summary), [metric], summary.confidence)}
    places = [RankedProtocol(known[0], 1, points[known[0]])]
    for number, name in enumerate(known[1:], 2):
        apart = rows.get(name)
        tied = apart is None or apart["outcome"] in SHOWN_NOT
        places.append(RankedProtocol(name, 1 if tied else number, points[name], apart))
    return [*places, *(RankedProtocol(name, None, metrics) for name, metrics in points.items() if name not in known)]


def by_seed(summary: Summary) -> dict[Point, dict[int, dict[str, Number]]]:
    """The values of complete runs, by point and seed."""
    found: dict[Point, dict[int, dict[str, Number]]] = {}
    for run in summary.runs:
        if run.status == "complete":
            values = {name: each.value for name, each in run.metrics.items() if each.value is not None}
            found.setdefault(tuple(run.parameters.items()), {})[run.seed] = values
    return found


def row(place: RankedProtocol, shown: Sequence[str], best: str) -> list[str]:
    """A row of the table: rank, protocol, metrics with intervals, the difference to the best."""
    values = [_value(place.metrics.get(name), METRICS[name].unit) for name in shown]
    return ["–" if place.rank is None else str(place.rank), place.protocol, *values, words(place, best)]


def words(place: RankedProtocol, best: str) -> str:
    """The difference to the best one, in words."""
    if place.rank is None:
        return "no value"
    if place.apart is None:
        return "the best" if place.protocol == best else "no run of the same seed to compare"
    share = percent(place.apart["difference"] / place.apart["reference"]) if place.apart["reference"] else ""
    if place.apart["outcome"] == "not tested":
        return f"{share} (one seed: not tested)".strip()
    if place.tie:
        return f"{share}: not shown beyond chance (p = {place.apart['p_holm']:.2g})".removeprefix(": ")
    return f"{share} (p = {place.apart['p_holm']:.2g})".strip()


def verdict(places: Sequence[RankedProtocol], metric: str) -> str:
    """The advice in one line, with the protocols that are as good."""
    best = places[0]
    if best.rank is None:
        return f"no run has a value of {metric}: there is nothing to advise"
    others = [place.protocol for place in places[1:] if place.rank == 1]
    if not others:
        alone = "" if len(places) == 1 else ", better than all others beyond chance"
        return f"{best.protocol}: the best by {metric}{alone}"
    return f"{best.protocol} by {metric}; {', '.join(others)}: no difference to it shown beyond chance"


def _value(metric: Mean | None, unit: str) -> str:
    if metric is None:
        return "–"
    return with_interval(metric.mean, metric.low, metric.high, unit)
