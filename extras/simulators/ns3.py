"""A run as a program of the simulator ns-3 (C++, version 3.37). Pure.

In: a network and its traffic. Out: the program's text. A point-to-point link of ns-3 counts 2 bytes beyond the IP
packet; the rest of the frame (`framing`) is time between frames, so that rates are those of the lab. Congestion
controls are ns-3's own models of the kernel's.
"""

from __future__ import annotations

from ewan.extras.simulators import rendering
from ewan.extras.simulators.flows import SimulatedTraffic, TcpFlow, UdpFlow
from ewan.extras.simulators.network import NetworkLink, SimulatedDirection, SimulatedNetwork
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_SECOND, PPB

SIMULATOR = "ns-3"
MODULES = ("ns3-internet", "ns3-point-to-point", "ns3-network", "ns3-core")
CONGESTION = {
    "reno": "ns3::TcpLinuxReno",
    "cubic": "ns3::TcpCubic",
    "bic": "ns3::TcpBic",
    "highspeed": "ns3::TcpHighSpeed",
    "htcp": "ns3::TcpHtcp",
    "scalable": "ns3::TcpScalable",
    "hybla": "ns3::TcpHybla",
    "illinois": "ns3::TcpIllinois",
    "lp": "ns3::TcpLp",
    "vegas": "ns3::TcpVegas",
    "veno": "ns3::TcpVeno",
    "yeah": "ns3::TcpYeah",
    "bbr": "ns3::TcpBbr",
}
"""The kernel's name → ns-3's type."""
FRAME_BYTES = 2  # of the point-to-point protocol
LARGEST_QUEUE = 2**32 - 1


def program(title: str, network: SimulatedNetwork, traffic: SimulatedTraffic) -> str:
    """The text of the program; DescriptionError for a network with several paths."""
    rendering.check_tree(network, SIMULATOR)
    place = {name: index for index, name in enumerate(network.nodes)}
    notes = [*rendering.common_notes(traffic), *rendering.asymmetric(network)]
    if any(way.overhead_bytes < FRAME_BYTES for link in network.links for *_, way in link.ways):
        notes.append("Links whose framing is ip send 2 bytes a packet more.")
    return rendering.render(
        "ns3.cc.j2",
        title=title,
        modules=MODULES,
        notes=notes,
        mtu=network.mtu,
        end_ns=traffic.end_ns,
        seed=traffic.seed,
        nodes=network.nodes,
        links=[
            {
                "name": link.name,
                "a": place[link.a],
                "b": place[link.b],
                "delay_ns": (link.forward.delay_ns + link.backward.delay_ns) // 2,
                "forward": _way(link, link.a, link.forward, network),
                "backward": _way(link, link.b, link.backward, network),
            }
            for link in network.links
        ],
        tcp=[_tcp(flow, place, network) for flow in traffic.flows if isinstance(flow, TcpFlow)],
        udp=[_udp(flow, place) for flow in traffic.flows if isinstance(flow, UdpFlow)],
    )


def _way(link: NetworkLink, sender: str, way: SimulatedDirection, network: SimulatedNetwork) -> list[object]:
    """Rate, gap between frames in ns, queue, loss."""
    beyond = max(0, way.overhead_bytes - FRAME_BYTES)
    gap_ns = round(beyond * BITS_PER_BYTE * NS_PER_SECOND / way.rate_bps)
    if not link.emulated and sender in network.hosts:
        queue = f"{LARGEST_QUEUE}p"
    elif way.limit_packets is not None:
        queue = f"{way.limit_packets}p"
    else:
        # As many full packets as in the lab, in bytes as ns-3 counts them.
        full = (network.mtu + FRAME_BYTES) / (network.mtu + way.overhead_bytes)
        queue = f"{min(round((way.limit_bytes or 0) * full), LARGEST_QUEUE)}B"
    return [way.rate_bps, gap_ns, rendering.quoted(queue), way.loss_ppb / PPB]


def _tcp(flow: TcpFlow, place: dict[str, int], network: SimulatedNetwork) -> list[object]:
    return [
        flow.number,
        rendering.quoted(flow.name),
        rendering.quoted(flow.role),
        place[flow.source],
        place[flow.sink],
        flow.start_ns,
        flow.stop_ns or 0,
        flow.volume_bytes or 0,
        rendering.quoted(CONGESTION[flow.congestion]),
        flow.segment_bytes,
        flow.send_buffer_bytes or network.buffer_bytes,
        flow.receive_buffer_bytes or network.buffer_bytes // 2,
    ]


def _udp(flow: UdpFlow, place: dict[str, int]) -> list[object]:
    return [
        flow.number,
        rendering.quoted(flow.name),
        rendering.quoted(flow.role),
        place[flow.source],
        place[flow.sink],
        flow.start_ns,
        flow.stop_ns or 0,
        flow.count or 0,
        flow.size_bytes,
        flow.interval_ns,
    ]
