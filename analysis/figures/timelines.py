"""What happened over time: goodput, fairness, congestion windows, the bottleneck's queue.

In: an experiment and which of its points are drawn. Out: drawings, one panel a point, of each point's first run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from analysis import arrivals
from analysis.figures import style, windows
from analysis.figures.style import Drawing
from analysis.flows import active, loaded
from analysis.load import Link, RunResults
from labs.units import NS_PER_SECOND
from labs.units.shown import fitting


class PointPanel(NamedTuple):
    """A point of the parameters, by its first run that measured something. `drawn`: there is room for it."""

    label: str
    run: RunResults
    bottleneck: Link | None
    drawn: bool
    disturbed: Sequence[tuple[int, int]] = ()
    """When links were out of their tolerance, in ns from T0."""


SHADED = ("goodput-over-time", "cwnd", "queue-over-time")
"""Names of drawings that have a panel for each run, and show in it when links were out of their tolerance."""


def _seconds(times: windows.Floats) -> windows.Floats:
    return times / NS_PER_SECOND


def _mark_events(axis: Axes, run: RunResults) -> bool:
    """A line where a link was changed."""
    moments = {time_ns / NS_PER_SECOND for time_ns in run.changes_ns()}
    for number, moment in enumerate(sorted(moments)):
        label = "link changed" if number == 0 else None
        axis.axvline(moment, color=style.INK, linewidth=0.7, linestyle=(0, (1, 2)), label=label)
    return bool(moments)


def shade(axis: Axes, times: Sequence[tuple[int, int]]) -> None:
    """A light band where links were out of their tolerance (ns from T0)."""
    for number, (begin_ns, end_ns) in enumerate(times):
        label = "links out of tolerance" if number == 0 else None
        begin, end = begin_ns / NS_PER_SECOND, end_ns / NS_PER_SECOND
        axis.axvspan(begin, end, color=style.COLOURS[4], alpha=0.25, linewidth=0, zorder=0, label=label)


def _which(panels: Sequence[PointPanel]) -> str:
    """What a caption must say of the choice of runs."""
    drawn, seeds = [panel for panel in panels if panel.drawn], {panel.run.seed for panel in panels}
    words = f"Runs of seed {seeds.pop()}" if len(seeds) == 1 else "The first run of each point"
    if len(drawn) < len(panels):
        words += f"; {len(drawn)} of {len(panels)} points drawn, all are in the CSV"
    return words + "."


def _rows(panel: PointPanel, lines: Mapping[str, windows.Line], column: str) -> list[dict[str, Any]]:
    """The data of a panel's lines, for the CSV file beside the figure."""
    return [
        {"run": panel.run.number, "point": panel.label, "series": name, "time (s)": float(time), column: float(value)}
        for name, line in lines.items()
        for time, value in zip(_seconds(line.times), line.values, strict=True)
        if not np.isnan(value)
    ]


def goodput(panels: Sequence[PointPanel]) -> Drawing | None:
    """Arrivals of all load flows together, of the first and of the last (NXE, figure 3). The CSV has what was delivered
    in order, too."""
    tables = [(panel, arrivals.shown(panel.run.table("goodput"))) for panel in panels]
    found = [(panel, _goodput_lines(panel.run, table)) for panel, table in tables]
    found = [(panel, lines) for panel, lines in found if lines]
    if not found:
        return None
    series = {name for _, table in tables for name in table["series"].unique()}
    which = " or ".join(sorted(series))
    drawn = [(panel, lines) for panel, lines in found if panel.drawn]
    largest = [float(line.values.max()) for _, lines in drawn for line in lines.values() if line.values.size]
    divisor, unit = fitting(largest, "bit/s")
    with style.sheet(len(drawn), 1.9) as (figure, axes):
        for axis, (panel, lines) in zip(axes, drawn, strict=True):
            for name, line in lines.items():
                colour, dash, width = LOOKS[name]
                values = line.values / divisor
                axis.plot(_seconds(line.times), values, color=colour, linestyle=dash, linewidth=width, label=name)
            style.title(axis, panel.label, min(len(drawn), 2))
            _mark_events(axis, panel.run)
            shade(axis, panel.disturbed)
        axes[0].set_ylim(0)
        axes[0].set_xlim(0)
        style.outer_labels(axes, "time (s)", f"payload {which} ({unit})")
        style.legend(figure, axes)
        text = style.svg(figure)
    rows = [row for panel, lines in found for row in _rows(panel, lines, f"{which} (bit/s)")]
    if series == {arrivals.ARRIVED}:
        in_order = [(panel, table.with_columns(bytes="delivered_bytes")) for panel, table in tables]
        lines_of = [(panel, _goodput_lines(panel.run, table)) for panel, table in in_order]
        delivered = [row for panel, lines in lines_of for row in _rows(panel, lines, f"{arrivals.DELIVERED} (bit/s)")]
        rows = [{**row, **other} for row, other in zip(rows, delivered, strict=True)]
    caption = "all flows of a role together."
    if any("first flow" in lines for _, lines in found):
        caption = "all flows together, and the first and the last that started."
    caption = f"Payload per time at the receivers, {MEANING[which]}: {caption}"
    return Drawing(
        "goodput-over-time",
        "Goodput over time",
        f"{caption} {_which([each[0] for each in found])}",
        text,
        style.csv(rows),
    )


