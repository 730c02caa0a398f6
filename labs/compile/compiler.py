"""Description in, plan out: pure, deterministic, no I/O.

Comes in: a `Spec` and what the host already uses. Goes out: the `Plan`, in which everything is decided; defaults
are applied here and nowhere else. What cannot be built is refused with a `DescriptionError`.
"""

from __future__ import annotations

import gc
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from labs.compile import backends, sysctls
from labs.compile.addresses import LARGEST_LAB, Pool, PoolError, blocks
from labs.compile.egress import BARE, Clock, Exits
from labs.compile.paths import Paths
from labs.compile.placement import place
from labs.compile.settings import Resolver, Settings
from labs.compile.stages import ACCESS_RATE, WAN_RATE, Circumstances, Stages, framed, framing_of
from labs.plan import Containers, Direction, End, Interface, Link, Neighbour, Node, Pair, Plan, Route, Service, Wire
from labs.spec import Spec
from labs.spec.source import nearest
from labs.spec.values import LONGEST_NAME, NAME
from labs.topologies import Edge, Layout, build
from labs.units import Rate, bytes_in, time_for

LEAST_IPV6_MTU = 1280  # RFC 8200, section 5


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What the compiler must know of the machine: CPUs that may be used, networks (CIDR) in use, whose clock runs."""

    cpus: tuple[int, ...]
    networks: tuple[str, ...]
    clock: Clock = "live"


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

    __slots__ = ("interfaces", "kind", "name", "routes", "services")

    def __init__(self, name: str, kind: Literal["host", "router", "switch", "emulator"]) -> None:
        self.name, self.kind = name, kind
        self.interfaces: list[Interface] = []
        self.routes: list[Route] = []
        self.services: list[Service] = []


class _Compiler:
    def __init__(self, spec: Spec, host: HostFacts) -> None:
        self._spec, self._host, self._description = spec, host, spec.description
        self._layout = build(self._description.topology)
        self._check_layout(self._layout)
        resolver = Resolver(spec)
        self._settings = [resolver.of(edge) for edge in self._layout.edges]
        self._raise_access_rate()
        self._check_mtus()
        self._paths = Paths(spec, self._layout, self._settings)
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
        self._emulated: dict[int, str] = {}
        self._reach: dict[tuple[str, int], tuple[str, tuple[str, ...]]] = {}

    def plan(self) -> Plan:
        for name in self._layout.hosts:
            self._machines[name] = _Machine(name, "host")
        for name in self._layout.routers:
            self._machines[name] = _Machine(name, "router")
        owned = self._number_links()
        for index, edge in enumerate(self._layout.edges):
            self._wire(index, edge)
        self._route(owned)
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
                Node(m.name, m.kind, tuple(m.interfaces), tuple(m.routes), values[m.kind], tuple(m.services))
                for m in self._machines.values()
            ),
            wires=tuple(self._wires),
            links=tuple(self._links),
            spinners=spinners,
            pairs=tuple(self._pair(source, sink) for source, sink in self._layout.pairs),
            host_cpus=host_cpus,
        )

    # Checks

    def _check_layout(self, layout: Layout) -> None:
        """Names are there, once, and short enough; links have two different ends that exist."""
        nodes = dict.fromkeys([*layout.hosts, *layout.routers])
        for word, count in Counter([*layout.hosts, *layout.routers, *(edge.name for edge in layout.edges)]).items():
            if count > 1:
                raise self._spec.error(("topology", "graph"), f"{word} names two things: write another name for one")
        ends = set()
        for edge in layout.edges:
            if len(edge.name) > LONGEST_NAME or not NAME.fullmatch(edge.name):
                raise self._spec.error(edge.path, f'{edge.name} is too long a name: write a shorter "name:"')
            for end in (edge.a, edge.b):
                if end not in nodes:
                    raise self._spec.error((*edge.path, "between"), f"there is no node {end}: {nearest(end, nodes)}")
            if edge.a == edge.b:
                raise self._spec.error((*edge.path, "between"), f"links {edge.a} to itself: write another end")
            both = frozenset((edge.a, edge.b))
            if both in ends:
                message = f"is a second link from {edge.a} to {edge.b}: write one link with the sum of the rates"
                raise self._spec.error(edge.path, message)
            ends.add(both)
        names = dict.fromkeys(edge.name for edge in layout.edges)
        for name in self._description.links:
            if name not in names:
                raise self._spec.error(("links", name), f"there is no such link, {nearest(name, names)}")
        hosts = dict.fromkeys(layout.hosts)
        for index, pair in enumerate(layout.pairs):
            for end in pair:
                if end not in hosts:
                    path = ("topology", "graph", "pairs", index)
                    raise self._spec.error(path, f"there is no host {end}: {nearest(end, hosts)}")
            if pair[0] == pair[1]:
                raise self._spec.error(("topology", "graph", "pairs", index), f"pairs {pair[0]} with itself: write two")
        if len(layout.edges) > LARGEST_LAB:
            message = f"has {len(layout.edges)} links: write a topology of at most {LARGEST_LAB}"
            raise self._spec.error(("topology",), message)

    def _check_mtus(self) -> None:
        """One MTU in the whole lab, as any two hosts may talk; IPv6 needs 1280."""
        first = self._settings[0]
        for edge, link in zip(self._layout.edges, self._settings, strict=True):
            if link.mtu != first.mtu:
                message = (
                    f"{edge.name} has {link.mtu} and {self._layout.edges[0].name} has {first.mtu} on one path: "
                    f'write the same MTU, once as "mtu:"'
                )
                path = link.mtu_path if link.mtu_path != ("mtu",) else first.mtu_path
                raise self._spec.error(path, message, link.mtu)
            if self._description.ip != "4" and link.mtu < LEAST_IPV6_MTU:
                message = f'IPv6 needs {LEAST_IPV6_MTU} (RFC 8200): write at least "{LEAST_IPV6_MTU}", or ip 4'
                raise self._spec.error(link.mtu_path, message, link.mtu)

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
        placed = blocks(Counter(owner))
        free = {name: start for name, (start, _) in placed.items()}
        self._number = []
        for name in owner:
            self._number.append(free[name])
            free[name] += 1
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
        return f"02:65:{n >> 24 & 255:02x}:{n >> 16 & 255:02x}:{n >> 8 & 255:02x}:{n & 255:02x}"

    def _wire(self, index: int, edge: Edge) -> None:
        """Both ends of a link, and the emulator between them if it needs one."""
        link = self._settings[index]
        mtu = link.mtu
        there, back = self._paths.forward_ns[index], self._paths.backward_ns[index]
        emulated = edge.role == "wan" or link.impaired or there > 0 or back > 0
        forward, backward, backend = self._directions(index, edge) if emulated else (None, None, None)
        mac_a, mac_b = self._mac(), self._mac()
        addresses_a, addresses_b = self._addresses(index, 1), self._addresses(index, 2)
        lengths = (["/30"] if self._with_v4 else []) + (["/64"] if self._with_v6 else [])
        ends = []
        for name, mac, own, far_mac, far, way in (
            (edge.a, mac_a, addresses_a, mac_b, addresses_b, link.forward),
            (edge.b, mac_b, addresses_b, mac_a, addresses_a, link.backward),
        ):
            machine = self._machines[name]
            exit_of = self._exits.before_emulator if emulated else self._exits.card
            interface = Interface(
                name=f"eth{self._containers.management + len(machine.interfaces)}",
                mac=mac,
                mtu=mtu,
                addresses=tuple(a + length for a, length in zip(own, lengths, strict=True)),
                neighbours=tuple(Neighbour(a, far_mac) for a in far),
                egress=exit_of(name, machine.kind == "host", way, mtu),
                steer=backend == "user" and self._host.clock == "live",
            )
            machine.interfaces.append(interface)
            ends.append(End(name, interface.name))
            self._reach[name, index] = interface.name, far
        a, b = ends
        if forward is None or backward is None or backend is None:
            self._wires.append(Wire(a, b))
            return
        name = edge.name
        emulator = self._machines[name] = _Machine(name, "emulator")
        port_a, port_b = (f"eth{self._containers.management + number}" for number in range(2))
        for port in (port_a, port_b):
            emulator.interfaces.append(Interface(port, self._mac(), mtu, (), (), BARE, False))
        self._wires += [Wire(a, End(name, port_a)), Wire(End(name, port_b), b)]
        self._links.append(Link(name, edge.role, backend, name, port_a, port_b, a, b, forward, backward))
        self._emulated[index] = name

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
        """Hosts have a default route; a router has one route a family to each other router's links."""
        defaults = (["0.0.0.0/0"] if self._with_v4 else []) + (["::/0"] if self._with_v6 else [])
        for host, index in self._paths.uplink.items():
            interface, far = self._reach[host, index]
            self._machines[host].routes += [Route(to, via, interface) for to, via in zip(defaults, far, strict=True)]
        for owner, (first, size) in owned.items():
            prefixes = [self._pool.v4_block(first, size)] if self._with_v4 else []
            prefixes += [self._pool.v6_block(first, size)] if self._with_v6 else []
            for router, onward in self._paths.next_hops[owner].items():
                if (
                    size == 1
                    and onward == owner
                    and self._number[self._paths.between[frozenset((router, owner))]] == first
                ):
                    continue  # The block is the very link that the router is on.
                interface, far = self._reach[router, self._paths.between[frozenset((router, onward))]]
                self._machines[router].routes += [
                    Route(to, via, interface) for to, via in zip(prefixes, far, strict=True)
                ]

    def _pair(self, source: str, sink: str) -> Pair:
        steps = self._paths.of_pair(source, sink)
        rates = []
        for index, forward in steps:
            way = self._settings[index].forward if forward else self._settings[index].backward
            rates.append(way.get("rate", WAN_RATE).bps)
        rtt = sum(self._paths.forward_ns[index] + self._paths.backward_ns[index] for index, _ in steps)
        links = tuple(self._emulated[index] for index, _ in steps if index in self._emulated)
        return Pair(source, sink, rtt, min(rates), links)

    def _packet_times(self) -> dict[str, int]:
        """Each host's longest packet time, in ns, at the bottlenecks of its pairs; without a pair, of the lab."""
        times: dict[str, int] = {}
        for ends in self._layout.pairs:
            crossed = [(self._settings[index], forward) for index, forward in self._paths.of_pair(*ends)]
            longest = max(
                packet_time(link.forward if forward else link.backward, link.mtu) for link, forward in crossed
            )
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
        rate = rate or self._access_rate.bps
        return sysctls.of_nodes(bytes_in(rate, self._paths.longest_rtt_ns), queue, self._with_v6)


def packet_time(way: Settings, mtu: int) -> int:
    """Nanoseconds that the largest packet takes on a link, rounded up."""
    return time_for(framed(framing_of(way), mtu), way.get("rate", WAN_RATE).bps)
