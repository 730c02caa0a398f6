"""Requests for `ewan-node traffic`, for the programs of both clocks, and its results. Pure but for `read`.

In: a plan and transfers with their ends, congestion controls, times and amounts. Out: the request
(emulator/traffic/src/flows executes it); from the directory that it wrote into, each flow's record with its series."""

from __future__ import annotations

import csv
import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ewan.labs.base import codec, documents
from ewan.labs.base.codec import Document, Struct, replace
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.plan import Plan
from ewan.labs.record import tables
from ewan.labs.record.events import Event
from ewan.labs.record.schedule import Clock
from ewan.labs.record.traffic import BulkWork, Endpoint, FlowRequest, SocketOptions, StateCondition, TrafficRequest
from ewan.labs.runtime.program import Command

LONGEST_NS = 600 * NS_PER_SECOND


class FlowSample(Struct):
    """A look at a sender: a row of series.csv."""

    time_ns: int
    acked_bytes: int
    delivered_segments: int
    cwnd_segments: int
    ssthresh_segments: int
    in_flight_segments: int
    srtt_ns: int
    rttvar_ns: int
    retransmitted_segments: int
    lost_segments: int
    delivery_rate_bps: int
    pacing_rate_bps: int | None


class FlowRecord(Struct, kw_only=True):
    """The record of a flow, or of a part of it: emulator/traffic/src/flows/records.rs. `port`: the source's;
    None: it is not known. Its `name` and its `series` stand in other files."""

    name: str = ""
    flow: int
    part: int
    kind: str
    congestion: str | None
    scheduled_ns: int
    started_ns: int | None
    connected_ns: int | None
    ended_ns: int | None
    completion_ns: int | None
    volume_bytes: int | None
    received_bytes: int
    goodput_bps: float | None
    segment_bytes: int | None
    min_rtt_ns: int | None
    retransmitted_segments: int | None
    copied_segments: int | None
    timeouts: int | None
    port: int | None = None
    error: str | None
    sent_packets: int | None = None
    received_packets: int | None = None
    lost_packets: int | None = None
    reordered_packets: int | None = None
    duplicate_packets: int | None = None
    delay_min_ns: int | None = None
    delay_p50_ns: int | None = None
    delay_p95_ns: int | None = None
    delay_p99_ns: int | None = None
    delay_max_ns: int | None = None
    jitter_ns: float | None = None
    series: tuple[FlowSample, ...] | None = None


class TrafficResult(Document, tag="ewan-traffic-result/1"):
    """traffic/traffic.json."""

    interrupted: bool
    flows: tuple[FlowRecord, ...]


@dataclass(frozen=True, slots=True)
class BulkTransfer:
    """One bulk transfer: `bytes` in all or `duration_ns` long, whichever ends first; one of the two is given."""

    source: str
    sink: str
    congestion: str = "cubic"
    start_ns: int = 0
    bytes: int | None = None
    duration_ns: int | None = None


def transfers(
    plan: Plan,
    wanted: Sequence[BulkTransfer],
    clock: Clock,
    *,
    sample_ns: int = 0,
    series_ns: int = 0,
    longest_ns: int = LONGEST_NS,
) -> TrafficRequest:
    """Bulk TCP transfers side by side. `sample_ns`: between two looks at TCP_INFO; `series_ns`: width of the bins of
    goodput; 0: none.

    What still runs after `longest_ns` is ended. The flow number n (from 0) is called "n source to sink".
    """
    addresses = addresses_of(plan)
    flows = [
        FlowRequest(
            name=f"{number} {each.source} to {each.sink}",
            from_=end(plan.lab, each.source, addresses[each.source]),
            to=end(plan.lab, each.sink, addresses[each.sink]),
            start_ns=each.start_ns,
            stop_ns=None if each.duration_ns is None else each.start_ns + each.duration_ns,
            socket=SocketOptions(each.congestion),
            work=BulkWork(each.bytes),
        )
        for number, each in enumerate(wanted)
    ]
    return request(plan, flows, clock, longest_ns, sample_ns=sample_ns, series_ns=series_ns)


