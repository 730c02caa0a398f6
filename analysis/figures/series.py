"""Series over time of one run, in windows, by whom they are of. Pure.

In: a run's tables, and which series of whom is wanted. Out: lines by label. Windows are counted from T0, so that those
of several seeds meet. Each series is an entry of labs/record/series.py; one that names a column needs nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from ewan.analysis import arrivals, devices, media, wire
from ewan.analysis.figures import windows
from ewan.analysis.figures.request import FigureError
from ewan.analysis.figures.windows import WindowValues
from ewan.analysis.flows import active
from ewan.analysis.network import BYTE_NS, ends_of_payload
from ewan.analysis.rundata import RunData
from ewan.labs.base.units.shown import ARROWS
from ewan.labs.record.quantities import Selection
from ewan.labs.record.series import Series

FLOW = ["flow", "part"]
ALL, ENDS = "all", "ends"
EACH_LINK = "each link"


@dataclass(frozen=True)
class SeriesChoice:
    """`length_ns`: of a window. `selection`: whose; None: the load's. `flows`: "all", "ends", a flow's name; None: all
    together.

    `link`: a link's name, perhaps with its direction, or "each link"; empty: the bottleneck. `fine`: samples of a
    single flow's series, `most` at most, not means of windows. `from_ns`, `to_ns`: times outside are left out.
    """

    entry: Series
    length_ns: int
    selection: Selection | None = None
    flows: str | None = None
    link: str = ""
    fine: bool = False
    from_ns: int = 0
    to_ns: int | None = None
    most: int = windows.MOST_SAMPLES


def of_run(run: RunData, wanted: SeriesChoice) -> dict[str, WindowValues]:
    """The lines that a run has, by label; that of all together has an empty one.

    Times in ns from T0, values in the entry's unit.
    """
    entry = wanted.entry
    if entry.name == "fairness":
        lines = {"": _fairness(run, wanted)}
    elif entry.table == "device":
        lines = dict(_of_devices(run, wanted))
    elif entry.whose == "link":
        lines = dict(_of_links(run, wanted))
    elif entry.whose == "command":
        lines = dict(_of_commands(run, wanted))
    elif entry.table == "packets":
        lines = dict(_of_packets(run, wanted))
    elif entry.column or entry.table == "frames":
        lines = dict(_of_samples(run, wanted))
    else:
        lines = dict(_of_bytes(run, wanted))
    return {label: cut for label, line in lines.items() if (cut := _between(line, wanted)).times.size}


def groups(run: RunData, wanted: SeriesChoice) -> Iterator[tuple[str, pl.DataFrame]]:
    """Rows of flows by label: each flow, the first and the last, the one of a name, those of each step, or all."""
    chosen = wanted.selection
    if chosen is not None and chosen.name is None:
        for member in run.members(chosen):
            yield str(member.name), run.of(member).load
        return
    flows = run.of(chosen).load
    if wanted.flows is None:
        if flows.height:
            yield "", flows
    elif wanted.flows == ENDS:
        for name, ((flow, part), _, _) in zip(("first flow", "last flow"), windows.ends(flows), strict=False):
            yield name, flows.filter((pl.col("flow") == flow) & (pl.col("part") == part))
    else:
        own = flows if wanted.flows == ALL else run.all_flows.filter(pl.col("name") == wanted.flows)
        for (name, _, part), rows in own.group_by("name", *FLOW, maintain_order=True):
            yield f"{name}, part {part}" if part else str(name), rows


def _between(line: WindowValues, wanted: SeriesChoice) -> WindowValues:
    inside = line.times >= wanted.from_ns
    if wanted.to_ns is not None:
        inside &= line.times <= wanted.to_ns
    return WindowValues(line.times[inside], line.values[inside], line.words)


def _of_bytes(run: RunData, wanted: SeriesChoice) -> Iterator[tuple[str, WindowValues]]:
    """Payload per window: as a rate, or as the share of all payload that came over the bottleneck."""
    table = arrivals.shown(run.table("goodput"))
    if table.is_empty():
        return
    if wanted.entry.name == "delivered goodput":
        table = table.with_columns(bytes="delivered_bytes")
    length, grid = windows.goodput_grid(table, length=wanted.length_ns)
    count = int(grid.select(pl.col("window").max()).item()) + 1
    whole = None
    if wanted.entry.name == "share":
        grid = grid.join(_beside(run), on=FLOW, how="semi")
        whole = windows.rate(grid, length, count)
    for label, rows in groups(run, wanted):
        own = grid.join(rows.select(FLOW).unique(), on=FLOW, how="semi")
        if own.is_empty():
            continue
        line = windows.rate(own, length, count)
        if whole is not None:
            shares = np.divide(line.values, whole.values, out=np.zeros(count), where=whole.values > 0)
            yield label, WindowValues(line.times[whole.values > 0], shares[whole.values > 0])
            continue
        busy = active(rows)
        yield label, windows.whole(line, length, busy[0][0] // length * length, busy[-1][1]) if busy else line


def _beside(run: RunData) -> pl.DataFrame:
    """The flows that cross the load's bottleneck in its direction; all flows where it or the ways are not known."""
    keys = [*FLOW, "kind", "role", "source", "sink"]
    flows, at = run.all_flows.select(keys).unique(maintain_order=True), run.bottleneck
    ways = {(path.role, path.source, path.sink): [(hop.link, hop.direction) for hop in path.hops] for path in run.paths}
    own = [
        (flow, part)
        for flow, part, kind, role, source, sink in flows.iter_rows()
        if at in ways.get((role, *ends_of_payload(kind, source, sink)), ())
    ]
    found = pl.DataFrame(own, schema=dict.fromkeys(FLOW, pl.Int64), orient="row")
    return found if own else flows.select(FLOW)


