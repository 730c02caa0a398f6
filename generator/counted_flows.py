"""The flows of commands in a run's tables, by what links counted of them. Pure.

In: a run's schedule, its commands, and the table link_flows as it was written. Out: rows of the tables flows and
goodput, and the table link_flows with the number of the flow of each row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import polars as pl

from ewan.generator.commands import RunCommand
from ewan.generator.rows import Row, frame_of
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_SECOND
from ewan.labs.record.schedule import CountedTool, Flow, Schedule

_SAID = ("name", "step", "role", "transfer", "kind", "generator", "source", "sink", "congestion", "scheduled_ns")


class KnownPort(NamedTuple):
    """The number of a flow of our own generator, its addresses and its source's port."""

    flow: int
    source: str
    sink: str
    port: int


def numbered(schedule: Schedule, counted: pl.DataFrame, known: Sequence[KnownPort]) -> pl.DataFrame:
    """The table link_flows with the numbers of the flows in the run, at each link that they cross."""
    ends = {"source": pl.String(), "destination": pl.String(), "source_port": pl.Int64(), "known": pl.Int64()}
    ports = pl.DataFrame([(each.source, each.sink, each.port, each.flow) for each in known], ends, orient="row")
    ports = ports.unique(["source", "destination", "source_port"], keep="none", maintain_order=True)
    joined = counted.join(ports, on=["source", "destination", "source_port"], how="left", maintain_order="left")
    number = pl.col("known")
    for flow in schedule.flows:
        if isinstance(flow.tool, CountedTool):
            number = pl.when(_is_of(flow.tool)).then(pl.lit(flow.number)).otherwise(number)
        elif flow.port is not None:
            source, sink = flow.addresses
            own = (pl.col("source") == source) & (pl.col("destination") == sink)
            number = pl.when(own & (pl.col("destination_port") == flow.port)).then(flow.number).otherwise(number)
    return joined.with_columns(flow=number.cast(pl.Int64())).drop("known")


def rows(
    schedule: Schedule, entries: Sequence[RunCommand], counted: pl.DataFrame, looks: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """The rows of all flows of commands. `counted`: as `numbered` gives it; `looks`: the table links, whose times end
    the bins of goodput. A flow of which no packet came has an `error`."""
    flows: list[Row] = []
    bins: list[Row] = []
    for flow in _flows(schedule):
        tool = flow.tool
        assert isinstance(tool, CountedTool)
        at = (pl.col("link") == tool.link) & (pl.col("direction") == tool.direction)
        own = counted.filter(at & (pl.col("flow") == flow.number))
        times = looks.filter(at)["time_ns"].unique().sort().to_list()
        entry = entries[flow.command] if flow.command is not None and flow.command < len(entries) else None
        row, received = _row(flow, tool, entry, own)
        flows.append(row)
        if received:
            bins += _bins(flow.number, own, times)
    return {"flows": frame_of(flows, "flows"), "goodput": frame_of(bins, "goodput")}


def _flows(schedule: Schedule) -> Iterator[Flow]:
    return (flow for flow in schedule.flows if isinstance(flow.tool, CountedTool))


def _is_of(tool: CountedTool) -> pl.Expr:
    """True for the rows of packets from its source to its sink."""
    found = pl.col("source").is_in(tool.sources) & pl.col("destination").is_in(tool.sinks)
    if tool.ports:
        found &= pl.col("source_port").is_in(tool.ports) | pl.col("destination_port").is_in(tool.ports)
    return found


def _row(flow: Flow, tool: CountedTool, entry: RunCommand | None, own: pl.DataFrame) -> tuple[Row, int]:
    row: Row = {key: getattr(flow, key) for key in _SAID}
    row |= {"flow": flow.number, "part": 0}
    if entry is not None and flow.scheduled_ns is None:
        row["scheduled_ns"] = entry.at_ns
    if entry is None or entry.error is not None or entry.started_ns is None:
        return {**row, "error": (entry and entry.error) or "its command was not started"}, 0
    last = own.group_by("entry").last()
    received = int(last["payload_bytes"].sum())
    if own.is_empty():
        ports = f" with port {' or '.join(map(str, tool.ports))}" if tool.ports else ""
        message = f"no packet{ports} from {flow.source} to {flow.sink} came to the link {tool.link}"
        return {**row, "error": message}, 0
    started = min(own["first_ns"].to_list())
    ended = max(own["last_sent_ns"].drop_nulls().to_list(), default=None)
    row |= {"started_ns": started, "ended_ns": ended, "received_bytes": received}
    if ended is not None and ended > started:
        row["goodput_bps"] = received * BITS_PER_BYTE * NS_PER_SECOND / (ended - started)
    return row, received


def _bins(number: int, own: pl.DataFrame, times: Sequence[int]) -> Iterator[Row]:
    """Bins of the payload that left the link from one look to the next."""
    steps = own.sort("entry", "time_ns").with_columns(
        size=pl.col("payload_bytes") - pl.col("payload_bytes").shift(1, fill_value=0).over("entry")
    )
    sizes: dict[int, int] = dict(steps.group_by("time_ns").agg(pl.col("size").sum()).iter_rows())
    last = max(sizes)
    for before, time_ns in pairwise(sorted({0, *times, *sizes})):
        if time_ns > last:
            return
        size = sizes.get(time_ns, 0)
        yield {
            "flow": number,
            "part": 0,
            "time_ns": time_ns,
            "bin_ns": time_ns - before,
            "delivered_bytes": size,
            "arrived_bytes": size,
        }
