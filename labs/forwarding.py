"""The path between any two hosts of a plan, found by following the routes that the plan carries. Pure.

In: a plan. Out: paths as links with directions, their bottlenecks and base RTTs. Pairs of the plan have theirs there;
for other hosts the nodes' routing tables are followed hop by hop, those that a protocol is to find among them. No other
module looks for a path.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from functools import cached_property

from ewan.labs.link.delay import nominal_ns
from ewan.labs.link.egress import paced
from ewan.labs.link.encapsulation import TunnelKind, outer_bytes
from ewan.labs.plan import End, Hop, Interface, Link, NetworkPath, Pair, Plan

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
BETWEEN = ":"
"""Stands between a host and one of its links, where a path begins or ends at the address of that link."""

Table = dict[tuple[int, int], tuple[Address | None, str]]
"""(prefix length, network) → the next hop's address, None where the network is at hand; and the interface."""

TunnelledHop = tuple[Hop, tuple[str, ...]]
"""A hop, and the tunnels whose outer packets cross it, the outermost first."""

LARGEST_PACKET = 65_535
_WAN, _PORT, _ACCESS = range(3)


def node_of(end: str) -> str:
    """The host of an end of a path."""
    return end.partition(BETWEEN)[0]


class Forwarding:
    """A plan's paths; what was followed once is remembered.

    An end of a path is a host, or one of its links too: `phone:lte`. Packets are sent from and to the address of that
    link, and without one the host's first.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._pairs: dict[tuple[str, str], Pair] = {(pair.source, pair.sink): pair for pair in plan.pairs}
        self._nodes = {node.name: node for node in plan.nodes}
        self._emulated: dict[str, Link] = {link.name: link for link in plan.links}
        self._found: dict[tuple[str, str], NetworkPath] = {}
        self._tables: dict[tuple[str, int, str], Table] = {}

    def path(self, source: str, sink: str) -> NetworkPath:
        """The path of packets from one host to another; ValueError if no route leads there."""
        if (source, sink) in self._pairs:
            return self._pairs[source, sink].forward
        if (sink, source) in self._pairs:
            return self._pairs[sink, source].backward
        if (source, sink) not in self._found:
            self._found[source, sink] = self.followed(source, sink)
        return self._found[source, sink]

    def rtt_ns(self, source: str, sink: str) -> int:
        """Propagation only, both ways, in ns; the mean of a table of delays, else the nominal delay."""
        pair = self._pairs.get((source, sink)) or self._pairs.get((sink, source))
        if pair is not None:
            return pair.rtt_ns
        return sum(self._delay_ns(hop) for ends in ((source, sink), (sink, source)) for hop in self.path(*ends).hops)

    def ends(self, hop: Hop) -> tuple[End, End]:
        """The ends at which packets enter and leave the link: interfaces of hosts, routers or switches."""
        a, b = self._links[hop.link]
        return (a, b) if hop.direction == "forward" else (b, a)

    def rate_bps(self, hop: Hop) -> int | None:
        """The emulated link's rate, or that of a plain link's sending interface; None: it has none."""
        if hop.link in self._emulated:
            link = self._emulated[hop.link]
            return (link.forward if hop.direction == "forward" else link.backward).rate_bps
        card = paced(self._interfaces[self.ends(hop)[0]].egress)
        return None if card is None else card.rate_bps

    def gateway(self, host: str) -> tuple[End, End]:
        """A host's interface, and that of the router by which its packets leave their network."""
        route = self._nodes[host].routes[0]
        return End(host, route.interface), self._owners[ipaddress.ip_address(route.via)]

    def wired(self, end: End) -> End:
        """The interface at whose wire an interface's packets are: itself, or the one of whose VLANs it is one."""
        interface = self._interfaces[end]
        parent = interface.vlans.parent if interface.vlans is not None else None
        return end if parent is None else End(end.node, parent)

    def followed(self, source: str, sink: str) -> NetworkPath:
        """The path by the routes only, also of a pair."""
        hops = [hop for hop, _ in self.steps(source, sink)]
        rates = [(self.rate_bps(hop) or 0, self._rank(hop)) for hop in hops]
        known = [(rate, rank, place) for place, (rate, rank) in enumerate(rates) if rate]
        rate, _, slowest = min(known, default=(0, 0, 0))
        return NetworkPath(tuple(hops), slowest, rate)

    def steps(self, source: str, sink: str) -> list[TunnelledHop]:
        """The hops of the same path, with the tunnels around each."""
        return self._steps(node_of(source), node_of(sink), *self.addresses(source, sink), ())

    def crossed(self, source: str, sink: str) -> list[TunnelledHop]:
        """The hops of the path of packets from one host to another, with the tunnels around each."""
        if not self._tunnels:
            return [(hop, ()) for hop in self.path(source, sink).hops]
        return self.steps(source, sink)

    def largest(self, source: str, sink: str) -> int:
        """The largest IP packet that the tunnels between two nodes carry; without one, the largest of all."""
        return min((self._tunnels[name].mtu for name in self._around(source, sink)), default=LARGEST_PACKET)

    def tunnel_kinds(self, source: str, sink: str) -> list[TunnelKind]:
        """The kinds of the tunnels that packets from one node to another go through."""
        ends = (self._tunnels[name].tunnel for name in self._around(source, sink))
        return [end.kind for end in ends if end is not None]

    def _around(self, source: str, sink: str) -> list[str]:
        if not self._tunnels:
            return []
        return list(dict.fromkeys(name for _, tunnels in self.crossed(source, sink) for name in tunnels))

    def outer_bytes(self, tunnels: tuple[str, ...], packet_bytes: int) -> int:
        """The size of an IP packet within these tunnels, the outermost first."""
        for name in reversed(tunnels):
            port = self._tunnels[name]
            assert port.tunnel is not None
            packet_bytes = outer_bytes(port.tunnel.kind, ":" in port.tunnel.local, port.mtu, packet_bytes)
        return packet_bytes

    @cached_property
    def _tunnels(self) -> dict[str, Interface]:
        """An interface of each tunnel, by the tunnel's name."""
        return {port.tunnel.tunnel: port for port in self._interfaces.values() if port.tunnel is not None}

    def _steps(
        self, source: str, sink: str, own: Address, there: Address, around: tuple[str, ...]
    ) -> list[TunnelledHop]:
        """All that packets from one node's address to another's cross."""
        hops: list[TunnelledHop] = []
        here, passed = source, 0
        while here != sink:
            if passed > 2 * len(self._nodes):
                raise ValueError(f"the routes from {source} to {sink} lead in a circle")
            via, interface = self._next(here, there, own if here == source else None)
            begin = End(here, interface)
            end = self._owner(via, begin)
            tunnel = self._interfaces[begin].tunnel
            if tunnel is None:
                hops += [(hop, around) for hop in self._over(begin, end)]
            elif tunnel.tunnel in around:
                raise ValueError(f"the packets of the tunnel {tunnel.tunnel} go by {tunnel.tunnel} itself")
            else:
                outer = (ipaddress.ip_address(tunnel.local), ipaddress.ip_address(tunnel.remote))
                hops += self._steps(here, end.node, *outer, (*around, tunnel.tunnel))
            here, passed = end.node, passed + 1
        return hops

    def _owner(self, via: Address, begin: End) -> End:
        """The interface that has the next hop's address; packets leave by `begin`."""
        return self._owners[via]

    def _over(self, begin: End, end: End) -> Iterator[Hop]:
        """From one interface to a neighbour's: one link, or those of the switches between."""
        vlan, begin, end = self._vlan(begin), self.wired(begin), self.wired(end)
        link, far = self._at[begin]
        yield Hop(link, "forward" if self._links[link][0] == begin else "backward")
        if far == end:
            return
        last, near = self._at[end]
        yield from self._switched(far.node, near.node, vlan, "")
        yield Hop(last, "backward" if self._links[last][0] == end else "forward")

    def _switched(self, here: str, there: str, vlan: int | None, by: str) -> tuple[Hop, ...]:
        """The links from one switch to another that carry a VLAN, which are a tree; `by` is the link to `here`."""
        if here == there:
            return ()
        for own, link, far in self._trunks.get(here, ()):
            if link == by or not self._carries(own, vlan):
                continue
            try:
                rest = self._switched(far.node, there, vlan, link)
            except ValueError:
                continue
            return (Hop(link, "forward" if self._links[link][0] == own else "backward"), *rest)
        raise ValueError(f"no link carries VLAN {vlan} from {here} to {there}")

    def _carries(self, port: End, vlan: int | None) -> bool:
        interface = self._interfaces[port]
        if interface.vlans is None:
            return True
        return vlan in (*interface.vlans.tagged, interface.vlans.untagged)

    def _vlan(self, end: End) -> int | None:
        """The VLAN of an interface's packets, where the link there leads to a switch that has VLANs."""
        interface = self._interfaces[end]
        if interface.vlans is not None and interface.vlans.parent is not None:
            return interface.vlans.tagged[0]
        port = self._interfaces[self._at[end][1]]
        return port.vlans.untagged if port.vlans is not None else None

    @cached_property
    def _trunks(self) -> dict[str, list[tuple[End, str, End]]]:
        """The links between switches, at each: the own port, the link, the other one's port."""
        found: dict[str, list[tuple[End, str, End]]] = {}
        for name, (a, b) in self._links.items():
            if self._nodes[a.node].kind == self._nodes[b.node].kind == "switch":
                found.setdefault(a.node, []).append((a, name, b))
                found.setdefault(b.node, []).append((b, name, a))
        return found

    def _rank(self, hop: Hop) -> int:
        """Lower where more hosts meet: a wide-area link, a switch's port to a router or switch, an access link."""
        if hop.link in self._emulated and self._emulated[hop.link].role == "wan":
            return _WAN
        ends = {self._nodes[end.node].kind for end in self.ends(hop)}
        return _PORT if ends in ({"switch"}, {"switch", "router"}) else _ACCESS

    def _delay_ns(self, hop: Hop) -> int:
        link = self._emulated.get(hop.link)
        if link is None:
            return 0
        return nominal_ns((link.forward if hop.direction == "forward" else link.backward).delay)

    @cached_property
    def _links(self) -> dict[str, tuple[End, End]]:
        """Both ends of every link, plain and emulated."""
        plain = {wire.link: (wire.a, wire.b) for wire in self._plan.wires}
        return plain | {link.name: (link.a, link.b) for link in self._plan.links}

    @cached_property
    def _at(self) -> dict[End, tuple[str, End]]:
        """The link at each interface, and its other end."""
        found = {a: (name, b) for name, (a, b) in self._links.items()}
        return found | {b: (name, a) for name, (a, b) in self._links.items()}

    @cached_property
    def _interfaces(self) -> dict[End, Interface]:
        return {End(node.name, port.name): port for node in self._plan.nodes for port in node.interfaces}

    @cached_property
    def _owners(self) -> dict[Address, End]:
        return {
            ipaddress.ip_interface(text).ip: end for end, port in self._interfaces.items() for text in port.addresses
        }

    def addresses(self, source: str, sink: str) -> tuple[Address, Address]:
        """The first addresses of two ends, of a family that both have, IPv4 if they can choose."""
        for version in (4, 6):
            own, others = ([a for a in self._addresses(name) if a.version == version] for name in (source, sink))
            if own and others:
                return own[0], others[0]
        raise ValueError(f"{source} and {sink} have no addresses of one family")

    def address(self, end: str) -> Address | None:
        """The first address of an end, IPv4 if it has one; None if it has none. ValueError if the node has no such
        link."""
        return min(self._addresses(end), key=lambda address: address.version, default=None)

    def links_of(self, node: str) -> list[str]:
        """The links at which a node has addresses, in order."""
        own = self._nodes[node].interfaces if node in self._nodes else ()
        return [self._name_of(End(node, port.name), port) for port in own if port.addresses]

    def _name_of(self, end: End, port: Interface) -> str:
        """The link or tunnel at an interface."""
        return port.tunnel.tunnel if port.tunnel is not None else self._at[self.wired(end)][0]

    def _addresses(self, end: str) -> list[Address]:
        node, chosen, link = end.partition(BETWEEN)
        if node not in self._nodes:
            raise ValueError(f"the plan has no node {node}")
        ports = [port for port in self._nodes[node].interfaces if port.addresses]
        if chosen:
            ports = [port for port in ports if self._name_of(End(node, port.name), port) == link]
            if not ports:
                raise ValueError(f"{node} has no link {link}")
        return [ipaddress.ip_interface(text).ip for port in ports for text in port.addresses]

    def _next(self, node: str, there: Address, source: Address | None = None) -> tuple[Address, str]:
        """The next address and the interface, by the longest prefix; what is at hand is its own next hop. `source`:
        the address of the node from which it sends."""
        own = self._table(node, there.version, str(source)) if source is not None else {}
        found = _longest(own, there)
        found = _longest(self._table(node, there.version), there) if found is None else found
        if found is None:
            raise ValueError(f"{node} has no route to {there}")
        via, interface = found
        return (there if via is None else via), interface

    def _table(self, node: str, version: int, source: str = "") -> Table:
        """The routes of a node; with a source, only those of packets from there."""
        if (node, version, source) not in self._tables:
            table: Table = {}
            self._tables[node, version, source] = table
            own = self._nodes[node]
            for route in (*own.learned_routes, *own.routes):
                via = ipaddress.ip_address(route.via)
                if via.version == version and route.source == source and not (route.metric and _key(route.to) in table):
                    table[_key(route.to)] = via, route.interface
            for port in own.interfaces if not source else ():
                for text in port.addresses:
                    if ipaddress.ip_interface(text).version == version:
                        table[_key(text)] = None, port.name
        return self._tables[node, version, source]


def _longest(table: Table, there: Address) -> tuple[Address | None, str] | None:
    bits = there.max_prefixlen
    for length in sorted({length for length, _ in table}, reverse=True):
        found = table.get((length, int(there) >> (bits - length)))
        if found is not None:
            return found
    return None


def _key(prefix: str) -> tuple[int, int]:
    network = ipaddress.ip_interface(prefix).network
    return network.prefixlen, int(network.network_address) >> (network.max_prefixlen - network.prefixlen)
