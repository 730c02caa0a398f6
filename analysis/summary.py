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

import orjson

from ewan.analysis import comparisons, disturbance_overlap, load, measurement_cache, statistics
from ewan.analysis.measurement_cache import RunMetrics
from ewan.analysis.points import BySeed, PointIndex, Seeds, names, of_seed
from ewan.labs.base import codec, documents, writing
from ewan.labs.base.documents import DocumentError
from ewan.labs.base.units import UnitError, parse_published
from ewan.labs.record import figures, quantities
from ewan.labs.record import summary as summaries
from ewan.labs.record.figures import FigureSpec
from ewan.labs.record.metrics import METRICS
from ewan.labs.record.quantities import Quantity
from ewan.labs.record.scenario_requests import PublishedValue, Reference, Values
from ewan.labs.record.summary import (
    Mean,
    MetricValue,
    Number,
    PointSummary,
    PublishedBeside,
    Ratio,
    RunSummary,
    Summary,
)

ASKED = "figures/asked.json"
"""The lines of figures that people asked for beside those of the scenario."""


def analyse(directory: Path, also: Iterable[Quantity] = ()) -> Summary:
    """Computes the summary and writes summary.json; LoadError where the directory is none of an experiment.

    `also`: what is asked for beside what the scenario does.
    """
    summary = of(load.experiment(directory), also)
    writing.write(directory / summaries.FILE, codec.ordered(summary))
    return summary


def found(directory: Path) -> Summary:
    """Read summary.json; make it where it is missing or damaged. LoadError where it cannot be made."""
    try:
        return summaries.read(directory)
    except (OSError, DocumentError):
        return analyse(directory)


def for_figure(experiment: load.ExperimentResults, wanted: Iterable[Quantity]) -> Summary:
    """The summary that a figure of these metrics needs. A figure without metrics is drawn from tables, and uses
    summary.json where that describes these runs."""
    asked = list(wanted)
    with contextlib.suppress(OSError, DocumentError):
        runs = {run.number: run.status for run in experiment.runs if run.measured}
        known = None if asked else summaries.read(experiment.directory)
        if known and {run.number: run.status for run in known.runs} == runs:
            return known
    return of(experiment, asked)


def of(experiment: load.ExperimentResults, also: Iterable[Quantity] = ()) -> Summary:
    """The summary of an experiment, as summary.json has it; LoadError where a table of it is damaged."""
    document = experiment.document
    confidence = float(document.confidence or statistics.CONFIDENCE)
    quantities_by_name = {str(quantity): quantity for quantity in [*wanted(experiment), *also]}
    asked = [quantity for name, quantity in quantities_by_name.items() if name not in METRICS]
    found = measurement_cache.of_runs(experiment, asked)
    values = {number: each.values(asked) for number, each in found.items()}
    runs = tuple(of_run(experiment.by_number[number], each, values[number]) for number, each in found.items())
    chosen = {point: usable(of_point) for point, of_point in experiment.points.items()}
    by_seed = {point: {run.seed: values[run.number] for run in of_point} for point, of_point in chosen.items()}
    others = PointIndex(by_seed)
    by_number = {run.number: run for run in runs}
    points = []
    for point, of_point in chosen.items():
        numbers, parameters = tuple(run.number for run in of_point), dict(point)
        points.append(
            PointSummary(
                parameters=parameters,
                seeds=len(of_point),
                runs=numbers,
                complete=bool(of_point) and all(run.status == "complete" for run in of_point),
                metrics=intervals([values[number] for number in numbers], confidence),
                beyond=beyond([by_number[number] for number in numbers]),
                steps=intervals_of_steps([found[number].steps for number in numbers], confidence),
                normalised=ratios(parameters, document.normalise, by_seed, others, confidence),
                uncounted=tuple(number for number in numbers if by_number[number].uncounted is not None),
            )
        )
    return Summary(
        status=experiment.status,
        confidence=confidence,
        normalise=document.normalise,
        runs=runs,
        points=tuple(points),
        disturbed=disturbance_overlap.together(runs),
        comparisons=tuple(comparisons.of(document.compare, by_seed, document.metrics, confidence)),
        beside=tuple(beside(document.beside, points, by_seed, others, confidence)),
    )


def usable(runs: Sequence[load.RunResults]) -> list[load.RunResults]:
    """The complete runs of a point; where there is none, those that measured something."""
    found = [run for run in runs if run.measured]
    return [run for run in found if run.status == "complete"] or found


def wanted(experiment: load.ExperimentResults) -> list[Quantity]:
    """The quantities that the scenario asks for."""
    document = experiment.document
    compared = (name for entry in document.compare for name in entry.metrics)
    named = [*document.metrics, *(entry.metric for entry in document.beside), *compared]
    named += [str(quantity) for figure in wishes(experiment) for quantity in figure.quantities]
    return [quantities.parse(name) for name in dict.fromkeys(named) if quantities.metric_of(name)]


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


def of_run(run: load.RunResults, found: RunMetrics, values: Mapping[str, Number]) -> RunSummary:
    """The summary of a run: its metrics, its links, its bottleneck, and, live, its disturbances."""
    beyond = set(found.beyond)
    return RunSummary(
        number=run.number,
        parameters=run.parameters,
        seed=run.seed,
        status=run.status,
        metrics=of_values(values),
        beyond=tuple(name for name in values if name in beyond),
        steps={step: of_values(own) for step, own in found.steps.items()},
        bottleneck=found.bottleneck,
        links=found.links,
        disturbed=found.disturbed,
        dropped=found.dropped,
        uncounted=found.uncounted,
    )


