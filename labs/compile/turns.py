"""The routes that a description writes itself, in place of those of the shortest delay.

Comes in: a spec, its layout and the paths of shortest delay. Goes out: for each destination, a host or a router, the
link by which routers send to it; or a DescriptionError, also where packets would go in a circle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ewan.labs.base.source import Path
from ewan.labs.base.wording import nearest
from ewan.labs.compile.checks import check_static
from ewan.labs.compile.tunnels import LinkPaths, NodeTunnel
from ewan.labs.spec import Spec
from ewan.labs.topologies import Layout

Turns = dict[str, dict[str, int]]
"""Destination → router → the index of the link's edge, or of a tunnel."""


class ShortestPaths(LinkPaths, Protocol):
    """The paths that are turned."""

    @property
    def next_hops(self) -> Mapping[str, Mapping[str, str]]:
        """For each router the next hops towards it."""


def of(spec: Spec, layout: Layout, paths: ShortestPaths, tunnels: Sequence[NodeTunnel]) -> Turns:
    """The routes that `routes:` writes, and those into tunnels."""
    found: Turns = {}
    check_static(spec, "routes")
    ends_of = {index: (edge.a, edge.b) for index, edge in enumerate(layout.edges)}
    ends_of |= {tunnel.index: tunnel.nodes for tunnel in tunnels}
    links = {edge.name: index for index, edge in enumerate(layout.edges)}
    links |= {tunnel.name: tunnel.index for tunnel in tunnels}
    for number, route in enumerate(spec.description.routes):
        path: Path = ("routes", number)
        if route.at not in layout.routers:
            raise spec.error((*path, "at"), f"there is no router {route.at}: {nearest(route.at, layout.routers)}")
        index = links.get(route.over)
        ends = set() if index is None else set(ends_of[index])
        if index is None or route.at not in ends or not ends <= set(layout.routers):
            own = [
                name
                for name, each in links.items()
                if route.at in ends_of[each] and set(ends_of[each]) <= set(layout.routers)
            ]
            message = f"no link {route.over} leads from {route.at} to a router: {nearest(route.over, own)}"
            raise spec.error((*path, "over"), message)
        for name in route.to:
            if name not in paths.uplinks and name not in layout.routers:
                known = [*layout.hosts, *layout.routers]
                raise spec.error((*path, "to"), f"there is no host or router {name}: {nearest(name, known)}")
            if route.at in _ends(paths, name):
                raise spec.error((*path, "to"), f'{name} is at {route.at} itself: write another router after "at:"')
            if route.at in found.get(name, {}):
                raise spec.error(path, f"says of {name} at {route.at} what a route before it says too: write it once")
            found.setdefault(name, {})[route.at] = index
    for tunnel in tunnels:
        _carry(spec, tunnel, found, links)
    _check_circles(spec, layout, paths, ends_of, found)
    return found


def _carry(spec: Spec, tunnel: NodeTunnel, found: Turns, links: Mapping[str, int]) -> None:
    """The routes into a tunnel to the hosts behind either end, where `routes:` writes no other ones."""
    names = {index: name for name, index in links.items()}
    written = {(name, route.at) for route in spec.description.routes for name in route.to}
    for end, hosts in tunnel.carried.items():
        near = next(node for node in tunnel.nodes if node != end)
        for host in hosts:
            if (host, near) in written:
                continue
            other = found.setdefault(host, {}).setdefault(near, tunnel.index)
            if other != tunnel.index:
                message = f"{near} sends to {host} by {names[other]} already: write other carries of one of them"
                raise spec.error(tunnel.path, message)


def _ends(paths: ShortestPaths, name: str) -> set[str]:
    """The routers to which packets for a host or router go."""
    return {paths.router_of(name, index) for index in paths.uplinks.get(name, ())} or {name}


def _check_circles(
    spec: Spec, layout: Layout, paths: ShortestPaths, ends_of: Mapping[int, tuple[str, str]], turns: Turns
) -> None:
    """Each router's packets come to each host at each of its links, and to each router."""
    written: list[tuple[Path, Sequence[str]]] = [
        (("routes", number), route.to) for number, route in enumerate(spec.description.routes)
    ]
    for number, _ in enumerate(spec.description.tunnels):
        written.append((("tunnels", number), list(turns)))
    for path, names in written:
        for name in names:
            # What is written of a router holds for its hosts, too, and what is written of a host comes before it.
            hosts = [host for host in layout.hosts if name in _ends(paths, host)]
            for destination in dict.fromkeys([name, *hosts]):
                for end in _ends(paths, destination):
                    if circle := _circle(layout, paths, ends_of, turns, destination, end):
                        message = f"packets to {destination} go in a circle ({' → '.join(circle)}): leave this out"
                        raise spec.error(path, message)


def _circle(
    layout: Layout,
    paths: ShortestPaths,
    ends_of: Mapping[int, tuple[str, str]],
    turns: Turns,
    destination: str,
    end: str,
) -> list[str]:
    """The routers that packets pass again and again; empty if there are none."""
    arrives = {end}
    for router in layout.routers:
        way = [router]
        while way[-1] not in arrives:
            here = way[-1]
            index = turns.get(destination, {}).get(here, turns.get(end, {}).get(here))
            if index is None:
                after = paths.next_hops[end][here]
            else:
                after = next(node for node in ends_of[index] if node != here)
            if after in way:
                return [*way[way.index(after) :], after]
            way.append(after)
        arrives |= set(way)
    return []
