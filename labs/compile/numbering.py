"""Which addresses each link has: its number in the lab's address space.

Comes in: the outline. Goes out: `Numbering`. A router owns the links of its hosts and those that begin at it; their
numbers are neighbours, so that one route a family leads to all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from labs.compile.addresses import LARGEST_LAB, Pool, PoolError, blocks
from labs.compile.outline import Outline
from labs.compile.vlans import Segment


@dataclass(frozen=True, slots=True)
class Numbering:
    """`numbers` by the index of a link's edge; `owned` is each router's block: its first number and its size.

    `segments` are the first numbers of switched networks, whose links have none of their own.
    """

    pool: Pool
    numbers: Sequence[int]
    owned: Mapping[str, tuple[int, int]]
    with_v4: bool
    with_v6: bool
    segments: Mapping[Segment, int]

    def addresses(self, index: int, end: int) -> tuple[str, ...]:
        """The addresses of one end (1 or 2) of a link, one of each family that the lab has, IPv4 first."""
        return self.numbered(self.numbers[index], end)

    def numbered(self, number: int, end: int) -> tuple[str, ...]:
        """The addresses of one member, from 1 on, of the network that begins at a number."""
        v4 = (self.pool.v4(number, end),) if self.with_v4 else ()
        return (*v4, self.pool.v6(number, end)) if self.with_v6 else v4

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
    segments = sorted(outline.switching.segments, key=lambda each: -each.numbers)
    for segment in segments:
        sizes[segment.router] += segment.numbers
    placed = blocks(sizes)
    free = {name: start for name, (start, _) in placed.items()}
    shared = {}
    for network in outline.networks:  # first in their block, where they are aligned
        shared[network] = free[network.router]
        free[network.router] += network.numbers
    first: dict[Segment, int] = {}
    for segment in segments:  # the largest first, for the same reason
        first[segment] = free[segment.router]
        free[segment.router] += segment.numbers
    numbers = []
    for index, name in enumerate(owner):
        network = lans.get(index)
        if not name:
            numbers.append(-1)
            continue
        numbers.append(free[name] if network is None else shared[network])
        free[name] += network is None
    total = max((start + size for start, size in placed.values()), default=1)
    if total > LARGEST_LAB:
        raise spec.error(("topology",), f"needs {total} subnets: write one that needs at most {LARGEST_LAB}")
    try:
        pool = Pool(total, outline.host.networks)
    except PoolError:
        message = "this host's networks leave no private addresses for the lab: free some of 10.0.0.0/8"
        raise spec.error(("topology",), message) from None
    ip = spec.description.ip
    return Numbering(pool, numbers, placed, with_v4=ip != "6", with_v6=ip != "4", segments=first)
