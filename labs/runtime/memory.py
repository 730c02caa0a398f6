"""Computes the memory that the virtual kernel needs for a lab and its programs, and checks whether this machine has it.
Pure but for `available` and `free_memory_bytes`.

In: a plan and a program. Out: bytes, with the arithmetic for whoever has too little. What counts is packets, and the
threads of many flows: a link's own limits say how many packets it may hold, and TCP's buffers hold about as many again
(not sent yet, sent and not acknowledged, received out of order). The project's own TCP flows all send the same page of
zeros, so their payload takes no memory; what other programs write does. The memory is taken as it is touched, so a lab
that fills nothing costs little.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import NamedTuple

import psutil

from ewan.labs.base.units.shown import about
from ewan.labs.plan import Plan
from ewan.labs.record.traffic import BulkWork, FlowRequest, MediaWork, MessagesWork, UdpWork, usual
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.probe_documents import TcpProbe
from ewan.labs.runtime.program import Program

MIB = 1 << 20
# The kernel itself, and the pages of the programs that run in it.
BASE_BYTES = 192 * MIB
# A network namespace, its interfaces, routes and sysctls.
NODE_BYTES = MIB
# A program of a node's own, a routing daemon or a switch (measured: 7 MiB of FRRouting's).
SERVICE_BYTES = 8 * MIB
# A thread of a flow with its socket: its stacks and the pages that map its own (measured: 56 KiB of 1000 TCP flows).
THREAD_BYTES = 64 << 10
# Of a packet beyond its bytes: two `struct sk_buff` (the packet and TCP's copy of its head) and a `skb_shared_info`.
PACKET_HEAD_BYTES = 1024
# Of a TCP segment whose payload is a page that all share: heads, `skb_shared_info`, headers, its place in the link
# and its part of the ACKs (measured: docs/explanation/virtual-clock.md).
SHARED_BYTES = 1536
# Packets are stored in slabs of powers of two from here on.
SMALLEST_SLAB_BYTES = 512
SLAB_BEYOND_BYTES = 400
"""Headroom and `skb_shared_info` lie in the same slab."""
TCP_HEADERS_BYTES, UDP_HEADERS_BYTES = 40, 28
TCP_WITH_TIMES_BYTES = 72
"""IPv6, TCP and its timestamps."""
CONNECTION_PACKETS = 7
"""SYN, its answer, the ACK; two FINs and their ACKs."""
# Programs that send a packet now and then.
LIGHT_PROGRAMS = ("ping",)
STEP_BYTES = 64 * MIB


class _Load(NamedTuple):
    """The packets that may fill the links: `packet_bytes` (IP) each, and `memory_bytes` for each packet on a link and
    in the buffers of TCP together."""

    packet_bytes: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Need:
    """`packets`: what all links may hold, delay lines and queues, both ways; `packet_bytes`: what one then takes, there
    and in TCP's buffers; `threads`: of all flows, as if they were all there at once; `services`: programs of the nodes'
    own."""

    nodes: int
    packets: int
    packet_bytes: int
    threads: int = 0
    services: int = 0

    @property
    def bytes(self) -> int:
        """Rounded up, with an eighth more for what the kernel keeps free."""
        needed = BASE_BYTES + self.nodes * NODE_BYTES + self.services * SERVICE_BYTES + self.threads * THREAD_BYTES
        needed += self.packets * self.packet_bytes
        return -(-(needed + needed // 8) // STEP_BYTES) * STEP_BYTES

    def arithmetic(self) -> str:
        """The terms of `bytes`, in words for an error."""
        return (
            f"{about(BASE_BYTES, 'size')} for the system, {self.nodes} nodes × {about(NODE_BYTES, 'size')}, "
            f"{self.services} services × {about(SERVICE_BYTES, 'size')}, "
            f"{self.threads} threads of flows × {about(THREAD_BYTES, 'size')}, "
            f"{self.packets} packets on the links × {self.packet_bytes}B with what TCP's buffers hold, and an eighth"
        )


def need(plan: Plan, program: Program | None = None) -> Need:
    """The memory that a lab can need at most: for the plan, and for the traffic of `program`; without a program, for
    any traffic."""
    mtus = [interface.mtu for node in plan.nodes for interface in node.interfaces] or [1500]
    mtu = max(mtus)
    ways = [way for link in plan.links for way in (link.forward, link.backward)]
    most = _sent(min(mtus), program)

    def held(load: _Load) -> int:
        # Of the load's own packets: small ones fill a link's packet count long before TCP would send that many.
        fit = sum(min(way.store_packets, way.store_bytes // load.packet_bytes + 1) for way in ways)
        return fit if most is None else min(fit, most)

    worst = max(_loads(mtu, program), key=lambda load: held(load) * load.memory_bytes)
    services = sum(len(node.services) for node in plan.nodes)
    threads = _threads(program) if program else 0
    return Need(len(plan.nodes), held(worst), worst.memory_bytes, threads, services)


def _loads(mtu: int, program: Program | None) -> Iterator[_Load]:
    """Each kind of packets that may fill the links."""
    yield _Load(mtu, 2 * SHARED_BYTES)
    copied = _slab_bytes(mtu) + PACKET_HEAD_BYTES
    if program is None or _runs_others(program):
        yield _Load(mtu, 2 * copied)
    if program is None:
        return
    if program.probe is not None:
        yield _Load(mtu, copied)
    for flow in _flows(program):
        if isinstance(flow.work, UdpWork):
            size = min(mtu, int(usual(flow.work.size_bytes)) + UDP_HEADERS_BYTES)
            yield _Load(size, _slab_bytes(size) + PACKET_HEAD_BYTES)
        elif isinstance(flow.work, MediaWork):
            size = min(mtu, flow.work.packet_bytes + UDP_HEADERS_BYTES)
            yield _Load(size, _slab_bytes(size) + PACKET_HEAD_BYTES)
        elif segment := flow.socket.mss_bytes:
            yield _Load(min(mtu, segment + TCP_HEADERS_BYTES), 2 * SHARED_BYTES)


def _runs_others(program: Program) -> bool:
    """Programs that may send whatever they like."""
    return any(PurePath(each.argv[0]).name not in LIGHT_PROGRAMS for each in program.commands)


def _sent(mtu: int, program: Program | None) -> int | None:
    """The packets that a program sends in all, ACKs not counted; None where it does not say how many."""
    if program is None or _runs_others(program):
        return None
    packets = 0
    for probe in () if program.probe is None else program.probe.probes:
        if isinstance(probe, TcpProbe):
            return None
        packets += sum(2 * stream.packets for stream in probe.streams)  # of a round trip, there and back
    for flow in _flows(program):
        work = flow.work
        if isinstance(work, BulkWork) and work.bytes is not None:
            segment = flow.socket.mss_bytes or mtu - TCP_WITH_TIMES_BYTES
            packets += (1 + work.bidirectional) * (work.bytes // segment + CONNECTION_PACKETS)
        elif isinstance(work, UdpWork) and work.count is not None:
            packets += work.count * -(-(int(usual(work.size_bytes)) + UDP_HEADERS_BYTES) // mtu)
        else:
            return None
    return packets


def _slab_bytes(packet_bytes: int) -> int:
    """The memory of a packet that is in one piece."""
    slab = SMALLEST_SLAB_BYTES
    while slab < packet_bytes + SLAB_BEYOND_BYTES:
        slab *= 2
    return slab


def _flows(program: Program) -> tuple[FlowRequest, ...]:
    return () if program.traffic is None else program.traffic.flows


def _threads(program: Program) -> int:
    """Two of a flow, or of a rank of a group; four where both ends send. Of flows that arrive few are there at once."""
    ranks = [len(flow.ends) if isinstance(flow.work, MessagesWork) else 1 for flow in _flows(program)]
    return sum(2 * each * (1 + flow.bidirectional) for each, flow in zip(ranks, _flows(program), strict=True))


def refuse(lab: str, wanted: Need, directory: Path, free_bytes: int | None) -> None:
    """LabError, with the arithmetic, when neither memory nor the memory file's directory can hold it. `free_bytes`: the
    room in this directory; None: it has no bound of its own."""
    places = {"of memory are free": free_memory_bytes()}
    if free_bytes is not None:
        places[f"are free in {directory}"] = free_bytes
    for where, free in places.items():
        if wanted.bytes > free:
            raise LabError(
                f"lab {lab} needs {about(wanted.bytes, 'size')} in the virtual clock ({wanted.arithmetic()}), and "
                f"{about(free, 'size')} {where}: lower rate, RTT or buffer"
            )


def available(directory: Path) -> int:
    """Bytes that an ordinary user may write in the file system of `directory`, which need not be there yet."""
    place = directory.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    status = os.statvfs(place)
    return status.f_bavail * status.f_frsize


def free_memory_bytes() -> int:
    """The memory that the host could give to new programs without swapping."""
    return int(psutil.virtual_memory().available)
