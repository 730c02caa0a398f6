"""The input of a figure's drawing: the experiment, its values, and words for captions.

In: an experiment with its summary, a figure's wish, a style. Out: values of metrics at points of the parameters with
their intervals, ratios to a reference seed by seed, what links carry; captions that say what the figure is made of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from ewan.analysis import comparisons, disturbance_overlap, statistics, summary
from ewan.analysis.figures import choice, counts
from ewan.analysis.figures.choice import FigureLayout, FigurePoint
from ewan.analysis.figures.counts import PointCount
from ewan.analysis.figures.style import PAGE, Style
from ewan.analysis.load import ExperimentResults, RunResults
from ewan.analysis.rows import spread
from ewan.labs.base import codec
from ewan.labs.base.units.shown import written
from ewan.labs.record.figures import FigureSpec
from ewan.labs.record.metrics import Metric
from ewan.labs.record.quantities import Quantity, Selection
from ewan.labs.record.scenario_requests import Parameter
from ewan.labs.record.summary import PointSummary, RunSummary, Summary

Bounds = tuple[float | None, float | None]
KINDS = {"t": "Student's t", "t, cut": "Student's t", "BCa": "bootstrap, BCa"}

LOSABLE = (-math.inf, 1.0)
"""Harm: no more than all can be lost, and any multiple gained."""


class FigureError(ValueError):
    """A figure cannot be drawn; the message is one line that says what to write instead."""


def needs(spec: FigureSpec) -> str:
    """The remedy where no run has the data that a figure needs."""
    if spec.captured:
        return 'the scenario must capture packets: "capture: [{node: [left1, right1]}]" with the flows\' nodes'
    return "see docs/reference/metrics.md for what it needs"


class Value(NamedTuple):
    """A metric at a point: the mean over seeds with its interval, and the value of each run by its number."""

    mean: float
    low: float | None
    high: float | None
    n: int
    each: Mapping[int, float]
    kind: str = "t"
    """The kind of the interval, as analysis/statistics.py names it."""


@dataclass(frozen=True)
class Request:
    """`found`: the summary, which has the metrics that `spec` is made of. `kinds`: of files beside the SVG."""

    experiment: ExperimentResults
    found: Summary
    spec: FigureSpec
    look: Style = PAGE
    kinds: Sequence[str] = ()

    @cached_property
    def points(self) -> list[PointSummary]:
        """Points of the parameters with runs. Of `each step` and the like, each step is a parameter's value."""
        own = [point for point in self.found.points if point.runs]
        kinds = {each.kind for each in self.spec.selections if each.name is None and each.kind is not None}
        if not self.spec.quantities or not kinds:
            return own
        if len(kinds) > 1:
            raise FigureError(f'"{self.spec.head}": is of each {" and each ".join(sorted(kinds))}: write one of them')
        kind = kinds.pop()
        return [
            codec.replace(point, parameters={**point.parameters, kind: member})
            for point in own
            for member in self._members(kind, own)
        ]

    def _members(self, kind: str, points: Sequence[PointSummary]) -> list[str]:
        """The steps, roles, sources or flows that any run has."""
        column = "name" if kind == "flow" else kind
        found: dict[str, None] = {}
        for point in (points[at] for at in spread(len(points), choice.MOST_RUNS)):
            run = self.runs[point.runs[0]]
            found |= dict.fromkeys(run.table("flows")[column].drop_nulls().unique(maintain_order=True).to_list())
        return list(found)

    @cached_property
    def layout(self) -> FigureLayout:
        """The layout of the figure; FigureError where no run is left."""
        normalise = self.found.normalise
        # What harm is held against loses nothing of itself.
        own = [each for each in self.points if not (self.spec.harm and self._is_reference(each))]
        found = choice.layout(self.spec, own, normalise.by if normalise else None, self.points)
        if self.spec.of_tables:
            found = choice.picked(found, choice.MOST_RUNS)
        if not found.places:
            wanted = f"run {self.spec.run}" if self.spec.run is not None else "these parameters"
            numbers = ", ".join(map(str, sorted(self.runs)[:8])) or "none"
            raise FigureError(f'"{self.spec.line}": no measured run is of {wanted}: there are runs {numbers} …')
        return found

    @cached_property
    def runs(self) -> dict[int, RunResults]:
        """Measured runs by their numbers."""
        return {run.number: run for run in self.experiment.runs if run.measured}

    @cached_property
    def _summaries(self) -> dict[int, RunSummary]:
        return {run.number: run for run in self.found.runs}

    def value(self, quantity: Quantity, point: PointSummary) -> Value | None:
        """A metric at a point; divided by that of the reference where the figure is relative, or the loss relative to
        it."""
        name = self._name(quantity, point)
        if self.spec.relative_to is not None:
            return self._relative(name, point)
        metric = point.metrics.get(name)
        if metric is None or metric.mean is None:
            return None
        return Value(metric.mean, metric.low, metric.high, metric.n, self._each(name, point),
                     metric.kind or "t")  # fmt: skip

    def _name(self, quantity: Quantity, point: PointSummary) -> str:
        chosen = quantity.selection
        if chosen is None or chosen.name is not None or chosen.kind is None:
            return str(quantity)
        member = str(point.parameters[chosen.kind])
        return str(replace(quantity, selection=Selection(chosen.kind, member)))

    def _each(self, name: str, point: PointSummary) -> dict[int, float]:
        metrics = {number: self._summaries[number].metrics for number in point.runs}
        values = {number: own[name].value for number, own in metrics.items() if name in own}
        return {number: float(value) for number, value in values.items() if value is not None}

    @cached_property
    def reference(self) -> str:
        """The parameter whose value others are held against; FigureError where no parameter has it."""
        to, of = self.spec.relative_to, self.spec.relative_of
        names = [of] if of else list(dict.fromkeys(name for point in self.points for name in point.parameters))
        for name in names:
            if any(str(point.parameters.get(name)) == to for point in self.points):
                return name
        raise FigureError(f'"{self.spec.held} {to}": no run has this value: write a value that a parameter has')

    def _is_reference(self, point: PointSummary) -> bool:
        return str(point.parameters.get(self.reference)) == self.spec.relative_to

    def _relative(self, name: str, point: PointSummary) -> Value | None:
        other = self._by_parameters.get(_words({**point.parameters, self.reference: str(self.spec.relative_to)}))
        if other is None:
            return None
        seeds = self._seeds
        own, base = self._each(name, point), {seeds[number]: v for number, v in self._each(name, other).items()}
        pairs = {number: (value, base[seeds[number]]) for number, value in own.items() if base.get(seeds[number])}
        if self.spec.harm:
            better = self.spec.quantities[0].metric.better
            found = {number: comparisons.harm([value], [solo], better) for number, (value, solo) in pairs.items()}
            each, limits = {number: lost[0] for number, lost in found.items() if lost}, LOSABLE
        else:
            each, limits = {number: value / divisor for number, (value, divisor) in pairs.items()}, statistics.POSITIVE
        if not each:
            return None
        mean, low, high, n, kind = statistics.interval(list(each.values()), self.found.confidence, limits)
        return Value(mean, low, high, n, each, kind or "t")

    @cached_property
    def _by_parameters(self) -> dict[frozenset[tuple[str, str]], PointSummary]:
        """The first point of each choice of parameters."""
        found: dict[frozenset[tuple[str, str]], PointSummary] = {}
        for point in self.points:
            found.setdefault(_words(point.parameters), point)
        return found

    @cached_property
    def _seeds(self) -> dict[int, int]:
        return {number: run.seed for number, run in self.runs.items()}

    def unit(self, quantity: Quantity) -> str:
        """The unit in which a metric is drawn."""
        if self.spec.relative_to is not None:
            return "share" if self.spec.harm else "ratio"
        return summary.unit(str(quantity))

    def carried(self, point: PointSummary) -> float | None:
        """bit/s of the one link that all load of a point's first run crosses; None where there is no such link."""
        own = self._summaries[point.runs[0]]
        at = own.bottleneck
        rates = {(use.link, use.direction): use.rate_bps for use in own.links}
        if at is None or (link := (at.link, at.direction)) not in rates:
            return None
        paths = [path for path in self.runs[own.number].paths if path.role == "load"]
        through = all(link in {(hop.link, hop.direction) for hop in path.hops} for path in paths)
        return float(rates[link]) if paths and through else None

    def made_of(self, numbers: Iterable[int]) -> str:
        """The scenario, runs and seeds of a figure, in words for its caption."""
        own = sorted(set(numbers))
        seeds = sorted({self.runs[number].seed for number in own})
        words = f"Scenario {self.experiment.document.scenario}, {_counted('run', own)}, {_counted('seed', seeds)}."
        told = f" {self.experiment.numbered}" if self.experiment.numbered else ""
        return words + told + disturbance_overlap.footnote(own, self.found)

    def seeds_words(self, values: Sequence[tuple[FigurePoint, int]]) -> str:
        """The words of the caption about the number of values at each point: `n = 4 (3 for bbr)`."""
        return counts.in_words(
            [PointCount(self.layout.named(place.line), self.name_of(place), n) for place, n in values]
        )

    def name_of(self, place: FigurePoint) -> str:
        """The values of the varied parameters of a figure, at one of its points."""
        values = self.layout.values
        several = [(name, value) for name, value in place.parameters.items() if len(values.get(name, ())) > 1]
        return self.layout.named(tuple((name, str(value)) for name, value in several))

    def interval_words(self, values: Sequence[tuple[FigurePoint, Value]]) -> str:
        """The words of a caption about error bars."""
        shown = [value for _, value in values]
        if not any(value.low is not None for value in shown):
            return "One seed: no confidence intervals."
        kinds = " or ".join(sorted({KINDS[value.kind] for value in shown if value.low is not None}))
        n = self.seeds_words([(place, each.n) for place, each in values])
        share = written(self.found.confidence, "share")
        return f"Error bars: {share} confidence intervals of the mean over seeds ({kinds}), {n}."


def _words(parameters: Mapping[str, Parameter]) -> frozenset[tuple[str, str]]:
    """Parameters as they are written, to find equal ones."""
    return frozenset((name, str(value)) for name, value in parameters.items())


def bounds(metric: Metric) -> Bounds:
    """The least and the largest value that a metric can have; None where it has no such bound."""
    least, most = metric.bounds
    return least, most if math.isfinite(most) else None


def _counted(what: str, numbers: Sequence[int]) -> str:
    """`run 3`, `runs 1–9, 12`."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    words = [str(part[0]) if len(part) == 1 else f"{part[0]}–{part[-1]}" for part in parts]
    told = ", ".join([*words[:8], *["…"] * (len(words) > 8)])
    return f"{what}{'s' * (len(numbers) != 1)} {told}"
