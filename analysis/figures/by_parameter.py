"""A metric against a parameter: lines, points of all runs, boxes over seeds, bars.

In: a request. Out: a drawing, a panel for each value of the facets. Intervals end where the impossible begins, and an
arrowhead says so; what is more than the link carries is marked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ewan.analysis.figures import scales, style
from ewan.analysis.figures.choice import Key
from ewan.analysis.figures.request import Bounds, FigureError, Request, Value, bounds, needs
from ewan.analysis.figures.scales import BoundedInterval, ParameterAxis
from ewan.analysis.figures.style import Drawing, Row
from ewan.labs.base.units.shown import fitting
from ewan.labs.record.quantities import Quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEWEST_IN_A_BOX = 4
"""Seeds that a box needs; where there are fewer, only points are drawn."""


class Mark(NamedTuple):
    """A value at its place, in units of the axis."""

    place: float
    value: Value
    carried: float | None


class _Marks(NamedTuple):
    """Counts that captions give: values beyond the axis, above it, and at zero."""

    beyond: int
    above: int
    zero: int

    def __add__(self, other: object) -> _Marks:
        assert isinstance(other, _Marks)
        return _Marks(self.beyond + other.beyond, self.above + other.above, self.zero + other.zero)


class _ShownMetric(NamedTuple):
    """A metric as panels show it. `values`: by the identity of a place."""

    quantity: Quantity
    values: Mapping[int, Value]
    unit: str
    per: float
    unit_name: str
    limits: Bounds
    logarithmic: bool
    floor: float
    """The position of zero on a logarithmic axis: half of the least value that is not zero. On other axes 0."""

    @property
    def of_load(self) -> bool:
        """Return whether it is a rate of the load, which the bottleneck bounds."""
        return self.unit == "bit/s" and self.quantity.selection is None

    @property
    def label(self) -> str:
        """The name of the metric with its unit. The labels of the lines name the selection."""
        chosen = self.quantity.selection
        words = str(self.quantity) if chosen is None or chosen.name is not None else self.quantity.metric.name
        return f"{words} ({self.unit_name})" if self.unit_name else words


def draw(request: Request) -> Drawing:
    """FigureError where no run has the metric, or the parameter has no such axis."""
    return of_several(request, request.spec.quantities)


def of_several(request: Request, quantities: Sequence[Quantity]) -> Drawing:
    """The same for several metrics, each in panels of its own."""
    spec, layout = request.spec, request.layout
    along = spec.by[0]
    shown = [each for quantity in quantities if (each := _shown(request, quantity)).values]
    if not shown:
        raise FigureError(f'"{spec.head}": no run has this metric: {needs(spec)}')
    bars = spec.bars or spec.relative_to is not None
    try:
        scale = "categories" if bars and spec.scale is None else spec.scale
        axis = scales.axis_of(along, (place.parameters[along] for place in layout.places), scale)
    except scales.ScaleError as error:
        raise FigureError(f'"scale {spec.scale}": {error}') from None
    several = len(shown) > 1
    # A panel of points that do not have the metric would be empty.
    panels = [
        (each, key)
        for each in shown
        for key in layout.panels
        if any(id(place) in each.values for place in layout.of(key) if place.line in layout.lines)
    ]
    if not panels:
        raise FigureError(f'"{spec.head}": none of the lines and panels that are drawn has it: write "where" for fewer')
    height = 2.1 if several else 2.3
    columns = request.look.across(len(panels), height)
    seen = _Marks(0, 0, 0)
    with style.sheet(len(panels), height, columns, sharey=not several, look=request.look) as (
        figure,
        axes,
    ):
        for panel, (each, key) in zip(axes, panels, strict=True):
            for line in layout.lines:
                found = [
                    Mark(axis.places[str(place.parameters[along])], each.values[id(place)],
                         request.carried(place.point) if each.of_load else None)
                    for place in layout.of(key, line) if id(place) in each.values
                ]  # fmt: skip
                seen += _series(panel, request, line, found, axis, each, bars)
            axis.put_on(panel)
            style.title(panel, ", ".join([each.label] * several + [layout.named(key)] * bool(key)), columns)
            if spec.relative_to is not None:
                panel.axhline(1, color=style.INK, linewidth=0.7)
        # When all are drawn: panels share an axis.
        for panel, (each, _) in zip(axes, panels, strict=True):
            _upright(panel, each, bars or each.unit != "ratio")
        ratio = f", ratio to {spec.relative_to}" if spec.relative_to is not None else ""
        style.outer_labels(axes, axis.label, "" if several else shown[0].label + ratio, columns)
        style.legend(figure, axes)
        words = "metrics" if several else str(quantities[0]) + ratio
        title = spec.title or f"{words[0].upper()}{words[1:]} against {along}"
        rows = [row for each in shown for row in _rows(request, each)]
        return style.drawn(figure, spec.file, title, _caption(request, shown, seen), rows, request.kinds)


def _shown(request: Request, quantity: Quantity) -> _ShownMetric:
    found = {id(place): request.value(quantity, place.point) for place in request.layout.places}
    values = {key: value for key, value in found.items() if value is not None}
    means = [values[id(place)].mean for place in request.layout.drawn() if id(place) in values]
    unit = request.unit(quantity)
    per, unit_name = fitting(means, unit)
    relative = request.spec.relative_to is not None
    limits = (0.0, None) if relative else bounds(quantity.metric)
    loss = "loss" in quantity.metric.name and unit == "share" and not request.spec.bars
    logarithmic = loss and scales.spans_decades(means)
    if request.spec.values is not None:
        logarithmic = request.spec.values == "log"
        if logarithmic and max(means, default=0.0) <= 0:
            raise FigureError(f'"values log": {quantity} is nowhere above zero: write "values linear"')
    floor = min(mean for mean in means if mean > 0) / 2 if logarithmic else 0.0
    return _ShownMetric(quantity, values, unit, per, unit_name, limits, logarithmic, floor)


def _series(
    panel: Axes,
    request: Request,
    line: Key,
    marks: Sequence[Mark],
    axis: ParameterAxis,
    shown: _ShownMetric,
    bars: bool,
) -> _Marks:
    """One line of a panel."""
    layout, spec, per, limits, logarithmic = request.layout, request.spec, shown.per, shown.limits, shown.logarithmic
    number = layout.lines.index(line)
    tint, dash = layout.stroke(line)
    colour, label = style.COLOURS[tint], layout.named(line) or None
    marks = sorted(marks, key=lambda mark: mark.place)
    if not marks:
        return _Marks(0, 0, 0)
    # Side by side, or error bars at one place hide each other.
    step = number - (len(layout.lines) - 1) / 2
    width = 0.84 / len(layout.lines)
    places = _aside([mark.place for mark in marks], axis, step, width if bars else min(width, 0.16))
    floor = shown.floor
    heights = [max(mark.value.mean, floor) / per for mark in marks]
    cut = [_interval(mark.value, (limits[0], mark.carried or limits[1]), floor) for mark in marks]
    below = [(mark.value.mean - each.low) / per if each else 0 for mark, each in zip(marks, cut, strict=True)]
    above = [(each.high - mark.value.mean) / per if each else 0 for mark, each in zip(marks, cut, strict=True)]
    reach = [[max(value, 0) for value in below], [max(value, 0) for value in above]]
    lines = style.DASHES[dash] if not axis.words else "none"
    marker, size = style.MARKERS[dash], 3.2 * request.look.line
    if bars:
        hatch = style.HATCHES[dash]
        panel.bar(places, heights, 0.9 * width, color=colour, hatch=hatch, edgecolor=style.INK, linewidth=0.5,
                  label=label)  # fmt: skip
        panel.errorbar(places, heights, reach, fmt="none", ecolor=style.INK, elinewidth=0.9, capsize=2)
    elif spec.points == "box" and any(len(mark.value.each) >= FEWEST_IN_A_BOX for mark in marks):
        _boxes(panel, places, marks, axis, per, colour, len(layout.lines))
        panel.plot([], [], color=colour, marker="s", linestyle="none", label=label)
    elif spec.points != "mean":
        panel.plot(places, heights, linestyle=lines, label=label, color=colour, marker=marker, markersize=size)
        for place, mark in zip(places, marks, strict=True):
            panel.plot([place] * len(mark.value.each), [value / per for value in mark.value.each.values()],
                       linestyle="none", marker=marker, markersize=2.2 * request.look.line,
                       markerfacecolor="none", color=colour)  # fmt: skip
    else:
        spread = reach if any(map(any, reach)) else None
        panel.errorbar(places, heights, spread, linestyle=lines, capsize=2.2 * request.look.line,
                       elinewidth=0.8 * request.look.line, label=label, color=colour, marker=marker,
                       markersize=size)  # fmt: skip
    with_intervals = bars or spec.points == "mean"
    beyond = 0
    for place, each in zip(places, cut, strict=True):
        ends = () if each is None or not with_intervals else ((each.below, each.low, "v"), (each.above, each.high, "^"))
        for goes_on, at, head in ends:
            if goes_on:
                beyond += 1
                panel.plot([place], [at / per], marker=head, markersize=3.5, color=style.INK, clip_on=False)
    high = [at for at, mark in enumerate(marks) if mark.carried is not None and mark.value.mean > mark.carried]
    panel.plot([places[at] for at in high], [heights[at] for at in high], linestyle="none", marker="x", markersize=8,
               color=style.INK)  # fmt: skip
    nothing = [at for at, mark in enumerate(marks) if logarithmic and mark.value.mean <= 0]
    panel.plot([places[at] for at in nothing], [heights[at] for at in nothing], linestyle="none", marker="v",
               markersize=6, color=style.INK, markerfacecolor="none")  # fmt: skip
    return _Marks(beyond, len(high), len(nothing))


def _interval(value: Value, limits: Bounds, floor: float) -> BoundedInterval | None:
    if value.low is None or value.high is None:
        return None
    least = limits[0] if not floor else max(floor, limits[0] or 0)
    found = scales.clipped(value.low, value.high, (least, limits[1]))
    if value.kind == "t, cut":  # the summary has ended it there
        return replace(found, below=value.low == limits[0], above=found.above or value.high == limits[1])
    return found


def _aside(places: Sequence[float], axis: ParameterAxis, step: float, width: float) -> list[float]:
    if axis.words:
        return [place + step * width for place in places]
    every = list(axis.places.values())
    if axis.log:
        span = np.log(max(every) / min(every)) if min(every) > 0 else 0.0
        return [float(place * np.exp(0.012 * step * span)) for place in places]
    return [place + 0.012 * step * (max(every) - min(every)) for place in places]


def _boxes(
    panel: Axes, places: Sequence[float], marks: Sequence[Mark], axis: ParameterAxis, per: float, colour: str, many: int
) -> None:
    """Median, quartiles, and whiskers to the least and the largest; with every run as a point."""
    every = sorted(set(axis.places.values()))
    wide = min((b - a for a, b in pairwise(every)), default=1.0) * 0.6 / many
    widths = [place * 0.16 / many if axis.log else wide for place in places]
    data = [[value / per for value in mark.value.each.values()] for mark in marks]
    look = {"color": colour, "linewidth": 0.9}
    panel.boxplot(data, positions=list(places), widths=widths, whis=(0, 100), manage_ticks=False, boxprops=look,
                  whiskerprops=look, capprops=look, medianprops={"color": style.INK, "linewidth": 1.1})  # fmt: skip
    for place, values in zip(places, data, strict=True):
        panel.plot([place] * len(values), values, linestyle="none", marker=".", markersize=3, color=colour)


def _upright(axis: Axes, shown: _ShownMetric, zero: bool) -> None:
    """The vertical axis: from zero but for indices, never far beyond the possible values."""
    if shown.logarithmic:
        axis.set_yscale("log")
        axis.set_ylim(0.8 * shown.floor / shown.per)
        scales.tick_by_ratio(axis.yaxis)
        return
    scales.whole_ticks(axis.yaxis, shown.unit)
    style.least_span(axis)
    low, high = axis.get_ylim()
    most = shown.limits[1]
    if zero or low < 0:
        low, high = 0, scales.top([axis])
    axis.set_ylim(low, high if most is None else min(high, 1.03 * most / shown.per))


def _caption(request: Request, shown: Sequence[_ShownMetric], seen: _Marks) -> str:
    spec, drawn = request.spec, request.layout.drawn()
    of_places = [(place, each.values[id(place)]) for each in shown for place in drawn if id(place) in each.values]
    values = [value for _, value in of_places]
    metric = shown[0].quantity.metric
    said = [f"{metric.name}: {metric.meaning}."] if len(shown) == 1 else []
    if spec.relative_to is not None:
        said.append(f"Divided by that at {request.reference} = {spec.relative_to} of the same seed.")
    if spec.points == "all":
        said.append("Filled: means over seeds; hollow: each run.")
    elif spec.points == "box" and max(len(value.each) for value in values) < FEWEST_IN_A_BOX:
        said.append(f"Filled: means over seeds; hollow: each run; fewer than {FEWEST_IN_A_BOX} seeds are no box.")
    elif spec.points == "box":
        said.append("Boxes: median and quartiles over seeds, whiskers to the least and the largest.")
    else:
        said.append(request.interval_words(of_places))
    said += ["Arrowheads: the interval goes on into what is impossible."] * bool(seen.beyond)
    said += [f"Crosses: more than the link carries ({seen.above})."] * bool(seen.above)
    said += ["Triangles on the lower edge: zero."] * bool(seen.zero)
    runs = [number for place in drawn for number in place.point.runs]
    return " ".join(said) + request.layout.left_out + " " + request.made_of(runs)


def _rows(request: Request, shown: _ShownMetric) -> list[Row]:
    """A row for each point; with points of all runs or boxes, a row for each run."""
    rows: list[Row] = []
    for place in request.layout.places:
        value = shown.values.get(id(place))
        if value is None:
            continue
        first = {**place.parameters, "metric": str(shown.quantity), "unit": shown.unit}
        if request.spec.points != "mean":
            rows += [{**first, "run": run, "seed": request.runs[run].seed, "value": each}
                     for run, each in value.each.items()]  # fmt: skip
        else:
            rows.append({**first, "mean": value.mean, "low": value.low, "high": value.high, "n": value.n})
    return rows
