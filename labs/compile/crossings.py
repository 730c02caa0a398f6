"""Lists the links and switch ports that packets cross between the hosts of each pair.

Comes in: the outline. Goes out: the plan's pairs with their paths and bottlenecks, and how long the largest packet
takes at each host's bottleneck.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ewan.labs.compile.lan import Lan
from ewan.labs.compile.outline import Outline
from ewan.labs.link.direction import Heading
from ewan.labs.link.framing import packet_time
from ewan.labs.link.settings import DirectionSettings
from ewan.labs.plan import Hop, NetworkPath, Pair

_SHARED = {"wan": 0, "access": 2}
_PORT = 1
"""The rank of the port between a switch and its router, or another switch."""


class _HopSettings(NamedTuple):
    """One hop of a path with the settings of its direction; the lower `shared` is, the more hosts meet there."""

    hop: Hop
    way: DirectionSettings
    mtu: int
    shared: int
    rate_bps: int


class Crossings:
    """The paths of one lab; a hop that several pairs cross is one object."""

    def __init__(self, outline: Outline) -> None:
        self._outline = outline
        self._known: dict[tuple[int, bool], _HopSettings] = {}

    def pair(self, source: str, sink: str) -> Pair:
        """A pair with its paths both ways, and its RTT without queues."""
        paths = self._outline.paths
        steps = paths.of_pair(source, sink)
        there = self._crossed(steps)
        if paths.turns:
            back = self._crossed(paths.of_pair(sink, source))
            return Pair(source, sink, paths.rtt_ns(source, sink), _path_of(there), _path_of(back))
        back = self._crossed([(index, not forward) for index, forward in reversed(steps)])
        rtt = sum(paths.forward_ns[index] + paths.backward_ns[index] for index, _ in steps)
        return Pair(source, sink, rtt, _path_of(there), _path_of(back))

    def packet_times(self) -> dict[str, int]:
        """Each host's longest packet time, in ns, at the bottlenecks of its pairs; without a pair, of the lab."""
        layout = self._outline.layout
        times: dict[str, int] = {}
        for ends in layout.pairs:
            steps = self._outline.paths.of_pair(*ends)
            if self._outline.paths.turns:
                steps = [*steps, *self._outline.paths.of_pair(*reversed(ends))]
            crossed = self._crossed(steps)
            longest = max(packet_time(each.way, each.mtu) for each in crossed)
            for host in ends:
                times[host] = max(times.get(host, 0), longest)
        if len(times) == len(layout.hosts):
            return times
        ways = [(way, link.mtu) for link in self._outline.links for way in (link.forward, link.backward)]
        slowest = max(packet_time(way, mtu) for way, mtu in ways)
        return {host: times.get(host, slowest) for host in layout.hosts}

    def _crossed(self, steps: Sequence[tuple[int, bool]]) -> list[_HopSettings]:
        """All that packets cross on a path of links: these, and the ports between a switch and its router."""
        crossed = [self._known.get(step) or self._crossing(*step) for step in steps]
        lans = self._outline.lans
        if not lans:
            return crossed
        near, far = (lans.get(steps[end][0]) for end in (0, -1))
        if near is not far:  # hosts of one network talk only through the switch
            if near is not None:
                crossed.insert(1, self._port(near, "forward"))
            if far is not None:
                crossed.insert(-1, self._port(far, "backward"))
        return crossed

    def _crossing(self, index: int, forward: bool) -> _HopSettings:
        edge, link, paths = self._outline.layout.edges[index], self._outline.links[index], self._outline.paths
        hop = Hop(edge.name, "forward" if forward else "backward")
        way = link.forward if forward else link.backward
        hosts_meet = bool(self._outline.layout.switches) and edge.a not in paths.uplink and edge.b not in paths.uplink
        shared = _PORT if hosts_meet and edge.role == "access" else _SHARED[edge.role]
        found = _HopSettings(hop, way, link.mtu, shared, way.rate.bps)
        self._known[index, forward] = found
        return found

    def _port(self, network: Lan, direction: Heading) -> _HopSettings:
        """Between a switch and its router; `forward` goes to the router."""
        mtu = self._outline.links[network.edges[0]].mtu
        return _HopSettings(Hop(network.switch, direction), network.port, mtu, _PORT, network.port.rate.bps)


def _path_of(crossed: Sequence[_HopSettings]) -> NetworkPath:
    rate_bps, _, slowest = min([(each.rate_bps, each.shared, place) for place, each in enumerate(crossed)])
    return NetworkPath(tuple([each.hop for each in crossed]), slowest, rate_bps)
