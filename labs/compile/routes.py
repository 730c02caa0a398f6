"""Routes, and the daemons that find them where a routing protocol does.

Comes in: the outline, the links' addresses, the wired lab. Goes out: each node's routes, those that it is given and
those that it is to learn, and what a router's daemons need of it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ewan.labs.base.codec import replace
from ewan.labs.compile import frr_startup, node_overrides, routing
from ewan.labs.compile.numbering import Numbering
from ewan.labs.compile.outline import Outline
from ewan.labs.compile.tunnels import NodeTunnel
from ewan.labs.compile.wiring import Reach, WiringResult
from ewan.labs.plan import Interface, Neighbour, Route, Service

LARGEST_MTU = 65535


@dataclass(frozen=True, slots=True)
class Routes:
    """By node: `given` at the lab's start, and `learned` from neighbours."""

    given: Mapping[str, Sequence[Route]]
    learned: Mapping[str, Sequence[Route]]


def routes(outline: Outline, numbering: Numbering, wired: WiringResult) -> Routes:
    """Hosts have a default route, and one for each address if they have several links; a router has one a family to
    each other router's links, or is to learn them."""
    paths = outline.paths
    of_hosts: dict[str, list[Route]] = {}
    defaults = numbering.of_families("0.0.0.0/0", "::/0")
    for host, links in paths.uplinks.items():
        interface, far = wired.reach[host, links[0]]
        of_hosts[host] = [Route(to, via, interface) for to, via in zip(defaults, far, strict=True)]
        if len(links) > 1:
            of_hosts[host] += _by_source(wired, host, links, defaults)
    of_routers: dict[str, list[Route]] = {router: [] for router in outline.layout.routers}
    for owner, (first, size) in numbering.owned.items():
        prefixes = numbering.prefixes(owner)
        for router in paths.next_hops[owner]:
            beside = paths.between.get(frozenset((router, owner))) if size == 1 else None
            if beside is not None and numbering.numbers[beside] == first:
                continue  # The block is the network of the very link that joins the two: both are connected to it.
            if size == 1 and any(
                numbering.numbers[tunnel.index] == first and router in tunnel.nodes for tunnel in outline.tunnels
            ):
                continue  # The same of a tunnel.
            index = paths.onward(router, owner)
            assert index is not None, "it is another router"
            interface, far = wired.reach[router, index]
            of_routers[router] += [Route(to, via, interface) for to, via in zip(prefixes, far, strict=True)]
    for name, turned in paths.turns.items():
        for router, index in turned.items() if name in paths.uplinks else ():
            of_routers[router] += _to_host(wired, name, wired.reach[router, index])
    everything = of_hosts | of_routers
    for tunnel in outline.tunnels:
        _add_tunnel(outline, wired, tunnel, defaults, everything)
    for tunnel in outline.tunnels:
        for node in paths.uplinks.keys() & set(tunnel.nodes):
            everything[node] += _to_tunnel(wired, tunnel, node, everything[node])
    if outline.spec.description.routing == "static":
        return Routes(everything, {})
    return Routes(of_hosts, of_routers)


def _by_source(wired: WiringResult, host: str, links: Sequence[int], defaults: Sequence[str]) -> list[Route]:
    """The default routes of packets from each address of a host with several links: by the link of that address."""
    found = []
    ports = {port.name: port for port in wired.machines[host].all_interfaces}
    for index in links:
        interface, far = wired.reach[host, index]
        own = [address.split("/")[0] for address in ports[interface].addresses]
        found += [Route(*each[:2], interface, each[2]) for each in zip(defaults, far, own, strict=True)]
    return found


def _add_tunnel(
    outline: Outline, wired: WiringResult, tunnel: NodeTunnel, defaults: Sequence[str], found: dict[str, list[Route]]
) -> None:
    """Adds the routes from hosts' addresses at a tunnel, and those of outer packets that have links of their own."""
    paths = outline.paths
    for end in tunnel.ends:
        of_node = found[end.node]
        if end.node in paths.uplinks:
            of_node += _by_source(wired, end.node, [tunnel.index], defaults)
        if not end.bound:
            continue
        inside = next(port for port in wired.machines[end.node].tunnels if port.name == tunnel.name)
        assert inside.tunnel is not None
        local = ipaddress.ip_address(inside.tunnel.local)
        default = next(to for to in defaults if ipaddress.ip_network(to).version == local.version)
        for metric, index in enumerate(end.bound):
            interface, far = wired.reach[end.node, index]
            via = next(each for each in far if ipaddress.ip_address(each).version == local.version)
            route = Route(default, via, interface, str(local), metric)
            if route not in of_node:
                of_node.append(route)
            if end.node not in paths.uplinks:
                _lead_back(outline, wired, end.node, index, found)


