"""summary.json: the metrics of each run, and of each point of the parameters with intervals over seeds.

In: an experiment's directory. Out: the document, written beside experiment.json. Where the scenario names a reference,
each point's metrics are divided by the reference's, seed by seed; numbers of papers stand beside the measured ones.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import stdev
from typing import Any

import orjson

from ewan.analysis import comparisons, disturbed, load, measured, statistics
from ewan.analysis.measured import RunMetrics
from ewan.analysis.points import BySeed, PointIndex, Seeds, names, of_seed
from ewan.labs.base import codec, documents, writing
from ewan.labs.base.documents import DocumentError
from ewan.labs.base.units import UnitError, parse_published
from ewan.labs.record import figures, quantities
from ewan.labs.record import summary as summaries
from ewan.labs.record.figures import FigureSpec
from ewan.labs.record.metrics import METRICS
from ewan.labs.record.quantities import Quantity
from ewan.labs.record.wishes import PublishedValue, Reference

ASKED = "figures/asked.json"
"""The lines of figures that people asked for beside those of the scenario."""


def analyse(directory: Path, also: Iterable[Quantity] = ()) -> dict[str, Any]:
    """Computes the summary and writes summary.json; LoadError where the directory is none of an experiment.

    `also`: what is asked for beside what the scenario does.
    """
    summary = of(load.experiment(directory), also)
    text = orjson.dumps(summary, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    writing.write(directory / summaries.FILE, text)
    return summary


def found(directory: Path) -> dict[str, Any]:
    """What summary.json says; it is made where it is missing or damaged. LoadError where it cannot be."""
    try:
        return summaries.read(directory)
    except (OSError, DocumentError):
        return analyse(directory)


def for_figure(experiment: load.ExperimentResults, wanted: Iterable[Quantity]) -> dict[str, Any]:
    """What a figure of these metrics needs. One of none is of tables, and takes summary.json where it is of these
    runs."""
    asked = list(wanted)
    with contextlib.suppress(OSError, DocumentError):
        runs = {run.number: run.status for run in experiment.runs if run.measured}
        known = {} if asked else summaries.read(experiment.directory)
        if known and {run["number"]: run["status"] for run in known["runs"]} == runs:
            return known
    return of(experiment, asked)


def of(experiment: load.ExperimentResults, also: Iterable[Quantity] = ()) -> dict[str, Any]:
    """The summary of an experiment, as summary.json has it; LoadError where a table of it is damaged."""
    confidence = float(experiment.document.confidence or statistics.CONFIDENCE)
    asked = list({str(quantity): quantity for quantity in [*wanted(experiment), *also] if quantity.selection}.values())
    runs = of_runs(experiment, asked)
    values = {run["number"]: run["values"] for run in runs}
    measurements = {run["number"]: run for run in runs}
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
                "beyond": beyond([measurements[run.number] for run in of_point]),
                "steps": intervals_of_steps([measurements[run.number]["by_step"] for run in of_point], confidence),
                "normalised": {},
                "uncounted": [run.number for run in of_point if measurements[run.number].get("uncounted")],
            }
        )
    normalise = experiment.document.normalise
    by_seed = {point: {run.seed: values[run.number] for run in of_point} for point, of_point in chosen.items()}
    others = PointIndex(by_seed)
    if normalise is not None:
        for each in points:
            each["normalised"] = ratios(each["parameters"], normalise, by_seed, others, confidence)
    compared = comparisons.of(experiment.document.compare, by_seed, experiment.document.metrics, confidence)
    for run in runs:
        del run["values"], run["by_step"]
    total = disturbed.together(runs)
    return {
        "format": summaries.FORMAT,
        "status": experiment.status,
        "confidence": confidence,
        "normalise": None if normalise is None else codec.data_of(normalise),
        "runs": runs,
        "points": points,
        **({} if total is None else {"disturbed": total}),
        "comparisons": compared,
        "beside": beside(experiment.document.beside, points, by_seed, others, confidence),
    }


def usable(runs: Sequence[load.RunResults]) -> list[load.RunResults]:
    """Of the runs of a point the complete ones; where none is, those that measured something."""
    found = [run for run in runs if run.measured]
    return [run for run in found if run.status == "complete"] or found


def wanted(experiment: load.ExperimentResults) -> list[Quantity]:
    """What the scenario asks for beside the metrics of the load."""
    document = experiment.document
    compared = (name for entry in document.compare for name in entry.metrics)
    named = [*document.metrics, *(entry.metric for entry in document.beside), *compared]
    named += [str(quantity) for figure in wishes(experiment) for quantity in figure.quantities]
    return [
        quantities.parse(name) for name in dict.fromkeys(named) if quantities.metric_of(name) and name not in METRICS
    ]


def wishes(experiment: load.ExperimentResults) -> list[FigureSpec]:
    """The figures that the scenario asks for, and those that people asked for later (`keep_asked`); without those of
    another version, whose words are not known."""
    found = []
    for asked in experiment.document.figures:
        with contextlib.suppress(ValueError):
            found.append(figures.parse(asked.figure, asked.name))
    for line in _asked(experiment.directory):
        with contextlib.suppress(ValueError):
            found.append(figures.parse(line))
    return found


def keep_asked(directory: Path, asked: Iterable[FigureSpec]) -> None:
    """Notes figures that a person asks for, so that later reports of the experiment have them too; OSError."""
    earlier = _asked(directory)
    lines = list(dict.fromkeys([*earlier, *(spec.line for spec in asked)]))
    if lines != earlier:
        writing.write(directory / ASKED, orjson.dumps(lines, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def _asked(directory: Path) -> list[str]:
    try:
        return documents.read(list[str], directory / ASKED)
    except (OSError, DocumentError):
        return []


def of_runs(experiment: load.ExperimentResults, also: Sequence[Quantity] = ()) -> list[dict[str, Any]]:
    """What the summary says of each run that was measured, in order, with `values` and `by_step` as numbers;
    LoadError where a table is damaged."""
    found = measured.of_runs(experiment, also)
    return [of_run(experiment.by_number[number], each, also) for number, each in found.items()]


def of_run(run: load.RunResults, found: RunMetrics, also: Sequence[Quantity] = ()) -> dict[str, Any]:
    """A run's metrics, its links, which of them was the bottleneck, and of a live run what disturbed them."""
    values, beyond = found.values(also), set(found.beyond)
    by_step = {step: {name: of_value(name, value) for name, value in own.items()} for step, own in found.steps.items()}
    return {
        "number": run.number,
        "parameters": run.parameters,
        "seed": run.seed,
        "status": run.status,
        "metrics": {name: of_value(name, value) for name, value in values.items()},
        "beyond": [name for name in values if name in beyond],
        "steps": by_step,
        "bottleneck": found.bottleneck,
        "links": found.links,
        **({} if found.disturbed is None else {"disturbed": found.disturbed}),
        **({"dropped": found.dropped} if found.dropped else {}),
        **({"uncounted": found.uncounted} if found.uncounted else {}),
        "values": values,
        "by_step": found.steps,
    }


