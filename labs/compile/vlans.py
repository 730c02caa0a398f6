"""The switches of a graph: which hosts and which router each VLAN joins, and over which links.

Comes in: a spec and its layout. Goes out: a `Segment` for each VLAN among switches that are linked, or a
DescriptionError. A frame belongs to one VLAN at each link (IEEE 802.1Q): to that of its tag, or to the link's own one
if it has none. No switch runs a spanning tree, so the links that carry a VLAN must be a tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ewan.labs.compile.lan import lengths_of, numbers_of
from ewan.labs.spec import Spec
from ewan.labs.topologies import Edge, Layout

DEFAULT = 1
"""The VLAN of a port without settings, as on a switch out of its box."""


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """One VLAN among switches that are linked: what hears a broadcast. Links are indices of the layout's edges."""

    vlan: int
    router: str
    gateway: int
    """The router's link."""
    hosts: Mapping[str, tuple[int, ...]]
    """The links from each host to the router, in order."""
    above: Mapping[str, int]
    """Each switch's link towards the router."""
    below: Mapping[tuple[str, str], int]
    """(switch, host) → the link by which the host's packets to the router come."""

    @property
    def numbers(self) -> int:
        """The links whose room in the address space it takes."""
        return numbers_of(len(self.hosts))

    @property
    def lengths(self) -> tuple[int, int]:
        """Prefix lengths, IPv4 and IPv6."""
        return lengths_of(len(self.hosts))

    def towards(self, switch: str, member: str) -> int:
        """The link by which a switch sends to a host, or to the router."""
        return self.below.get((switch, member), self.above[switch])

    def between(self, source: str, sink: str) -> list[int]:
        """The links from one of its hosts to another, in order."""
        there, back = list(self.hosts[source]), list(self.hosts[sink])
        while there and back and there[-1] == back[-1]:
            there.pop()
            back.pop()
        return [*there, *reversed(back)]


@dataclass(frozen=True, slots=True, eq=False)
class VlanSegments:
    """All segments of a lab, and that of each host that is behind a switch."""

    segments: Sequence[Segment] = ()
    of_host: Mapping[str, Segment] = field(default_factory=dict)


def carried(edge: Edge) -> dict[int, bool]:
    """The VLANs of a switch's link, and whether their frames have a tag there."""
    untagged = DEFAULT if edge.untagged is None and not edge.tagged else edge.untagged
    return ({} if untagged is None else {untagged: False}) | dict.fromkeys(edge.tagged, True)


def of(spec: Spec, layout: Layout) -> VlanSegments:
    """The segments, by VLAN; DescriptionError for links of switches that do not make networks."""
    _check_links(spec, layout)
    if not layout.switches:
        return VlanSegments()
    if spec.description.access.switch is not None:
        message = "the graph has switches of its own: leave it out"
        raise spec.error(("access", "switch"), message, spec.description.access.switch.kind)
    if spec.description.containers.ovs_bridge:
        raise spec.error(("containers", "ovs-bridge"), "bridges of the host have no VLANs: leave it out")
    switches = set(layout.switches)
    of_vlan: dict[int, list[int]] = {}
    for index, edge in enumerate(layout.edges):
        if switches & {edge.a, edge.b}:
            for vlan in carried(edge):
                of_vlan.setdefault(vlan, []).append(index)
    linked = {end for edge in layout.edges for end in (edge.a, edge.b)}
    for switch in layout.switches:
        if switch not in linked:
            raise spec.error(
                ("topology", "graph", "switches"), f"switch {switch} has no link: link it, or leave it out"
            )
    segments = [each for vlan, links in sorted(of_vlan.items()) for each in _of_vlan(spec, layout, vlan, links)]
    return VlanSegments(segments, {host: segment for segment in segments for host in segment.hosts})


