"""Switched networks as the verification sees them: the links of switches that hosts share are links like others. Pure.

In: a plan. Out: links between switches, and to routers, as if they were emulated; and for each that is the narrowest on
the way of some hosts to their router, who fills it. `forward` goes from the wire's first end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ewan.labs.forwarding import Forwarding
from ewan.labs.link import Direction, DropTail, Framing, Psp, Queue, Tbf, plain_direction
from ewan.labs.link.direction import Heading
from ewan.labs.link.egress import paced
from ewan.labs.plan import End, Hop, Interface, Link, Plan, Wire

ETHERNET_HEADER_BYTES = 14
TAG_BYTES = 4
NOT_FILLED = 5
"""Times a port's rate at which another one does not fill when the port is offered four times what it takes, at most."""
USER_SPACE = (
    "Open vSwitch forwards in user space here, which is slow: write lower rates, load the host's kernel module "
    "openvswitch, or take the virtual clock"
)


@dataclass(frozen=True, slots=True, eq=False)
class LanPath:
    """A host behind a switch and its router: their interfaces, and the shared links from host to router."""

    host: End
    router: End
    shared: tuple[Hop, ...]
    plain: bool
    """The host's own link is not emulated."""

    @property
    def back(self) -> tuple[Hop, ...]:
        """The shared links from router to host."""
        turned: Mapping[str, Heading] = {"forward": "backward", "backward": "forward"}
        return tuple(Hop(hop.link, turned[hop.direction]) for hop in reversed(self.shared))


@dataclass(frozen=True, slots=True, eq=False)
class SharedPort:
    """A shared link in one direction, and the ways of the hosts that meet there before anywhere narrower."""

    hop: Hop
    ways: tuple[LanPath, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LanPaths:
    """`shared` and `ways` are by names of links and hosts; `in_user_space` are switches."""

    shared: Mapping[str, Link]
    ways: Mapping[str, LanPath]
    in_user_space: frozenset[str]

    def direction(self, hop: Hop) -> Direction:
        """The settings of a shared link in this direction."""
        link = self.shared[hop.link]
        return link.forward if hop.direction == "forward" else link.backward

    def ports(self) -> list[SharedPort]:
        """Those that hosts on plain links can fill: each host counts at the narrowest one on its way.

        A host counts nowhere where a port before that one would fill too: their queues could not be told apart.
        """
        found: dict[Hop, list[LanPath]] = {}
        for way in self.ways.values():
            if way.plain and way.shared:
                rates = [self.direction(hop).rate_bps for hop in way.shared]
                place = rates.index(min(rates))
                if all(rate >= NOT_FILLED * rates[place] for rate in rates[:place]):
                    found.setdefault(way.shared[place], []).append(way)
        order = {name: place for place, name in enumerate(self.shared)}
        return [
            SharedPort(hop, tuple(ways)) for hop, ways in sorted(found.items(), key=lambda each: order[each[0].link])
        ]


def of_plan(plan: Plan, forwarding: Forwarding) -> LanPaths:
    """The switched networks of a plan; without switches, nothing."""
    kinds = {node.name: node.kind for node in plan.nodes}
    if "switch" not in kinds.values():
        return LanPaths({}, {}, frozenset())
    interfaces = {(node.name, port.name): port for node in plan.nodes for port in node.interfaces}
    slow = frozenset(
        node.name for node in plan.nodes if any("datapath_type=netdev" in service.argv for service in node.services)
    )
    shared = {}
    for wire in plan.wires:
        if {kinds[wire.a.node], kinds[wire.b.node]} in ({"switch"}, {"switch", "router"}):
            shared[wire.link] = _as_link(wire, interfaces, slow)
    ways = {}
    emulated = {link.name for link in plan.links}
    for node in (node for node in plan.nodes if node.kind == "host"):
        host, router = forwarding.gateway(node.name)
        hops = forwarding.path(node.name, router.node).hops
        if kinds[forwarding.ends(hops[0])[1].node] == "switch":
            passed = tuple(hop for hop in hops if hop.link in shared)
            ways[node.name] = LanPath(host, router, passed, hops[0].link not in emulated)
    return LanPaths(shared, ways, slow)


def _as_link(wire: Wire, interfaces: Mapping[tuple[str, str], Interface], slow: frozenset[str]) -> Link:
    """A wire of a switch as a link of the wire's name, whose node is its first end."""
    there, back = (interfaces[end.node, end.interface] for end in (wire.a, wire.b))
    backend: Literal["kernel", "tbf"] = "kernel" if isinstance(there.egress, Psp) else "tbf"
    ways = [_direction(each, end.node in slow) for each, end in ((there, wire.a), (back, wire.b))]
    return Link(wire.link, "access", backend, wire.a.node, wire.a.interface, wire.b.interface, wire.a, wire.b, *ways)


def _direction(port: Interface, in_user_space: bool) -> Direction:
    card = paced(port.egress)
    assert card is not None, "the compiler gives both ends of a switch's shared link a rate"
    framing, queue = card_framing(card), Queue(None, card.limit_bytes, DropTail())
    # A program writes tags among a frame's bytes, where the card counts them.
    inside = TAG_BYTES if in_user_space and port.vlans is not None and port.vlans.tagged else 0
    framing = Framing(framing.overhead_bytes + inside, framing.minimum_bytes)
    if isinstance(card, Tbf):
        # Its queue counts frames without what the framing adds.
        packets = card.limit_bytes // (port.mtu + ETHERNET_HEADER_BYTES + inside)
        queue = Queue(None, packets * (port.mtu + framing.overhead_bytes), DropTail())
    elif card.limit_packets is not None:
        queue = Queue(card.limit_packets, None, DropTail())
    return plain_direction(framing, card.rate_bps, queue, 0)


def card_framing(card: Psp | Tbf) -> Framing:
    """The bytes that a card's rate counts for an IP packet."""
    return Framing(card.overhead_bytes + ETHERNET_HEADER_BYTES, card.minimum_bytes if isinstance(card, Psp) else 0)