def of_value(name: str, value: float) -> dict[str, Any]:
    """A value of a run."""
    return {"value": value, "unit": unit(name)}


def intervals(values: Sequence[Mapping[str, float]], confidence: float) -> dict[str, dict[str, Any]]:
    """Each metric over the runs that have it: mean, interval and its kind, deviation of the sample, and how many more
    runs a narrow interval needs."""
    found = {}
    for name in quantities.ordered(list(dict.fromkeys(name for run in values for name in run))):
        each = [run[name] for run in values if name in run]
        metric = quantities.parse(name).metric
        mean, low, high, n, kind = statistics.interval(each, confidence, metric.bounds)
        found[name] = {
            "mean": mean,
            "low": low,
            "high": high,
            "kind": kind,
            "deviation": stdev(each) if n > 1 else None,
            "n": n,
            "unit": metric.unit,
            "more_seeds": statistics.more_seeds(each, confidence=confidence),
        }
    return found


def intervals_of_steps(
    runs: Sequence[Mapping[str, Mapping[str, float]]], confidence: float
) -> dict[str, dict[str, dict[str, Any]]]:
    """The same of each step."""
    there = dict.fromkeys(step for run in runs for step in run)
    return {step: intervals([run[step] for run in runs if step in run], confidence) for step in there}


