"""Numbers the links of a lab; the number selects a link's addresses in the lab's address space.

Comes in: the outline. Goes out: `Numbering`. A router owns the links of its hosts and those that begin at it; their
numbers are neighbours, so that one route a family leads to all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ewan.labs.compile import dhcp
from ewan.labs.compile.addresses import LARGEST_LAB, Pool, PoolError, blocks
from ewan.labs.compile.cards import ExternalPort
from ewan.labs.compile.lan import Lan
from ewan.labs.compile.outline import Outline
from ewan.labs.compile.tunnels import NodeTunnel
from ewan.labs.compile.vlans import Segment


@dataclass(frozen=True, slots=True)
class Numbering:
    """`numbers` by the index of a link's edge, or of a tunnel; `owned` is each router's block: its first number and its
    size.

    `segments` are the first numbers of switched networks, whose links have none of their own.
    """

    pool: Pool
    numbers: Sequence[int]
    owned: Mapping[str, tuple[int, int]]
    with_v4: bool
    with_v6: bool
    segments: Mapping[Segment, int]
    external: Mapping[str, int]
    """The first number of each external end, by name."""
    total: int
    """The number of links that have numbers."""

    def addresses(self, index: int, end: int) -> tuple[str, ...]:
        """The addresses of one end (1 or 2) of a link, one of each family that the lab has, IPv4 first."""
        return self.numbered(self.numbers[index], end)

    def numbered(self, number: int, end: int) -> tuple[str, ...]:
        """The addresses of one member, from 1 on, of the network that begins at a number."""
        v4 = (self.pool.v4(number, end),) if self.with_v4 else ()
        return (*v4, self.pool.v6(number, end)) if self.with_v6 else v4

    def lab(self) -> list[str]:
        """The networks that all addresses of the lab are in."""
        size = 1 << (self.total - 1).bit_length()
        return self.of_families(self.pool.v4_block(0, size), self.pool.v6_block(0, size))

    def of_families(self, v4: str, v6: str) -> list[str]:
        """One of each family that the lab has."""
        return [text for text, used in ((v4, self.with_v4), (v6, self.with_v6)) if used]

    def prefixes(self, owner: str) -> list[str]:
        """The networks that lead to all links of a router."""
        return self.of_families(self.pool.v4_block(*self.owned[owner]), self.pool.v6_block(*self.owned[owner]))


def number_links(outline: Outline) -> Numbering:
    """Gives every link a number; DescriptionError where there are too many, or the host's networks leave no room."""
    spec, lans = outline.spec, outline.lans
    routers = outline.paths.next_hops
    switches = set(outline.layout.switches)
    owner = [
        "" if switches and switches & {edge.a, edge.b} else edge.a if edge.a in routers else edge.b
        for edge in outline.layout.edges
    ]
    sizes: Counter[str] = Counter()
    for index, name in enumerate(owner):
        network = lans.get(index)
        if not name:
            continue
        sizes[name] += 1 if network is None else network.numbers if network.edges[0] == index else 0
    of_tunnels = [_owner_of(outline, tunnel) for tunnel in outline.tunnels]
    sizes.update(of_tunnels)
    areas: list[tuple[int, str, Lan | Segment | ExternalPort]] = [
        *((network.numbers, network.router, network) for network in outline.networks),
        *((segment.numbers, segment.router, segment) for segment in outline.switching.segments),
        *((dhcp.NUMBERS, end.router, end) for end in outline.external),
    ]
    areas.sort(key=lambda area: -area[0])
    for size, router, area in areas:
        if not isinstance(area, Lan):
            sizes[router] += size
    placed = blocks(sizes)
    free = {name: start for name, (start, _) in placed.items()}
    shared: dict[Lan | Segment | ExternalPort, int] = {}
    for size, router, area in areas:  # first in their block, the largest before the others, so that they are aligned
        shared[area] = free[router]
        free[router] += size
    numbers = []
    for index, name in enumerate(owner):
        network = lans.get(index)
        if not name:
            numbers.append(-1)
            continue
        numbers.append(free[name] if network is None else shared[network])
        free[name] += network is None
    for name in of_tunnels:
        numbers.append(free[name])
        free[name] += 1
    total = max((start + size for start, size in placed.values()), default=1)
    if total > LARGEST_LAB:
        raise spec.error(("topology",), f"needs {total} subnets: write one that needs at most {LARGEST_LAB}")
    try:
        pool = Pool(total, outline.host.networks)
    except PoolError:
        message = "this host's networks leave no private addresses for the lab: free some of 10.0.0.0/8"
        raise spec.error(("topology",), message) from None
    ip = spec.description.ip
    segments = {segment: shared[segment] for segment in outline.switching.segments}
    external = {end.name: shared[end] for end in outline.external}
    return Numbering(pool, numbers, placed, ip != "6", ip != "4", segments, external, total)


def _owner_of(outline: Outline, tunnel: NodeTunnel) -> str:
    """The router in whose networks that of a tunnel is: an end, or where the first end is linked."""
    routers = [node for node in tunnel.nodes if node in outline.paths.next_hops]
    return routers[0] if routers else outline.paths.router_of(tunnel.nodes[0])
