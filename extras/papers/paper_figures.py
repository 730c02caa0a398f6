"""`ewan suite figures`: figures of papers, measured again in the virtual clock.

In: the names of figures. Out: results/figures/<name>.svg with its data as <name>.csv, and a table.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from ewan.analysis.figures.style import COLOURS, MARKERS, PAGE_RC, svg
from ewan.calibration import bursts
from ewan.labs import rundir
from ewan.labs.base.product import RESULTS
from ewan.labs.base.sheet import grid
from ewan.labs.base.units import NS_PER_MS
from ewan.labs.base.units.shown import about
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import pass_context
from ewan.labs.commands.virtual import runtime_of
from ewan.labs.context import Context
from ewan.labs.runtime.base import LabError

PLACE = RESULTS / "figures"
STYLE = PAGE_RC | {"font.size": 9, "axes.grid": True, "grid.color": "#dddddd", "grid.linewidth": 0.6}


@click.command("figures")
@click.argument("names", nargs=-1, type=click.Choice(["bursts"]))
@guarded
@pass_context
def figures_command(context: Context, names: tuple[str, ...]) -> None:
    """Measure figures of papers again in the virtual clock: those that are named, else all.

    \b
    ewan suite figures bursts      eWAN, figures 5 and 6: netem without psp sends bursts, netem with psp does not
    """
    for name in names or FIGURES:
        FIGURES[name](context)


def draw_bursts(context: Context) -> None:
    """Measures figures 5 and 6 of eWAN, writes them, and prints their numbers."""
    reporter = context.reporter
    runtime = runtime_of(context)
    with tempfile.TemporaryDirectory() as scratch, reporter.progress("bursts in the virtual clock"):
        try:
            series = bursts.measure(runtime, Path(scratch))
        except RuntimeError as error:
            raise Refused(str(error)) from None
    panels = [PacketTrace(each.title, each.times_ns, each.latencies_ns) for each in series]
    keep("bursts", draw_latencies(panels), bursts.csv(series))
    columns = ["series", "packets", "largest bunch", "largest burst", "in packets", "latency least", "most"]
    reporter.console.print(grid("Bursts: 100 Mbit/s into 1 ms", columns, [row(each) for each in series]))
    reporter.console.print(f"{PLACE / 'bursts.svg'}  {PLACE / 'bursts.csv'}", soft_wrap=True)


def row(series: bursts.BurstSeries) -> list[str]:
    """Cells of one series: packets, bunches and bursts, least and largest latency."""
    burst = series.largest_burst_bytes
    least, most = min(series.latencies_ns), max(series.latencies_ns)
    return [
        series.title,
        str(len(series.times_ns)),
        str(series.largest_bunch),
        f"{burst:.0f} B",
        f"{burst / series.packet_bytes:.2f}",
        about(least, "time", 6),
        about(most, "time", 6),
    ]


def keep(name: str, picture: str, data: str) -> None:
    """Writes a figure as SVG with its data as CSV; LabError where that cannot be done."""
    try:
        PLACE.mkdir(parents=True, exist_ok=True)
        (PLACE / f"{name}.svg").write_text(picture)
        (PLACE / f"{name}.csv").write_text(data)
        rundir.give_back(PLACE)
    except OSError as error:
        raise LabError(f"{PLACE}: {error.strerror}: run it in a directory where you may write") from None


FIGURES: dict[str, Callable[[Context], None]] = {"bursts": draw_bursts}


class PacketTrace(NamedTuple):
    """One packet a value: when it arrived, and how long it was under way."""

    title: str
    times_ns: Sequence[int]
    latencies_ns: Sequence[int]


def draw_latencies(panels: Sequence[PacketTrace]) -> str:
    """The latency of each packet over time, one panel a series, on common axes (eWAN, figures 5 and 6)."""
    import matplotlib
    from matplotlib.figure import Figure

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
