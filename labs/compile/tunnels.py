"""Tunnels between two nodes: what their outer packets go over, which hosts' packets they carry, and their MTUs.

Comes in: a spec, its layout and the paths of shortest delay. Goes out: the tunnels, or a DescriptionError. A tunnel is
one more link of its ends, with addresses of its own; its index is the number of edges, and one more for each tunnel
before it. Routes and turns name links and tunnels alike by their index.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ewan.labs.base.source import Path
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.wording import nearest
from ewan.labs.compile.checks import LEAST_IPV6_MTU, check_static
from ewan.labs.compile.settings import LinkSettings
from ewan.labs.link.encapsulation import OVERHEAD, TunnelKind
from ewan.labs.spec import Spec, fields
from ewan.labs.topologies import Layout

LEAST_MTU, LARGEST_MTU = 576, 65_535
LONGEST_INTERFACE = 15
_TAKEN = re.compile(r"lo|(eth|gre|gretap|erspan|tunl|sit|ip6tnl|ip6gre)[0-9]+")
"""Interfaces that a node has of its own."""


@dataclass(frozen=True, slots=True)
class TunnelEnd:
    """`link`: the index of the link at which the node has the address of the outer packets. `bound`: the links by which
    they leave, in the order of preference; none where the routes decide."""

    node: str
    link: int
    bound: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NodeTunnel:
    """`carried`: by end, the hosts behind it, to which the other end sends by the tunnel."""

    name: str
    path: Path
    index: int
    kind: TunnelKind
    ends: tuple[TunnelEnd, TunnelEnd]
    carried: Mapping[str, tuple[str, ...]]
    mtu: int
    keepalive_s: int

    @property
    def nodes(self) -> tuple[str, str]:
        """The names of its ends."""
        return self.ends[0].node, self.ends[1].node

    def from_end(self, node: str) -> tuple[TunnelEnd, TunnelEnd]:
        """This end, and the other one."""
        return self.ends if self.ends[0].node == node else (self.ends[1], self.ends[0])


class LinkPaths(Protocol):
    """The paths of the layout without tunnels."""

    @property
    def uplinks(self) -> Mapping[str, tuple[int, ...]]:
        """The links of each host."""

    def router_of(self, host: str, index: int | None = None) -> str:
        """The router at a link of a host."""

    def onward(self, router: str, owner: str) -> int | None:
        """The link by which a router sends to another one's networks."""


def of(spec: Spec, layout: Layout, paths: LinkPaths) -> list[NodeTunnel]:
    """The tunnels without MTUs where none is written."""
    check_static(spec, "tunnels")
    found: list[NodeTunnel] = []
    for number, keys in enumerate(spec.description.tunnels):
        path: Path = ("tunnels", number)
        _check(spec, layout, path, keys, [tunnel.name for tunnel in found])
        ends = _ends(spec, layout, paths, path, keys)
        carried = _carried(spec, layout, paths, path, keys)
        seconds = 0 if keys.keepalive is None else keys.keepalive.ns // NS_PER_SECOND
        index = len(layout.edges) + number
        found.append(NodeTunnel(keys.name, path, index, keys.kind, ends, carried, keys.mtu or 0, seconds))
        _check_gre(spec, found)
    return found


def _check(spec: Spec, layout: Layout, path: Path, keys: fields.TunnelKeys, others: Sequence[str]) -> None:
    """The name is new, the ends are two hosts or routers, and WireGuard's keys are WireGuard's."""
    at, name = (*path, "name"), keys.name
    nodes = [*layout.hosts, *layout.routers]
    if name in others or name in [edge.name for edge in layout.edges] or name in [*nodes, *layout.switches]:
        raise spec.error(at, f"{name} names something else too: write another name")
    if len(name) > LONGEST_INTERFACE:
        message = f"names an interface, and is longer than {LONGEST_INTERFACE} characters: write a shorter name"
        raise spec.error(at, message, name)
    if _TAKEN.fullmatch(name):
        raise spec.error(at, "is an interface that nodes have of their own: write another name", name)
    for end in keys.between:
        if end in layout.switches:
            message = f"{end} is a switch, and tunnels end at hosts and routers: write one of these"
            raise spec.error((*path, "between"), message)
        if end not in nodes:
            raise spec.error((*path, "between"), f"there is no host or router {end}: {nearest(end, nodes)}")
    if keys.between[0] == keys.between[1]:
        raise spec.error((*path, "between"), f"both ends are {keys.between[0]}: write two nodes")
    if keys.keepalive is not None and keys.kind != "wireguard":
        raise spec.error((*path, "keepalive"), f"is of WireGuard, and this is {keys.kind}: leave it out")


