"""summary.json: the metrics of each run, and of each point of the parameters with intervals over seeds.

In: an experiment's directory. Out: the document, written beside experiment.json. Where the scenario names a reference,
each point's metrics are divided by the reference's, seed by seed; numbers of papers stand beside the measured ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import stdev
from typing import Any

import orjson

from analysis import disturbed, load, metrics, statistics
from analysis.rundata import RunData
from labs.record import quantities
from labs.record.metrics import METRICS
from labs.record.quantities import Quantity
from labs.units import UnitError, parse_published

FORMAT = "ewan-summary/1"

Point = tuple[tuple[str, Any], ...]
Seeds = Mapping[int, Mapping[str, float]]
"""Metrics of a point's runs, by seed."""
BySeed = Mapping[Point, Seeds]


def analyse(directory: Path) -> dict[str, Any]:
    """Computes the summary and writes summary.json; LoadError where the directory is none of an experiment."""
    summary = of(load.experiment(directory))
    text = orjson.dumps(summary, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    (directory / "summary.json").write_bytes(text)
    return summary


def of(experiment: load.ExperimentResults) -> dict[str, Any]:
    """The summary of an experiment, as summary.json has it; LoadError where a table of it is damaged."""
    confidence = float(experiment.document.confidence or statistics.CONFIDENCE)
    asked = wanted(experiment)
    runs = [of_run(run, asked) for run in experiment.runs if run.measured]
    values = {run["number"]: run["values"] for run in runs}
    chosen = {point: usable(of_point) for point, of_point in experiment.points.items()}
    points: list[dict[str, Any]] = []
    for point, of_point in chosen.items():
        points.append(
            {
                "parameters": dict(point),
                "seeds": len(of_point),
                "runs": [run.number for run in of_point],
                "complete": bool(of_point) and all(run.status == "complete" for run in of_point),
                "metrics": intervals([values[run.number] for run in of_point], confidence),
                "normalised": {},
            }
        )
    normalise = experiment.document.normalise
    by_seed = {point: {run.seed: values[run.number] for run in of_point} for point, of_point in chosen.items()}
    if isinstance(normalise, Mapping) and {"by", "to"} <= normalise.keys():
        for each in points:
            each["normalised"] = ratios(each["parameters"], normalise, by_seed, confidence)
    for run in runs:
        del run["values"]
    total = disturbed.together(runs)
    return {
        "format": FORMAT,
        "status": experiment.status,
        "confidence": confidence,
        "normalise": normalise,
        "runs": runs,
        "points": points,
        **({} if total is None else {"disturbed": total}),
        "beside": beside(experiment.document.beside, points, by_seed, confidence),
    }


def usable(runs: Sequence[load.RunResults]) -> list[load.RunResults]:
    """Of the runs of a point the complete ones; where none is, those that measured something."""
    measured = [run for run in runs if run.measured]
    return [run for run in measured if run.status == "complete"] or measured


def wanted(experiment: load.ExperimentResults) -> list[Quantity]:
    """What the scenario asks for beside the metrics of the load."""
    named = [*experiment.document.metrics, *(str(entry["metric"]) for entry in experiment.document.beside)]
    return [
        quantities.parse(name) for name in dict.fromkeys(named) if quantities.metric_of(name) and name not in METRICS
    ]


def of_run(run: load.RunResults, also: Iterable[Quantity] = ()) -> dict[str, Any]:
    """A run's metrics, its links, which of them was the bottleneck, and of a live run what disturbed them."""
    data = RunData(run.table, run.paths())
    values, at, uses = metrics.of_run(data, also), data.bottleneck, data.uses
    touched = disturbed.of_run(run, data.ways)
    run.forget()
    return {
        "number": run.number,
        "parameters": run.parameters,
        "seed": run.seed,
        "status": run.status,
        "metrics": {name: {"value": value, "unit": unit(name)} for name, value in values.items()},
        "bottleneck": None if at is None else {"link": at[0], "direction": at[1]},
        "links": [use._asdict() for use in uses],
        **({} if touched is None else {"disturbed": touched}),
        "values": values,
    }


def intervals(values: Sequence[Mapping[str, float]], confidence: float) -> dict[str, dict[str, Any]]:
    """Each metric over the runs that have it: mean, interval, deviation of the sample."""
    found = {}
    for name in quantities.ordered(list(dict.fromkeys(name for run in values for name in run))):
        each = [run[name] for run in values if name in run]
        mean, low, high, n = statistics.interval(each, confidence)
        spread = stdev(each) if n > 1 else None
        found[name] = {"mean": mean, "low": low, "high": high, "deviation": spread, "n": n, "unit": unit(name)}
    return found


def unit(name: str) -> str:
    """Of a quantity by its words."""
    return quantities.parse(name).metric.unit


def ratios(
    parameters: Mapping[str, Any], normalise: Mapping[str, Any], by_seed: BySeed, confidence: float
) -> dict[str, dict[str, Any]]:
    """A point's metrics by those of the point that differs in the parameter `by` alone, where it is `to`."""
    reference = _with(by_seed, parameters, {normalise["by"]: normalise["to"]})
    if normalise["by"] not in parameters or reference is None:
        return {}
    own, found = by_seed[tuple(parameters.items())], {}
    for name in quantities.ordered(list(dict.fromkeys(name for run in own.values() for name in run))):
        ratio = _paired(own, by_seed[reference], name, confidence)
        if ratio is not None:
            found[name] = {"ratio": ratio.mean, "low": ratio.low, "high": ratio.high, "n": ratio.n}
    return found


def _with(by_seed: BySeed, parameters: Mapping[str, Any], changed: Mapping[str, Any]) -> Point | None:
    """The point that differs from the given one in nothing but what is changed."""
    wanted = {name: str(value) for name, value in {**parameters, **changed}.items()}
    return next((point for point in by_seed if {name: str(value) for name, value in point} == wanted), None)


def _paired(own: Seeds, other: Seeds, name: str, confidence: float) -> statistics.Interval | None:
    pairs = [{seed: run[name] for seed, run in runs.items() if name in run} for runs in (own, other)]
    return statistics.paired_ratio(pairs[0], pairs[1], confidence)


def beside(
    wanted: Sequence[Mapping[str, Any]], points: Sequence[Mapping[str, Any]], by_seed: BySeed, confidence: float
) -> list[dict[str, Any]]:
    """Each number of a paper with the measured one of every point that it speaks of; `here` is None without one.

    An entry with `than` says by what share a metric is more than at other parameters: its difference is in points of
    that share. One with `normalised` speaks of the ratio to the reference.
    """
    found = []
    for entry in wanted:
        paper, given = number(entry["value"], entry.get("unit") or "")
        chosen = [point for point in points if _at(point["parameters"], entry.get("when") or {})]
        for point in chosen or [{"parameters": {}, "metrics": {}, "normalised": {}}]:
            measured = _measured(entry, point, by_seed, confidence)
            here, than = measured.get("mean"), entry.get("than")
            apart = None if here is None else here - paper if than else here / paper - 1 if paper else None
            found.append(
                {
                    "source": entry.get("source", ""),
                    "when": entry.get("when") or {},
                    "than": than,
                    "normalised": bool(entry.get("normalised")),
                    "note": entry.get("note", ""),
                    "parameters": point["parameters"],
                    "metric": entry["metric"],
                    "paper": paper,
                    "here": here,
                    "low": measured.get("low"),
                    "high": measured.get("high"),
                    "unit": measured.get("unit") or given or unit(entry["metric"]),
                    "difference": apart,
                }
            )
    return found


def _at(parameters: Mapping[str, Any], when: Mapping[str, Any]) -> bool:
    return all(str(parameters.get(name)) == str(value) for name, value in when.items())


def _measured(
    entry: Mapping[str, Any], point: Mapping[str, Any], by_seed: BySeed, confidence: float
) -> Mapping[str, Any]:
    """What stands beside a paper's number: mean, bounds, unit; empty where it was not measured."""
    name, than = entry["metric"], entry.get("than")
    if not than:
        value: Mapping[str, Any] = point["normalised" if entry.get("normalised") else "metrics"].get(name, {})
        return {**value, "mean": value["ratio"], "unit": "ratio"} if "ratio" in value else value
    other = _with(by_seed, point["parameters"], than)
    ratio = (
        None
        if other is None
        else _paired(by_seed[tuple(point["parameters"].items())], by_seed[other], name, confidence)
    )
    if ratio is None:
        return {"unit": "share"}
    bounds = [None if bound is None else bound - 1 for bound in (ratio.low, ratio.high)]
    return {"mean": ratio.mean - 1, "low": bounds[0], "high": bounds[1], "unit": "share"}


def number(value: Any, unit: str) -> tuple[float, str]:
    """`8353.66Mbit/s`, `19.8ms`, `2.5%`, `100kB` in bit/s, ns, as a share, in bytes, with that unit.

    A plain number is of the unit that is given; words are NaN.
    """
    if isinstance(value, int | float):
        return float(value), unit
    try:
        found, own = parse_published(str(value))
    except UnitError:
        return math.nan, unit
    return found, own or unit