def _fairness(run: RunData, wanted: SeriesChoice) -> WindowValues:
    lasting = run.of(wanted.selection).load.filter(pl.col("kind").is_in(arrivals.STEADY_KINDS))
    return windows.fairness(lasting, arrivals.shown(run.table("goodput")), length=wanted.length_ns)


def _of_samples(run: RunData, wanted: SeriesChoice) -> Iterator[tuple[str, WindowValues]]:
    """A column of a table of flows: of one flow as it was sampled, of several put together in each window."""
    table, column = run.table(wanted.entry.table), wanted.entry.column
    if wanted.entry.table == "frames":
        table, column = _delays(table), "value"
    if column not in table.columns:
        return
    words = table.schema[column] == pl.String
    if wanted.entry.times != 1 and not words:
        table = table.with_columns(pl.col(column) * wanted.entry.times)
    for label, rows in groups(run, wanted):
        own = table.join(rows.select(FLOW).unique(), on=FLOW, how="semi").filter(pl.col(column).is_not_null())
        if own.is_empty():
            continue
        if wanted.fine and own.select(FLOW).n_unique() == 1:
            yield label, windows.samples(own, column, wanted.most)
            continue
        if words:
            raise FigureError(f'"{wanted.entry.name}": words have no mean: write one run, and "flows all"')
        each = own.group_by(*FLOW, _window(wanted).alias("window")).agg(pl.col(column).mean())
        total = pl.col(column).sum() if wanted.entry.together == "sum" else pl.col(column).mean()
        yield label, _line(each.group_by("window").agg(total.alias("value")), wanted)


def _delays(frames: pl.DataFrame) -> pl.DataFrame:
    """The delay of each frame, at its capture."""
    return frames.select(*FLOW, time_ns="captured_ns", value=media.delays_ns(frames))


def _of_packets(run: RunData, wanted: SeriesChoice) -> Iterator[tuple[str, WindowValues]]:
    """Delays of the packets between the nodes of flows, by when they were sent."""
    for label, rows in groups(run, wanted):
        found = wire.of(run.table("packets"), rows, run.addresses())
        if found is None or found.delays.is_empty():
            continue
        own = found.delays.select(time_ns="sent_ns", value="delay_ns")
        yield label, _line(own.group_by(_window(wanted).alias("window")).agg(pl.col("value").mean()), wanted)


