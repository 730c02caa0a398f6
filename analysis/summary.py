"""summary.json: the metrics of each run, and of each point of the parameters with intervals over seeds.

In: an experiment's directory. Out: the document, written beside experiment.json. Where the scenario names a reference,
each point's metrics are divided by the reference's, seed by seed; numbers of papers stand beside the measured ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import stdev
from typing import Any

import orjson

from analysis import load, metrics, network, statistics
from labs.units import NS_PER_SECOND, PPB, Duration, Fraction, Rate, UnitError, parse_volume

FORMAT = "ewan-summary/1"
AT_BOTTLENECK = ("utilisation", "mean queueing delay", "queue loss", "total loss")
"""Metrics that a run does not have whose bottleneck is a plain link: only emulated links count."""
LONGEST_NS = 1000 * 24 * 3600 * NS_PER_SECOND

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


def of(experiment: load.Experiment) -> dict[str, Any]:
    confidence = float(experiment.document.confidence or statistics.CONFIDENCE)
    runs = [of_run(run) for run in experiment.runs if run.measured]
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
    return {
        "format": FORMAT,
        "status": experiment.status,
        "confidence": confidence,
        "normalise": normalise,
        "runs": runs,
        "points": points,
        "beside": beside(experiment.document.beside, points, by_seed, confidence),
    }


def usable(runs: Sequence[load.Run]) -> list[load.Run]:
    """Of the runs of a point the complete ones; where none is, those that measured something."""
    measured = [run for run in runs if run.measured]
    return [run for run in measured if run.status == "complete"] or measured


def of_run(run: load.Run) -> dict[str, Any]:
    """A run's metrics, its links, and which of them was the bottleneck."""
    flows, links = run.table("flows"), run.table("links")
    found = metrics.Tables(flows, run.table("goodput"), run.table("exchanges"), links)
    loaded = metrics.loaded(flows)
    ways = run.ways()
    values = metrics.of_run(found, ways)
    uses = network.link_use(links, metrics.active(loaded))
    slowest = network.bottleneck(uses, {link for way in ways.values() for link in way})
    at = None if slowest is None else (slowest.link, slowest.direction)
    time_ns = sum(end - start for start, end in metrics.active(loaded))
    uncounted = network.uncounted_bottleneck(loaded, time_ns, uses, ways, run.rates_bps())
    if uncounted is not None:
        at = uncounted
        values = {name: value for name, value in values.items() if name not in AT_BOTTLENECK}
    run.forget()
    return {
        "number": run.number,
        "parameters": run.parameters,
        "seed": run.seed,
        "status": run.status,
        "metrics": {name: {"value": value, "unit": metrics.METRICS[name].unit} for name, value in values.items()},
        "bottleneck": None if at is None else {"link": at[0], "direction": at[1]},
        "links": [use._asdict() for use in uses],
        "values": values,
    }


def intervals(values: Sequence[Mapping[str, float]], confidence: float) -> dict[str, dict[str, Any]]:
    """Each metric over the runs that have it: mean, interval, deviation of the sample."""
    found = {}
    for name, metric in metrics.METRICS.items():
        each = [run[name] for run in values if name in run]
        if each:
            mean, low, high, n = statistics.interval(each, confidence)
            spread = stdev(each) if n > 1 else None
            found[name] = {"mean": mean, "low": low, "high": high, "deviation": spread, "n": n, "unit": metric.unit}
    return found


def ratios(
    parameters: Mapping[str, Any], normalise: Mapping[str, Any], by_seed: BySeed, confidence: float
) -> dict[str, dict[str, Any]]:
    """A point's metrics by those of the point that differs in the parameter `by` alone, where it is `to`."""
    reference = _with(by_seed, parameters, {normalise["by"]: normalise["to"]})
    if normalise["by"] not in parameters or reference is None:
        return {}
    own, found = by_seed[tuple(parameters.items())], {}
    for name in metrics.METRICS:
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
        paper, unit = number(entry["value"], entry.get("unit") or "")
        chosen = [point for point in points if _at(point["parameters"], entry.get("when") or {})]
        for point in chosen or [{"parameters": {}, "metrics": {}, "normalised": {}}]:
            said = _measured(entry, point, by_seed, confidence)
            here, than = said.get("mean"), entry.get("than")
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
                    "low": said.get("low"),
                    "high": said.get("high"),
                    "unit": said.get("unit") or unit or metrics.METRICS[entry["metric"]].unit,
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
    """`8353.66Mbit/s`, `19.8ms`, `2.5%` `100kB` or a plain number, in bit/s, ns, bytes or as a ratio."""
    if isinstance(value, int | float):
        return float(value), unit
    text = str(value)
    try:
        return float(text), unit
    except ValueError:
        pass
    for parsed in (_rate, _time, _size, _share):
        try:
            return parsed(text)
        except UnitError:
            continue
    return math.nan, unit


def _rate(text: str) -> tuple[float, str]:
    return float(Rate.parse(text).bps), "bit/s"


def _time(text: str) -> tuple[float, str]:
    return float(Duration.parse(text, LONGEST_NS).ns), "ns"


def _size(text: str) -> tuple[float, str]:
    return float(parse_volume(text).bytes), "B"


def _share(text: str) -> tuple[float, str]:
    return Fraction.parse(text).ppb / PPB, "share"
