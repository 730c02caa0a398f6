"""Measures the cost of packets on this host without an emulated link: between namespaces, and through routers.

In: a small lab of our own, made as any other and gone afterwards, and how long measuring may take. Out:
`PathMeasurements`: the latency of the stack by the number of routers, packets/s against their size, throughput by TCP
and UDP with what the headers leave of a port's rate beside it (eWAN, table III), with offloads off, as in every lab,
and on; and limits of buffers, which are read. And, pure, what that means for a lab. Without root nothing is sent.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from ewan.calibration.expect import expectations
from ewan.calibration.host.buffers import Buffers, read_buffers
from ewan.calibration.host.cards import NetworkCard, read_card
from ewan.calibration.host.finding import Finding
from ewan.calibration.host.path_lab import (
    MTU_BYTES,
    PORT,
    PORT_BPS,
    ROUTERS,
    SIZES,
    TIMES,
    UDP_HEADERS_BYTES,
    WAYS,
    WIRE_BYTES,
    lab,
    probes,
    transfer,
)
from ewan.calibration.host.timers import Budget
from ewan.calibration.path import streams_of
from ewan.labs import host
from ewan.labs.base.codec import Document, Struct, replace
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_SECOND
from ewan.labs.base.units.shown import about
from ewan.labs.context import Context
from ewan.labs.plan import Plan
from ewan.labs.runtime.base import LabError, ProbeSender
from ewan.labs.runtime.binary import node_binary
from ewan.labs.runtime.probe_documents import FailedResult, Probe, ProbeResult, StreamResult, TcpResult
from ewan.labs.runtime.state import State

Protocol = Literal["tcp", "udp"]
PROTOCOLS: tuple[Protocol, ...] = ("tcp", "udp")

NEEDS_ROOT = "needs root"
CENTRAL_SHARE = 0.6827
"""Within one standard deviation of a normal distribution."""
FOR_P99 = 100


class StackLatency(Struct):
    """One-way delay of packets of 64 bytes from a program's send call to the kernel's stamp at the receiver, through so
    many routers and no emulated link. `spread_ns`: half the width of the interval with the middle 68 % of them, which
    is the standard deviation where the distribution is normal. p99 is None below 100 packets."""

    routers: int
    packets: int
    min_ns: int
    p50_ns: int
    p99_ns: int | None
    max_ns: int
    spread_ns: float


class PacketRate(Struct):
    """Packets/s that one thread of the probes sends and receives over a veth pair, offered more than it can."""

    ip_bytes: int
    packets_per_second: float
    sent_packets: int
    lost_packets: int


class Throughput(Struct):
    """Payload/s over veth pairs. `port_bps`: the rate of the sender's port as Ethernet counts it, None where it has
    none; `expected_bps`: what the headers leave of that. `retransmitted_segments` is TCP's."""

    protocol: Protocol
    routers: int
    offloads: bool
    port_bps: int | None
    goodput_bps: float
    expected_bps: float | None
    retransmitted_segments: int | None


class PathMeasurements(Document, tag="ewan-paths/1"):
    """All of it. `not_measured`: why nothing was sent, empty where something was; `failed`: by probe, why it gave
    nothing."""

    elapsed_ns: int
    latency: tuple[StackLatency, ...]
    packet_rates: tuple[PacketRate, ...]
    throughput: tuple[Throughput, ...]
    buffers: Buffers
    not_measured: str
    failed: Mapping[str, str]
    cards: tuple[NetworkCard, ...]

    def stack(self, routers: int) -> StackLatency | None:
        """The latency through so many routers; None where that was not measured."""
        return next((each for each in self.latency if each.routers == routers), None)

    def goodput(
        self, protocol: Protocol, routers: int = 0, offloads: bool = False, port_bps: int | None = None
    ) -> Throughput | None:
        """One throughput; None where that was not measured."""
        key = (protocol, routers, offloads, port_bps)
        found = (e for e in self.throughput if (e.protocol, e.routers, e.offloads, e.port_bps) == key)
        return next(found, None)


