"""From the records of a run to its tables: traffic results, the external generators' outputs and link counters →
Parquet.

In: a run's directory (traffic/traffic.json and CSVs, commands/, links.csv, events.json and others) and its schedule,
which assigns each record to a flow of the scenario. Out: DIR/{flows,series,goodput,exchanges,links,classes}.parquet,
of flows over several paths subflows.parquet, of media {media,frames}.parquet, of a live run
{releases,spinners,machine}.parquet, where a link is a device outside device.parquet, where nodes dropped something
drops.parquet, and the tables of readers of the commands' outputs, with the columns of labs/record/tables.py; DIR/own/
with tables of the commands' own files. The records of a run that was cut short are kept: flows without a record have an
error in their row, and a last line that was not written whole is left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, cast

import polars as pl
from polars.exceptions import PolarsError

from ewan.generator import commands as commands_of
from ewan.generator import counted_flows, external, readers
from ewan.generator.counted_flows import KnownPort
from ewan.generator.link_rates import with_mean_rates
from ewan.generator.rows import Row, frame_of, number, text
from ewan.labs.base import documents
from ewan.labs.base.codec import Meta, Struct
from ewan.labs.base.documents import DocumentError
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.link import Change, Direction
from ewan.labs.plan import Link
from ewan.labs.record import disturbances, events, own_tables, tables
from ewan.labs.record.disturbances import Disturbance
from ewan.labs.record.events import EventOutcome
from ewan.labs.record.schedule import Flow, Schedule

# CSV below the run's directory → its table, and what its rows are ordered by: the same rows give the same bytes.
SOURCES = {
    "traffic/series.csv": ("series", ("flow", "part", "time_ns")),
    "traffic/goodput.csv": ("goodput", ("flow", "part", "time_ns")),
    "traffic/subflows.csv": ("subflows", ("flow", "part", "subflow", "time_ns")),
    "traffic/exchanges.csv": ("exchanges", ("flow", "part", "number")),
    "traffic/media.csv": ("media", ("flow", "part", "time_ns")),
    "traffic/frames.csv": ("frames", ("flow", "part", "number")),
    "links.csv": ("links", ("link", "direction", "time_ns")),
    "link_flows.csv": ("link_flows", ("link", "direction", "entry", "time_ns")),
    "link_waits.csv": ("link_waits", ("link", "direction", "entry", "time_ns", "most_ns")),
    "command_sockets.csv": (
        "command_sockets",
        ("node", "first_ns", "protocol", "address", "port", "peer", "peer_port"),
    ),
    "device.csv": ("device", ("link", "direction", "time_ns")),
    "drops.csv": ("drops", ("node", "counter")),
    "classes.csv": ("classes", ("link", "direction", "class", "time_ns")),
    "releases.csv": ("releases", ("link", "direction", "time_ns")),
    "spinners.csv": ("spinners", ("spinner", "time_ns")),
    "machine.csv": ("machine", ("time_ns",)),
}
ORDER = {"flows": ("flow", "part")} | dict(SOURCES.values()) | dict.fromkeys(readers.TABLES, ("command",))
ORDER["packets"] = ("time_ns", "node", "interface")
# Flows of one connection, which they have from their start.
CONNECTED = ("bulk", "requests")
OF_TRAFFIC = ("series", "goodput", "exchanges")
"""Tables of our own generator, which numbers its flows."""
_BACKWARD = 1


_MOST_NS = 10**17
_Instant = Annotated[int, Meta(ge=0, le=_MOST_NS)]


class _LostMachine(Struct, forbid_unknown_fields=False):
    """lost.json: from when after T0, and until when, a machine of the lab was missing."""

    at_ns: _Instant
    until_ns: _Instant


class _FlowRecord(Struct, forbid_unknown_fields=False):
    """The keys of each flow that are used by their names."""

    flow: int
    part: int
    error: str | None


class _Traffic(Struct, forbid_unknown_fields=False):
    flows: tuple[_FlowRecord, ...]


def collect(directory: Path, schedule: Schedule, links: Sequence[Link] = ()) -> str | None:
    """Writes the tables; gives the first error of a flow, None: there is none. `links`: those of the run's plan.

    A table whose source is not there is left as it is: cleaning takes the sources away. ValueError for records that
    are not whole, or not what their writers write.
    """
    try:
        return _collect(directory, schedule, links)
    except (LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"{directory}: a record is damaged ({type(error).__name__} {error})") from None


def _collect(directory: Path, schedule: Schedule, links: Sequence[Link]) -> str | None:
    result: dict[str, pl.DataFrame] = {}
    numbers = {flow.request: flow.number for flow in schedule.flows if flow.request is not None}
    for name, (table, _) in SOURCES.items():
        path = directory / name
        if path.exists():
            frame = csv(path, table)
            result[table] = renumbered(frame, numbers) if table in OF_TRAFFIC else frame
    made = events.read(directory) or ()
    if "links" in result:
        result["links"] = with_mean_rates(result["links"], links, made)
    records = traffic_records(directory / "traffic/traffic.json")
    result["flows"] = frame_of(flow_rows(schedule.flows, records), "flows")
    if external.programs(schedule):
        copied, overtaken = _treatment(links, made)
        _append(result, external.rows(schedule, directory, copied, overtaken))
    if "link_flows" in result:
        known = list(_ports(schedule.flows, records))
        ports = external.source_ports(schedule, directory)
        known += [KnownPort(flow.number, flow.addresses[0], flow.addresses[1], port) for flow, port in ports]
        sockets = result.get("command_sockets", frame_of((), "command_sockets"))
        result["link_flows"] = counted_flows.numbered(schedule, result["link_flows"], known, sockets)
        commands = commands_of.read(directory)
        entries = () if commands is None else commands.commands
        _append(result, counted_flows.rows(schedule, entries, result["link_flows"], result["links"], sockets))
    measured = readers.results(schedule, directory)
    for table, frame in (result | measured.tables).items():
        tables.write(directory, table, frame.sort(ORDER[table], maintain_order=True))
    for name, own in measured.own.items():
        own_tables.write(directory, name, own)
    wrong = result["flows"].filter(pl.col("error").is_not_null()).select("name", "error").sort("name")
    return f"{wrong.item(0, 'name')}: {wrong.item(0, 'error')}" if wrong.height else None


def _append(tables_of_run: dict[str, pl.DataFrame], more: Mapping[str, pl.DataFrame]) -> None:
    """Appends rows to the tables of a run, some of which it may not have yet."""
    for table, frame in more.items():
        known = tables_of_run.get(table)
        tables_of_run[table] = frame if known is None else pl.concat([known, frame], how="diagonal")


def disturbed(directory: Path) -> tuple[list[Disturbance], int] | None:
    """The disturbances of a run, and the time after T0 until which it was watched; None where it was not watched. They
    are read from the run's tables, or from the sources of those. ValueError for records that are not whole."""
    frames = [_latest(directory, table) for table in disturbances.TABLES]
    until_ns = disturbances.watched_ns(frames[-1])
    return None if until_ns is None else (disturbances.judge(*frames), until_ns)


