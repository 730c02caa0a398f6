"""The way that packets take in a lab that is up, found by following the nodes' own routing tables. Pure.

In: a plan, and its nodes' tables as a runtime reads them (`ewan.labs.runtime.base.RouteReader`). Out: a node's routes
as rows; the way from one host to another, link by link, or why there is none.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ewan.labs.forwarding import Address, Forwarding, Table, TunnelledHop
from ewan.labs.plan import End, Hop, Plan
from ewan.labs.routing_documents import RoutingTable


@dataclass(frozen=True, slots=True)
class TableRoute:
    """A row of a routing table; `via` is empty where the network is at hand, `carries`: frames can leave there."""

    to: str
    via: str
    interface: str
    metric: int
    carries: bool


@dataclass(frozen=True, slots=True)
class LinkStep:
    """A link, from one of its ends to the other; `tunnels`: those whose outer packets cross it, the outermost first."""

    link: str
    direction: str
    a: str
    b: str
    tunnels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RoutedPath:
    """The path from one host to another. `broken`: why there is none, else empty."""

    steps: tuple[LinkStep, ...]
    broken: str = ""


def routes(told: RoutingTable) -> list[TableRoute]:
    """A node's table, IPv4 first, the longest prefixes last."""
    interfaces = {index: (name, carries) for index, name, carries in told.interfaces}
    rows = []
    for to, length, metric, index, via in told.routes:
        name, carries = interfaces.get(index, ("?", False))
        rows.append(TableRoute(f"{to}/{length}", via or "", name, metric, carries))
    return sorted(rows, key=_order)


def _order(row: TableRoute) -> tuple[int, int, int]:
    network = ipaddress.ip_network(row.to, strict=False)
    return network.version, network.prefixlen, int(network.network_address)


def planned(plan: Plan, source: str, sink: str) -> RoutedPath:
    """The way that the plan means."""
    forwarding = Forwarding(plan)
    return _way(forwarding, forwarding.crossed, source, sink)


def followed(plan: Plan, told: Mapping[str, RoutingTable], source: str, sink: str) -> RoutedPath:
    """The way that the tables lead now."""
    forwarding = _Live(plan, told)
    return _way(forwarding, forwarding.steps, source, sink)


def _way(forwarding: Forwarding, find: Callable[[str, str], list[TunnelledHop]], source: str, sink: str) -> RoutedPath:
    try:
        crossed = find(source, sink)
    except ValueError as error:
        return RoutedPath((), str(error))
    return RoutedPath(tuple(_step(forwarding, *each) for each in crossed))


def _step(forwarding: Forwarding, hop: Hop, tunnels: tuple[str, ...]) -> LinkStep:
    a, b = forwarding.ends(hop)
    return LinkStep(hop.link, hop.direction, a.node, b.node, tunnels)


class _Live(Forwarding):
    """With the nodes' tables in the place of the plan's; a host that is a machine has the plan's, and is not asked."""

    def __init__(self, plan: Plan, told: Mapping[str, RoutingTable]) -> None:
        super().__init__(plan)
        self._told = told
        self._machines = {node.name for node in plan.nodes if node.machine is not None}

    def _table(self, node: str, version: int, source: str = "") -> Table:
        if source or node in self._machines:  # Nothing but the plan makes these.
            return super()._table(node, version, source)
        table: Table = {}
        told = self._told.get(node)
        if told is None:
            raise ValueError(f"the routes of {node} are not known")
        names = {index: name for index, name, _ in told.interfaces}
        for to, length, _, index, via in told.routes:
            address = ipaddress.ip_address(to)
            if address.version == version and index in names:
                bits = address.max_prefixlen - length
                table[length, int(address) >> bits] = (ipaddress.ip_address(via) if via else None, names[index])
        return table

    def _next(self, node: str, there: Address, source: Address | None = None) -> tuple[Address, str]:
        via, interface = super()._next(node, there, source)
        asked = node not in self._machines
        if asked and not any(name == interface and carries for _, name, carries in self._told[node].interfaces):
            raise ValueError(f"{interface} of {node}, by which the route to {there} leads, has no carrier")
        return via, interface

    def _owner(self, via: Address, begin: End) -> End:
        # A gateway's link-local address is no address of the plan: it is at the other end.
        return self._owners.get(via) or self._at[self.wired(begin)][1]