def measure(
    context: Context, budget: Budget, progress: Callable[[str], None], nics: Sequence[str] = ()
) -> PathMeasurements:
    """Makes the lab, measures and removes it, whatever happens. LabError, one line, where it cannot be made.

    `nics`: cards whose own description is reported; nothing is sent over them.
    """
    begun = time.monotonic_ns()
    buffers, cards = read_buffers(), tuple(read_card(name) for name in nics)
    if os.geteuid() != 0:
        return PathMeasurements(0, (), (), (), buffers, NEEDS_ROOT, {}, cards)
    plan = lab(f"paths{os.getpid()}", host.facts())
    binary = node_binary(context.binary)
    times = TIMES[budget]
    runtime = context.live("netns")
    progress("paths: making a lab of namespaces")
    try:
        runtime.up(plan)
        off = _sent(runtime, plan, probes(plan, times), progress)
        directory = State(context.state).directory(plan.lab)
        _switch_on(binary, directory)
        on = _sent(runtime, plan, [transfer(plan, times, routers, True) for routers in ROUTERS[:2]], progress)
    finally:
        runtime.down(plan.lab)
    found = evaluate(plan, {**off, **on}, buffers, time.monotonic_ns() - begun)
    return replace(found, cards=cards)


def _switch_on(binary: Path, directory: Path) -> None:
    command = [str(binary), "offloads", "--state", str(directory), "--on"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    if done.returncode:
        raise LabError(f"offloads of a lab of namespaces: {done.stderr.strip()}")


def _sent(
    labs: ProbeSender, plan: Plan, wanted: Sequence[Probe], progress: Callable[[str], None]
) -> dict[str, ProbeResult]:
    """The result of each probe, by its name."""
    try:
        answer = labs.probe(plan.lab, wanted, lambda line: progress(f"paths: {line}"))
    except LabError as error:
        raise LabError(f"paths: {error}") from None
    return {each.name: each for each in answer.results}


def evaluate(plan: Plan, results: Mapping[str, ProbeResult], buffers: Buffers, elapsed_ns: int) -> PathMeasurements:
    """The document of the probes' results, by name. Pure."""
    failed = {name: each.error for name, each in results.items() if isinstance(each, FailedResult)}
    streams = {stream.name: stream for each in results.values() for stream in streams_of(each)}
    for name, stream in streams.items():
        if not (stream.delays_ns or stream.steady):
            failed[name] = "no packet came through"
    there = {name: stream for name, stream in streams.items() if name not in failed}
    rates = [_packet_rate(size, there[f"packets {size}"]) for size in SIZES if f"packets {size}" in there]
    return PathMeasurements(
        elapsed_ns=elapsed_ns,
        latency=tuple(_latency(k, there[f"latency {k}"].delays_ns or ()) for k in ROUTERS if f"latency {k}" in there),
        packet_rates=tuple(rates),
        throughput=(*_udp(there), *_tcp(plan, results)),
        buffers=buffers,
        not_measured="",
        failed=failed,
        cards=(),
    )


def _latency(routers: int, delays_ns: Sequence[int]) -> StackLatency:
    ordered = sorted(delays_ns)

    def at(share: float) -> int:
        """Nearest rank."""
        return ordered[max(-int(-share * len(ordered) // 1), 1) - 1]

    outside = (1 - CENTRAL_SHARE) / 2
    return StackLatency(
        routers=routers,
        packets=len(ordered),
        min_ns=ordered[0],
        p50_ns=at(0.5),
        p99_ns=at(0.99) if len(ordered) >= FOR_P99 else None,
        max_ns=ordered[-1],
        spread_ns=(at(1 - outside) - at(outside)) / 2,
    )


def _per_second(stream: StreamResult) -> float:
    steady = stream.steady
    assert steady is not None
    return steady.packets * NS_PER_SECOND / steady.window_ns


def _packet_rate(size: int, stream: StreamResult) -> PacketRate:
    return PacketRate(size, _per_second(stream), stream.sent_packets, stream.lost_packets)


def expected_udp_bps(port_bps: int, ip_bytes: int) -> float:
    """Payload/s that UDP has of an Ethernet port's rate: 957 of 1000 Mbit/s in packets of 1500 bytes."""
    return port_bps * (ip_bytes - UDP_HEADERS_BYTES) / (ip_bytes + WIRE_BYTES)


def _udp(there: Mapping[str, StreamResult]) -> Iterator[Throughput]:
    payload = (MTU_BYTES - UDP_HEADERS_BYTES) * BITS_PER_BYTE
    names = {0: f"packets {MTU_BYTES}", **{pair: f"udp {pair}" for pair in (*ROUTERS[1:], PORT)}}
    for pair, name in names.items():
        if name in there:
            port = PORT_BPS if pair == PORT else None
            expected = expected_udp_bps(port, MTU_BYTES) if port else None
            goodput = _per_second(there[name]) * payload
            yield Throughput("udp", 0 if pair == PORT else pair, False, port, goodput, expected, None)


def _tcp(plan: Plan, results: Mapping[str, ProbeResult]) -> Iterator[Throughput]:
    expected = {pair.source: pair.goodput_bps for pair in expectations(plan).pairs}
    for pair in (*ROUTERS, PORT):
        for offloads in (False, True):
            found = results.get(f"tcp {pair} with offloads" if offloads else f"tcp {pair}")
            if isinstance(found, TcpResult):
                port = PORT_BPS if pair == PORT else None
                of_port = expected[WAYS[pair][0]] if port else None
                again = found.retransmitted_segments
                routers = 0 if port else pair
                yield Throughput("tcp", routers, offloads, port, found.goodput_bps, of_port, again)


def per_router_ns(paths: PathMeasurements) -> float | None:
    """The median latency that each further router adds; None if it was not measured."""
    first, last = paths.stack(ROUTERS[0]), paths.stack(ROUTERS[-1])
    if first is None or last is None:
        return None
    return (last.p50_ns - first.p50_ns) / (last.routers - first.routers)


WELL = 0.97
"""The share of a port's expected throughput below which something other than the port is the limit."""


def findings(paths: PathMeasurements) -> Iterator[Finding]:
    """Findings on the packets that a lab on this host can expect."""
    yield from (_of_card(card) for card in paths.cards)
    if paths.not_measured:
        yield Finding("paths", f"not measured: {paths.not_measured}", "limited", "latency and packet rates are unknown")
        return
    yield from _of_latency(paths)
    if small := next((each for each in paths.packet_rates if each.ip_bytes == SIZES[0]), None):
        found = f"{small.packets_per_second:,.0f} packets/s of {small.ip_bytes} B"
        yield Finding("one thread sends", found, "good", "more flows than this need more CPUs")
    yield from _of_ports(paths)
    without, with_them = paths.goodput("tcp"), paths.goodput("tcp", offloads=True)
    if without is not None and with_them is not None:
        found = f"TCP {about(without.goodput_bps, 'rate', 3)} without, {about(with_them.goodput_bps, 'rate', 3)} with"
        meaning = "off in labs: a packet is one of at most the MTU, and queues and bursts are what they say"
        yield Finding("offloads", found, "good", meaning)
    for name, why in paths.failed.items():
        yield Finding(f"path: {name}", "not measured", "limited", why)


def _of_card(card: NetworkCard) -> Finding:
    speed = "speed unknown" if card.speed_bps is None else about(card.speed_bps, "rate")
    on = ", ".join(card.offloads) or "none"
    stamps = "stamps packets itself" if card.stamps_in_hardware else "the kernel stamps its packets"
    found = f"{speed}, MTU {card.mtu_bytes}, offloads on: {on}; {stamps}"
    return Finding(f"card {card.name}", found, "good", "what it says of itself: nothing was sent over it")


def _of_latency(paths: PathMeasurements) -> Iterator[Finding]:
    direct, each = paths.stack(0), per_router_ns(paths)
    if direct is None:
        return
    found = f"{about(direct.p50_ns, 'time', 3)} ± {about(direct.spread_ns, 'time', 2)} at the median"
    found += "" if direct.p99_ns is None else f", {about(direct.p99_ns, 'time', 3)} at p99"
    found += "" if each is None else f"; {about(each, 'time', 2)} more a router"
    yield Finding("latency of the stack", found, "good", "delays are longer by this than those of the links")


def _of_ports(paths: PathMeasurements) -> Iterator[Finding]:
    for protocol in PROTOCOLS:
        found = paths.goodput(protocol, port_bps=PORT_BPS)
        if found is None or found.expected_bps is None:
            continue
        ratio = found.goodput_bps / found.expected_bps
        what = f"{protocol.upper()} through a port of {about(PORT_BPS, 'rate')}"
        told = f"{about(found.goodput_bps, 'rate')} of the {about(found.expected_bps, 'rate')} that headers leave"
        good = ratio >= WELL
        meaning = "this host fills such a link" if good else "this host is the limit, not the link: lower rates"
        yield Finding(what, told, "good" if good else "limited", meaning)
