"""The lab's nodes with their interfaces, the wires between them, and the emulated links.

Comes in: the outline, the links' addresses, the egresses of interfaces. Goes out: `WiringResult`. MAC addresses and
interfaces are counted in the order of switched networks, then of the layout's edges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ewan.labs.base.codec import replace
from ewan.labs.compile import backends, dhcp, node_overrides, outside, ovs, vlans, wireguard_keys
from ewan.labs.compile.egress import BARE, Egresses, Tag, with_tag
from ewan.labs.compile.lan import Lan
from ewan.labs.compile.numbering import Numbering
from ewan.labs.compile.outline import Outline
from ewan.labs.compile.tunnels import NodeTunnel, TunnelEnd
from ewan.labs.compile.vlans import Segment
from ewan.labs.link import Direction, Egress
from ewan.labs.link.context import LinkContext
from ewan.labs.link.direction import Directions
from ewan.labs.link.settings import DirectionSettings
from ewan.labs.plan import Card, Encapsulation, End, Hardware, Interface, Link, Neighbour, Service, Vlans, Wire
from ewan.labs.topologies import Edge


@dataclass(slots=True)
class WiredNode:
    """A node with what its links give it; `services` are a switch's, or serve machines plugged into a router.

    `tagged` are those of its interfaces that are a VLAN of another one, `tunnels` those that are an end of one.
    """

    name: str
    kind: Literal["host", "router", "switch", "emulator"]
    interfaces: list[Interface] = field(default_factory=list)
    services: tuple[Service, ...] = ()
    tagged: list[Interface] = field(default_factory=list)
    tunnels: list[Interface] = field(default_factory=list)

    @property
    def all_interfaces(self) -> tuple[Interface, ...]:
        """Those of links, then those that are a VLAN of one, then those of tunnels."""
        return (*self.interfaces, *self.tagged, *self.tunnels)


Reach = tuple[str, tuple[str, ...]]
"""An interface of a node, and the addresses at its other end."""


@dataclass(frozen=True, slots=True)
class WiringResult:
    """`reach` is by a node's name and the index of the edge at which it is."""

    machines: Mapping[str, WiredNode]
    wires: Sequence[Wire]
    links: Sequence[Link]
    cards: Sequence[Card]
    hardware: Sequence[Hardware]
    reach: Mapping[tuple[str, int], Reach]
    external: Mapping[str, End]
    """The routers' ports with machines plugged in, by name."""


def wire(outline: Outline, numbering: Numbering, egresses: Egresses) -> WiringResult:
    """All nodes, wires and links; DescriptionError for a link that cannot be emulated as it is written."""
    wiring = _Wiring(outline, numbering, egresses)
    for network in outline.networks:
        wiring.add_lan(network)
    for segment in outline.switching.segments:
        wiring.add_segment(segment)
    for index, edge in enumerate(outline.layout.edges):
        wiring.add_edge(index, edge)
    wiring.fill_switches()
    external = wiring.add_external()
    for tunnel in outline.tunnels:
        wiring.add_tunnel(tunnel)
    return WiringResult(
        wiring.machines, wiring.wires, wiring.links, wiring.cards, wiring.hardware, wiring.reach, external
    )


@dataclass(frozen=True, slots=True)
class _Member:
    """A host or router in a segment: what its interface there has, and the addresses that it leads to."""

    vlan: int
    mac: str
    prefixes: tuple[str, ...]
    neighbours: tuple[Neighbour, ...]
    far: tuple[str, ...]


_HEX = [f"{byte:02x}" for byte in range(256)]