def request(
    plan: Plan,
    flows: Sequence[FlowRequest],
    clock: Clock,
    longest_ns: int,
    *,
    sample_ns: int = 0,
    series_ns: int = 0,
    commands: Sequence[Command] = (),
    events: Sequence[Event] = (),
    conditions: Sequence[StateCondition] = (),
    ports: bool = False,
) -> TrafficRequest:
    """Flows of any kind; `commands`: those beside them, which may wait for flows, and flows for them; `events`: which
    may wait for `conditions` on flows, as all others may."""
    of_flows = {*(flow.step for flow in flows), *(each.step for each in conditions)}
    waiting = [*(each.after for each in commands), *(each.after for each in events)]
    of_commands = {each.step for each in commands if each.ends_step}
    return TrafficRequest(
        clock=clock,
        cpus=tuple(plan.host_cpus),
        seed=plan.seed,
        longest_ns=longest_ns,
        sample_ns=sample_ns,
        series_ns=series_ns,
        flows=tuple(flows),
        told=tuple(sorted({step for after in waiting for step in after if step in of_flows})),
        elsewhere=tuple(sorted({step for flow in flows for step in flow.waits_for if step in of_commands})),
        conditions=tuple(conditions),
        ports=ports,
    )


def end(lab: str, node: str, address: str) -> Endpoint:
    """The end of a flow or of a stream of packets."""
    return Endpoint(f"/run/netns/ewan-{lab}-{node}", address)


def addresses_of(plan: Plan) -> dict[str, str]:
    """Each node's first address, IPv4 if it has one; nodes in the middle of a link have none."""
    result = {}
    for node in plan.nodes:
        plain = [ipaddress.ip_interface(text).ip for each in node.interfaces for text in each.addresses]
        if plain:
            result[node.name] = str(min(plain, key=lambda address: address.version))
    return result


def arrived(run: Path) -> dict[int, list[tuple[int, int]]]:
    """For each flow of one part in RUN/traffic, consecutive bins: the end of each (ns), and the bytes of payload that
    came to the receiver in it, in order or not and copies too."""
    found: dict[int, list[tuple[int, int]]] = {}
    with (run / "traffic/goodput.csv").open(newline="") as file:
        for line in csv.DictReader(file):
            found.setdefault(int(line["flow"]), []).append((int(line["time_ns"]), int(line["arrived_bytes"] or 0)))
    return found


def read(run: Path) -> list[FlowRecord]:
    """The records in RUN/traffic, in the order of the request; each with its `name`, and its samples as `series`.

    RuntimeError with one line when it did not come to records.
    """
    directory = run / "traffic"
    try:
        answer = documents.read(TrafficResult, directory / "traffic.json")
        names = [flow.name for flow in documents.read(TrafficRequest, directory / "request.json").flows]
    except FileNotFoundError as error:
        raise RuntimeError(f"the flows left no record: there is no {error.filename}") from None
    except ValueError as error:
        raise RuntimeError(str(error)) from None
    series: dict[tuple[int, int], list[FlowSample]] = {}
    with (directory / "series.csv").open(newline="") as file:
        for line in csv.DictReader(file):
            known = {name: text for name, text in line.items() if not tables.is_more("series", name)}
            row = {name: int(text) if text else None for name, text in known.items()}
            of = row.pop("flow") or 0, row.pop("part") or 0
            series.setdefault(of, []).append(codec.from_data(FlowSample, row, "series.csv"))
    return [
        replace(record, name=names[record.flow], series=tuple(series.get((record.flow, record.part), ())))
        for record in answer.flows
    ]


def state_columns(run: Path) -> tuple[list[str], dict[tuple[int, int], Iterator[list[str]]]]:
    """The names of the columns of RUN/traffic/series.csv with the states of congestion controls, and for each part of a
    flow the cells of these, for each of its samples."""
    cells: dict[tuple[int, int], list[list[str]]] = {}
    with (run / "traffic/series.csv").open(newline="") as file:
        reader = csv.DictReader(file)
        names = [name for name in reader.fieldnames or () if tables.is_more("series", name)]
        for line in reader if names else ():
            cells.setdefault((int(line["flow"]), int(line["part"])), []).append([line[name] for name in names])
    return names, {of: iter(rows) for of, rows in cells.items()}


def completed(run: Path) -> list[FlowRecord]:
    """The records of a run, as `read` gives them; RuntimeError with the first reason why a flow did not run as it
    should."""
    flows = read(run)
    for flow in flows:
        if flow.error is not None:
            raise RuntimeError(f"flow {flow.name}: {flow.error}")
    return flows
