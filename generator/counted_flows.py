"""The flows of commands in a run's tables, by what links counted of them. Pure.

In: a run's schedule, its commands, and the tables link_flows and command_sockets as they were written. Out: rows of the
tables flows and goodput, and the table link_flows with the number of the flow of each row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import polars as pl

from ewan.generator import own_sockets
from ewan.generator.commands import RunCommand, flow_row
from ewan.generator.rows import Row, frame_of
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_SECOND
from ewan.labs.record.schedule import CountedTool, Flow, Schedule


class KnownPort(NamedTuple):
    """The number of a flow, its addresses and its source's port."""

    flow: int
    source: str
    sink: str
    port: int


def numbered(
    schedule: Schedule, counted: pl.DataFrame, known: Sequence[KnownPort], sockets: pl.DataFrame
) -> pl.DataFrame:
    """The table link_flows with the numbers of the flows in the run, at each link that they cross. `sockets`: the table
    command_sockets; what our own generator sends is never a command's."""
    columns = {"source": pl.String(), "destination": pl.String(), "source_port": pl.Int64(), "known": pl.Int64()}
    ports = pl.DataFrame([(each.source, each.sink, each.port, each.flow) for each in known], columns, orient="row")
    ports = ports.unique(["source", "destination", "source_port"], keep="none", maintain_order=True)
    joined = counted.join(ports, on=["source", "destination", "source_port"], how="left", maintain_order="left")
    number = pl.col("known")
    for flow in schedule.flows:
        if isinstance(flow.tool, CountedTool) and flow.tool.sockets is not None:
            own = own_sockets.matching(joined, own_sockets.of_command(sockets, flow.command), flow.tool)
            others = pl.col("known").is_null() & _is_of(flow.tool)
            number = pl.when(others & pl.lit(own)).then(pl.lit(flow.number)).otherwise(number)
        elif isinstance(flow.tool, CountedTool):
            number = pl.when(_is_of(flow.tool)).then(pl.lit(flow.number)).otherwise(number)
        elif flow.port is not None:
            source, sink = flow.addresses
            ends = (pl.col("source") == source) & (pl.col("destination") == sink)
            number = pl.when(ends & (pl.col("destination_port") == flow.port)).then(flow.number).otherwise(number)
    return joined.with_columns(flow=number.cast(pl.Int64())).drop("known")


def rows(
    schedule: Schedule,
    entries: Sequence[RunCommand],
    counted: pl.DataFrame,
    looks: pl.DataFrame,
    sockets: pl.DataFrame,
) -> dict[str, pl.DataFrame]:
    """The rows of all flows of commands. `counted`: as `numbered` gives it; `looks`: the table links, whose times end
    the bins of goodput. A flow of which no packet came, or of which packets may be missing, has an `error`."""
    flows: list[Row] = []
    bins: list[Row] = []
    for flow in _flows(schedule):
        tool = flow.tool
        assert isinstance(tool, CountedTool)
        at = (pl.col("link") == tool.link) & (pl.col("direction") == tool.direction)
        own = counted.filter(at & (pl.col("flow") == flow.number))
        times = looks.filter(at)["time_ns"].unique().sort().to_list()
        row, received = _row(flow, tool, entries, own)
        if received and tool.sockets is not None:
            row["error"] = _missing(schedule, flow, tool, counted.filter(at), sockets)
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


def _row(flow: Flow, tool: CountedTool, entries: Sequence[RunCommand], own: pl.DataFrame) -> tuple[Row, int]:
    row, entry = flow_row(flow, entries, "its command")
    if entry is None:
        return row, 0
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


def _missing(
    schedule: Schedule, flow: Flow, tool: CountedTool, counted: pl.DataFrame, sockets: pl.DataFrame
) -> str | None:
    """Why packets of a command's own sockets may not be in its row; None: all of them are. `counted`: at its link."""
    own = own_sockets.of_command(sockets, flow.command)
    by_port = {
        port: each.step for each in schedule.flows if isinstance(each.tool, CountedTool) for port in each.tool.ports
    }
    if (port := own_sockets.stated(own, by_port)) is not None:
        return f"its sockets have the port {port}, whose packets are all of {by_port[port]}: write the port here too"
    node = next(each.node for each in schedule.commands if each.index == flow.command)
    others = pl.col("flow").is_null() & (pl.col("payload_bytes") > 0) & _is_of(tool)
    found = own_sockets.matching(counted, own_sockets.unknown(sockets, node), tool)
    if more := counted.filter(others & pl.lit(found))["entry"].n_unique():
        flows = f"{more} flow{'s' if more > 1 else ''} of {node} may be its own"
        return f"{flows}: two commands ran there, and the sockets were too short to be seen: write the port"
    without = counted.filter(pl.col("protocol") == "others")["payload_bytes"].max()
    if without:
        return f"the link {tool.link} had more flows than places, so that some of its packets may be among the others"
    return None


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
