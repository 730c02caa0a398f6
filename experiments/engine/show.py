"""The results of an experiment on a terminal: a screen of metrics by point of its parameters, papers' numbers beside.

In: a summary (analysis/summary.py), the width of the terminal. Out: tables. Where they fit, points stand beside each
other, a row a metric; else below each other, a column a metric (experiments/engine/screen.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.engine.screen import ColumnGroup, ScreenTable, screen
from ewan.labs.base.sheet import Sheet, grid
from ewan.labs.base.units.shown import NONE, aligned, fitting, percent, with_interval, written
from ewan.labs.record import figures, quantities, uncounted_traffic
from ewan.labs.record import summary as summaries
from ewan.labs.record.independent import independent
from ewan.labs.record.metrics import USUAL
from ewan.labs.record.scenario_requests import Parameter
from ewan.labs.record.summary import Mean, Ratio, Summary

MOST_COMPARISONS = 60
BEYOND = "‡"
"""Stands after what is more than the links carry (analysis/metrics.py: beyond)."""


class Measured(NamedTuple):
    """A mean with the bounds of its interval."""

    mean: float | None
    low: float | None
    high: float | None
    unit: str


def points(
    summary: Summary, title: str, wanted: Sequence[str] = (), width: int = 80, every: bool = False
) -> list[Sheet]:
    """Metrics at the points of the parameters, with half the widths of their intervals, on one screen.

    `wanted`: the metrics, else the usual ones. `every`: all metrics at all points, however many screens they take.
    """
    result = summary.points
    names = independent([point.parameters for point in result])
    known = summaries.names(result)
    metrics = known if every else quantities.meant(wanted or USUAL, known) or known
    runs = [str(point.seeds) for point in result]
    groups = [] if len({*runs}) == 1 else [ColumnGroup("runs", [runs])]
    for metric in metrics:
        marks = [
            f" {BEYOND}" * (metric in point.beyond)
            + f" {uncounted_traffic.MARK}" * uncounted_traffic.is_marked(point, metric)
            for point in result
        ]
        head, *cells = row(metric, [measured(point.metrics.get(metric)) for point in result], marks)
        groups.append(ColumnGroup(head, [cells]))
        ratios = [point.normalised.get(metric) for point in result]
        if metric == metrics[0] and any(ratios) and summary.normalise is not None:
            head, *cells = row(f"multiple of {summary.normalise.to}'s", [multiple(each) for each in ratios])
            groups.append(ColumnGroup(head, [cells]))
    rows = [[str(point.parameters.get(name, NONE)) for name in names] for point in result]
    if len({*runs}) == 1:
        title += f" ({runs[0]} run{'' if runs[0] == '1' else 's'}{' a point' if len(runs) > 1 else ''})"
    return screen(ScreenTable(names, rows, groups), title, width, every)


def without_values(summary: Summary, wanted: Sequence[str]) -> str:
    """A line on the metrics that the scenario names and no run has a value of; empty where there is none,
    and where no run has any metric."""
    known = summaries.names(summary.points)
    missing = [name for name in dict.fromkeys(wanted) if known and not quantities.meant([name], known)]
    return f"no run has a value of {', '.join(missing)}, which the scenario names under metrics" if missing else ""


def first_figure(experiment: Experiment, directory: Path, summary: Summary, width: int) -> str:
    """The first figure of the experiment in characters, where it shows the only point over time; else ""."""
    if len(summary.points) != 1 or not experiment.document.figures:
        return ""
    from ewan.analysis.figures import terminal  # with matplotlib, for which a command should not wait

    request = experiment.document.figures[0]
    try:
        spec = figures.parse(request.figure, request.name)
        return terminal.drawn((directory / "figures" / f"{spec.file}.csv").read_text(), spec.title, width)
    except (OSError, ValueError):
        return ""


def row(name: str, values: Sequence[Measured | None], marks: Sequence[str] = ()) -> list[str]:
    """`name (unit)`, then each mean with half the width of its interval, to four digits of the mean; `marks`: the text
    after each."""
    there = [each for each in values if each is not None and each.mean is not None]
    if not there:
        return [name, *(NONE for _ in values)]
    divisor, unit = fitting([there[0].mean], there[0].unit)
    marks = marks or [""] * len(values)
    cells = [cell(each, divisor) + mark for each, mark in zip(values, marks, strict=True)]
    return [f"{name} ({unit})" if unit else name, *cells]


def cell(value: Measured | None, divisor: float) -> str:
    """A mean with half the width of its interval."""
    return NONE if value is None else aligned(divisor, value.mean, value.low, value.high)


def measured(value: Mean | None) -> Measured | None:
    """A mean of the summary as a measured value."""
    return None if value is None else Measured(value.mean, value.low, value.high, value.unit)


def multiple(ratio: Ratio | None) -> Measured | None:
    """A ratio of the summary as a measured value."""
    return None if ratio is None else Measured(ratio.ratio, ratio.low, ratio.high, "ratio")


def beside(summary: Summary) -> Sheet | None:
    """The papers' numbers beside those measured."""
    rows = []
    for each in summary.beside:
        apart, than = each.difference, each.than
        rows.append(
            [
                each.source,
                settings(each.when),
                f"{each.metric}, more than at {settings(than)}" if than else each.metric,
                written(each.paper, each.unit),
                written(each.here, each.unit),
                percent(apart, 2).replace("%", "points" if than else "%"),
            ]
        )
    if not rows:
        return None
    return grid("Beside the papers", ["source", "when", "metric", "paper", "here", "difference"], rows)


def comparisons(summary: Summary) -> Sheet | None:
    """A table of the comparisons that the scenario's `compare:` asks for."""
    rows = []
    for each in summary.comparisons:
        others = {name: value for name, value in each["parameters"].items() if name != each["by"]}
        unit = "share" if each["harm"] else each["unit"]
        rows.append(
            [
                f"harm to {each['metric']}" if each["harm"] else each["metric"],
                f"{each['value']} against {each['to']}",
                settings({name: value for name, value in others.items() if name in _varied(summary)}),
                with_interval(each["difference"], each["low"], each["high"], unit),
                NONE if each["p_holm"] is None else f"{each['p_holm']:.2g}",
                NONE if each["size"] is None else f"{each['effect']} {each['size']:.2f}",
                each["outcome"],
            ]
        )
    if not rows:
        return None
    columns = ["metric", "values", "where", "difference", "p (Holm)", "effect", "outcome"]
    where = columns.index("where")
    if not any(row[where] for row in rows):
        columns, rows = _without(columns, where), [_without(row, where) for row in rows]
    return grid("Comparisons, seed by seed", columns, rows, most=MOST_COMPARISONS, keys=2)


def _without(cells: Sequence[str], index: int) -> list[str]:
    return [*cells[:index], *cells[index + 1 :]]


def _varied(summary: Summary) -> list[str]:
    return independent([point.parameters for point in summary.points])


def settings(parameters: Mapping[str, Parameter]) -> str:
    """`name=value` of each parameter."""
    return " ".join(f"{name}={value}" for name, value in parameters.items())