def _of_commands(run: RunData, wanted: SeriesChoice) -> Iterator[tuple[str, WindowValues]]:
    """A column of a table of commands, of each step, node and target; a request without an answer is a gap."""
    column, chosen = wanted.entry.column, wanted.selection
    one = None if chosen is None or chosen.name is None else chosen
    table = run.of(one).of_commands(wanted.entry.table)
    shown = pl.col(column).is_not_null()
    if "answered" in table.columns:
        shown |= ~pl.col("answered")
    known = table.filter(shown & pl.col("time_ns").is_not_null())
    if wanted.entry.without:
        known = known.filter(~pl.col(wanted.entry.without))
    keys = [key for key in ("step", "node", "target") if key in table.columns]
    of_one = known.select(keys).n_unique() == 1
    for key, own in known.group_by(keys, maintain_order=True):
        line = windows.samples(own, column, wanted.most) if wanted.fine else _line(
            own.group_by(_window(wanted).alias("window")).agg(pl.col(column).mean().alias("value")), wanted
        )  # fmt: skip
        ends = f", {key[1]} to {key[2]}" if len(key) == 3 else ""
        yield "" if of_one else f"{key[0]}{ends}", line


def _of_links(run: RunData, wanted: SeriesChoice) -> Iterator[tuple[str, WindowValues]]:
    """The series of the bottleneck, of one link's directions, or of all directions: means in windows; for drops, their
    number."""
    table = run.table("links").sort("time_ns")
    if wanted.link:
        table = _chosen(table, wanted)
    else:
        at = run.bottleneck
        table = table.filter((pl.col("link") == at[0]) & (pl.col("direction") == at[1])) if at else table.clear()
    many = wanted.link != ""
    for (link, way), own in table.group_by("link", "direction", maintain_order=True):
        yield f"{link} {ARROWS[way]}" if many else "", _line(_of_link(own, wanted), wanted)


def _of_devices(run: RunData, wanted: SeriesChoice) -> Iterator[tuple[str, WindowValues]]:
    """The series that each device reports of a direction, and the series that our card behind it counts."""
    device = _chosen(run.table("device").sort("time_ns"), wanted)
    ours = devices.counted(run.table("links"), device)
    told = pl.col("out_bytes") * BYTE_NS / pl.col("interval_ns")
    for (link, way), own in device.group_by("link", "direction", maintain_order=True):
        yield f"{link} {ARROWS[way]} device", _line(_means(own, told, wanted), wanted)
        counted = ours.filter((pl.col("link") == link) & (pl.col("direction") == way))
        yield f"{link} {ARROWS[way]} ours", _line(_of_link(counted, wanted), wanted)


def _chosen(table: pl.DataFrame, wanted: SeriesChoice) -> pl.DataFrame:
    """The rows of the link, or of its direction, that is wanted; all, where each link is, or none is named."""
    name, _, direction = wanted.link.partition(" ")
    if wanted.link in ("", EACH_LINK):
        return table
    table = table.filter(pl.col("link") == name)
    return table.filter(pl.col("direction") == direction) if direction else table


def _means(rows: pl.DataFrame, value: pl.Expr, wanted: SeriesChoice) -> pl.DataFrame:
    return rows.group_by(_window(wanted).alias("window")).agg(value.mean().alias("value"))


def _of_link(rows: pl.DataFrame, wanted: SeriesChoice) -> pl.DataFrame:
    time = pl.col("time_ns").diff()
    grown = pl.col("sent_bytes").diff()
    values = {
        "queue": pl.col("queue_bytes") * BYTE_NS / pl.col("rate_bps"),
        "sent rate": grown * BYTE_NS / time,
        "device rate": grown * BYTE_NS / time,
        "utilisation": grown * BYTE_NS / time / pl.col("rate_bps"),
        "drops": pl.col("dropped_packets").diff().fill_null(pl.col("dropped_packets")),
    }
    value = pl.col(wanted.entry.column) if wanted.entry.column else values[wanted.entry.name]
    together = pl.col("value").sum() if wanted.entry.name == "drops" else pl.col("value").mean()
    own = rows.with_columns(value=value).filter(pl.col("value").is_finite())
    return own.group_by(_window(wanted).alias("window")).agg(together)


def _window(wanted: SeriesChoice) -> pl.Expr:
    """The number of a sample's window: one at its end belongs to it."""
    return (pl.col("time_ns") - 1).clip(0) // wanted.length_ns


def _line(grid: pl.DataFrame, wanted: SeriesChoice) -> WindowValues:
    ordered = grid.sort("window")
    times = (ordered["window"].to_numpy() + 0.5) * wanted.length_ns
    return WindowValues(times, ordered["value"].cast(pl.Float64).to_numpy())
