"""Tables of the report beside those of metrics: measures of steps, comparisons, the certainty of means.

In: an experiment, its summary. Out: rows of words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ewan.analysis import load
from ewan.analysis.statistics import NARROW
from ewan.labs.base.units.shown import NONE, fitting, interval_in, typographic, with_interval, written
from ewan.labs.record import quantities, uncounted_traffic
from ewan.labs.record import summary as summaries
from ewan.labs.record.scenario_requests import Parameter
from ewan.labs.record.summary import ComparisonRow, DifferenceRow, Mean, PointSummary, Summary

BEYOND = "‡"
"""Stands after what is more than the links carry."""
KINDS = {
    "t": "Student's t",
    "t, cut": "Student's t, cut where values cannot be",
    "BCa": "the bootstrap (BCa), where values are not normal",
}


def mark(point: PointSummary, name: str) -> str:
    """After a value of a point."""
    words = [BEYOND] * (name in point.beyond) + [uncounted_traffic.MARK] * uncounted_traffic.is_marked(point, name)
    return "".join(f"\u00a0{each}" for each in words)


def kinds(found: Summary) -> str:
    """The kinds of intervals that the summary has, in words; empty where there is none."""
    there = {value.kind for point in found.points for value in point.metrics.values()}
    if "t, cut" in there:
        there.discard("t")
    return "; ".join(words for kind, words in KINDS.items() if kind in there)


def more_seeds(experiment: load.ExperimentResults, found: Summary) -> str:
    """The number of further seeds that narrow intervals of the scenario's metrics need, at the point that needs
    most."""
    told = []
    for name in quantities.meant(experiment.document.metrics, summaries.names(found.points)):
        values = [point.metrics[name] for point in found.points if name in point.metrics]
        several = [value for value in values if value.n > 1]
        if not several:
            continue
        needed = [value.more_seeds for value in several]
        known = [each for each in needed if each is not None]
        many = str(max(known)) if len(known) == len(needed) else "more than 10\u202f000, or its mean is nothing"
        told.append(f"{name}: {many}")
    share = written(NARROW, "share")
    return f"More seeds for intervals of ±{share} at every point: {'; '.join(told)}." if told else ""


class StepTable(NamedTuple):
    """A row for each step of each point: the values of the varied parameters with the step, a cell of each column."""

    columns: Sequence[str]
    rows: Sequence[tuple[Sequence[str], Sequence[str]]]


def steps(experiment: load.ExperimentResults, found: Summary) -> StepTable | None:
    """A row for each step of each point, with a column a metric; None where no run has several steps with flows."""
    points = [point for point in found.points if point.steps]
    names = dict.fromkeys(name for point in points for own in point.steps.values() for name in own)
    if not names:
        return None
    units = {}
    for name in names:
        values = [own[name].mean for point in points for own in point.steps.values() if name in own]
        units[name] = fitting(values, quantities.parse(name).metric.unit)
    rows = []
    for point in points:
        words = [_word(point.parameters.get(name)) for name in experiment.varied]
        for step, own in point.steps.items():
            cells = [_interval(units[name][0], own.get(name)) for name in names]
            rows.append(([*words, step], cells))
    return StepTable([f"{name} ({units[name][1]})" if units[name][1] else name for name in names], rows)


def _word(value: Parameter | None) -> str:
    return "" if value in load.NOTHING else str(value)


def _interval(divisor: float, value: Mean | None) -> str:
    if value is None:
        return NONE
    return typographic(interval_in(divisor, value.mean, value.low, value.high))


def comparisons(experiment: load.ExperimentResults, found: Summary) -> list[dict[str, str]]:
    """A row for each comparison that the scenario asks for."""
    return [comparison(experiment, row) for row in found.comparisons]


def comparison(experiment: load.ExperimentResults, row: ComparisonRow) -> dict[str, str]:
    """A comparison in words: its point and values, both means, the difference, the test, the effect, the outcome."""
    others = ((name, row["parameters"].get(name)) for name in experiment.varied if name != row["by"])
    told = load.words(others, experiment.shared)
    return {
        "value": f"{load.word(row['by'], row['value'], experiment.shared)} against {row['to']}",
        "where": told,
        "metric": f"harm to {row['metric']}" if row["harm"] else row["metric"],
        "reference": typographic(written(row["reference"], row["unit"])),
        "here": typographic(written(row["here"], row["unit"])),
        **tested(row, "share" if row["harm"] else row["unit"]),
    }


def tested(row: DifferenceRow, unit: str) -> dict[str, str]:
    """The texts of a row of a comparison: the difference in `unit`, the test with p after Holm's correction, the
    effect, the outcome."""
    effect = NONE if row["size"] is None else f"{row['effect']} = {row['size']:.2f}"
    p = NONE if row["p_holm"] is None else probability(row["p_holm"])
    return {
        "difference": typographic(with_interval(row["difference"], row["low"], row["high"], unit)),
        "p": typographic(p),
        "test": row["test"] or NONE,
        "effect": typographic(effect),
        "n": str(row["n"]),
        "outcome": row["outcome"],
    }


def probability(p: float) -> str:
    """`0.032`; of less than a thousandth that it is less."""
    return "< 0.001" if p < 0.001 else f"{p:.2g}"
