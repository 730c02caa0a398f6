"""Series over time: of one run, or the median of seeds with a band.

In: a request, and the lines of each run. Out: a drawing, a panel for each value of the facets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import polars as pl

from ewan.analysis.figures import counts, scales, series, style, windows
from ewan.analysis.figures.choice import MOST_LINES, FigurePoint, Key
from ewan.analysis.figures.counts import PointCount
from ewan.analysis.figures.request import FigureError, Request, needs
from ewan.analysis.figures.series import SeriesChoice
from ewan.analysis.figures.style import Drawing, Row
from ewan.analysis.figures.windows import Floats, WindowValues
from ewan.analysis.load import RunResults
from ewan.analysis.rundata import RunData
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from ewan.labs.base.units.shown import fitting
from ewan.labs.record import disturbances
from ewan.labs.record.quantities import Selection, selection
from ewan.labs.record.series import Series, series_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_FLOWS = 8
"""Flows that are shown one by one unless the figure asks otherwise; more flows are shown together."""
MOST_BANDS = 3
"""A panel has bands of at most so many lines: those of more would hide each other."""
FEW_SEEDS = 10
"""Up to so many, a band goes from the least to the largest; of more, from the 10th to the 90th percentile."""


class Curve(NamedTuple):
    """A line of a panel: its label, the numbers of its colour and dash, the values, and a band over seeds."""

    label: str
    stroke: tuple[int, int]
    line: WindowValues
    low: Floats | None
    high: Floats | None
    runs: int
    point: str
    """The parameters, in words."""


@dataclass(frozen=True)
class OverTime:
    """A figure over time that is being made."""

    request: Request

    def wants(self, run: RunResults) -> bool:
        """Return whether the figure needs this run."""
        return run.number in self._numbers

    def gather(self, run: RunResults, data: RunData) -> dict[str, WindowValues]:
        """The lines of a run, by label."""
        return series.of_run(data, self.wanted)

    @cached_property
    def _numbers(self) -> dict[int, FigurePoint]:
        spec, layout = self.request.spec, self.request.layout
        return {
            number: place
            for place in layout.places
            for number in place.point.runs
            if spec.run is None or number == spec.run
        }

    @cached_property
    def _first(self) -> RunData:
        """The run that decides the length of windows, and the number of flows that are shown."""
        run = self.request.runs[min(self._numbers)]
        return RunData.read(run)

    @cached_property
    def entry(self) -> Series:
        """The series, which the figure's line was checked for."""
        entry = series_named(self.request.spec.what)
        assert entry is not None
        return entry

    @cached_property
    def wanted(self) -> SeriesChoice:
        """The series that are drawn of each run."""
        spec = self.request.spec
        entry = self.entry
        chosen: Selection | None = None
        link = spec.of if entry.whose == "link" else ""
        if spec.of and not link:
            chosen = selection(spec.what, spec.of)
        single = all(len(place.point.runs) == 1 or spec.run is not None for place in self.request.layout.places)
        wanted = SeriesChoice(entry, self._length_ns(entry.table), chosen, spec.flows, link, single and not spec.band,
                        spec.from_ns or 0, spec.to_ns)  # fmt: skip
        if spec.flows is None and entry.whose == "flow" and (chosen is None or chosen.name is not None):
            return self._with_flows(wanted)
        return wanted

    def _with_flows(self, wanted: SeriesChoice) -> SeriesChoice:
        """Few flows are shown one by one, where a panel has no other lines; of a flow chart many by their steps."""
        chart = self.request.spec.kind == "flow chart"
        if chart and wanted.selection is None:
            each = replace(wanted, selection=Selection("flow", None))
            few = self._most_groups(each) <= MOST_LINES
            return each if few else replace(wanted, selection=Selection("step", None))
        each = replace(wanted, flows=series.ALL)
        return each if len(self.request.layout.lines) == 1 and self._most_groups(each) <= MOST_FLOWS else wanted

    def _most_groups(self, wanted: SeriesChoice) -> int:
        return max(len(list(series.groups(run, wanted))) for run in self._of_each_point())

    def _of_each_point(self) -> list[RunData]:
        runs = [self.request.runs[place.point.runs[0]] for place in self.request.layout.places]
        return [RunData.read(run) for run in runs]

    def _length_ns(self, table: str) -> int:
        """The length (ns) of a window: as many windows as can be seen, none shorter than the time between two
        samples."""
        spec, rows = self.request.spec, self._first.table(table)
        if rows.is_empty() and spec.captured:
            raise FigureError(f'"{spec.head}": no run has such a series: {needs(spec)}')
        if rows.is_empty() or "time_ns" not in rows.columns:
            raise FigureError(f'"{spec.head}": run {min(self._numbers)} has no table "{table}": nothing was sampled')
        keys = [key for key in ("flow", "part", "link", "direction", "step", "node", "target") if key in rows.columns]
        ends = rows.group_by(keys).agg(
            span=pl.col("time_ns").max() - pl.col("time_ns").min(), count=pl.len()
        ).filter(pl.col("count") > 1)  # fmt: skip
        between = ends.select((pl.col("span") / (pl.col("count") - 1)).median()).item() or NS_PER_MS
        shortest = max(round(between / NS_PER_MS) * NS_PER_MS, NS_PER_MS)
        runs = [run.all_flows["ended_ns"].max() for run in self._of_each_point()]
        known = [end for end in runs if isinstance(end, int)]
        begin, end = (
            spec.from_ns or 0,
            spec.to_ns or max(known, default=int(rows.select(pl.col("time_ns").max()).item())),
        )
        return windows.window_ns(max(end - begin, shortest), shortest)

    def draw(self, gathered: Mapping[int, Mapping[str, WindowValues]]) -> Drawing:
        """FigureError where no run has such a series."""
        spec = self.request.spec
        if spec.flows not in (None, series.ALL, series.ENDS) and not any(
            spec.flows in label for lines in gathered.values() for label in lines
        ):
            known = ", ".join(list(dict.fromkeys(self._first.all_flows["name"].to_list()))[:4])
            raise FigureError(f'"flows {spec.flows}": no flow has this name: there are {known} …')
        if not any(line.times.size > 1 for lines in gathered.values() for line in lines.values()):
            raise FigureError(f'"{spec.line}": no run has such a series: {needs(spec)}')
        return self._draw(gathered)

    def _draw(self, gathered: Mapping[int, Mapping[str, WindowValues]]) -> Drawing:
        return _draw(self, of_same_words(gathered))

    def of_place(
        self, place: FigurePoint, gathered: Mapping[int, Mapping[str, WindowValues]]
    ) -> dict[str, list[WindowValues]]:
        """The lines of a point by label, one for each seed that has it."""
        found: dict[str, list[WindowValues]] = {}
        for number in place.point.runs:
            for label, line in gathered.get(number, {}).items():
                found.setdefault(label, []).append(line)
        return found

    def place_of(self, number: int) -> FigurePoint:
        """The point of a run."""
        return self._numbers[number]

    @cached_property
    def numbers(self) -> list[int]:
        """The numbers of the runs that are drawn."""
        drawn = {id(place) for place in self.request.layout.drawn()}
        return [number for number, place in self._numbers.items() if id(place) in drawn]