def _check_links(spec: Spec, layout: Layout) -> None:
    """VLANs stand only at links of switches, each once; a host is in one VLAN."""
    switches, hosts = set(layout.switches), set(layout.hosts)
    for edge in layout.edges:
        key = "trunk" if edge.tagged else "vlan"
        if not switches & {edge.a, edge.b}:
            if edge.tagged or edge.untagged is not None:
                message = f"{edge.a} and {edge.b} are no switches, and VLANs are of switches' links: leave it out"
                raise spec.error((*edge.path, key), message)
            continue
        for vlan in edge.tagged:
            if vlan == edge.untagged:
                message = f"VLAN {vlan} of {edge.name} is both tagged and untagged (native): write it once"
                raise spec.error((*edge.path, "trunk"), message)
            if edge.tagged.count(vlan) > 1:
                raise spec.error((*edge.path, "trunk"), f"lists VLAN {vlan} twice: write it once")
        for host in hosts & {edge.a, edge.b}:
            if len(carried(edge)) > 1:
                message = f'host {host} is in one VLAN: write "vlan: 10", "trunk: [10]", or make {host} a router'
                raise spec.error((*edge.path, "trunk"), message)


def _of_vlan(spec: Spec, layout: Layout, vlan: int, links: Sequence[int]) -> Iterator[Segment]:
    """The segments of one VLAN, which these links carry."""
    beside: dict[str, list[tuple[int, str]]] = {}
    for index in links:
        edge = layout.edges[index]
        for here, there in ((edge.a, edge.b), (edge.b, edge.a)):
            beside.setdefault(here, []).append((index, there))
    switches, known = set(layout.switches), set[str]()
    parts: list[tuple[str, list[tuple[str, int]]]] = []
    for first in (switch for switch in layout.switches if switch in beside and switch not in known):
        ends: list[tuple[str, int]] = []  # hosts and routers
        todo, joined = [(first, -1)], {first}
        while todo:
            switch, by = todo.pop()
            for index, other in beside[switch]:
                if other not in switches:
                    ends.append((other, index))
                elif other in joined and index != by:
                    message = f"closes a loop of switches in VLAN {vlan}, and no spanning tree runs: leave one link out"
                    raise spec.error((*layout.edges[index].path, "between"), message)
                elif index != by:
                    joined.add(other)
                    todo.append((other, index))
        known |= joined
        parts.append((first, ends))
    hosts = set(layout.hosts)
    # Where a link lacks the VLAN, a host without a router tells more than a router without hosts.
    for first, ends in sorted(parts, key=lambda part: not any(name in hosts for name, _ in part[1])):
        yield _segment(spec, layout, vlan, ends, beside, first)


def _segment(
    spec: Spec,
    layout: Layout,
    vlan: int,
    ends: Sequence[tuple[str, int]],
    beside: Mapping[str, Sequence[tuple[int, str]]],
    first: str,
) -> Segment:
    hosts, routers = set(layout.hosts), set(layout.routers)
    gateways = [(name, index) for name, index in ends if name in routers]
    inside = [(name, index) for name, index in ends if name in hosts]
    some = layout.edges[(gateways or [(first, index) for index, _ in beside[first]])[0][1]]
    if not inside:
        message = f"no host is in VLAN {vlan} that {some.name} carries: leave it out there, or put a host into it"
        raise spec.error(some.path, message)
    if not gateways:
        name, index = inside[0]
        message = f"VLAN {vlan} of host {name} leads to no router: write {vlan} at each link up to one"
        raise spec.error(layout.edges[index].path, message)
    if len(gateways) > 1:
        (one, _), (other, index) = gateways[:2]
        twice = f"{one} has two links" if one == other else f"{one} and {other} are both routers"
        message = f"{twice} in VLAN {vlan}: leave it out of one of them"
        raise spec.error(layout.edges[index].path, message)
    ((router, gateway),) = gateways
    root = next(end for end in (layout.edges[gateway].a, layout.edges[gateway].b) if end != router)
    above, todo = {root: gateway}, [root]
    ways: dict[str, tuple[int, ...]] = {root: (gateway,)}
    hosts_of: dict[str, tuple[int, ...]] = {}
    while todo:
        switch = todo.pop()
        for index, other in beside[switch]:
            if other in hosts:
                hosts_of[other] = (index, *ways[switch])
            elif other not in routers and other not in above:
                above[other], ways[other] = index, (index, *ways[switch])
                todo.append(other)
    below = {}
    for host, way in hosts_of.items():
        here = host
        for index in way[:-1]:
            edge = layout.edges[index]
            here = edge.b if edge.a == here else edge.a
            below[here, host] = index
    ordered = {host: hosts_of[host] for host in layout.hosts if host in hosts_of}
    return Segment(vlan, router, gateway, ordered, above, below)
