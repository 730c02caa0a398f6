"""The traffic of a run, reduced to kinds that simulators have too: TCP flows of a volume or a time, and UDP at a
constant rate.

In: a run with its schedule. Out: a `SimulatedTraffic` with every flow and its exact times, random starts drawn as the
run draws them. DescriptionError that points to a step without an equivalent; `notes` for steps without influence on the
rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ewan.generator.scenario import ScenarioRun, ScheduledRun
from ewan.labs.record.schedule import Flow
from ewan.labs.record.traffic import BulkWork, ConstantLaw, FlowRequest, UdpWork
from ewan.labs.spec import DescriptionError

TCP_HEADERS = 20 + 20  # with IPv4's
TIMESTAMPS = 12  # of each TCP segment
UDP_HEADERS = 20 + 8  # with IPv4's


@dataclass(frozen=True, slots=True)
class TcpFlow:
    """One connection. `volume_bytes` None: as much as fits until `stop_ns`; buffers None: as large as the lab's."""

    number: int
    name: str
    role: str
    source: str
    sink: str
    start_ns: int
    stop_ns: int | None
    congestion: str
    volume_bytes: int | None
    segment_bytes: int
    send_buffer_bytes: int | None
    receive_buffer_bytes: int | None
    kind: Literal["tcp"] = "tcp"


@dataclass(frozen=True, slots=True)
class UdpFlow:
    """Packets of `size_bytes` of payload, one each `interval_ns`; `count` of them, or until `stop_ns`."""

    number: int
    name: str
    role: str
    source: str
    sink: str
    start_ns: int
    stop_ns: int | None
    count: int | None
    size_bytes: int | float
    interval_ns: float
    kind: Literal["udp"] = "udp"


@dataclass(frozen=True, slots=True)
class SimulatedTraffic:
    """All flows of a run, until `end_ns`; `notes`: the parts of the run that are left out."""

    flows: tuple[TcpFlow | UdpFlow, ...]
    end_ns: int
    seed: int
    notes: tuple[str, ...]


def traffic(
    run: ScenarioRun, schedule: ScheduledRun, mtu: int, known: Sequence[str], simulator: str
) -> SimulatedTraffic:
    """The flows of a run; `known`: the congestion controls that the simulator has."""
    steps = {step.name: index for index, step in enumerate(run.document.steps)}

    def error(step: str, key: str, message: str) -> DescriptionError:
        return run.places.error(("steps", steps[step], key), message)

    if schedule.program.events:
        message = f'{simulator} gets no changes of links: leave "events:" out'
        raise run.places.error(("events",), message)
    asked = () if schedule.program.traffic is None else schedule.program.traffic.flows
    flows = []
    for described in schedule.document.flows:
        step = described.step
        if described.kind == "quic":
            raise error(step, "quic", f'{simulator} has no QUIC here: write "bulk:" or "udp:"')
        if described.generator != "ewan":
            message = f'{simulator} sends by itself: leave "generator: {described.generator}" out'
            raise error(step, "generator", message)
        if described.after:
            raise error(step, "after", f'{simulator} gets only times: write "at:" instead')
        if described.paced_bps is not None:
            raise error(step, "pacing", f"{simulator} gets no pacing: leave it out, of the step and of the host")
        assert described.request is not None
        request = asked[described.request]
        flow = _flow(described, request, mtu, lambda key, text, s=step: error(s, key, text), simulator)
        if isinstance(flow, TcpFlow) and flow.congestion not in known:
            message = f"{simulator} has no {flow.congestion}: write one of {', '.join(known)}"
            raise error(step, "congestion", message)
        flows.append(flow)
    if not flows:
        raise run.places.error(("steps",), f'has nothing for {simulator} to send: write a step with "bulk:" or "udp:"')
    commands = dict.fromkeys(command.step for command in schedule.document.commands if command.tool is None)
    notes = [f"step {name} is left out: {simulator} runs no commands" for name in commands if name in steps]
    notes += ["captures are left out"] if run.document.capture else []
    return SimulatedTraffic(tuple(flows), schedule.program.longest_ns, run.seed, tuple(notes))


def _flow(described: Flow, asked: FlowRequest, mtu: int, error: Any, simulator: str) -> TcpFlow | UdpFlow:
    work, socket = asked.work, asked.socket
    common = described.number, described.name, described.role, described.source, described.sink
    times = asked.start_ns, asked.stop_ns
    if not isinstance(work, BulkWork | UdpWork):
        raise error(work.kind, f'{simulator} gets only "bulk:" and "udp:": write one of them')
    if isinstance(work, UdpWork):
        size, interval = work.size_bytes, work.interval_ns
        if work.on_ns is not None or not isinstance(size, ConstantLaw) or not isinstance(interval, ConstantLaw):
            raise error("udp", f'{simulator} gets only constant rates: write "rate:" and a constant "size:"')
        if size.value + UDP_HEADERS > mtu:
            raise error("udp", f"is more than a packet of {mtu} bytes holds: write a smaller size")
        return UdpFlow(*common, *times, count=work.count, size_bytes=size.value, interval_ns=interval.value)
    if work.writes is not None:
        raise error("bulk", f'{simulator} gets flows that send what they can: leave "rate:" and "interval:" out')
    if work.bidirectional:
        raise error("bidirectional", f'{simulator} sends one way on a connection: write "bulk:" for each way')
    if socket.ecn:
        raise error("ecn", f'{simulator} gets only queues that drop: write "ecn: false"')
    if socket.window_bytes is not None:
        raise error("window", f'{simulator} gets sockets\' buffers: write "receive_buffer:"')
    return TcpFlow(
        *common,
        *times,
        congestion=socket.congestion or "",
        volume_bytes=work.bytes,
        # The kernel takes the timestamps' 12 bytes off the MSS that a socket is given, too.
        segment_bytes=min(socket.mss_bytes or mtu, mtu - TCP_HEADERS) - TIMESTAMPS,
        send_buffer_bytes=socket.send_buffer_bytes,
        receive_buffer_bytes=socket.receive_buffer_bytes,
    )
