"""The lab over which this host's paths are measured, and the probes through it. Pure.

In: a name, facts of the host, and how long each measurement takes. Out: a plan, and requests to `ewan-node probe`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ewan.calibration.host.timers import Budget
from ewan.generator.traffic_request import end
from ewan.labs.base.codec import replace
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_MS, NS_PER_SECOND
from ewan.labs.compile import HostFacts
from ewan.labs.compile import compile as compile_spec
from ewan.labs.link.egress import Bare
from ewan.labs.plan import End, Interface, Node, Plan
from ewan.labs.record.traffic import Endpoint
from ewan.labs.runtime.probe_documents import DelayProbe, Probe, ProbeStream, SaturateProbe, TcpProbe
from ewan.labs.spec import parse

SIZES = (64, 512, 1500, 9000)
"""The sizes of IP packets, in bytes."""
STACK_BYTES = 64
"""The size of the IP packet that measures latency: the smallest that has room for a probe."""
MTU_BYTES, JUMBO_BYTES = 1500, 9000
PORT_BPS = NS_PER_SECOND
PORT_RATE = "1Gbit/s"
WIRE_BYTES = 14 + 4 + 20
"""The bytes that Ethernet adds to an IP packet: header, FCS, preamble and gap (IEEE 802.3, clauses 3 and 4)."""
UDP_HEADERS_BYTES = 20 + 8
ROUTERS = (0, 1, 2)

DESCRIPTION = f"""\
name: paths
rtt: 0ms
ip: 4
mtu: {MTU_BYTES}
topology:
  graph:
    hosts: [a, b, c, e]
    routers: [r1, r2, r3, r4]
    links:
      - {{between: [a, r1]}}
      - {{between: [r1, r2], role: access}}
      - {{between: [r2, b]}}
      - {{between: [r2, r3], role: access}}
      - {{between: [c, r3], rate: {PORT_RATE}}}
      - {{between: [r2, r4], role: access}}
      - {{between: [e, r4]}}
    pairs: [[a, b], [c, b], [e, b]]
"""
PORT, JUMBO = 3, 4
WAYS: Mapping[int, tuple[str, ...]] = {
    0: ("a", "r1"),
    1: ("a", "r1", "r2"),
    2: ("a", "r1", "r2", "b"),
    PORT: ("c", "r3"),
    JUMBO: ("e", "r4"),
}
"""Nodes from a probe's source to its sink: through so many routers; out of a port with a rate; with a large MTU."""
RATED = "c"


@dataclass(frozen=True, slots=True)
class Times:
    """The time of each measurement in ns."""

    latency_ns: int
    packets_ns: int
    transfer_ns: int


TIMES: Mapping[Budget, Times] = {
    "quick": Times(100 * NS_PER_MS, 70 * NS_PER_MS, 120 * NS_PER_MS),
    "default": Times(700 * NS_PER_MS, 250 * NS_PER_MS, 500 * NS_PER_MS),
    "full": Times(3_000 * NS_PER_MS, 1_000 * NS_PER_MS, 2_000 * NS_PER_MS),
}
LATENCY_INTERVAL_NS = 313_000
"""The sockets are read each millisecond: packets are not to be sent just then."""
FASTEST_NS = 400
"""Between two packets of a sender that sends as fast as it can: faster than any host does."""
SAMPLE_NS = 10 * NS_PER_MS
"""The sender of a transfer looks up so often, and so the part that is judged begins and ends as exactly."""
CONNECT_TIMEOUT_NS = 2 * NS_PER_SECOND