class _Wiring:
    """`WiringResult` while it is being made."""

    def __init__(self, outline: Outline, numbering: Numbering, egresses: Egresses) -> None:
        self._outline, self._numbering, self._egresses = outline, numbering, egresses
        layout = outline.layout
        self.machines = {name: WiredNode(name, "host") for name in layout.hosts}
        self.machines |= {name: WiredNode(name, "router") for name in layout.routers}
        self.wires: list[Wire] = []
        self.links: list[Link] = []
        self.cards: list[Card] = []
        self.hardware: list[Hardware] = []
        self.reach: dict[tuple[str, int], Reach] = {}
        self._directions = Directions(outline.spec.description.seed)
        self._first_port = int(node_overrides.managed(outline.spec))
        self._lengths = numbering.of_families("/30", "/64")
        self._macs = 0
        self._on_lan: dict[int, Interface] = {}
        self.machines |= {name: WiredNode(name, "switch") for name in layout.switches}
        self._switches = frozenset(layout.switches)
        self._members: dict[tuple[str, int], dict[int, _Member]] = {}
        self._ports: dict[tuple[str, int], int] = {}
        """A switch's port, counted from 1, by the link that is there."""

    def _mac(self) -> str:
        self._macs += 1
        n = self._macs
        return f"02:65:{_HEX[n >> 24 & 255]}:{_HEX[n >> 16 & 255]}:{_HEX[n >> 8 & 255]}:{_HEX[n & 255]}"

    def _next_port(self, machine: WiredNode) -> str:
        return f"eth{self._first_port + len(machine.interfaces)}"

    def add_lan(self, network: Lan) -> None:
        """A switch and the link to its router; its hosts' interfaces, which `add_edge` puts into them."""
        host = self._outline.host
        router, first = self.machines[network.router], network.edges[0]
        switch = self.machines[network.switch] = WiredNode(network.switch, "switch")
        mtu = self._outline.links[first].mtu
        macs = {index: self._mac() for index in network.edges}
        mac, own = self._mac(), self._numbering.addresses(first, 1)
        lengths = self._numbering.of_families(*(f"/{length}" for length in network.lengths))
        towards = tuple(Neighbour(address, mac) for address in own)
        known: list[Neighbour] = []
        for end, index in enumerate(network.edges, 2):
            addresses = self._numbering.addresses(index, end)
            known += [Neighbour(address, macs[index]) for address in addresses]
            self._on_lan[index] = Interface("", macs[index], mtu, _prefixes(addresses, lengths), towards, BARE, False)
        port_egress = self._egresses.port(network.port, mtu, ovs.AT_ONCE[host.datapath])
        ends = []
        for machine, interface in (
            (switch, Interface(self._next_port(switch), self._mac(), mtu, (), (), port_egress, False)),
            (
                router,
                Interface(self._next_port(router), mac, mtu, _prefixes(own, lengths), tuple(known), port_egress, False),
            ),
        ):
            machine.interfaces.append(interface)
            ends.append(End(machine.name, interface.name))
        self.wires.append(Wire(network.switch, ends[0], ends[1]))
        behind = [ovs.BridgePort(switch.interfaces[0].name, (mac,))]
        start = self._first_port + 1
        behind += [ovs.BridgePort(f"eth{start + place}", (macs[index],)) for place, index in enumerate(network.edges)]
        switch.services = ovs.services(behind, host.datapath, at_boot=host.clock == "virtual")

    def _attach(self, index: int, edge: Edge) -> list[tuple[str, Interface, tuple[str, ...]]]:
        """Both ends of a link: node, interface without its exit, and the addresses that it leads to."""
        mtu, network = self._outline.links[index].mtu, self._outline.lans.get(index)
        if network is not None:
            host = self._on_lan[index]
            far = tuple(neighbour.address for neighbour in host.neighbours)
            port = Interface("", self._mac(), mtu, (), (), BARE, False)
            ends = [(edge.a, host, far), (network.switch, port, ())]
            return ends if edge.b == network.router else [(network.switch, port, ()), (edge.b, host, far)]
        if {edge.a, edge.b} & self._switches:
            return [self._switched(name, index, edge, mtu) for name in (edge.a, edge.b)]
        macs = self._mac(), self._mac()
        addresses = self._numbering.addresses(index, 1), self._numbering.addresses(index, 2)
        ends = []
        for name, here, there in ((edge.a, 0, 1), (edge.b, 1, 0)):
            prefixes = _prefixes(addresses[here], self._lengths)
            known = tuple(Neighbour(a, macs[there]) for a in addresses[there])
            ends.append((name, Interface("", macs[here], mtu, prefixes, known, BARE, False), addresses[there]))
        return ends

    def add_edge(self, index: int, edge: Edge) -> None:
        """Both ends of a link, and the emulator between them if it needs one."""
        link, paths = self._outline.links[index], self._outline.paths
        mtu = link.mtu
        delayed = paths.forward_ns[index] > 0 or paths.backward_ns[index] > 0
        needed = edge.role == "wan" or link.impaired or delayed or link.hardware is not None
        emulated = self._emulated(index, edge) if needed else None
        steer = emulated is not None and emulated[2] == "user" and self._outline.host.clock == "live"
        egress_of = self._egresses.before_emulator if emulated is not None else self._card_of(edge)
        ends = []
        for (name, bare, far), way in zip(self._attach(index, edge), (link.forward, link.backward), strict=True):
            machine = self.machines[name]
            port = self._next_port(machine)
            interface = Interface(  # not `replace`, which takes a tenth of a large lab's time
                port,
                bare.mac,
                mtu,
                bare.addresses,
                bare.neighbours,
                egress_of(name, machine.kind == "host", way, mtu),
                steer,
            )
            ends.append(End(name, port))
            self.reach[name, index] = port, far
            if edge.tagged or name in self._switches:
                interface = self._with_vlans(machine, index, edge, interface)
            machine.interfaces.append(interface)
        a, b = ends
        if emulated is None:
            self.wires.append(Wire(edge.name, a, b))
        elif link.hardware is not None:
            self._add_device(index, edge, a, b, emulated[0], emulated[1])
        else:
            self._add_emulator(edge, mtu, a, b, *emulated)

    def add_external(self) -> dict[str, End]:
        """The routers' ports with machines plugged in, and what gives these their addresses."""
        ends: dict[str, End] = {}
        ports: dict[str, list[dhcp.RouterPort]] = {}
        numbering, mtu = self._numbering, self._outline.links[0].mtu
        for external in self._outline.external:
            machine, number = self.machines[external.router], numbering.external[external.name]
            own = numbering.of_families(numbering.pool.v4(number, 1), numbering.pool.v6(number, 1))
            addresses = _prefixes(own, numbering.of_families(f"/{dhcp.V4_LENGTH}", "/64"))
            everything = (*addresses, dhcp.LINK_LOCAL) if numbering.with_v6 else addresses
            name = self._next_port(machine)
            machine.interfaces.append(Interface(name, self._mac(), mtu, everything, (), BARE, False))
            ends[external.name] = End(machine.name, name)
            ports.setdefault(machine.name, []).append(dhcp.RouterPort(name, mtu, addresses))
        for router, of_router in ports.items():
            self.machines[router].services = (dhcp.service(of_router, numbering.lab()),)
        return ends

    def add_tunnel(self, tunnel: NodeTunnel) -> None:
        """Both ends of a tunnel, when those of all links are there."""
        numbering, lab = self._numbering, self._outline.spec.description.name or ""
        own = [numbering.addresses(tunnel.index, end) for end in (1, 2)]
        outer = [self._outer(end) for end in tunnel.ends]
        of_wireguard = tunnel.kind == "wireguard"
        keys = [wireguard_keys.pair(lab, tunnel.name, node) if of_wireguard else ("", "") for node in tunnel.nodes]
        macs = self._mac(), self._mac()
        number = tunnel.index - len(self._outline.layout.edges) + 1
        for here, there in ((0, 1), (1, 0)):
            end = tunnel.ends[here]
            encapsulation = Encapsulation(
                tunnel.name,
                tunnel.kind,
                number,
                outer[here],
                outer[there],
                self.reach[end.node, end.link][0] if end.bound else "",
                keys[here][0],
                keys[there][1],
                of_wireguard and here == 0,
                tunnel.keepalive_s if here == 0 else 0,
            )
            # Only a VXLAN has addresses of Ethernet.
            known = tuple(Neighbour(a, macs[there]) for a in own[there]) if tunnel.kind == "vxlan" else ()
            prefixes = _prefixes(own[here], self._lengths)
            interface = Interface(
                tunnel.name, macs[here], tunnel.mtu, prefixes, known, BARE, False, None, encapsulation
            )
            self.machines[end.node].tunnels.append(interface)
            self.reach[end.node, tunnel.index] = tunnel.name, own[there]

    def _outer(self, end: TunnelEnd) -> str:
        """The address of the outer packets at an end, of IPv4 if the lab has it."""
        name, _ = self.reach[end.node, end.link]
        port = next(port for port in self.machines[end.node].all_interfaces if port.name == name)
        return port.addresses[0].split("/")[0]

    def add_segment(self, segment: Segment) -> None:
        """The members of a VLAN, which `add_edge` puts at their links: its router is the first."""
        lengths = self._numbering.of_families(*(f"/{length}" for length in segment.lengths))
        number = self._numbering.segments[segment]
        mac, its_own = self._mac(), self._numbering.numbered(number, 1)
        towards = tuple(Neighbour(address, mac) for address in its_own)
        known: list[Neighbour] = []
        for end, (host, way) in enumerate(segment.hosts.items(), 2):
            its_mac, addresses = self._mac(), self._numbering.numbered(number, end)
            known += [Neighbour(address, its_mac) for address in addresses]
            member = _Member(segment.vlan, its_mac, _prefixes(addresses, lengths), towards, its_own)
            self._members.setdefault((host, way[0]), {})[segment.vlan] = member
        router = _Member(segment.vlan, mac, _prefixes(its_own, lengths), tuple(known), ())
        self._members.setdefault((segment.router, segment.gateway), {})[segment.vlan] = router

    def _switched(self, name: str, index: int, edge: Edge, mtu: int) -> tuple[str, Interface, tuple[str, ...]]:
        """One end of a switch's link, as its untagged frames find it."""
        untagged = next((vlan for vlan, tagged in vlans.carried(edge).items() if not tagged), 0)
        member = self._members.get((name, index), {}).get(untagged)
        if member is None:
            return name, Interface("", self._mac(), mtu, (), (), BARE, False), ()
        return name, Interface("", member.mac, mtu, member.prefixes, member.neighbours, BARE, False), member.far

    def _with_vlans(self, machine: WiredNode, index: int, edge: Edge, port: Interface) -> Interface:
        """The interface with its VLANs; what its node has in those with a tag becomes interfaces of their own."""
        carried = vlans.carried(edge)
        for vlan in edge.tagged:
            member = self._members.get((machine.name, index), {}).get(vlan)
            if member is not None:
                name = f"{port.name}.{vlan}"
                inside = Interface(name, member.mac, port.mtu, member.prefixes, member.neighbours, BARE, port.steer)
                machine.tagged.append(replace(inside, vlans=Vlans((vlan,), None, port.name)))
                if member.far:
                    self.reach[machine.name, index] = name, member.far
        if machine.kind == "switch":
            self._ports[machine.name, index] = len(machine.interfaces) + 1
        untagged = next((vlan for vlan, tagged in carried.items() if not tagged), None)
        return replace(port, vlans=Vlans(tuple(sorted(edge.tagged)), untagged, None))

    def _card_of(self, edge: Edge) -> Callable[[str, bool, DirectionSettings, int], Egress]:
        """The egress of a plain link's end, by node, whether that is a host, settings and MTU."""
        if not {edge.a, edge.b} & self._switches:
            return self._egresses.card
        datapath, alone = self._outline.host.datapath, {edge.a, edge.b} & self._outline.paths.uplink.keys()

        def card(name: str, is_host: bool, way: DirectionSettings, mtu: int) -> Egress:
            found = (
                self._egresses.card(name, is_host, way, mtu)
                if alone
                else self._egresses.port(way, mtu, ovs.AT_ONCE[datapath])
            )
            inside = name in self._switches and datapath == "netdev"
            tag: Tag = "none" if not edge.tagged else "inside" if inside else "beside"
            return with_tag(found, mtu, tag)

        return card

    def fill_switches(self) -> None:
        """The programs of switches with VLANs, when all of their ports are known."""
        facts, segments = self._outline.host, self._outline.switching.segments
        behind: dict[tuple[str, int], list[tuple[int, str]]] = {}
        for segment in segments:
            members = {host: way[0] for host, way in segment.hosts.items()} | {segment.router: segment.gateway}
            macs = {name: self._members[name, index][segment.vlan].mac for name, index in members.items()}
            for switch in segment.above:
                for name, mac in macs.items():
                    behind.setdefault((switch, segment.towards(switch, name)), []).append((segment.vlan, mac))
        links = {(switch, number): index for (switch, index), number in self._ports.items()}
        for switch in self._outline.layout.switches:
            machine = self.machines[switch]
            ports = []
            for number, interface in enumerate(machine.interfaces, 1):
                assert interface.vlans is not None
                macs_here = tuple(behind.get((switch, links[switch, number]), ()))
                ports.append(ovs.VlanPort(interface.name, interface.vlans, macs_here))
            machine.services = ovs.vlan_services(ports, facts.datapath, at_boot=facts.clock == "virtual")

    def _add_emulator(
        self, edge: Edge, mtu: int, a: End, b: End, forward: Direction, backward: Direction, backend: backends.Backend
    ) -> None:
        """Puts an emulator between the ends `a` and `b`: a node with two ports, two wires and the link."""
        name = edge.name
        emulator = self.machines[name] = WiredNode(name, "emulator")
        port_a, port_b = (f"eth{self._first_port + number}" for number in range(2))
        for port in (port_a, port_b):
            emulator.interfaces.append(Interface(port, self._mac(), mtu, (), (), BARE, False))
        self.wires += [Wire(name, a, End(name, port_a)), Wire(name, End(name, port_b), b)]
        self.links.append(Link(name, edge.role, backend, name, port_a, port_b, a, b, forward, backward))

    def _add_device(self, index: int, edge: Edge, a: End, b: End, forward: Direction, backward: Direction) -> None:
        """Puts a device between the ends `a` and `b`, which are cards of this machine: for the lab a cable."""
        outline, link = self._outline, self._outline.links[index]
        assert link.hardware is not None
        if "switch" in (self.machines[end.node].kind for end in (a, b)):
            message = f"{edge.name} is behind a switch: leave switch out, or hardware"
            raise outline.spec.error(link.hardware_path, message)
        ports = link.hardware.ports
        self.wires.append(Wire(edge.name, a, b))
        self.cards += outside.cards(ports, (a, b))
        self.links.append(Link(edge.name, edge.role, "hardware", "", *ports, a, b, forward, backward))
        self.hardware.append(outside.device(outline.spec, outline.host, edge.name, link, forward, backward))

    def _emulated(self, index: int, edge: Edge) -> tuple[Direction, Direction, backends.Backend]:
        """Both directions of an emulated link, and what emulates it."""
        spec, link, paths = self._outline.spec, self._outline.links[index], self._outline.paths
        there, back = (
            LinkContext(spec.places, edge.name, edge.role, delays[index], link.mtu, paths.longest_rtt_ns)
            for delays in (paths.forward_ns, paths.backward_ns)
        )
        forward = self._directions.direction(link.forward, there, "forward")
        backward = self._directions.direction(link.backward, back, "backward")
        if link.hardware is not None:
            return forward, backward, "hardware"
        return forward, backward, backends.choose(spec, self._outline.host, edge.name, link, forward, backward)


def _prefixes(addresses: Sequence[str], lengths: Sequence[str]) -> tuple[str, ...]:
    return tuple([address + length for address, length in zip(addresses, lengths, strict=True)])