def _ends(
    spec: Spec, layout: Layout, paths: LinkPaths, path: Path, keys: fields.TunnelKeys
) -> tuple[TunnelEnd, TunnelEnd]:
    bound: dict[str, list[int]] = {end: [] for end in keys.between}
    beside: dict[str, list[tuple[str, int]]] = {}
    for index, edge in enumerate(layout.edges):
        for end, other in ((edge.a, edge.b), (edge.b, edge.a)):
            if end in keys.between and other in layout.routers:
                beside.setdefault(edge.name, []).append((end, index))
    for name in keys.over or ():
        if name not in beside:
            message = f"no link {name} leads from {' or '.join(keys.between)} to a router: {nearest(name, beside)}"
            raise spec.error((*path, "over"), message)
        for end, index in beside[name]:
            if index in bound[end]:
                raise spec.error((*path, "over"), f"lists {name} twice: write it once")
            bound[end].append(index)
    for end, links in bound.items():
        if len(links) > 1 and keys.kind != "wireguard":
            message = f"{keys.kind} has one address at {end}, and cannot change the link: write one, or kind: wireguard"
            raise spec.error((*path, "over"), message)
    a, b = keys.between
    ends = []
    for end, other in ((a, b), (b, a)):
        link = bound[end][0] if bound[end] else _towards(layout, paths, end, other)
        edge = layout.edges[link]
        if {edge.a, edge.b} & set(layout.switches) or (end in layout.hosts and spec.description.access.switch):
            message = f"{end} is behind a switch: let the tunnel end at its router"
            raise spec.error((*path, "between"), message)
        ends.append(TunnelEnd(end, link, tuple(bound[end])))
    return ends[0], ends[1]


def _towards(layout: Layout, paths: LinkPaths, end: str, other: str) -> int:
    """The link by which an end sends to the other one."""
    if end in paths.uplinks:
        return paths.uplinks[end][0]
    router = paths.router_of(other) if other in paths.uplinks else other
    index = paths.onward(end, router)
    return paths.uplinks[other][0] if index is None else index


def _carried(
    spec: Spec, layout: Layout, paths: LinkPaths, path: Path, keys: fields.TunnelKeys
) -> dict[str, tuple[str, ...]]:
    """By end, the hosts behind it."""
    routers = set(keys.between) <= set(layout.routers)
    if keys.carries is None:
        of_ends: dict[str, list[str]] = {end: [] for end in keys.between} if routers else {}
        for host, links in paths.uplinks.items():
            beside = {paths.router_of(host, index) for index in links} & of_ends.keys()
            if len(beside) == 1:
                of_ends[beside.pop()].append(host)
        return {end: tuple(hosts) for end, hosts in of_ends.items()}
    if not routers:
        host = next(end for end in keys.between if end in layout.hosts)
        message = f"is of tunnels between routers, and {host} is a host: leave it out, and write {host}:{keys.name}"
        raise spec.error((*path, "carries"), message)
    for end, hosts in keys.carries.items():
        if end not in keys.between:
            raise spec.error((*path, "carries", end), f"{end} is no end of {keys.name}: {nearest(end, keys.between)}")
        for host in hosts:
            if host not in layout.hosts:
                raise spec.error((*path, "carries", end), f"there is no host {host}: {nearest(host, layout.hosts)}")
            other = next(each for each in keys.between if each != end)
            if other in {paths.router_of(host, index) for index in paths.uplinks[host]}:
                message = f"{host} is at {other} itself, and not behind {end}: write it of {other}, or leave it out"
                raise spec.error((*path, "carries", end), message)
    return dict(keys.carries)


def _check_gre(spec: Spec, found: Sequence[NodeTunnel]) -> None:
    """Raise where two tunnels of GRE have the same addresses, by which a tunnel without a key is known."""
    *others, last = found
    for other in others:
        if last.kind == other.kind == "gre" and {(end.node, end.link) for end in last.ends} == {
            (end.node, end.link) for end in other.ends
        }:
            message = f"has the same outer addresses as {other.name}: write another over, or another kind"
            raise spec.error((*last.path, "kind"), message, "gre")


class OuterPaths(Protocol):
    """The paths of outer packets."""

    def outer(self, tunnel: NodeTunnel, node: str) -> Iterator[tuple[int, ...]]:
        """The links that the outer packets of an end cross, each with the places of the tunnels around it."""


def with_mtus(
    spec: Spec, links: Sequence[LinkSettings], paths: OuterPaths, tunnels: Sequence[NodeTunnel]
) -> list[NodeTunnel]:
    """The tunnels with their MTUs: those of the outer packets' paths less the headers; each way has to carry them."""
    outer_v6 = spec.description.ip == "6"
    found: list[NodeTunnel] = []
    for tunnel in tunnels:
        most = LARGEST_MTU
        for node in tunnel.nodes:
            for index, *around in paths.outer(tunnel, node):
                headers = sum(OVERHEAD[tunnels[each].kind][outer_v6] for each in around)
                most = min(most, links[index].mtu - headers)
        least = LEAST_MTU if spec.description.ip == "4" else LEAST_IPV6_MTU
        at: Path = (*tunnel.path, "mtu")
        if tunnel.mtu > most:
            message = f"the links under {tunnel.name} leave {most} bytes of a packet: write {most} at most"
            raise spec.error(at, message, tunnel.mtu)
        mtu = tunnel.mtu or most
        if mtu < least:
            what = f"IPv6 needs {least} (RFC 8200)" if least == LEAST_IPV6_MTU else f"IPv4 needs {least} (RFC 791)"
            message = f"{what}, and {tunnel.name} has {mtu} bytes: write a larger MTU, of the links under it too"
            raise spec.error(at, message)
        found.append(replace(tunnel, mtu=mtu))
    return found
