"""Topologies: what a kind and its few numbers stand for.

Comes in: the `topology` part of a description. Goes out: a `Layout` of hosts, routers, links between them and the
pairs of hosts that are meant to talk; no addresses, delays or rates. Every host has one link, to a router or a switch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from ewan.labs.base.source import Path
from ewan.labs.spec.fields import Graph, Topology


@dataclass(frozen=True, slots=True)
class Edge:
    """A link between two nodes, `forward` from a to b; `settings` are its own in a graph, written at `path`.

    `untagged` and `tagged` are the VLANs that are written of a switch's link.
    """

    name: str
    a: str
    b: str
    role: Literal["wan", "access"]
    settings: Any = None
    path: Path = ()
    untagged: int | None = None
    tagged: tuple[int, ...] = ()


@dataclass(slots=True)
class Layout:
    """The nodes of a topology and the edges between them; `pairs` are (sender, receiver)."""

    hosts: list[str] = field(default_factory=list)
    routers: list[str] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    pairs: list[tuple[str, str]] = field(default_factory=list)
    switches: list[str] = field(default_factory=list)

    def wan(self, name: str, a: str, b: str) -> None:
        """A wide-area link; `forward` goes from a to b."""
        self.edges.append(Edge(name, a, b, "wan"))

    def host(self, name: str, router: str) -> str:
        """A host on an access link of its own; `forward` goes from the host."""
        self.hosts.append(name)
        self.edges.append(Edge(f"access-{name}", name, router, "access"))
        return name

    def far_host(self, name: str, router: str, link: str) -> str:
        """A host on a wide-area link of its own."""
        self.hosts.append(name)
        self.wan(link, name, router)
        return name

    def each_to_next(self, step: int = 1) -> None:
        """Every host sends once and receives once: to the one `step` places on."""
        count = len(self.hosts)
        self.pairs = [(host, self.hosts[(index + step) % count]) for index, host in enumerate(self.hosts)]


def build(topology: Topology) -> Layout:
    """The layout of a topology."""
    layout = Layout()
    _BUILDERS[topology.kind](layout, topology.choice)
    return layout


def dumbbell(layout: Layout, size: Any) -> None:
    """Two routers and the link `core` between them. left1 sends to right1, and so on; `reverse_pairs` the other way."""
    layout.routers = ["r1", "r2"]
    layout.wan("core", "r1", "r2")
    for number in range(1, size.pairs + size.reverse_pairs + 1):
        left, right = layout.host(f"left{number}", "r1"), layout.host(f"right{number}", "r2")
        layout.pairs.append((left, right) if number <= size.pairs else (right, left))


def _row(layout: Layout, hops: int) -> None:
    layout.routers = [f"r{number}" for number in range(1, hops + 2)]
    for hop in range(1, hops + 1):
        layout.wan(f"hop{hop}", f"r{hop}", f"r{hop + 1}")


def parking_lot(layout: Layout, size: Any) -> None:
    """Routers in a row. One pair crosses all links, and `cross_pairs` cross only one link each."""
    _row(layout, size.hops)
    layout.pairs.append((layout.host("left1", "r1"), layout.host("right1", f"r{size.hops + 1}")))
    for hop in range(1, size.hops + 1):
        for number in range(1, size.cross_pairs + 1):
            enters = layout.host(f"in{hop}-{number}", f"r{hop}")
            leaves = layout.host(f"out{hop}-{number}", f"r{hop + 1}")
            layout.pairs.append((enters, leaves))


def star(layout: Layout, size: Any) -> None:
    """Hosts on wide-area links of their own around one router; each sends to the next."""
    layout.routers = ["hub"]
    for number in range(1, size.arms + 1):
        layout.far_host(f"host{number}", "hub", f"arm{number}")
    layout.each_to_next()


def chain(layout: Layout, size: Any) -> None:
    """Routers in a row, with the hosts of all pairs at its two ends."""
    _row(layout, size.hops)
    for number in range(1, size.pairs + 1):
        left, right = layout.host(f"left{number}", "r1"), layout.host(f"right{number}", f"r{size.hops + 1}")
        layout.pairs.append((left, right))


def ring(layout: Layout, size: Any) -> None:
    """Routers in a ring, a host on each; each sends half way round."""
    layout.routers = [f"r{number}" for number in range(1, size.routers + 1)]
    for number in range(1, size.routers + 1):
        layout.wan(f"ring{number}", f"r{number}", f"r{number % size.routers + 1}")
        layout.host(f"host{number}", f"r{number}")
    layout.each_to_next(size.routers // 2)


def mesh(layout: Layout, size: Any) -> None:
    """Routers that are all linked to each other, a host on each; each sends to the next."""
    layout.routers = [f"r{number}" for number in range(1, size.routers + 1)]
    for first in range(1, size.routers + 1):
        for second in range(first + 1, size.routers + 1):
            layout.wan(f"mesh{first}-{second}", f"r{first}", f"r{second}")
        layout.host(f"host{first}", f"r{first}")
    layout.each_to_next()


def fishbone(layout: Layout, size: Any) -> None:
    """Routers in a row with a host at either end, which are a pair, and two hosts on wide-area ribs at each router.

    The upper host of a router sends to the lower one of the router that is as far from the other end.
    """
    layout.routers = [f"r{number}" for number in range(1, size.ribs + 1)]
    for number in range(1, size.ribs):
        layout.wan(f"spine{number}", f"r{number}", f"r{number + 1}")
    layout.pairs.append((layout.host("head", "r1"), layout.host("tail", f"r{size.ribs}")))
    for number in range(1, size.ribs + 1):
        layout.far_host(f"up{number}", f"r{number}", f"rib-up{number}")
        layout.far_host(f"down{number}", f"r{number}", f"rib-down{number}")
        layout.pairs.append((f"up{number}", f"down{size.ribs + 1 - number}"))


def four_domain(layout: Layout, size: Any) -> None:
    """Four sites around one router; each host sends to the one in the same place of the next site."""
    layout.routers = ["core", *(f"site-{site}" for site in "abcd")]
    for site in "abcd":
        layout.wan(f"wan-{site}", f"site-{site}", "core")
        for number in range(1, size.hosts + 1):
            layout.host(f"{site}{number}", f"site-{site}")
    layout.each_to_next(size.hosts)


def grid(layout: Layout, size: Any) -> None:
    """Routers in rows and columns, a host on each; each sends to the host at the opposite place of the grid."""
    for row in range(1, size.rows + 1):
        for column in range(1, size.columns + 1):
            here = f"r{row}-{column}"
            layout.routers.append(here)
            if column > 1:
                layout.wan(f"east{row}-{column - 1}", f"r{row}-{column - 1}", here)
            if row > 1:
                layout.wan(f"south{row - 1}-{column}", f"r{row - 1}-{column}", here)
            layout.host(f"host{row}-{column}", here)
    layout.pairs = [(a, b) for a, b in zip(layout.hosts, reversed(layout.hosts), strict=True) if a != b]


def graph(layout: Layout, drawn: Graph) -> None:
    """Fill the layout from a graph in the description; without pairs of its own, each host sends to the next."""
    layout.hosts, layout.routers, layout.switches = list(drawn.hosts), list(drawn.routers), list(drawn.switches)
    local = {*layout.hosts, *layout.switches}
    for index, link in enumerate(drawn.links):
        a, b = link.between
        role = link.role or ("access" if a in local or b in local else "wan")
        path = ("topology", "graph", "links", index)
        name = link.name or f"{a}-{b}"
        layout.edges.append(Edge(name, a, b, role, link, path, link.vlan, link.trunk or ()))
    if drawn.pairs is None:
        layout.each_to_next()
    else:
        layout.pairs = list(drawn.pairs)


_BUILDERS: dict[str, Callable[[Layout, Any], None]] = {
    "dumbbell": dumbbell,
    "parking-lot": parking_lot,
    "star": star,
    "chain": chain,
    "ring": ring,
    "mesh": mesh,
    "fishbone": fishbone,
    "four-domain": four_domain,
    "grid": grid,
    "graph": graph,
}
