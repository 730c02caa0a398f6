"""Shares over time, one upon the other, as a flow chart of who has the bottleneck.

In: a request, and the shares of each run. Out: a drawing, a panel for each point of the parameters.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ewan.analysis.figures import counts, overtime, style
from ewan.analysis.figures.counts import PointCount
from ewan.analysis.figures.overtime import OverTime
from ewan.analysis.figures.style import Drawing, Row
from ewan.analysis.figures.windows import Floats, WindowValues
from ewan.labs.base.units import NS_PER_SECOND


class FlowChart(OverTime):
    """A figure that is being made: of several seeds the means, which add up."""

    def _draw(self, gathered: Mapping[int, Mapping[str, WindowValues]]) -> Drawing:
        return _chart(self, gathered)


def _chart(figure: OverTime, gathered: Mapping[int, Mapping[str, WindowValues]]) -> Drawing:
    request = figure.request
    spec, layout = request.spec, request.layout
    columns = request.look.across(len(layout.panels), 2.2)
    rows: list[Row] = []
    length = figure.wanted.length_ns
    with style.sheet(len(layout.panels), 2.2, columns, look=request.look) as (drawing, axes):
        shown = dict(zip(layout.panels, axes, strict=True))
        for place in layout.places:
            parts = figure.of_place(place, gathered)
            if not parts:
                continue
            runs = max(len(lines) for lines in parts.values())
            own = [gathered.get(number, {}) for number in place.point.runs]
            ends = [round(line.times[-1] / length + 0.5) for lines in parts.values() for line in lines]
            times = (np.arange(max(ends)) + 0.5) * length
            bottom: Floats = np.zeros(len(times))
            # Of the seeds that sent in a window: the others have ended.
            present = np.zeros(len(times))
            for lines_of_run in own:
                sent = [windows_of(line, length) for line in lines_of_run.values()]
                if sent:
                    present[np.unique(np.concatenate(sent))] += 1
            axis = shown.get(place.panel)
            for number, (label, lines) in enumerate(parts.items()):
                total = np.zeros(len(times))
                for line in lines:
                    total[windows_of(line, length)] += line.values
                share = total / np.maximum(present, 1)
                if axis is not None:
                    colour, hatch = style.COLOURS[number % 6], style.HATCHES[(number + number // 6) % 6]
                    axis.fill_between(times / NS_PER_SECOND, 100 * bottom, 100 * (bottom + share), facecolor=colour,
                                      hatch=hatch, edgecolor=style.INK, linewidth=0.3, step="mid",
                                      label=label or "load")  # fmt: skip
                bottom = bottom + share
                rows += [{**place.parameters, "series": label or "load", "runs": runs, "time (s)": at / NS_PER_SECOND,
                          "share": float(value)} for at, value in zip(times, share, strict=True)]  # fmt: skip
            if axis is not None:
                style.title(axis, layout.named(place.panel), columns)
                axis.grid(False)
                overtime.circumstances(axis, figure, place.panel)
        axes[0].set_ylim(0, 100)
        axes[0].set_xlim((spec.from_ns or 0) / NS_PER_SECOND, spec.to_ns / NS_PER_SECOND if spec.to_ns else None)
        style.outer_labels(axes, "time (s)", "share (%)", columns)
        style.legend(drawing, axes)
        seeds = [
            PointCount(layout.named(place.panel), request.name_of(place), len(place.point.runs))
            for place in layout.drawn()
        ]
        said = f"Share of the payload that arrived over the bottleneck, in windows of {length / NS_PER_SECOND:g} s."
        said += (
            f" Means over seeds, {counts.in_words(seeds)}."
            if spec.run is None and max(each.n for each in seeds) > 1
            else ""
        )
        said += layout.left_out + " " + request.made_of(figure.numbers)
        return style.drawn(drawing, spec.file, spec.title or "Shares over time", said, rows, request.kinds)


def windows_of(line: WindowValues, length_ns: int) -> NDArray[np.int64]:
    """The numbers of the windows that a line has values in."""
    return np.round(line.times / length_ns - 0.5).astype(np.int64)