def lost_seconds(directory: Path) -> list[int]:
    """The seconds after T0 for which a machine of the lab was missing, that was lost; none where none was."""
    try:
        told = documents.read(_LostMachine, directory / "lost.json")
    except FileNotFoundError:
        return []
    first = told.at_ns // NS_PER_SECOND
    return list(range(first, max(-(-told.until_ns // NS_PER_SECOND), first + 1)))


def _latest(directory: Path, table: str) -> pl.DataFrame:
    source = directory / f"{table}.csv"
    return csv(source, table) if source.exists() else tables.read(directory, table)


def _treatment(links: Iterable[Link], made: Iterable[EventOutcome]) -> tuple[bool, bool]:
    """Return whether any link may copy packets, and whether any may let one overtake another."""
    ways = [way for link in links for way in (link.forward, link.backward)]
    states: list[Direction | Change] = [*ways, *(event.change for event in made)]
    return any(each.duplicate_ppb for each in states), any(each.reorder or each.displace_ppb for each in states)


def traffic_records(path: Path) -> list[Row]:
    """The generator's record of each flow; empty where the generator wrote none, or did not finish it."""
    try:
        return cast(list[Row], documents.read_open(_Traffic, path)["flows"])
    except (FileNotFoundError, NotADirectoryError, DocumentError):
        return []


def flow_rows(flows: Iterable[Flow], records: Iterable[Row]) -> list[Row]:
    """Rows of FLOWS for the flows of our own generator, in the order of the schedule."""
    by_flow: dict[int, list[Row]] = {}
    for record in records:
        by_flow.setdefault(number(record, "flow"), []).append(record)
    rows = []
    for flow in flows:
        if (index := flow.request) is None:
            continue
        for record in by_flow.get(index, [{"part": 0, "error": _unstarted(flow)}]):
            rows.append(flow_row(flow, record))
    return rows


def _ports(flows: Iterable[Flow], records: Iterable[Row]) -> Iterator[KnownPort]:
    """The ports of flows, where our own generator tells them and the flow knows its addresses."""
    by_request = {flow.request: flow for flow in flows if flow.request is not None and flow.addresses}
    for record in records:
        flow = by_request.get(number(record, "flow"))
        backward = flow is not None and flow.bidirectional and number(record, "part") == _BACKWARD
        if flow is not None and not backward and isinstance(port := record.get("port"), int):
            source, sink = flow.addresses
            yield KnownPort(flow.number, source, sink, port)


def _unstarted(flow: Flow) -> str:
    if flow.when:
        return f"did not start: {flow.when} did not come"
    if flow.after:
        return f"did not start: it waited for {', '.join(flow.after)}"
    return "it left no record"


def flow_row(flow: Flow, record: Row) -> Row:
    """The row of one direction, or of one rank, of a flow."""
    part = number(record, "part")
    source: str = flow.source
    sink: str | None = flow.sink
    if flow.members:
        source, sink = flow.members[part], None
    elif flow.bidirectional and part == _BACKWARD:
        source, sink = flow.sink, flow.source
    own = {key: getattr(flow, key) for key in ("name", "step", "role", "transfer", "generator")}
    own |= {"flow": flow.number, "source": source, "sink": sink}
    fallback = {key: getattr(flow, key) for key in ("kind", "congestion", "scheduled_ns", "volume_bytes")}
    record = {key: value for key, value in record.items() if key != "port"}
    return {**fallback, **record, **own, "error": error_of(record)}


def error_of(record: Row) -> str | None:
    """The reason why a flow did not do its work. A flow whose time was over before it was connected records none
    itself."""
    if record["error"] is None and record.get("kind") in CONNECTED and record.get("connected_ns") is None:
        return "was not connected in its time"
    return None if record["error"] is None else text(record, "error")


def csv(path: Path, table: str) -> pl.DataFrame:
    """A CSV with exactly the table's columns, and perhaps those that it may have besides; empty fields are nulls.
    ValueError for another header."""
    schema = tables.TABLES[table]
    with path.open("rb") as file:
        header = file.readline()
        if not header.endswith(b"\n"):
            return pl.DataFrame(schema=schema)
        names = header.decode().strip().split(",")
        more = [name for name in names[len(schema) :] if tables.is_more(table, name)]
        if names != [*schema, *more]:
            raise ValueError(f"{path}: columns are {', '.join(names)}, expected {', '.join(schema)}")
        file.seek(-1, 2)
        whole = file.read(1) == b"\n"
    text = path.read_bytes() if not whole else b""
    try:
        schema = schema | dict.fromkeys(more, pl.String())
        return tables.whole(table, pl.read_csv(path if whole else text[: text.rindex(b"\n") + 1], schema=schema))
    except PolarsError as error:
        raise ValueError(f"{path}: {str(error).splitlines()[0]}") from None


def renumbered(frame: pl.DataFrame, numbers: Mapping[int, int]) -> pl.DataFrame:
    """The flows' numbers in the request replaced by those in the run."""
    if all(index == number for index, number in numbers.items()):
        return frame
    return frame.with_columns(pl.col("flow").replace_strict(dict(numbers), return_dtype=pl.Int64()))
