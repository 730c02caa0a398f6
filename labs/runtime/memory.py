"""How much memory the virtual kernel needs for a lab and what runs in it, and whether this machine has it. Pure but for
`available` and `free_memory_bytes`.

In: a plan and a program. Out: bytes, with the arithmetic for whoever has too little. What counts is packets, and the
threads of many flows: a link's own limits say how many packets it may hold, and TCP's buffers hold about as many again
(sent and not acknowledged, received out of order). The memory is taken as it is touched, so a lab that fills nothing
costs little.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import psutil

from labs.plan import Plan
from labs.runtime.base import LabError
from labs.runtime.program import Program
from labs.units import about

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
# Packets are stored in slabs of powers of two from here on.
SMALLEST_SLAB_BYTES = 512
STEP_BYTES = 64 * MIB


@dataclass(frozen=True, slots=True)
class Need:
    """`packets`: what all links may hold, delay lines and queues, both ways; `packet_bytes`: what one then takes;
    `threads`: of all flows, as if they were all there at once; `services`: programs of the nodes' own."""

    nodes: int
    packets: int
    packet_bytes: int
    threads: int = 0
    services: int = 0

    @property
    def bytes(self) -> int:
        """Rounded up, with an eighth more for what the kernel keeps free."""
        needed = BASE_BYTES + self.nodes * NODE_BYTES + self.services * SERVICE_BYTES + self.threads * THREAD_BYTES
        needed += 2 * self.packets * self.packet_bytes
        return -(-(needed + needed // 8) // STEP_BYTES) * STEP_BYTES

    def arithmetic(self) -> str:
        """How `bytes` comes about, in words for an error."""
        return (
            f"{about(BASE_BYTES, 'size')} for the system, {self.nodes} nodes × {about(NODE_BYTES, 'size')}, "
            f"{self.services} services × {about(SERVICE_BYTES, 'size')}, "
            f"{self.threads} threads of flows × {about(THREAD_BYTES, 'size')}, "
            f"2 × {self.packets} packets on the links and in TCP's buffers × {self.packet_bytes}B, and an eighth"
        )


def need(plan: Plan, program: Program | None = None) -> Need:
    """What a lab can need at most: of the plan, and of the flows of `program`."""
    mtu = max((interface.mtu for node in plan.nodes for interface in node.interfaces), default=1500)
    slab = SMALLEST_SLAB_BYTES
    while slab < mtu + 400:  # headroom and skb_shared_info lie in the same slab
        slab *= 2
    packets = 0
    for link in plan.links:
        for way in (link.forward, link.backward):
            # Of full packets: small ones fill a link's packet count long before TCP would send that many.
            packets += min(way.store_packets, way.store_bytes // mtu + 1)
    services = sum(len(node.services) for node in plan.nodes)
    threads = _threads(program) if program else 0
    return Need(len(plan.nodes), packets, slab + PACKET_HEAD_BYTES, threads, services)


def _threads(program: Program) -> int:
    """Two of a flow, or of a rank of a group; four where both ends send. Of flows that arrive few are there at once."""
    works = [flow["work"] for flow in (program.traffic or {}).get("flows", ())]
    return sum(2 * len(work.get("ranks", (0,))) * (1 + bool(work.get("bidirectional"))) for work in works)


def refuse(lab: str, wanted: Need, directory: Path) -> None:
    """LabError, with the arithmetic, when neither memory nor the memory file's directory can hold it."""
    places = {"of memory are free": free_memory_bytes(), f"are free in {directory}": available(directory)}
    for where, free in places.items():
        if wanted.bytes > free:
            raise LabError(
                f"lab {lab} needs {about(wanted.bytes, 'size')} in the virtual clock ({wanted.arithmetic()}), and "
                f"{about(free, 'size')} {where}: lower rate, RTT or buffer"
            )


def available(directory: Path) -> int:
    """Bytes that an ordinary user may write in the file system of `directory`."""
    status = os.statvfs(directory)
    return status.f_bavail * status.f_frsize


def free_memory_bytes() -> int:
    """What the host could give to new programs without swapping."""
    return int(psutil.virtual_memory().available)