def of_same_words(gathered: Mapping[int, Mapping[str, WindowValues]]) -> Mapping[int, Mapping[str, WindowValues]]:
    """The lines with places of words among the words of all of them."""
    words = sorted({word for lines in gathered.values() for line in lines.values() for word in line.words})
    if not words:
        return gathered
    return {
        number: {label: line.among(tuple(words)) for label, line in lines.items()} for number, lines in gathered.items()
    }


def together(lines: Sequence[WindowValues], least: float = 0.5) -> tuple[WindowValues, Floats | None, Floats | None]:
    """The median of several seeds at each moment that at least so many of them have, and the ends of their band."""
    if len(lines) == 1:
        return lines[0], None, None
    times, index = np.unique(np.concatenate([line.times for line in lines]), return_inverse=True)
    values = np.full((len(lines), len(times)), np.nan)
    at = 0
    for row, line in enumerate(lines):
        values[row, index[at : at + len(line.times)]] = line.values
        at += len(line.times)
    many = np.sum(~np.isnan(values), axis=0) >= max(1, least * len(lines))
    values = values[:, many]
    ends = (0, 100) if len(lines) <= FEW_SEEDS else (10, 90)
    low, middle, high = _percentiles(values, [ends[0], 50, ends[1]])
    return WindowValues(times[many], middle), low, high