MEANING = {
    arrivals.ARRIVED: "as it arrived, copies counted",
    arrivals.DELIVERED: "as it was delivered in order: once a loss is made good, more at a time than the link carries",
    f"{arrivals.ARRIVED} or {arrivals.DELIVERED}": "as it arrived, or in order where a flow does not tell that",
}
LOOKS: dict[str, tuple[str, Any, float]] = {
    "aggregate": (style.COLOURS[0], style.DASHES[0], 1.2),
    "first flow": (style.COLOURS[1], style.DASHES[0], 1.0),
    "last flow": (style.COLOURS[2], style.DASHES[1], 1.0),
    "reverse": (style.COLOURS[3], style.DASHES[3], 0.9),
    "background": (style.COLOURS[4], style.DASHES[2], 0.9),
}


def _goodput_lines(run: RunResults, table: pl.DataFrame) -> dict[str, windows.Line]:
    flows = run.table("flows")
    if table.is_empty():
        return {}
    length, grid = windows.goodput_grid(table)
    count = -(-int(table.select(pl.col("time_ns").max()).item()) // length)
    lines = {}
    roles = {"load": "aggregate", "reverse": "reverse", "background": "background"}
    for role, name in roles.items():
        own = flows.filter(pl.col("role") == role)
        received = grid.join(own.select("flow", "part").unique(), on=["flow", "part"], how="semi")
        if not received.is_empty():
            busy = active(own)
            line = windows.rate(received, length, count)
            lines[name] = windows.whole(line, length, busy[0][0] // length * length, busy[-1][1]) if busy else line
    chosen = windows.ends(loaded(flows))
    if len(chosen) > 1:
        for name, ((flow, part), start, end) in zip(("first flow", "last flow"), chosen, strict=True):
            own = grid.filter((pl.col("flow") == flow) & (pl.col("part") == part))
            lines[name] = windows.whole(windows.rate(own, length, count), length, start, end)
    return lines


def fairness(panels: Sequence[PointPanel]) -> Drawing | None:
    """Jain's index among the load's flows, window by window; a line a point."""
    tables = [(panel, arrivals.shown(panel.run.table("goodput"))) for panel in panels]
    lines = [(panel, windows.fairness(_lasting(panel.run), table)) for panel, table in tables]
    lines = [(panel, line) for panel, line in lines if line.times.size > 2]
    if not lines:
        return None
    drawn = [(panel, line) for panel, line in lines if panel.drawn]
    with style.sheet(1, 2.3) as (figure, axes):
        for number, (panel, line) in enumerate(drawn):
            colour, dash = style.COLOURS[number % 6], style.DASHES[number % 6]
            axes[0].plot(_seconds(line.times), line.values, color=colour, linestyle=dash, label=panel.label or "load")
        axes[0].set_ylim(None, 1.0)
        axes[0].set_xlim(0)
        axes[0].set_xlabel("time (s)")
        axes[0].set_ylabel("Jain's index")
        if len(drawn) == 1:
            shade(axes[0], drawn[0][0].disturbed)
        if len(drawn) > 1 or drawn[0][0].disturbed:
            style.legend(figure, axes)
        text = style.svg(figure)
    rows = [row for panel, line in lines for row in _rows(panel, {"fairness": line}, "Jain's index")]
    caption = "Jain's index of the load flows that were active throughout each window."
    return Drawing(
        "fairness-over-time",
        "Fairness over time",
        f"{caption} {_which([each[0] for each in lines])}",
        text,
        style.csv(rows),
    )


def _lasting(run: RunResults) -> pl.DataFrame:
    """Load flows that send all the time: of others it is not the network that decides who gets how much."""
    return loaded(run.table("flows")).filter(pl.col("kind").is_in(arrivals.STEADY_KINDS))


def windows_of_senders(panels: Sequence[PointPanel]) -> Drawing | None:
    """Congestion windows of the first and the last flow, and the first one's slow-start threshold."""
    found = [(panel, _cwnd_lines(panel.run)) for panel in panels]
    found = [(panel, lines) for panel, lines in found if lines]
    if not found:
        return None
    drawn = [(panel, lines) for panel, lines in found if panel.drawn]
    with style.sheet(len(drawn), 1.9) as (figure, axes):
        for axis, (panel, lines) in zip(axes, drawn, strict=True):
            for name, line in lines.items():
                colour, dash, width = CWND_LOOKS[name]
                axis.plot(_seconds(line.times), line.values, color=colour, linestyle=dash, linewidth=width, label=name)
            style.title(axis, panel.label, min(len(drawn), 2))
            _mark_events(axis, panel.run)
            shade(axis, panel.disturbed)
        # Before the first loss the threshold is beyond everything: the windows alone make the scale.
        tall = [float(np.nanmax(line.values)) for _, lines in drawn for name, line in lines.items() if "cwnd" in name]
        axes[0].set_ylim(0, 1.08 * max(tall))
        axes[0].set_xlim(0)
        style.outer_labels(axes, "time (s)", "cwnd (segments)")
        style.legend(figure, axes)
        text = style.svg(figure)
    rows = [row for panel, lines in found for row in _rows(panel, lines, "segments")]
    caption = "Congestion window and slow-start threshold of the load flow."
    if any("cwnd, last flow" in lines for _, lines in found):
        caption = "Of the first and the last load flow that started; and the first one's slow-start threshold."
    return Drawing(
        "cwnd", "Congestion window", f"{caption} {_which([each[0] for each in found])}", text, style.csv(rows)
    )


CWND_LOOKS: dict[str, tuple[str, Any, float]] = {
    "cwnd, first flow": (style.COLOURS[1], style.DASHES[0], 1.1),
    "cwnd, last flow": (style.COLOURS[2], style.DASHES[1], 1.1),
    "ssthresh, first flow": (style.COLOURS[1], style.DASHES[2], 0.8),
    "cwnd": (style.COLOURS[0], style.DASHES[0], 1.1),
    "ssthresh": (style.COLOURS[1], style.DASHES[2], 0.9),
}


def _cwnd_lines(run: RunResults) -> dict[str, windows.Line]:
    series = run.table("series")
    if series.is_empty():
        return {}
    lines = {}
    chosen = windows.ends(loaded(run.table("flows")))
    names = (", first flow", ", last flow") if len(chosen) > 1 else ("",)
    for name, ((flow, part), _, _) in zip(names, chosen, strict=False):
        own = series.filter((pl.col("flow") == flow) & (pl.col("part") == part))
        if own["cwnd_segments"].drop_nulls().len() > 1:
            lines[f"cwnd{name}"] = windows.samples(own, "cwnd_segments")
            if "last" not in name and own["ssthresh_segments"].drop_nulls().len() > 1:
                limit = pl.col("cwnd_segments").max() * 4
                shown = own.with_columns(
                    pl.when(pl.col("ssthresh_segments") <= limit).then(pl.col("ssthresh_segments"))
                )
                lines[f"ssthresh{name}"] = windows.samples(shown, "ssthresh_segments")
    return lines


def queue(panels: Sequence[PointPanel]) -> Drawing | None:
    """How long a packet that arrives would wait at the bottleneck, and when packets were dropped there."""
    found = []
    for panel in panels:
        if panel.bottleneck is None:
            continue
        link, direction = panel.bottleneck
        watched = panel.run.table("links").filter((pl.col("link") == link) & (pl.col("direction") == direction))
        if watched.height > 2:
            found.append((panel, windows.queueing(watched)))
    drawn = [(panel, lines) for panel, lines in found if panel.drawn]
    if not drawn:
        return None
    divisor, unit = fitting([float(most.max()) for _, (_, most, _) in drawn], "ns")
    with style.sheet(len(drawn), 1.9) as (figure, axes):
        for axis, (panel, (mean, most, drops)) in zip(axes, drawn, strict=True):
            times, blue, red = _seconds(mean.times), style.COLOURS[0], style.COLOURS[1]
            axis.fill_between(times, 0, most / divisor, color=style.COLOURS[5], alpha=0.4, linewidth=0, label="largest")
            axis.plot(times, mean.values / divisor, color=blue, label="mean")
            lost = times[drops > 0]
            if lost.size:
                axis.plot(
                    lost, np.zeros(len(lost)), linestyle="none", marker="|", markersize=7, color=red, clip_on=False,
                    label="packets dropped",
                )[0].set_in_layout(False)  # fmt: skip
            arrow = "→" if panel.bottleneck and panel.bottleneck[1] == "forward" else "←"
            link = panel.bottleneck[0] if panel.bottleneck else ""
            style.title(axis, f"{panel.label}   {link} {arrow}".strip(), min(len(drawn), 2))
            _mark_events(axis, panel.run)
            shade(axis, panel.disturbed)
        axes[0].set_ylim(0)
        axes[0].set_xlim(0)
        style.outer_labels(axes, "time (s)", f"queueing delay ({unit})")
        style.legend(figure, axes)
        text = style.svg(figure)
    rows = [
        {
            "run": panel.run.number, "point": panel.label, "link": (panel.bottleneck or ("", ""))[0],
            "direction": (panel.bottleneck or ("", ""))[1], "time (s)": float(time), "mean (ns)": float(value),
            "largest (ns)": float(high), "dropped (packets)": int(gone),
        }
        for panel, (mean, most, drops) in found
        for time, value, high, gone in zip(_seconds(mean.times), mean.values, most, drops, strict=True)
    ]  # fmt: skip
    caption = "Queue at the load's bottleneck as the time that its rate takes for it."
    return Drawing(
        "queue-over-time",
        "Queue at the bottleneck",
        f"{caption} {_which([each[0] for each in found])}",
        text,
        style.csv(rows),
    )
