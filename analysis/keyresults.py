"""The results of an experiment in a few lines, for the top of its report.

In: an experiment and its summary. Out: of each main metric where it is least and where it is largest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ewan.analysis import grouped, load, summary
from ewan.labs.base.units.shown import typographic, with_interval
from ewan.labs.record.metrics import RANKED

MOST_METRICS = 4


def key_results(experiment: load.ExperimentResults, found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Metrics that the scenario names, or else those that say most, with their range over the points."""
    points = found["points"]
    there = {name for point in points for name in point["metrics"]}
    named = next((names for title, names in grouped.groups(experiment, there) if title == grouped.FIRST), None)
    names = (named or [name for name in RANKED if name in there])[:MOST_METRICS]
    return [(name, _range(experiment, name, [point for point in points if name in point["metrics"]])) for name in names]


def _range(experiment: load.ExperimentResults, name: str, points: Sequence[Mapping[str, Any]]) -> str:
    least, largest = (end(points, key=lambda point: point["metrics"][name]["mean"]) for end in (min, max))
    if least["metrics"][name]["mean"] == largest["metrics"][name]["mean"]:
        return _value(name, least) + (" everywhere" if len(points) > 1 else "")
    return " to ".join(f"{_value(name, each)} ({_where(experiment, each)})" for each in (least, largest))


def _value(name: str, point: Mapping[str, Any]) -> str:
    value = point["metrics"][name]
    return typographic(with_interval(value["mean"], value["low"], value["high"], summary.unit(name)))


def _where(experiment: load.ExperimentResults, point: Mapping[str, Any]) -> str:
    told = ((name, point["parameters"].get(name)) for name in experiment.varied)
    return load.words(told, experiment.shared)