def _percentiles(values: Floats, shares: Sequence[float]) -> Floats:
    """The percentiles of each column, without missing values."""
    found: Floats = np.percentile(values, shares, axis=0)
    missing = np.isnan(values).any(axis=0)
    if missing.any():  # numpy takes such columns one by one
        found[:, missing] = np.nanpercentile(values[:, missing], shares, axis=0)
    return found


def _curves(figure: OverTime, panel: Key, gathered: Mapping[int, Mapping[str, WindowValues]]) -> list[Curve]:
    layout = figure.request.layout
    found: list[Curve] = []
    drawn = [place for place in layout.of(panel) if place.line in layout.lines]
    for place in sorted(drawn, key=lambda place: layout.lines.index(place.line)):
        own = figure.of_place(place, gathered)
        for number, (label, lines) in enumerate(own.items()):
            tint, dash = layout.stroke(place.line)
            if len(own) > 1:
                tint, dash = (tint, number % 6) if len(layout.lines) > 1 else (number % 6, (number + number // 6) % 6)
            words = ", ".join(part for part in (layout.named(place.line), label) if part)
            found.append(Curve(words, (tint, dash), *together(lines), len(lines), figure.request.name_of(place)))
    return found


def _draw(figure: OverTime, gathered: Mapping[int, Mapping[str, WindowValues]]) -> Drawing:
    request = figure.request
    spec, layout, entry = request.spec, request.layout, figure.entry
    curves = {panel: _curves(figure, panel, gathered) for panel in layout.panels}
    curves = {panel: each for panel, each in curves.items() if each}
    words = next((curve.line.words for each in curves.values() for curve in each if curve.line.words), ())
    lowest = min((float(np.nanmin(curve.line.values)) for each in curves.values() for curve in each), default=0.0)
    most = [float(np.nanmax(curve.line.values)) for each in curves.values() for curve in each]
    per, unit = fitting([value for value in most if np.isfinite(value)], entry.unit)
    columns = request.look.across(len(curves), 2.0)
    banded: list[PointCount] = []
    hidden, above = False, 0
    names = {curve.label for each in curves.values() for curve in each}
    with style.sheet(len(curves), 2.0, columns, look=request.look) as (drawing, axes):
        for axis, (panel, own) in zip(axes, curves.items(), strict=True):
            for curve in own:
                colour, dash = style.COLOURS[curve.stroke[0]], style.DASHES[curve.stroke[1]]
                times = curve.line.times / NS_PER_SECOND
                label = (curve.label or entry.name) if len(names) <= MOST_LINES else None
                wide = request.look.line * (0.9 if len(own) <= 4 else 0.7 if len(own) <= MOST_LINES else 0.4)
                steps: Literal["default", "steps-post"] = "steps-post" if words else "default"
                axis.plot(times, curve.line.values / per, color=colour, linestyle=dash, linewidth=wide, label=label,
                          drawstyle=steps)  # fmt: skip
                if curve.low is not None and curve.high is not None:
                    banded += [PointCount(curve.label, curve.point, curve.runs)]
                    if len(own) > MOST_BANDS and not spec.band:
                        hidden = True
                        continue
                    axis.fill_between(times, curve.low / per, curve.high / per, color=colour, alpha=0.2, linewidth=0)
            above += _mark_above(axis, figure, panel, own, per)
            style.title(axis, layout.named(panel), columns)
            circumstances(axis, figure, panel)
        scales.whole_ticks(axes[0].yaxis, entry.unit)
        low, high = axes[0].get_ylim()
        if entry.zero:
            low, high = 0, scales.top(axes)
        least = low if words or (lowest < 0 and not entry.zero) else max(low, 0)
        if words:
            axes[0].set_yticks(range(len(words)), words)
        axes[0].set_ylim(least, min(high, 1.02 / per) if entry.of_one else high)
        begin = (spec.from_ns or 0) / NS_PER_SECOND
        axes[0].set_xlim(begin, spec.to_ns / NS_PER_SECOND if spec.to_ns is not None else None)
        style.outer_labels(axes, "time (s)", f"{entry.name} ({unit})" if unit else entry.name, columns)
        style.legend(drawing, axes)
        said = _caption(figure, banded, hidden, above, len(names))
        title = spec.title or f"{entry.name[0].upper()}{entry.name[1:]} over time"
        rows = _rows(figure, gathered)
        return style.drawn(drawing, spec.file, title, said, rows, request.kinds)


def _mark_above(axis: Axes, figure: OverTime, panel: Key, curves: Sequence[Curve], per: float) -> int:
    """Crosses where more is shown than the link carries; how many."""
    if "goodput" not in figure.request.spec.what:
        return 0
    rates = [figure.request.carried(place.point) for place in figure.request.layout.of(panel)]
    if None in rates or not rates:
        return 0
    most, count = max(rate for rate in rates if rate is not None), 0
    for curve in curves:
        high = curve.line.values > most
        count += int(high.sum())
        axis.plot(curve.line.times[high] / NS_PER_SECOND, curve.line.values[high] / per, linestyle="none", marker="x",
                  markersize=4, color=style.INK)  # fmt: skip
    return count


def circumstances(axis: Axes, figure: OverTime, panel: Key) -> None:
    """Marks the changes of links; for a single run also the times in which links were out of their tolerance."""
    numbers = [number for number in figure.numbers if figure.place_of(number).panel == panel]
    if not numbers:
        return
    run = figure.request.runs[numbers[0]]
    for number, moment in enumerate(sorted(set(run.changes_ns()))):
        axis.axvline(moment / NS_PER_SECOND, color=style.INK, linewidth=0.7, linestyle=(0, (1, 2)),
                     label="link changed" if number == 0 else None)  # fmt: skip
    watched = run.disturbances() if len(numbers) == 1 else None
    for number, (begin, end) in enumerate(disturbances.intervals(watched[0]) if watched else ()):
        axis.axvspan(begin / NS_PER_SECOND, end / NS_PER_SECOND, color=style.COLOURS[4], alpha=0.25, linewidth=0,
                     zorder=0, label="links out of tolerance" if number == 0 else None)  # fmt: skip


def _caption(figure: OverTime, banded: Sequence[PointCount], hidden: bool, above: int, lines: int) -> str:
    request, wanted = figure.request, figure.wanted
    entry = wanted.entry
    said = [f"{entry.name}: {entry.meaning}."]
    if entry.whose == "flow" and wanted.flows is None and (wanted.selection is None or wanted.selection.name):
        said.append(f"{'Sum' if entry.together == 'sum' else 'Mean'} over the {wanted.selection or 'load'} flows.")
    if entry.table == "links" and not wanted.link:
        said.append("Of the load's bottleneck.")
    if not wanted.fine or not entry.column:
        said.append(f"Windows of {wanted.length_ns / NS_PER_SECOND:g} s.")
    seeds = max(len(place.point.runs) for place in request.layout.places)
    if banded:
        ends = "the least to the largest" if seeds <= FEW_SEEDS else "the 10th to the 90th percentile"
        said.append(f"Lines: median over seeds; bands: {ends}, {counts.in_words(banded)}.")
        said += ["Bands of more lines in one panel would hide each other: they are in the CSV."] * hidden
    elif request.spec.band:
        said.append("One seed: no band.")
    said += [f"Crosses: more than the link carries ({above})."] * bool(above)
    said += [f"{lines} lines, too many for a legend: their names are in the CSV."] * (lines > MOST_LINES)
    return " ".join(said) + request.layout.left_out + " " + request.made_of(figure.numbers)


def _rows(figure: OverTime, gathered: Mapping[int, Mapping[str, WindowValues]]) -> list[Row]:
    entry = figure.entry
    rows: list[Row] = []
    for place in figure.request.layout.places:
        for label, lines in figure.of_place(place, gathered).items():
            line, low, high = together(lines)
            first = {**place.parameters, "series": label or entry.name, "unit": entry.unit, "runs": len(lines)}
            for at, (time, value) in enumerate(zip(line.times, line.values, strict=True)):
                if np.isnan(value):
                    continue
                band = {} if low is None or high is None else {"low": float(low[at]), "high": float(high[at])}
                shown = line.words[int(value)] if line.words else float(value)
                rows.append({**first, "time (s)": time / NS_PER_SECOND, "value": shown, **band})
    return rows