def beyond(runs: Sequence[Mapping[str, Any]]) -> dict[str, list[int]]:
    """Quantities that show more than the links carry, with the numbers of the runs in which they do."""
    found: dict[str, list[int]] = {}
    for run in runs:
        for name in run["beyond"]:
            found.setdefault(name, []).append(run["number"])
    return found


def unit(name: str) -> str:
    """Of a quantity by its words."""
    return quantities.parse(name).metric.unit


def ratios(
    parameters: Mapping[str, Any], normalise: Reference, by_seed: BySeed, others: PointIndex, confidence: float
) -> dict[str, dict[str, Any]]:
    """A point's metrics by those of the point that differs in the parameter `by` alone, where it is `to`."""
    reference = others.of(parameters, {normalise.by: normalise.to})
    if normalise.by not in parameters or reference is None:
        return {}
    own, found = by_seed[tuple(parameters.items())], {}
    for name in names(own):
        ratio = _paired(own, by_seed[reference], name, confidence)
        if ratio is not None:
            found[name] = {"ratio": ratio.mean, "low": ratio.low, "high": ratio.high, "n": ratio.n, "kind": ratio.kind}
    return found


def _paired(own: Seeds, reference: Seeds, name: str, confidence: float) -> statistics.Interval | None:
    return statistics.paired_ratio(of_seed(own, name), of_seed(reference, name), confidence)


def beside(
    wanted: Sequence[PublishedValue],
    points: Sequence[Mapping[str, Any]],
    by_seed: BySeed,
    others: PointIndex,
    confidence: float,
) -> list[dict[str, Any]]:
    """Each number of a paper with the measured one of every point that it speaks of; `here` is None without one.

    An entry with `than` says by what share a metric is more than at other parameters: its difference is in points of
    that share. One with `normalised` speaks of the ratio to the reference.
    """
    found = []
    for entry in wanted:
        paper = entry.value
        chosen = [point for point in points if _at(point["parameters"], entry.when)]
        for point in chosen or [{"parameters": {}, "metrics": {}, "normalised": {}}]:
            measured = _measured(entry, point, by_seed, others, confidence)
            here, than = measured.get("mean"), entry.than
            apart = None if here is None else here - paper if than else here / paper - 1 if paper else None
            found.append(
                {
                    "source": entry.source,
                    "when": entry.when,
                    "than": than,
                    "normalised": entry.normalised,
                    "note": entry.note,
                    "parameters": point["parameters"],
                    "metric": entry.metric,
                    "paper": paper,
                    "here": here,
                    "low": measured.get("low"),
                    "high": measured.get("high"),
                    "unit": measured.get("unit") or entry.unit or unit(entry.metric),
                    "difference": apart,
                }
            )
    return found


def _at(parameters: Mapping[str, Any], when: Mapping[str, Any]) -> bool:
    return all(str(parameters.get(name)) == str(value) for name, value in when.items())


def _measured(
    entry: PublishedValue, point: Mapping[str, Any], by_seed: BySeed, others: PointIndex, confidence: float
) -> Mapping[str, Any]:
    """What stands beside a paper's number: mean, bounds, unit; empty where it was not measured."""
    name, than = entry.metric, entry.than
    if not than:
        value: Mapping[str, Any] = point["normalised" if entry.normalised else "metrics"].get(name, {})
        return {**value, "mean": value["ratio"], "unit": "ratio"} if "ratio" in value else value
    reference = others.of(point["parameters"], than)
    own = by_seed.get(tuple(point["parameters"].items()))
    ratio = None if reference is None or own is None else _paired(own, by_seed[reference], name, confidence)
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
