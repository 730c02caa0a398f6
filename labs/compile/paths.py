"""The distances between nodes: delays of the links that have none written, and shortest-delay routes.

Comes in: a layout, what its switches join, and each link's written delay. Goes out: one-way delays in ns, the longest
RTT between any two hosts, for each router the next hops towards it, the links' costs where a protocol finds the
routes, and the path of each pair. A route is the same both ways, unless the description turns it (`routes:`): links are
weighed by the sum of both directions, then by number of hops, then by a hash of their names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx

from ewan.labs.base.source import DescriptionError, Path
from ewan.labs.base.units import Duration
from ewan.labs.compile import costs, tunnels, turns
from ewan.labs.compile.routing import LARGEST_COST
from ewan.labs.compile.settings import LinkSettings
from ewan.labs.compile.tunnels import NodeTunnel, TunnelEnd
from ewan.labs.compile.vlans import VlanSegments
from ewan.labs.spec import Spec
from ewan.labs.topologies import Edge, Layout

DEFAULT_RTT = Duration.parse("100ms")
_FIRST_GUESS = Duration.parse("1ms")
_NS_SHIFT, _HOP_SHIFT = 64, 48
_GUESSES = 8


@dataclass(frozen=True, slots=True)
class _LongestPath:
    """The hosts farthest apart and the links between them (indices of edges), where free links have `share_ns`."""

    rtt_ns: int
    source: str
    sink: str
    edges: tuple[int, ...]
    share_ns: int


_Leaf = tuple[int, str, int]
"""The RTT from a host to its router, the host, and its link."""


class Paths:
    """Delays and routes of a layout; raises DescriptionError where the wanted RTT cannot be had."""

    def __init__(self, spec: Spec, layout: Layout, settings: Sequence[LinkSettings], switching: VlanSegments) -> None:
        self._spec, self._layout, self._switching = spec, layout, switching
        self._edges = layout.edges
        self._known = [self._written(edge, link) for edge, link in zip(layout.edges, settings, strict=True)]
        self.uplinks = self._find_uplinks()
        """The links of each host, in the order of the description."""
        self.uplink = {host: links[0] for host, links in self.uplinks.items()}
        """The first link of each host: that of its default route, and of the address that others know."""
        self.between = self._between_routers(set(layout.routers))
        """The link between two routers; of several the one with the least delay."""
        self._graph: nx.Graph[str] = nx.Graph()
        self._graph.add_nodes_from(layout.routers)
        self._tie = {
            index: int.from_bytes(hashlib.blake2b(self._edges[index].name.encode(), digest_size=4).digest())
            for index in self.between.values()
        }
        self._check_connected()
        self.next_hops: dict[str, dict[str, str]] = {}
        self.turns: turns.Turns = {}
        self.tunnels: Sequence[NodeTunnel] = ()
        self.forward_ns: list[int] = []
        self.backward_ns: list[int] = []
        self.longest_rtt_ns = self._share_out(settings)
        self.costs = self._price()
        self.tunnels = tunnels.of(spec, layout, self)
        self.turns = turns.of(spec, layout, self, self.tunnels)
        if self.turns:
            rtts = (self.rtt_ns(source, sink) for source, sink in layout.pairs)
            self.longest_rtt_ns = max([self.longest_rtt_ns, *rtts])

    def _between_routers(self, routers: set[str]) -> dict[frozenset[str], int]:
        found: dict[frozenset[str], list[int]] = {}
        for index, edge in enumerate(self._edges):
            if edge.a in routers and edge.b in routers:
                found.setdefault(frozenset((edge.a, edge.b)), []).append(index)
        return {ends: self._first_of(indices) for ends, indices in found.items()}

    def _first_of(self, indices: Sequence[int]) -> int:
        """The link with the least delay of those between the same two routers; of equal ones the first."""
        if len(indices) == 1:
            return indices[0]
        edges = [self._edges[index] for index in indices]
        if (protocol := self._spec.description.routing) != "static":
            message = f"is a second link from {edges[0].a} to {edges[0].b}, of which {protocol} would take one"
            raise self._spec.error(edges[1].path, f"{message}: write routing: static")
        for index in indices:
            if self._known[index] is None:
                message = f"links {edges[0].a} to {edges[0].b} beside another link, and packets take that of less delay"
                raise self._spec.error(self._edges[index].path, f'{message}: write its "delay:"')
        return min(indices, key=lambda index: (self._known[index], index))

    def rtt_ns(self, source: str, sink: str) -> int:
        """The delays there and back."""
        steps = [*self.of_pair(source, sink), *self.of_pair(sink, source)]
        return sum(self.forward_ns[index] if forward else self.backward_ns[index] for index, forward in steps)

    def onward(self, router: str, owner: str) -> int | None:
        """The link or tunnel by which a router sends to another one's networks; None at that router itself."""
        if router == owner:
            return None
        turned = self.turns.get(owner, {}).get(router)
        return self.between[frozenset((router, self.next_hops[owner][router]))] if turned is None else turned

    def of_pair(self, source: str, sink: str) -> list[tuple[int, bool]]:
        """The links from source to sink as (edge, is forward)."""
        here, steps = source, []
        for index in self._between_hosts(source, sink):
            forward = self._edges[index].a == here
            steps.append((index, forward))
            here = self._edges[index].b if forward else self._edges[index].a
        return steps

    def _price(self) -> dict[int, int]:
        """Each router link's cost where a protocol finds the routes; from then on the paths are those that it finds.

        These are the shortest-delay paths, unless the protocol's costs are too coarse to tell some of them apart.
        """
        protocol = self._spec.description.routing
        if protocol == "static":
            return {}
        largest = LARGEST_COST[protocol]
        for ends, index in self.between.items():
            a, b = tuple(ends)
            self._graph.edges[a, b].update(rtt_ns=self._rtt_of(index, 0), tie=self._tie[index])
        found = costs.of_links(self._graph, self.next_hops, largest)
        if found is None:
            try:
                found = costs.nearest(self._graph, largest)
            except ValueError:
                message = "cannot tell all paths apart by the links' delays: write different ones, or static"
                raise self._spec.error(("routing",), message, protocol) from None
            self.next_hops = {root: costs.towards(self._graph, root, found) or {} for root in self._graph}
        return {index: found[min(ends), max(ends)] for ends, index in self.between.items()}

    def router_of(self, host: str, index: int | None = None) -> str:
        """The router at a link of a host, the first one if none is given; or that which its VLAN leads to."""
        segment = self._switching.of_host.get(host)
        if segment is not None:
            return segment.router
        edge = self._edges[self.uplink[host] if index is None else index]
        return edge.b if edge.a == host else edge.a

    @staticmethod
    def _written(edge: Edge, link: LinkSettings) -> int | None:
        return link.rtt_ns if edge.role == "wan" else link.rtt_ns or 0

    def _up(self, host: str, index: int | None = None) -> tuple[int, ...]:
        """The links from a host to its router, in order; `index` as of `router_of`."""
        segment = self._switching.of_host.get(host)
        if segment is not None:
            return segment.hosts[host]
        return (self.uplink[host] if index is None else index,)

    def _find_uplinks(self) -> dict[str, tuple[int, ...]]:
        """The links of each host: one to a switch, or one or more to routers."""
        hosts = set(self._layout.hosts)
        uplinks: dict[str, tuple[int, ...]] = {}
        for index, edge in enumerate(self._edges):
            for end, other in ((edge.a, edge.b), (edge.b, edge.a)):
                if end in hosts:
                    if other in hosts:
                        raise self._spec.error(edge.path, f"links host {end} to host {other}: put a router between")
                    uplinks[end] = (*uplinks.get(end, ()), index)
        for host in self._layout.hosts:
            if host not in uplinks:
                raise self._spec.error(("topology", "graph", "hosts"), f"host {host} has no link: link it to a router")
        return uplinks

    def _check_connected(self) -> None:
        self._graph.add_edges_from((a, b) for a, b in map(tuple, self.between))
        if not self._layout.routers or nx.is_connected(self._graph):
            return
        reached = nx.node_connected_component(self._graph, self._layout.routers[0])
        lost = next(router for router in self._layout.routers if router not in reached)
        message = f"no links lead from {self._layout.routers[0]} to {lost}: link them"
        raise self._spec.error(("topology", "graph", "links"), message)

    def _rtt_of(self, index: int, unknown_ns: int) -> int:
        known = self._known[index]
        return unknown_ns if known is None else known

    def _grow_trees(self, unknown_ns: int) -> dict[str, dict[str, int]]:
        """Finds the shortest paths where links without a delay have `unknown_ns` as their RTT, and sets `next_hops`.

        Gives the RTT in ns between any two routers.
        """
        for ends, index in self.between.items():
            a, b = tuple(ends)
            rtt = self._rtt_of(index, unknown_ns)
            self._graph.edges[a, b]["weight"] = (rtt << _NS_SHIFT) + (1 << _HOP_SHIFT) + self._tie[index]
        distances = {}
        for root in self._layout.routers:
            previous, distance = nx.dijkstra_predecessor_and_distance(self._graph, root)
            self.next_hops[root] = {router: hops[0] for router, hops in previous.items() if hops}
            distances[root] = {router: int(weight) >> _NS_SHIFT for router, weight in distance.items()}
        return distances

    def _longest(self, unknown_ns: int, *, freest: bool = False) -> _LongestPath:
        """The two hosts farthest apart: the two farthest of each router are enough to find them.

        `freest`: of those equally far, the ones with the most links without a delay between them.
        """
        distances = self._grow_trees(unknown_ns)
        farthest: dict[str, list[_Leaf]] = {}
        for host, links in self.uplinks.items():
            for index in links:
                leaves = farthest.setdefault(self.router_of(host, index), [])
                leaves.append((sum(self._rtt_of(each, unknown_ns) for each in self._up(host, index)), host, index))
        for leaves in farthest.values():
            leaves.sort(key=lambda leaf: (-leaf[0], self._known[leaf[2]] is not None))
            first: dict[str, _Leaf] = {}
            for leaf in leaves:  # A host may have several links to this router.
                first.setdefault(leaf[1], leaf)
            leaves[:] = list(first.values())[:2]
        best: tuple[int, _Leaf, _Leaf] = (-1, (0, "", 0), (0, "", 0))
        free = 0
        for near, leaves in farthest.items():
            for far, others in farthest.items():
                one, other = leaves[0], others[0] if far != near else others[-1]
                if one[1] == other[1]:
                    # Only a host with several links is the farthest of two routers.
                    other = next((each for each in others if each[1] != one[1]), one)
                if one[1] == other[1]:
                    continue
                found = (one[0] + distances[near][far] + other[0], one, other)
                if freest and found[0] >= best[0]:
                    more = sum(self._known[index] is None for index in self._of_leaves(one, other))
                    if found[0] > best[0] or more > free:
                        best, free = found, more
                elif found[0] > best[0]:
                    best = found
        rtt, source, sink = best
        return _LongestPath(rtt, source[1], sink[1], tuple(self._of_leaves(source, sink)), unknown_ns)

    def _of_leaves(self, source: _Leaf, sink: _Leaf) -> Iterator[int]:
        return self._between_hosts(source[1], sink[1], source[2], sink[2])

    def _between_hosts(self, source: str, sink: str, by: int | None = None, to: int | None = None) -> Iterator[int]:
        """The links (indices of edges) that packets from one host to another cross, in this order; `by` and `to` are
        the links of either host."""
        segment = self._switching.of_host.get(source)
        if segment is not None and segment is self._switching.of_host.get(sink):
            yield from segment.between(source, sink)
            return
        here, end = self.router_of(source, by), self.router_of(sink, to)
        yield from self._up(source, by)
        yield from self._links_to(here, end, self.turns.get(sink, {}))
        yield from reversed(self._up(sink, to))

    def _links_to(self, here: str, end: str, turned: Mapping[str, int]) -> Iterator[int]:
        """The links between two routers; `turned` comes before the routers' routes."""
        while here != end:
            steps, here = self._onward(here, end, turned, ())
            for index, *_ in steps:
                yield index

    def _onward(
        self, here: str, end: str, turned: Mapping[str, int], around: tuple[int, ...]
    ) -> tuple[list[tuple[int, ...]], str]:
        """The links to the next router, or to the other end of a tunnel, each with the tunnels around it; and who that
        is."""
        index = turned.get(here)
        index = self.onward(here, end) if index is None else index
        assert index is not None, "it is another router"
        if index < len(self._edges):
            return [(index, *around)], self._across(index, here)
        tunnel = self.tunnels[index - len(self._edges)]
        return list(self.outer(tunnel, here, around)), tunnel.from_end(here)[1].node

    def _across(self, index: int, here: str) -> str:
        edge = self._edges[index]
        return edge.b if edge.a == here else edge.a

    def outer(self, tunnel: NodeTunnel, node: str, around: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
        """The links that the outer packets of an end cross, each with the places of all tunnels around it; this one is
        in those that are `around`."""
        place = tunnel.index - len(self._edges)
        if place in around:
            message = f"the outer packets of {tunnel.name} go by {tunnel.name} itself: write over, or other carries"
            raise self._spec.error(tunnel.path, message)
        inside = (*around, place)
        near, far = tunnel.from_end(node)
        here, last = node, self._edges[far.link]
        if near.bound or node in self.uplinks:
            yield near.link, *inside
            here = self._across(near.link, here)
        turned = self.turns.get(far.node, {}) if far.node in self.uplinks else {}
        while here not in (last.a, last.b):
            steps, here = self._onward(here, self.outer_router(far), turned, inside)
            yield from steps
        if here != far.node:
            yield far.link, *inside

    def outer_router(self, end: TunnelEnd) -> str:
        """The router to which others send what goes to the outer address of an end."""
        if end.bound or end.node in self.uplinks:
            return self._across(end.link, end.node)
        edge = self._edges[end.link]
        return edge.a if edge.a in self.next_hops else edge.b

    def _share_out(self, settings: Sequence[LinkSettings]) -> int:
        """Gives every link its delays, and the longest RTT; the RTTs of a list differ by the senders' access links."""
        rtt = self._spec.description.rtt
        unknown = [index for index, known in enumerate(self._known) if known is None]
        if rtt is None and unknown and not any(self._known):
            rtt = DEFAULT_RTT
        if rtt is None and unknown:
            name = self._edges[unknown[0]].name
            raise self._spec.error(("rtt",), f'{name} has no delay of its own: write "rtt: 100ms" or its "delay:" too')
        extra = self._extra(rtt) if isinstance(rtt, tuple) else []
        base = min(rtt) if isinstance(rtt, tuple) else rtt
        longest = self._longest(0) if base is None else self._solve(base.ns, base)
        spare = [index for index in longest.edges if self._known[index] is None]
        left = (base.ns if base else 0) - self._fixed(longest) if spare else 0
        share = longest.share_ns if not spare else _even_share(left, len(spare))
        for index in unknown:
            self._known[index] = share
        for index in spare:  # what is left of the division, so that the RTT is exact to the nanosecond
            rest = min(2, left - share * len(spare))
            self._known[index] = share + rest
            left -= rest
        for index, link in enumerate(settings):
            there, back = link.forward.delay_ns, link.backward.delay_ns
            known = self._known[index] or 0
            self.forward_ns.append((known + 1) // 2 if there is None else there)
            self.backward_ns.append(known // 2 if back is None else back)
        for (source, _), more in zip(self._layout.pairs, extra, strict=False):
            self.forward_ns[self.uplink[source]] += (more + 1) // 2
            self.backward_ns[self.uplink[source]] += more // 2
        return (longest.rtt_ns if base is None else base.ns) + max(extra, default=0)

    def _fixed(self, longest: _LongestPath) -> int:
        return sum(self._known[index] or 0 for index in longest.edges)

    def _solve(self, wanted_ns: int, wanted: Duration) -> _LongestPath:
        """The longest path once every link without a delay has an equal share of the wanted RTT.

        The longest RTT never falls as the share grows. Where the links are alike, the path that a guess finds is
        the longest at the right share too; else the largest share that does not exceed the wish is searched for.
        """
        share = _FIRST_GUESS.ns
        for _ in range(_GUESSES):
            longest = self._longest(share)
            spare, fixed = self._spare(longest), self._fixed(longest)
            if fixed > wanted_ns or not spare:
                break
            better = _even_share(wanted_ns - fixed, spare)
            if better == share or not any(self._known):
                return longest
            share = better
        return self._search(wanted_ns, wanted)

    def _search(self, wanted_ns: int, wanted: Duration) -> _LongestPath:
        """The same by bisection over even shares; refuses what is too short, and what no share reaches."""
        least = self._longest(0)
        if least.rtt_ns > wanted_ns:
            raise self._refusal("is smaller than", least, "at least ", wanted)
        low, high = 0, 2 * (wanted_ns // 2) + 2  # a single link would exceed the wish
        most = self._longest(high)
        if most.rtt_ns < wanted_ns:
            raise self._refusal("is more than", most, "at most ", wanted)
        while most.rtt_ns > wanted_ns and high - low > 2:
            middle = (low + high) // 4 * 2
            if self._longest(middle).rtt_ns <= wanted_ns:
                low = middle
            else:
                high = middle
        longest = self._longest(high if most.rtt_ns == wanted_ns else low, freest=True)
        if longest.rtt_ns != wanted_ns and wanted_ns - longest.rtt_ns >= 2 * self._spare(longest):
            message = 'cannot be shared out exactly among these links: write a "delay:" for each'
            raise self._spec.error(("rtt",), message, wanted)
        return longest

    def _spare(self, longest: _LongestPath) -> int:
        return sum(self._known[index] is None for index in longest.edges)

    def _refusal(self, what: str, longest: _LongestPath, bound: str, wanted: Duration) -> DescriptionError:
        none_is_free = not any(known is None for known in self._known)
        bound = "" if none_is_free else bound
        ends = f"{longest.source} to {longest.sink}"
        message = f'{what} the delays of access and other links from {ends}: write {bound}"{Duration(longest.rtt_ns)}"'
        return self._spec.error(("rtt",), message, wanted)

    def _extra(self, rtts: tuple[Duration, ...]) -> list[int]:
        path: Path = ("rtt",)
        kind, pairs = self._spec.description.topology.kind, self._layout.pairs
        if kind != "dumbbell":
            raise self._spec.error(path, f'a list is for the pairs of a dumbbell, not for a {kind}: write "100ms"')
        if len(rtts) != len(pairs):
            raise self._spec.error(path, f"lists {len(rtts)} RTTs for {len(pairs)} pairs: write one for each pair")
        if any(self._known[self.uplink[host]] for host in self._layout.hosts):
            raise self._spec.error(path, 'a list sets the access delays: leave out "delay:" there, or write one RTT')
        return [rtt.ns - min(rtts).ns for rtt in rtts]


def _even_share(rtt_ns: int, links: int) -> int:
    """Each link's part of an RTT in whole nanoseconds one way."""
    return 2 * (rtt_ns // (2 * links)) if links else 0
