"""A run as a script of the simulator ns-2 (Tcl, version 2.35). Pure.

In: a network and its traffic. Out: the script's text. Packets have their length on the wire, so that rates are those of
the lab. TCP is ns-2's TCP-Linux (Wei and Cao, 2006), which runs the kernel's own congestion controls of 2008.
"""

from __future__ import annotations

from ewan.extras.simulators import rendering
from ewan.extras.simulators.flows import TCP_HEADERS, TIMESTAMPS, UDP_HEADERS, SimulatedTraffic, TcpFlow, UdpFlow
from ewan.extras.simulators.network import NetworkLink, SimulatedDirection, SimulatedNetwork
from ewan.labs.base.units import NS_PER_SECOND, PPB
from ewan.labs.spec import DescriptionError

SIMULATOR = "ns-2"
CONGESTION = ("reno", "cubic", "bic", "highspeed", "scalable", "htcp", "hybla", "lp", "vegas", "veno", "westwood")
"""The kernel's names, which TCP-Linux has too."""
UNLIMITED = 2**30


def script(title: str, network: SimulatedNetwork, traffic: SimulatedTraffic) -> str:
    """The text of the script; DescriptionError for a network with several paths or framings."""
    rendering.check_tree(network, SIMULATOR)
    framings = {way.overhead_bytes for link in network.links for *_, way in link.ways}
    if len(framings) > 1:
        message = (
            f'lab {network.lab}: has links of several framings: {SIMULATOR} has one: write "framing: wire" for all'
        )
        raise DescriptionError(message)
    (overhead,) = framings
    place = {name: index for index, name in enumerate(network.nodes)}
    return rendering.render(
        "ns2.tcl.j2",
        title=title,
        notes=rendering.common_notes(traffic),
        end_s=_seconds(traffic.end_ns),
        seed=traffic.seed,
        nodes=network.nodes,
        tcp_header=TCP_HEADERS + TIMESTAMPS + overhead,
        ways=[
            _way(link, place[sender], place[receiver], sender, way, network)
            for link in network.links
            for sender, receiver, way in link.ways
        ],
        tcp=[_tcp(flow, place, network) for flow in traffic.flows if isinstance(flow, TcpFlow)],
        udp=[_udp(flow, place, overhead) for flow in traffic.flows if isinstance(flow, UdpFlow)],
    )


def _seconds(ns: float) -> str:
    return f"{ns / NS_PER_SECOND:.9f}"


def _way(
    link: NetworkLink, here: int, there: int, sender: str, way: SimulatedDirection, network: SimulatedNetwork
) -> list[object]:
    """Ends, rate, delay in seconds, queue's unit and limit, loss."""
    if not link.emulated and sender in network.hosts:
        limit: tuple[str, int] = "packets", UNLIMITED
    elif way.limit_packets is not None:
        limit = "packets", way.limit_packets
    else:
        limit = "bytes", min(way.limit_bytes or 0, UNLIMITED)
    return [here, there, way.rate_bps, _seconds(way.delay_ns), *limit, way.loss_ppb / PPB]


def _tcp(flow: TcpFlow, place: dict[str, int], network: SimulatedNetwork) -> list[object]:
    """`-1`: no volume, or no stop."""
    window = (flow.receive_buffer_bytes or network.buffer_bytes // 2) // flow.segment_bytes
    return [
        flow.number,
        rendering.quoted(flow.name),
        flow.role,
        place[flow.source],
        place[flow.sink],
        _seconds(flow.start_ns),
        -1 if flow.stop_ns is None else _seconds(flow.stop_ns),
        -1 if flow.volume_bytes is None else flow.volume_bytes,
        flow.congestion,
        flow.segment_bytes,
        max(window, 1),
    ]


def _udp(flow: UdpFlow, place: dict[str, int], overhead: int) -> list[object]:
    return [
        flow.number,
        rendering.quoted(flow.name),
        flow.role,
        place[flow.source],
        place[flow.sink],
        _seconds(flow.start_ns),
        -1 if flow.stop_ns is None else _seconds(flow.stop_ns),
        -1 if flow.count is None else flow.count,
        flow.size_bytes,
        flow.size_bytes + UDP_HEADERS + overhead,
        f"{flow.interval_ns / NS_PER_SECOND:.15f}",
    ]
