"""Description in, plan out: pure, deterministic, no I/O.

Comes in: a `Spec` and what the host already uses. Goes out: the `Plan`, in which everything is decided; defaults
are applied here and nowhere else. What cannot be built is refused with a `DescriptionError`.
"""

from __future__ import annotations

import gc
import ipaddress
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from labs.compile import backends, checks, lan, ovs, routing, sysctls
from labs.compile.addresses import LARGEST_LAB, Pool, PoolError, blocks
from labs.compile.egress import BARE, Clock, Exits
from labs.compile.paths import Paths
from labs.compile.placement import place
from labs.compile.settings import Resolver, Settings
from labs.compile.stages import ACCESS_RATE, WAN_RATE, Circumstances, Stages, framed, framing_of
from labs.plan import (
    Containers,
    Direction,
    End,
    Hop,
    Interface,
    Link,
    Neighbour,
    NetworkPath,
    Node,
    Pair,
    Plan,
    Route,
    Service,
    Wire,
)
from labs.spec import Spec
from labs.topologies import Edge, build
from labs.units import Rate, bytes_in, time_for


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What the compiler must know of the machine: CPUs that may be used, networks (CIDR) in use, whose clock runs.

    `datapath`: where switches forward, which is in the kernel where that can.
    """

    cpus: tuple[int, ...]
    networks: tuple[str, ...]
    clock: Clock = "live"
    datapath: ovs.Datapath = "netdev"


def compile(spec: Spec, host: HostFacts) -> Plan:
    """The plan of a description; equal input gives equal plans."""
    # A large lab is a million small objects without a cycle: looking for cycles among them takes half of the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _Compiler(spec, host).plan()
    finally:
        if collecting:
            gc.enable()


class _Machine:
    """A node while it is being built."""

    __slots__ = ("interfaces", "kind", "learned", "name", "routes", "services", "sysctls")

    def __init__(self, name: str, kind: Literal["host", "router", "switch", "emulator"]) -> None:
        self.name, self.kind = name, kind
        self.interfaces: list[Interface] = []
        self.routes: list[Route] = []
        self.learned: list[Route] = []
        self.services: list[Service] = []
        self.sysctls: dict[str, str] = {}

    def settled(self, of_kinds: dict[str, dict[str, str]]) -> dict[str, str]:
        """Its sysctls: those of its kind, shared by all that have none of their own."""
        return of_kinds[self.kind] | self.sysctls if self.sysctls else of_kinds[self.kind]


class _Crossed(NamedTuple):
    """One hop of a path with the settings of its direction; the lower `shared` is, the more hosts meet there."""

    hop: Hop
    way: Settings
    mtu: int
    shared: int
    rate_bps: int


_HEX = [f"{byte:02x}" for byte in range(256)]
_SHARED = {"wan": 0, "access": 2}
_PORT = 1
"""Of the port between a switch and its router."""


class _Compiler:
    def __init__(self, spec: Spec, host: HostFacts) -> None:
        self._spec, self._host, self._description = spec, host, spec.description
        self._layout = build(self._description.topology)
        checks.check_layout(spec, self._layout)
        resolver = Resolver(spec)
        self._settings = [resolver.of(edge) for edge in self._layout.edges]
        self._raise_access_rate()
        checks.check_mtus(spec, self._layout, self._settings)
        self._paths = Paths(spec, self._layout, self._settings)
        self._costs = self._price()
        self._lans = lan.of(spec, self._layout, self._paths.uplink, self._settings)
        self._crossings: dict[tuple[int, bool], _Crossed] = {}
        self._stages = Stages(spec)
        packet_ns = self._packet_times() if host.clock == "virtual" else {}
        self._exits = Exits(spec, host.clock, self._paths.longest_rtt_ns, packet_ns)
        self._with_v4 = self._description.ip != "6"
        self._with_v6 = self._description.ip != "4"
        wanted = self._description.containers
        self._containers = Containers(wanted.management or wanted.dashboards, wanted.dashboards, wanted.ovs_bridge)
        self._machines: dict[str, _Machine] = {}
        self._wires: list[Wire] = []
        self._links: list[Link] = []
        self._macs = 0
        self._reach: dict[tuple[str, int], tuple[str, tuple[str, ...]]] = {}
        self._on_lan: dict[int, Interface] = {}

    def plan(self) -> Plan:
        for name in self._layout.hosts:
            self._machines[name] = _Machine(name, "host")
        for name in self._layout.routers:
            self._machines[name] = _Machine(name, "router")
        owned = self._number_links()
        for network in dict.fromkeys(self._lans.values()):
            self._wire_lan(network)
        for index, edge in enumerate(self._layout.edges):
            self._wire(index, edge)
        self._route(owned)
        self._serve()
        own = [link.name for link in self._links if link.backend == "user"]
        spinners, host_cpus = place(self._spec, self._host.cpus, own, chosen=self._host.clock == "live")
        values = self._sysctls()
        return Plan(
            lab=self._description.name or self._description.topology.kind,
            topology=self._description.topology.kind,
            seed=self._description.seed,
            routing=self._description.routing,
            containers=self._containers,
            nodes=tuple(
                Node(
                    m.name,
                    m.kind,
                    tuple(m.interfaces),
                    tuple(m.routes),
                    m.settled(values),
                    tuple(m.services),
                    tuple(m.learned),
                )
                for m in self._machines.values()
            ),
            wires=tuple(self._wires),
            links=tuple(self._links),
            spinners=spinners,
            pairs=tuple(self._pair(source, sink) for source, sink in self._layout.pairs),
            host_cpus=host_cpus,
        )

    def _raise_access_rate(self) -> None:
        """Access links are no bottleneck unless somebody says so: as fast as the fastest wide-area link."""
        rates = [
            way.get("rate", WAN_RATE).bps
            for edge, link in zip(self._layout.edges, self._settings, strict=True)
            if edge.role == "wan"
            for way in (link.forward, link.backward)
        ]
        self._access_rate = Rate(max(rates, default=0)) if max(rates, default=0) > ACCESS_RATE.bps else ACCESS_RATE
        for edge, link in zip(self._layout.edges, self._settings, strict=True):
            if edge.role == "access":
                for way in (link.forward, link.backward):
                    way.values.setdefault("rate", self._access_rate)

    # Links

    def _number_links(self) -> dict[str, tuple[int, int]]:
        """Gives each link its number; a router owns the links of its hosts and those that begin at it."""
        owner = [edge.a if edge.a in self._paths.next_hops else edge.b for edge in self._layout.edges]
        sizes: Counter[str] = Counter()
        for index, name in enumerate(owner):
            network = self._lans.get(index)
            sizes[name] += 1 if network is None else network.numbers if network.edges[0] == index else 0
        placed = blocks(sizes)
        free = {name: start for name, (start, _) in placed.items()}
        shared = {}
        for network in dict.fromkeys(self._lans.values()):  # first in their block, where they are aligned
            shared[network] = free[network.router]
            free[network.router] += network.numbers
        self._number = []
        for index, name in enumerate(owner):
            network = self._lans.get(index)
            self._number.append(free[name] if network is None else shared[network])
            free[name] += network is None
        total = max((start + size for start, size in placed.values()), default=1)
        if total > LARGEST_LAB:
            raise self._spec.error(("topology",), f"needs {total} subnets: write one that needs at most {LARGEST_LAB}")
        try:
            self._pool = Pool(total, self._host.networks)
        except PoolError:
            message = "this host's networks leave no private addresses for the lab: free some of 10.0.0.0/8"
            raise self._spec.error(("topology",), message) from None
        return placed

    def _mac(self) -> str:
        self._macs += 1
        n = self._macs
        return f"02:65:{_HEX[n >> 24 & 255]}:{_HEX[n >> 16 & 255]}:{_HEX[n >> 8 & 255]}:{_HEX[n & 255]}"

    def _wire_lan(self, network: lan.Lan) -> None:
        """A switch and the link to its router; its hosts' interfaces, which `_wire` puts into them."""
        router, first = self._machines[network.router], network.edges[0]
        switch = self._machines[network.switch] = _Machine(network.switch, "switch")
        mtu = self._settings[first].mtu
        macs = {index: self._mac() for index in network.edges}
        mac, own = self._mac(), self._addresses(first, 1)
        families = [
            length for length, used in zip(network.lengths, (self._with_v4, self._with_v6), strict=True) if used
        ]
        towards = tuple(Neighbour(address, mac) for address in own)
        known: list[Neighbour] = []
        for end, index in enumerate(network.edges, 2):
            addresses = self._addresses(index, end)
            known += [Neighbour(address, macs[index]) for address in addresses]
            prefixes = tuple(f"{address}/{length}" for address, length in zip(addresses, families, strict=True))
            self._on_lan[index] = Interface("", macs[index], mtu, prefixes, towards, BARE, False)
        prefixes = tuple(f"{address}/{length}" for address, length in zip(own, families, strict=True))
        exit_to = self._exits.port(network.port, mtu, ovs.AT_ONCE[self._host.datapath])
        ends = []
        for machine, interface in (
            (switch, Interface(self._next_port(switch), self._mac(), mtu, (), (), exit_to, False)),
            (router, Interface(self._next_port(router), mac, mtu, prefixes, tuple(known), exit_to, False)),
        ):
            machine.interfaces.append(interface)
            ends.append(End(machine.name, interface.name))
        self._wires.append(Wire(network.switch, ends[0], ends[1]))
        behind = [ovs.Port(switch.interfaces[0].name, (mac,))]
        start = self._containers.management + 1
        behind += [ovs.Port(f"eth{start + place}", (macs[index],)) for place, index in enumerate(network.edges)]
        switch.services += ovs.services(behind, self._host.datapath, at_boot=self._host.clock == "virtual")

    def _next_port(self, machine: _Machine) -> str:
        return f"eth{self._containers.management + len(machine.interfaces)}"

    def _attach(self, index: int, edge: Edge) -> list[tuple[str, Interface, tuple[str, ...]]]:
        """Both ends of a link: node, interface without its exit, and the addresses that it leads to."""
        mtu, network = self._settings[index].mtu, self._lans.get(index)
        if network is not None:
            host = self._on_lan[index]
            far = tuple(neighbour.address for neighbour in host.neighbours)
            port = Interface("", self._mac(), mtu, (), (), BARE, False)
            ends = [(edge.a, host, far), (network.switch, port, ())]
            return ends if edge.b == network.router else [(network.switch, port, ()), (edge.b, host, far)]
        macs = self._mac(), self._mac()
        addresses = self._addresses(index, 1), self._addresses(index, 2)
        lengths = (["/30"] if self._with_v4 else []) + (["/64"] if self._with_v6 else [])
        ends = []
        for name, here, there in ((edge.a, 0, 1), (edge.b, 1, 0)):
            prefixes = tuple(a + length for a, length in zip(addresses[here], lengths, strict=True))
            known = tuple(Neighbour(a, macs[there]) for a in addresses[there])
            ends.append((name, Interface("", macs[here], mtu, prefixes, known, BARE, False), addresses[there]))
        return ends

    def _wire(self, index: int, edge: Edge) -> None:
        """Both ends of a link, and the emulator between them if it needs one."""
        link = self._settings[index]
        mtu = link.mtu
        there, back = self._paths.forward_ns[index], self._paths.backward_ns[index]
        emulated = edge.role == "wan" or link.impaired or there > 0 or back > 0
        forward, backward, backend = self._directions(index, edge) if emulated else (None, None, None)
        ends = []
        for (name, bare, far), way in zip(self._attach(index, edge), (link.forward, link.backward), strict=True):
            machine = self._machines[name]
            exit_of = self._exits.before_emulator if emulated else self._exits.card
            interface = Interface(  # not `replace`, which takes a tenth of a large lab's time
                self._next_port(machine),
                bare.mac,
                mtu,
                bare.addresses,
                bare.neighbours,
                exit_of(name, machine.kind == "host", way, mtu),
                backend == "user" and self._host.clock == "live",
            )
            machine.interfaces.append(interface)
            ends.append(End(name, interface.name))
            self._reach[name, index] = interface.name, far
        a, b = ends
        if forward is None or backward is None or backend is None:
            self._wires.append(Wire(edge.name, a, b))
            return
        name = edge.name
        emulator = self._machines[name] = _Machine(name, "emulator")
        port_a, port_b = (f"eth{self._containers.management + number}" for number in range(2))
        for port in (port_a, port_b):
            emulator.interfaces.append(Interface(port, self._mac(), mtu, (), (), BARE, False))
        self._wires += [Wire(name, a, End(name, port_a)), Wire(name, End(name, port_b), b)]
        self._links.append(Link(name, edge.role, backend, name, port_a, port_b, a, b, forward, backward))

    def _directions(self, index: int, edge: Edge) -> tuple[Direction, Direction, backends.Backend]:
        """Both directions of an emulated link, and what emulates it."""
        link, longest = self._settings[index], self._paths.longest_rtt_ns
        there, back = (
            Circumstances(edge.name, edge.role, delays[index], link.mtu, longest)
            for delays in (self._paths.forward_ns, self._paths.backward_ns)
        )
        forward = self._stages.direction(link.forward, there, "forward")
        backward = self._stages.direction(link.backward, back, "backward")
        backend = backends.choose(self._spec, self._host.clock, edge.name, link, forward, backward)
        return forward, backward, backend

    def _addresses(self, index: int, end: int) -> tuple[str, ...]:
        number = self._number[index]
        v4 = (self._pool.v4(number, end),) if self._with_v4 else ()
        return (*v4, self._pool.v6(number, end)) if self._with_v6 else v4

    # Routes, pairs

    def _route(self, owned: dict[str, tuple[int, int]]) -> None:
        """Hosts have a default route; a router has one a family to each other router's links, or is to learn them."""
        defaults = (["0.0.0.0/0"] if self._with_v4 else []) + (["::/0"] if self._with_v6 else [])
        for host, index in self._paths.uplink.items():
            interface, far = self._reach[host, index]
            self._machines[host].routes += [Route(to, via, interface) for to, via in zip(defaults, far, strict=True)]
        static = self._description.routing == "static"
        between = self._paths.between
        for owner, (first, size) in owned.items():
            prefixes = [self._pool.v4_block(first, size)] if self._with_v4 else []
            prefixes += [self._pool.v6_block(first, size)] if self._with_v6 else []
            for router, onward in self._paths.next_hops[owner].items():
                beside = between.get(frozenset((router, owner))) if size == 1 else None
                if beside is not None and self._number[beside] == first:
                    continue  # The block is the network of the very link that joins the two: both are connected to it.
                interface, far = self._reach[router, between[frozenset((router, onward))]]
                machine = self._machines[router]
                routes = machine.routes if static else machine.learned
                routes += [Route(to, via, interface) for to, via in zip(prefixes, far, strict=True)]

    def _price(self) -> dict[int, int]:
        """Each router link's cost where a protocol finds the routes; the paths are then those that it finds."""
        if self._description.routing == "static":
            return {}
        try:
            return self._paths.priced(routing.LARGEST_COST[self._description.routing])
        except ValueError:
            message = "cannot tell all paths apart by the links' delays: write different ones, or static"
            raise self._spec.error(("routing",), message, self._description.routing) from None

    def _serve(self) -> None:
        """The routers' daemons, where a protocol finds the routes; their neighbours' link-local addresses."""
        protocol = self._description.routing
        if protocol == "static":
            return
        numbers = {name: number for number, name in enumerate(self._layout.routers, 1)}
        peers: dict[tuple[str, str], routing.Peer] = {}
        for ends, index in self._paths.between.items():
            edge, rtt_ns = self._layout.edges[index], self._paths.forward_ns[index] + self._paths.backward_ns[index]
            for name, far_name in ((edge.a, edge.b), (edge.b, edge.a)):
                assert name in ends
                interface, far = self._reach[name, index]
                peers[name, interface] = routing.Peer(far, numbers[far_name], self._costs[index], rtt_ns)
        for name, number in numbers.items():
            machine = self._machines[name]
            attachments = []
            for at, port in enumerate(machine.interfaces):
                peer = peers.get((name, port.name))
                networks = tuple(str(ipaddress.ip_interface(address).network) for address in port.addresses)
                attachments.append(routing.Attachment(port.name, port.mtu, networks, peer))
                if peer is not None and self._with_v6:
                    far_mac = port.neighbours[0].mac
                    local = Neighbour(routing.link_local(far_mac), far_mac)
                    machine.interfaces[at] = replace(port, neighbours=(*port.neighbours, local))
            addresses = [address.split("/")[0] for port in machine.interfaces for address in port.addresses]
            router = routing.Router(name, number, routing.identity(number, addresses), tuple(attachments))
            machine.services += routing.services(protocol, router, len(numbers), self._with_v4, self._with_v6)
            machine.sysctls |= routing.sysctls(router, self._with_v6)

    def _pair(self, source: str, sink: str) -> Pair:
        steps = self._paths.of_pair(source, sink)
        there = self._crossed(steps)
        back = self._crossed([(index, not forward) for index, forward in reversed(steps)])
        rtt = sum(self._paths.forward_ns[index] + self._paths.backward_ns[index] for index, _ in steps)
        return Pair(source, sink, rtt, _path_of(there), _path_of(back))

    def _crossed(self, steps: Sequence[tuple[int, bool]]) -> list[_Crossed]:
        """All that packets cross on a path of links: these, and the ports between a switch and its router."""
        crossed = [self._crossings.get(step) or self._crossing(*step) for step in steps]
        if not self._lans:
            return crossed
        near, far = (self._lans.get(steps[end][0]) for end in (0, -1))
        if near is not far:  # hosts of one network talk through the switch alone
            if near is not None:
                crossed.insert(1, self._port(near, "forward"))
            if far is not None:
                crossed.insert(-1, self._port(far, "backward"))
        return crossed

    def _crossing(self, index: int, forward: bool) -> _Crossed:
        edge, link = self._layout.edges[index], self._settings[index]
        hop = Hop(edge.name, "forward" if forward else "backward")
        way = link.forward if forward else link.backward
        found = _Crossed(hop, way, link.mtu, _SHARED[edge.role], way.get("rate", WAN_RATE).bps)
        self._crossings[index, forward] = found
        return found

    def _port(self, network: lan.Lan, direction: Literal["forward", "backward"]) -> _Crossed:
        """Between a switch and its router; `forward` goes to the router."""
        mtu, rate_bps = self._settings[network.edges[0]].mtu, network.port.values["rate"].bps
        return _Crossed(Hop(network.switch, direction), network.port, mtu, _PORT, rate_bps)

    def _packet_times(self) -> dict[str, int]:
        """Each host's longest packet time, in ns, at the bottlenecks of its pairs; without a pair, of the lab."""
        times: dict[str, int] = {}
        for ends in self._layout.pairs:
            crossed = self._crossed(self._paths.of_pair(*ends))
            longest = max(packet_time(each.way, each.mtu) for each in crossed)
            for host in ends:
                times[host] = max(times.get(host, 0), longest)
        ways = [(way, link.mtu) for link in self._settings for way in (link.forward, link.backward)]
        slowest = max(packet_time(way, mtu) for way, mtu in ways) if len(times) < len(self._layout.hosts) else 0
        return {host: times.get(host, slowest) for host in self._layout.hosts}

    def _sysctls(self) -> dict[str, dict[str, str]]:
        """Socket buffers hold twice what the longest path and the largest queue hold."""
        rate, queue = 0, 0
        for link in self._links:
            for way in (link.forward, link.backward):
                rate = max(rate, way.rate_bps) if link.role == "wan" else rate
                waiting = way.queue.limit_bytes or (way.queue.limit_packets or 0) * way.framing.minimum_bytes
                queue = max(queue, waiting)
        for network in dict.fromkeys(self._lans.values()):
            egress = self._machines[network.switch].interfaces[0].egress
            queue = max(queue, egress["limit_bytes"])
        rate = rate or self._access_rate.bps
        return sysctls.of_nodes(bytes_in(rate, self._paths.longest_rtt_ns), queue, self._with_v6)


def _path_of(crossed: Sequence[_Crossed]) -> NetworkPath:
    rate_bps, _, slowest = min([(each.rate_bps, each.shared, place) for place, each in enumerate(crossed)])
    return NetworkPath(tuple([each.hop for each in crossed]), slowest, rate_bps)


def packet_time(way: Settings, mtu: int) -> int:
    """Nanoseconds that the largest packet takes on a link, rounded up."""
    return time_for(framed(framing_of(way), mtu), way.get("rate", WAN_RATE).bps)
