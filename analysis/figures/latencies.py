"""The latency of each packet over time, for `ewan figures bursts`.

In: series of plain numbers. Out: SVG text whose letters stay text, the same for the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import matplotlib
from matplotlib.figure import Figure

from ewan.analysis.figures.style import COLOURS, MARKERS, PAGE_RC, svg
from ewan.labs.base.units import NS_PER_MS

STYLE = PAGE_RC | {
    "font.size": 9,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
}


class Packets(NamedTuple):
    """One packet a value: when it arrived, and how long it was under way."""

    title: str
    times_ns: Sequence[int]
    latencies_ns: Sequence[int]


def draw(panels: Sequence[Packets]) -> str:
    """The latency of each packet over time, one panel a series, on common axes (eWAN, figures 5 and 6)."""
    with matplotlib.rc_context(STYLE):  # type: ignore[arg-type]
        figure = Figure(figsize=(3.4 * len(panels), 2.6), layout="constrained")
        axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
        for number, (axis, panel) in enumerate(zip(axes, panels, strict=True)):
            start = panel.times_ns[0] if panel.times_ns else 0
            times = [(time - start) / NS_PER_MS for time in panel.times_ns]
            values = [latency / NS_PER_MS for latency in panel.latencies_ns]
            colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
            axis.plot(times, values, linestyle="none", marker=marker, markersize=2.5, color=colour)
            axis.set_title(panel.title, loc="left", fontsize=9)
            axis.set_xlabel("time of arrival (ms)")
        axes[0].set_ylabel("latency (ms)")
        # Room above, so that no marker is cut.
        axes[0].set_ylim(0, 1.15 * max(max(panel.latencies_ns, default=0) for panel in panels) / NS_PER_MS or None)
        return svg(figure)
