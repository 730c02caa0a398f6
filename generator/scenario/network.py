"""A lab's network as packets see it: the nodes and cards that they come to, and where flows wait for each other. Pure.

In: a plan with its paths. Out: for two hosts what is between them; for a hop its rate, buffer and loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ewan.generator.scenario.windows import Bottleneck
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_SECOND, PPB
from ewan.labs.forwarding import Forwarding
from ewan.labs.link import Direction
from ewan.labs.link.disciplines.drop_tail import DropTail
from ewan.labs.link.egress import Psp, paced
from ewan.labs.link.loss import BernoulliLoss, EveryNthLoss
from ewan.labs.link.queue import queue_limits
from ewan.labs.plan import Hop, Plan

ETHERNET_HEADER = 14
OF_WIREGUARD = 11
"""The receipts of a packet that take as long as its encryption and decryption; the other tunnels take next to nothing
(docs/how-to/labs/tunnels.md)."""


@dataclass(frozen=True, slots=True)
class HostPath:
    """The path of packets from one host to another: nodes, links, and those of them that begin at an exact card of a
    router or switch."""

    receives: int
    hops: tuple[Hop, ...]
    cards: tuple[Hop, ...]


class Network:
    """The network of a plan; results of searches are kept."""

    def __init__(self, plan: Plan, forwarding: Forwarding) -> None:
        self.forwarding = forwarding
        self.kinds = {node.name: node.kind for node in plan.nodes}
        self._mtus = {(node.name, port.name): port.mtu for node in plan.nodes for port in node.interfaces}
        self._links = {link.name: link for link in plan.links}
        self._cards = {(node.name, port.name): paced(port.egress) for node in plan.nodes for port in node.interfaces}
        self._ways: dict[tuple[str, str], HostPath] = {}

    def way(self, source: str, sink: str) -> HostPath:
        """The path of packets from one host to another."""
        if (source, sink) not in self._ways:
            hops = self.forwarding.path(source, sink).hops
            receives = sum(2 if hop.link in self._links else 1 for hop in hops)
            receives += sum(OF_WIREGUARD for kind in self.forwarding.tunnel_kinds(source, sink) if kind == "wireguard")
            begins = [self.forwarding.ends(hop)[0] for hop in hops]
            # A token bucket lets a lone packet pass; psp has a timer for each that waits.
            cards = tuple(
                hop
                for hop, end in zip(hops, begins, strict=True)
                if self.kinds[end.node] != "host" and isinstance(self._cards.get((end.node, end.interface)), Psp)
            )
            self._ways[source, sink] = HostPath(receives, hops, cards)
        return self._ways[source, sink]

    def direction(self, hop: Hop) -> Direction | None:
        """The stages of an emulated link; None for a plain one."""
        link = self._links.get(hop.link)
        return None if link is None else link.forward if hop.direction == "forward" else link.backward

    def mtu(self, source: str, sink: str) -> int:
        """The largest IP packet that comes from one host to another."""
        ends = [end for hop in self.way(source, sink).hops for end in self.forwarding.ends(hop)]
        return min(self.forwarding.largest(source, sink), *(self._mtus[end.node, end.interface] for end in ends))

    def rtt_s(self, source: str, sink: str) -> float:
        """Propagation only, both ways."""
        return self.forwarding.rtt_ns(source, sink) / NS_PER_SECOND

    def framed(self, hop: Hop) -> float:
        """Bytes of a full packet on a link."""
        end = self.forwarding.ends(hop)[0]
        way, card = self.direction(hop), self._cards.get((end.node, end.interface))
        mtu = self._mtus[end.node, end.interface]
        if way is not None:
            return mtu + way.framing.overhead_bytes
        return mtu + ETHERNET_HEADER + (card.overhead_bytes if card else 0)

    def pps(self, hop: Hop) -> float:
        """Full packets a second; infinite where a link has no rate."""
        rate = self.forwarding.rate_bps(hop)
        return math.inf if not rate else rate / BITS_PER_BYTE / self.framed(hop)

    def bottleneck(self, hop: Hop) -> Bottleneck:
        """The bottleneck that flows of full packets see at `hop`."""
        framed, way = self.framed(hop), self.direction(hop)
        rate = self.forwarding.rate_bps(hop) or NS_PER_SECOND
        if way is None:
            end = self.forwarding.ends(hop)[0]
            card = self._cards[end.node, end.interface]
            return Bottleneck(rate / BITS_PER_BYTE / framed, card.limit_bytes / framed if card else math.inf)
        limits = queue_limits(way.queue)
        sizes = [limit.limit_bytes / framed for limit in limits if limit.limit_bytes is not None]
        buffer = min([*sizes, *(float(limit.limit_packets) for limit in limits if limit.limit_packets is not None)])
        held_at_ns = way.queue.discipline.held_at_ns
        if held_at_ns is not None:
            buffer = min(buffer, max(held_at_ns / NS_PER_SECOND * rate / BITS_PER_BYTE / framed, 1.0))
        loss = 0.0
        match way.loss:
            case BernoulliLoss(ppb):
                loss = ppb / PPB
            case EveryNthLoss(n):
                loss = 1 / n
            case _:
                pass
        return Bottleneck(rate / BITS_PER_BYTE / framed, buffer, loss)

    def fills(self, hop: Hop) -> float:
        """The delay (s) of a packet where bulk transfers keep a buffer full, and no discipline keeps it short."""
        way = self.direction(hop)
        if way is None or not isinstance(way.queue.discipline, DropTail):
            return 0.0
        at = self.bottleneck(hop)
        return at.buffer / at.pps