def _to_tunnel(wired: WiringResult, tunnel: NodeTunnel, node: str, routes: Sequence[Route]) -> list[Route]:
    """The routes to a tunnel's own network from a host's other addresses that have routes of their own."""
    interface, far = wired.reach[node, tunnel.index]
    port = next(port for port in wired.machines[node].tunnels if port.name == tunnel.name)
    own = [ipaddress.ip_interface(text) for text in port.addresses]
    found = []
    for source in dict.fromkeys(route.source for route in routes if route.source):
        for address, via in zip(own, far, strict=True):
            if address.version == ipaddress.ip_address(source).version and str(address.ip) != source:
                found.append(Route(str(address.network), via, interface, source))
    return found


def _lead_back(outline: Outline, wired: WiringResult, router: str, index: int, found: dict[str, list[Route]]) -> None:
    """All routers' routes to a router's address at one of its links, by that link."""
    edge = outline.layout.edges[index]
    beside = edge.b if edge.a == router else edge.a
    _, own = wired.reach[beside, index]
    for other in outline.layout.routers:
        onward = outline.paths.onward(other, beside)
        if other == router or onward is None:
            continue
        interface, far = wired.reach[other, onward]
        for address, via in zip(own, far, strict=True):
            route = Route(f"{address}/{ipaddress.ip_address(address).max_prefixlen}", via, interface)
            if route not in found[other]:
                found[other].append(route)


def _to_host(wired: WiringResult, host: str, reach: Reach) -> list[Route]:
    """The routes of a router to each address of a host, by one of its links."""
    interface, far = reach
    vias = {ipaddress.ip_address(via).version: via for via in far}
    addresses = [
        ipaddress.ip_interface(text).ip
        for port in wired.machines[host].all_interfaces
        for text in (port.addresses if port.tunnel is None else ())
    ]
    return [Route(f"{each}/{each.max_prefixlen}", vias[each.version], interface) for each in addresses]


@dataclass(frozen=True, slots=True)
class Daemons:
    """The additional parts of a router if a protocol finds the routes; `interfaces` replace its own."""

    interfaces: tuple[Interface, ...]
    services: tuple[Service, ...]
    sysctls: dict[str, str]


def daemons(outline: Outline, numbering: Numbering, wired: WiringResult) -> dict[str, Daemons]:
    """The routers' daemons, and their neighbours' link-local addresses; none with static routes."""
    protocol, paths = outline.spec.description.routing, outline.paths
    if protocol == "static":
        return {}
    numbers = {name: number for number, name in enumerate(outline.layout.routers, 1)}
    narrowest = min((outline.links[index].mtu for index in paths.between.values()), default=LARGEST_MTU)
    peers: dict[tuple[str, str], routing.Peer] = {}
    for ends, index in paths.between.items():
        edge, rtt_ns = outline.layout.edges[index], paths.forward_ns[index] + paths.backward_ns[index]
        for name, far_name in ((edge.a, edge.b), (edge.b, edge.a)):
            assert name in ends
            interface, far = wired.reach[name, index]
            peers[name, interface] = routing.Peer(far, numbers[far_name], paths.costs[index], rtt_ns)
    with_v4, with_v6 = numbering.with_v4, numbering.with_v6
    startups = node_overrides.startups(outline.spec, {name: machine.kind for name, machine in wired.machines.items()})
    found = {}
    for name, number in numbers.items():
        attachments, interfaces = [], []
        for port in wired.machines[name].all_interfaces:
            peer = peers.get((name, port.name))
            known = [ipaddress.ip_interface(address) for address in port.addresses]
            networks = tuple(str(address.network) for address in known if not address.is_link_local)
            # What one router floods all others pass on.
            attachments.append(routing.Attachment(port.name, min(port.mtu, narrowest), networks, peer))
            interfaces.append(_with_link_local(port) if peer is not None and with_v6 else port)
        addresses = [address.split("/")[0] for port in interfaces for address in port.addresses]
        router = routing.Router(name, number, routing.identity(number, addresses), tuple(attachments))
        services = routing.services(protocol, router, len(numbers), with_v4, with_v6)
        if (startup := startups.get(name)) is not None:
            services = frr_startup.added(services, name, startup.file.text, replace=startup.mode == "replace")
        found[name] = Daemons(tuple(interfaces), tuple(services), routing.sysctls(router, with_v6))
    return found


def _with_link_local(port: Interface) -> Interface:
    far_mac = port.neighbours[0].mac
    return replace(port, neighbours=(*port.neighbours, Neighbour(routing.link_local(far_mac), far_mac)))
