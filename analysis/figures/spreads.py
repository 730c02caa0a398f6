"""Distributions of samples: cumulative shares, and boxes with strips against a parameter.

In: a request, and the samples of each run. Out: a drawing; samples of all seeds of a point are together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ewan.analysis.figures import samples, scales, style
from ewan.analysis.figures.choice import FigurePoint
from ewan.analysis.figures.request import FigureError, Request, needs
from ewan.analysis.figures.style import Drawing
from ewan.analysis.figures.windows import Floats
from ewan.analysis.load import RunResults
from ewan.analysis.rows import spread
from ewan.analysis.rundata import RunData
from ewan.labs.base.units.shown import fitting
from ewan.labs.record.quantities import Selection, selection
from ewan.labs.record.series import SAMPLES, Samples

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEWEST = 8
"""Values of which a distribution is drawn; of fewer the table says as much."""
MOST_STEPS = 400
WIDE = 20
"""Times the least of the medians: where the largest value is beyond, the axis is logarithmic."""
MOST_POINTS = 150
"""Points of a strip: quantiles, evenly apart."""
WHISKERS = (5, 95)

Found = dict[tuple[int, str], Floats]
"""Samples by the number of a place and a label."""


@dataclass(frozen=True)
class SampleFigure:
    """A figure of samples that is being made: "cdf", "ccdf" or "box"."""

    request: Request

    def wants(self, run: RunResults) -> bool:
        """Return whether the figure needs this run."""
        return run.number in self._numbers

    @cached_property
    def _numbers(self) -> frozenset[int]:
        every = (number for place in self.request.layout.places for number in place.point.runs)
        return frozenset(number for number in every if self.request.spec.run in (None, number))

    def gather(self, run: RunResults, data: RunData) -> dict[str, Floats]:
        """The samples of a run, by label."""
        link = self.request.spec.of if self._entry.whose == "link" else ""
        return samples.of_run(data, self._entry, self._chosen, link)

    @property
    def _entry(self) -> Samples:
        return SAMPLES[self.request.spec.what]

    @cached_property
    def _chosen(self) -> Selection | None:
        spec = self.request.spec
        return selection(spec.what, spec.of) if spec.of and self._entry.whose != "link" else None

    def draw(self, gathered: Mapping[int, Mapping[str, Floats]]) -> Drawing:
        """FigureError where no run has such samples."""
        spec, layout = self.request.spec, self.request.layout
        found: Found = {}
        for index, place in enumerate(layout.places):
            parts: dict[str, list[Floats]] = {}
            for number in place.point.runs:
                for label, values in gathered.get(number, {}).items():
                    parts.setdefault(label, []).append(values)
            found |= {(index, label): np.sort(np.concatenate(each)) for label, each in parts.items()}
        if not found:
            raise FigureError(f'"{spec.line}": no run has such samples: {needs(self.request.spec)}')
        if spec.kind != "box" and max(map(len, found.values())) < FEWEST:
            raise FigureError(f'"{spec.line}": fewer than {FEWEST} values are no distribution: see the tables')
        if not any(values[-1] for values in found.values()):
            raise FigureError(f'"{spec.line}": all values are 0')
        return self._boxes(found) if spec.kind == "box" else self._curves(found)

    def _drawn(self, found: Found) -> list[tuple[int, FigurePoint, str]]:
        layout, shown = self.request.layout, {id(place) for place in self.request.layout.drawn()}
        own = [(index, layout.places[index], label) for index, label in found if id(layout.places[index]) in shown]
        return sorted(own, key=lambda each: layout.lines.index(each[1].line))

    def _stroke(self, place: FigurePoint, label: str, found: Found) -> tuple[int, int]:
        labels = list(dict.fromkeys(each for _, each in found))
        tint, dash = self.request.layout.stroke(place.line)
        if len(labels) < 2:
            return tint, dash
        number = labels.index(label)
        return (tint, number % 6) if len(self.request.layout.lines) > 1 else (number % 6, number % 6)

    def _curves(self, found: Found) -> Drawing:
        request, entry = self.request, self._entry
        spec, layout = request.spec, request.layout
        drawn, rest = self._drawn(found), spec.kind == "ccdf"
        every = [found[index, label] for index, _, label in drawn]
        medians = [max(float(np.median(values)), 1e-12) for values in every]
        largest = max(float(values[-1]) for values in every)
        wide = largest >= WIDE * min(medians)
        per, unit = fitting(medians if wide else [largest], entry.unit)
        columns = request.look.across(len(layout.panels), 2.4)
        with style.sheet(len(layout.panels), 2.4, columns, look=request.look) as (figure, axes):
            for index, place, label in drawn:
                values, shares = steps(found[index, label])
                heights = 1 - shares if rest else shares
                tint, dash = self._stroke(place, label, found)
                words = ", ".join(part for part in (layout.named(place.line), label) if part)
                axes[layout.panels.index(place.panel)].step(
                    values / per, heights, where="post", color=style.COLOURS[tint], linestyle=style.DASHES[dash],
                    marker=style.MARKERS[dash], markersize=2.6 * request.look.line, markevery=(0.03 * dash, 0.2),
                    label=words or None,
                )  # fmt: skip
            axis = axes[0]
            if wide:
                least = min(float(values[values > 0][0]) for values in every if values[-1] > 0)
                axis.set_xscale("log")
                axis.set_xlim(0.9 * least / per)
                scales.tick_by_ratio(axis.xaxis)
            elif min(float(values[0]) for values in every) < 0.5 * largest:
                axis.set_xlim(0)
            if rest:
                axis.set_yscale("log")
                axis.set_ylim(0.7 / max(len(values) for values in every), 1.2)
            else:
                axis.set_ylim(0, 1.03)
            for panel, each in zip(axes, layout.panels, strict=True):
                style.title(panel, layout.named(each), columns)
            words = "share that is larger" if rest else "share that is no larger"
            style.outer_labels(axes, f"{entry.name} ({unit})" if unit else entry.name, words, columns)
            style.legend(figure, axes)
            rows = []
            for (index, label), sample in found.items():
                values, shares = steps(sample)
                first = {**layout.places[index].parameters, "of": label or "all", "unit": entry.unit}
                rows += [{**first, "value": float(value), "share": float(1 - share if rest else share)}
                         for value, share in zip(values, shares, strict=True)]  # fmt: skip
            title = spec.title or f"Distribution of {entry.name}"
            return style.drawn(figure, spec.file, title, self._caption(found, ""), rows, request.kinds)

    def _boxes(self, found: Found) -> Drawing:
        request, entry = self.request, self._entry
        spec, layout = request.spec, request.layout
        drawn = self._drawn(found)
        try:
            scale = scales.axis_of(spec.by[0], (place.parameters[spec.by[0]] for place in layout.places), "categories")
        except scales.ScaleError as error:
            raise FigureError(f'"by {spec.by[0]}": {error}') from None
        labels = list(dict.fromkeys(label for _, label in found))
        many = len(layout.lines) * len(labels)
        every = [found[index, label] for index, _, label in drawn]
        largest, medians = max(float(v[-1]) for v in every), [float(np.median(v)) for v in every]
        wide = min(medians) > 0 and largest >= WIDE * min(medians) and min(float(v[0]) for v in every) > 0
        per, unit = fitting(medians if wide else [largest], entry.unit)
        columns = request.look.across(len(layout.panels), 2.4)
        with style.sheet(len(layout.panels), 2.4, columns, look=request.look) as (figure, axes):
            seen: set[tuple[int, str]] = set()
            for index, place, label in drawn:
                at = layout.lines.index(place.line) * len(labels) + labels.index(label)
                centre = scale.places[str(place.parameters[spec.by[0]])] + (at - (many - 1) / 2) * 0.84 / many
                panel = layout.panels.index(place.panel)
                tint, dash = self._stroke(place, label, found)
                words = ", ".join(part for part in (layout.named(place.line), label) if part)
                first = (panel, words) not in seen
                seen.add((panel, words))
                _box(axes[panel], found[index, label] / per, centre, 0.7 / many, (tint, dash), words if first else "")
            for panel_axis, each in zip(axes, layout.panels, strict=True):
                scale.put_on(panel_axis)
                style.title(panel_axis, layout.named(each), columns)
            if wide:
                axes[0].set_yscale("log")
                scales.tick_by_ratio(axes[0].yaxis)
            elif min(float(v[0]) for v in every) < 0.5 * largest:
                axes[0].set_ylim(0)
            style.outer_labels(axes, scale.label, f"{entry.name} ({unit})" if unit else entry.name, columns)
            style.legend(figure, axes)
            quantiles = (0, WHISKERS[0], 25, 50, 75, WHISKERS[1], 100)
            rows = [
                {**layout.places[index].parameters, "of": label or "all", "unit": entry.unit, "n": len(values),
                 **{f"p{share}": float(np.percentile(values, share)) for share in quantiles}}
                for (index, label), values in found.items()
            ]  # fmt: skip
            title = spec.title or f"{entry.name[0].upper()}{entry.name[1:]} against {spec.by[0]}"
            low, high = WHISKERS
            said = f"Boxes: median and quartiles; whiskers: from the {low}th to the {high}th percentile; points: up to "
            said += f"{MOST_POINTS} quantiles of each box."
            return style.drawn(figure, spec.file, title, self._caption(found, said), rows, request.kinds)

    def _caption(self, found: Found, said: str) -> str:
        layout, entry = self.request.layout, self._entry
        counts = sorted(len(values) for values in found.values())
        n = f"n = {counts[0]}" if counts[0] == counts[-1] else f"n from {counts[0]} to {counts[-1]}"
        runs = [number for place in layout.drawn() for number in place.point.runs
                if self.request.spec.run in (None, number)]  # fmt: skip
        words = [f"{entry.name}: {entry.meaning}.", said, f"Values of all seeds together, {n}."]
        return " ".join(filter(None, words)) + layout.left_out + " " + self.request.made_of(runs)


def _box(axis: Axes, values: Floats, centre: float, width: float, stroke: tuple[int, int], label: str) -> None:
    """A box at the left of its place, a strip of points at the right."""
    colour, ink = style.COLOURS[stroke[0]], style.INK
    look = {"color": ink, "linewidth": 0.8}
    made = axis.boxplot(
        [values], positions=[centre - 0.12 * width], widths=0.6 * width, whis=WHISKERS, showfliers=False,
        manage_ticks=False, patch_artist=True, medianprops={"color": ink, "linewidth": 1.3}, whiskerprops=look,
        capprops=look, boxprops={"facecolor": colour, "edgecolor": ink, "linewidth": 0.8,
                                 "hatch": style.HATCHES[stroke[1]]},
    )  # fmt: skip
    if label:
        made["boxes"][0].set_label(label)
    shares = np.linspace(0, 100, min(len(values), MOST_POINTS))
    shown = np.percentile(values, shares)
    # Aside in a fixed order, so that equal values are seen apart.
    aside = centre + width * (0.32 + 0.14 * ((np.arange(len(shown)) * 0.618034) % 1 - 0.5))
    axis.plot(aside, shown, linestyle="none", marker=".", markersize=1.8, color=colour)


def steps(ordered: Floats) -> tuple[Floats, Floats]:
    """Sorted values, each with the share of values that are no larger; only as many steps as can be seen."""
    shares = np.arange(1, len(ordered) + 1) / len(ordered)
    kept = spread(len(ordered), MOST_STEPS)
    # From zero, so that the first step is seen.
    return np.concatenate(([ordered[0]], ordered[kept])), np.concatenate(([0.0], shares[kept]))