def lab(name: str, facts: HostFacts) -> Plan:
    """The lab: ports without a queueing discipline but one with a rate; hosts on the CPUs that links leave them."""
    plan = compile_spec(parse(DESCRIPTION, Path("paths.lab.yaml")), facts)
    hosts = facts.cpus[:-1] or facts.cpus
    source, sink = WAYS[JUMBO]
    large = [_port(plan, source, sink), _port(plan, sink, source)]

    def made(node: Node, port: Interface) -> Interface:
        mtu = JUMBO_BYTES if End(node.name, port.name) in large else port.mtu
        return replace(port, mtu=mtu, egress=port.egress if node.name == RATED else Bare())

    nodes = [replace(n, interfaces=tuple(made(n, port) for port in n.interfaces)) for n in plan.nodes]
    return replace(plan, lab=name, nodes=tuple(nodes), host_cpus=hosts)


def _port(plan: Plan, node: str, neighbour: str) -> End:
    """A node's interface towards a neighbour."""
    ends = ((wire.a, wire.b) for wire in plan.wires)
    both = ((own, other) for one, two in ends for own, other in ((one, two), (two, one)))
    return next(own for own, other in both if (own.node, other.node) == (node, neighbour))


def probes(plan: Plan, times: Times) -> list[Probe]:
    """Those with offloads off, one after the other: nothing else is sent meanwhile."""
    latency = [_latency_probe(plan, routers, times) for routers in ROUTERS]
    flood = [_flood(plan, f"packets {size}", JUMBO if size > MTU_BYTES else 0, size, times) for size in SIZES]
    through = [_flood(plan, f"udp {pair}", pair, MTU_BYTES, times) for pair in (*ROUTERS[1:], PORT)]
    transfers = [transfer(plan, times, pair) for pair in (*ROUTERS, PORT)]
    return [*latency, *flood, *through, *transfers]


def _latency_probe(plan: Plan, routers: int, times: Times) -> DelayProbe:
    packets = max(times.latency_ns // LATENCY_INTERVAL_NS, 3)
    name = f"latency {routers}"
    stream = _stream(plan, name, routers, STACK_BYTES, LATENCY_INTERVAL_NS, packets)
    return DelayProbe(name, (replace(stream, raw=True),), 10 * NS_PER_MS)


def _stream(plan: Plan, name: str, pair: int, size: int, interval_ns: int, packets: int) -> ProbeStream:
    return ProbeStream(name, *_ends(plan, pair), size, interval_ns, packets)


def _flood(plan: Plan, name: str, pair: int, size: int, times: Times) -> SaturateProbe:
    # A port with a rate gets a quarter more than that; others all that one thread can send.
    own_ns = (size + WIRE_BYTES) * BITS_PER_BYTE * NS_PER_SECOND // PORT_BPS
    interval_ns = own_ns * 4 // 5 if pair == PORT else FASTEST_NS
    stream = _stream(plan, name, pair, size, interval_ns, times.packets_ns // interval_ns)
    return SaturateProbe(name, (replace(stream, skip_ns=times.packets_ns // 5),), 20 * NS_PER_MS)


def transfer(plan: Plan, times: Times, pair: int, offloads: bool = False) -> TcpProbe:
    """A TCP transfer between a pair; slow start is over in the first third."""
    source, sink = _ends(plan, pair)
    return TcpProbe(
        name=f"tcp {pair} with offloads" if offloads else f"tcp {pair}",
        from_=source,
        to=sink,
        congestion="reno",
        duration_ns=times.transfer_ns * 3 // 2,
        steady_ns=times.transfer_ns,
        connect_timeout_ns=CONNECT_TIMEOUT_NS,
        sample_ns=SAMPLE_NS,
    )


def _ends(plan: Plan, pair: int) -> tuple[Endpoint, Endpoint]:
    way = WAYS[pair]
    return _end(plan, way[0], way[1]), _end(plan, way[-1], way[-2])


def _end(plan: Plan, node: str, neighbour: str) -> Endpoint:
    """A node by its address towards a neighbour."""
    port = _port(plan, node, neighbour).interface
    interfaces = next(each.interfaces for each in plan.nodes if each.name == node)
    address = next(each.addresses[0] for each in interfaces if each.name == port)
    return end(plan.lab, node, str(ipaddress.ip_interface(address).ip))