def of_values(values: Mapping[str, Number]) -> dict[str, MetricValue]:
    """Values of a run."""
    return {name: MetricValue(value, unit(name)) for name, value in values.items()}


def intervals(values: Sequence[Mapping[str, Number]], confidence: float) -> dict[str, Mean]:
    """Each metric over the runs that have it: mean, interval and its kind, deviation of the sample, and how many more
    runs a narrow interval needs."""
    found = {}
    for name in quantities.ordered(list(dict.fromkeys(name for run in values for name in run))):
        each = [run[name] for run in values if name in run]
        metric = quantities.parse(name).metric
        mean, low, high, n, kind = statistics.interval(each, confidence, metric.bounds)
        found[name] = Mean(
            mean=mean,
            low=low,
            high=high,
            kind=kind,
            deviation=stdev(each) if n > 1 else None,
            n=n,
            unit=metric.unit,
            more_seeds=statistics.more_seeds(each, confidence=confidence),
        )
    return found


def intervals_of_steps(
    runs: Sequence[Mapping[str, Mapping[str, Number]]], confidence: float
) -> dict[str, dict[str, Mean]]:
    """The same of each step."""
    there = dict.fromkeys(step for run in runs for step in run)
    return {step: intervals([run[step] for run in runs if step in run], confidence) for step in there}


def beyond(runs: Sequence[RunSummary]) -> dict[str, tuple[int, ...]]:
    """Quantities that show more than the links carry, with the numbers of the runs in which they do."""
    there = dict.fromkeys(name for run in runs for name in run.beyond)
    return {name: tuple(run.number for run in runs if name in run.beyond) for name in there}


def unit(name: str) -> str:
    """The unit of a quantity, given in words."""
    return quantities.parse(name).metric.unit


def ratios(
    parameters: Values, normalise: Reference | None, by_seed: BySeed, others: PointIndex, confidence: float
) -> dict[str, Ratio]:
    """A point's metrics relative to those of the point that differs only in the parameter `by`, which is `to` there."""
    if normalise is None or normalise.by not in parameters:
        return {}
    reference = others.of(parameters, {normalise.by: normalise.to})
    if reference is None:
        return {}
    own = by_seed[tuple(parameters.items())]
    paired = {name: _paired(own, by_seed[reference], name, confidence) for name in names(own)}
    return {
        name: Ratio(each.mean, each.low, each.high, each.n, each.kind)
        for name, each in paired.items()
        if each is not None
    }


def _paired(own: Seeds, reference: Seeds, name: str, confidence: float) -> statistics.Interval | None:
    return statistics.paired_ratio(of_seed(own, name), of_seed(reference, name), confidence)


def beside(
    wanted: Sequence[PublishedValue],
    points: Sequence[PointSummary],
    by_seed: BySeed,
    others: PointIndex,
    confidence: float,
) -> list[PublishedBeside]:
    """Each number of a paper with the measured one of every point that it speaks of; `here` is None without one.

    An entry with `than` says by what share a metric is more than at other parameters: its difference is in points of
    that share. One with `normalised` speaks of the ratio to the reference.
    """
    found = []
    for entry in wanted:
        paper, than = entry.value, entry.than
        chosen = [point for point in points if _at(point.parameters, entry.when)]
        for point in chosen or [PointSummary({}, 0, (), False, {})]:
            here, low, high, own_unit = _measured(entry, point, by_seed, others, confidence)
            apart = None if here is None else here - paper if than else here / paper - 1 if paper else None
            found.append(
                PublishedBeside(
                    source=entry.source,
                    when=entry.when,
                    than=than,
                    normalised=entry.normalised,
                    note=entry.note,
                    parameters=point.parameters,
                    metric=entry.metric,
                    paper=paper,
                    here=here,
                    low=low,
                    high=high,
                    unit=own_unit or entry.unit or unit(entry.metric),
                    difference=apart,
                )
            )
    return found


def _at(parameters: Values, when: Values) -> bool:
    return all(str(parameters.get(name)) == str(value) for name, value in when.items())


Measured = tuple[Number | None, Number | None, Number | None, str]
"""Mean, bounds and unit; without a unit where nothing was measured."""


def _measured(
    entry: PublishedValue, point: PointSummary, by_seed: BySeed, others: PointIndex, confidence: float
) -> Measured:
    """A measured value beside a paper's number."""
    name, than = entry.metric, entry.than
    if than:
        reference = others.of(point.parameters, than)
        own = by_seed.get(tuple(point.parameters.items()))
        more = None if reference is None or own is None else _paired(own, by_seed[reference], name, confidence)
        if more is None:
            return None, None, None, "share"
        low, high = (None if bound is None else bound - 1 for bound in (more.low, more.high))
        return more.mean - 1, low, high, "share"
    if entry.normalised:
        ratio = point.normalised.get(name)
        return (None, None, None, "") if ratio is None else (ratio.ratio, ratio.low, ratio.high, "ratio")
    value = point.metrics.get(name)
    return (None, None, None, "") if value is None else (value.mean, value.low, value.high, value.unit)


def number(value: object, unit: str) -> tuple[float, str]:
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
