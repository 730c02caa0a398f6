"""The metrics of an experiment's points in tables, as the report and exports have them, and its results in a few lines.

In: an experiment, its summary. Out: a table for what the scenario names and for each group of metrics; of each main
metric where it is least and where it is largest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ewan.analysis import load, summary
from ewan.analysis.figures.choice import ordered
from ewan.labs.base.units.shown import fitting, typographic, with_interval
from ewan.labs.record import quantities
from ewan.labs.record import summary as summaries
from ewan.labs.record.metrics import GROUPS, METRICS, RANKED
from ewan.labs.record.summary import Mean, PointSummary, Summary

FIRST = "Main results"
"""The title of the table of what the scenario names."""
FURTHER = "Further results"
"""The title of the table of what the scenario names beyond those and no group has: of flows that it selects, and of
extras."""
MOST_KEY_RESULTS = 4
MOST_FIRST = 6
"""Metrics that the scenario names which stand in a table of their own."""


@dataclass(frozen=True, slots=True)
class MetricColumn:
    """A metric at each point: `mean`, `low`, `high`; None where it is not there. Shown as multiples of the divisor."""

    name: str
    unit: str
    divisor: float
    values: Sequence[Mean | None]
    beyond: Sequence[bool] = ()
    """At which points it is more than the links carry (analysis/metrics.py); empty: at none."""


@dataclass(frozen=True, slots=True)
class PointTable:
    """A row for each point: the values of the varied parameters, the number of seeds, a cell of each column."""

    title: str
    parameters: Sequence[str]
    points: Sequence[Sequence[str]]
    seeds: Sequence[int]
    columns: Sequence[MetricColumn]


def tables(experiment: load.ExperimentResults, found: Summary) -> Iterator[PointTable]:
    """The tables: first the metrics that the scenario names, then a table for each group of the present ones."""
    points = in_order(experiment, found.points)
    there = summaries.names(points)
    for title, names in groups(experiment, there):
        if names == ["incomplete transfers"] and not _incomplete(points):
            continue
        columns = []
        for name in names:
            values = [point.metrics.get(name) for point in points]
            divisor, unit = fitting([value.mean for value in values if value], summary.unit(name))
            beyond = [name in point.beyond for point in points]
            columns.append(MetricColumn(name, unit, divisor, values, beyond if any(beyond) else ()))
        seeds = [point.seeds for point in points]
        yield PointTable(title, experiment.varied, [values_of(experiment, each) for each in points], seeds, columns)


def groups(experiment: load.ExperimentResults, there: Collection[str]) -> Iterator[tuple[str, list[str]]]:
    """Titles of tables with the metrics of each, of those that are there."""
    known = [name for name in experiment.document.metrics if quantities.metric_of(name)]
    named = quantities.meant(known, there)
    first, further = named[:MOST_FIRST], [name for name in named[MOST_FIRST:] if name not in METRICS]
    if first:
        yield FIRST, first
    for title, names in [*GROUPS.items(), (FURTHER, further)]:
        if columns := [name for name in names if name in there and name not in first]:
            yield title, columns


def in_order(experiment: load.ExperimentResults, points: Sequence[PointSummary]) -> list[PointSummary]:
    """Points in the order of their values, as figures have them; the scenario's first parameter comes first."""
    values = [ordered(point.parameters.get(name) for point in points) for name in experiment.varied]
    ranks = {
        name: {value: at for at, value in enumerate(each)} for name, each in zip(experiment.varied, values, strict=True)
    }
    return sorted(points, key=lambda point: [rank[str(point.parameters.get(name))] for name, rank in ranks.items()])


def values_of(experiment: load.ExperimentResults, point: PointSummary) -> list[str]:
    """The values of the varied parameters at a point; empty where it has no such parameter."""
    values = [point.parameters.get(name) for name in experiment.varied]
    return ["" if value in load.NOTHING else str(value) for value in values]


def _incomplete(points: Sequence[PointSummary]) -> bool:
    values = [point.metrics.get("incomplete transfers") for point in points]
    return any(value.mean for value in values if value)


def key_results(experiment: load.ExperimentResults, found: Summary) -> list[tuple[str, str]]:
    """Metrics that the scenario names, or else the highest-ranked ones, with their range over the points."""
    points = found.points
    there = summaries.names(points)
    named = next((names for title, names in groups(experiment, there) if title == FIRST), None)
    names = (named or [name for name in RANKED if name in there])[:MOST_KEY_RESULTS]
    return [(name, _range(experiment, name, [point for point in points if name in point.metrics])) for name in names]


def _range(experiment: load.ExperimentResults, name: str, points: Sequence[PointSummary]) -> str:
    least, largest = (end(points, key=lambda point: point.metrics[name].mean or 0.0) for end in (min, max))
    if least.metrics[name].mean == largest.metrics[name].mean:
        return _value(name, least) + (" everywhere" if len(points) > 1 else "")
    return " to ".join(f"{_value(name, each)} ({_where(experiment, each)})" for each in (least, largest))


def _value(name: str, point: PointSummary) -> str:
    value = point.metrics[name]
    return typographic(with_interval(value.mean, value.low, value.high, summary.unit(name)))


def _where(experiment: load.ExperimentResults, point: PointSummary) -> str:
    told = ((name, point.parameters.get(name)) for name in experiment.varied)
    return load.words(told, experiment.shared)
