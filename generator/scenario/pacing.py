"""The pacing of a run's flows: each flow that its step paces has a class of its own at its source's card.

Comes in: a plan, and the flows one after the other. Goes out: the class that a flow's sockets name, or the filter that
finds the packets of another program; at the end the plan with all of these classes. Pure. The pacing of a step goes
before the pacing of the host in the lab."""

from __future__ import annotations

from collections import defaultdict
from typing import Literal

from ewan.labs.base.codec import replace
from ewan.labs.compile.pacing import (
    MOST_CLASSES,
    PacingError,
    addresses_of,
    check_together,
    next_class,
    pacer,
    with_classes,
)
from ewan.labs.forwarding import Forwarding
from ewan.labs.link import Egress, Filter, FqPacer, GapPacer, NoPacer, PacedClass, Pacer, PspPacer, Sources, TbfPacer
from ewan.labs.link.egress import UNPACED
from ewan.labs.plan import End, Interface, Plan
from ewan.labs.spec import fields

To = tuple[str, Literal["tcp", "udp"], int | None]
"""A sink's address and port; None: the port is unknown."""


class PacedClasses:
    """The classes of one run, in the order of their requests."""

    def __init__(self, plan: Plan, forwarding: Forwarding, virtual: bool) -> None:
        self._plan, self._forwarding, self._virtual = plan, forwarding, virtual
        self._ports = {End(node.name, port.name): port for node in plan.nodes for port in node.interfaces}
        self._addresses = {node.name: addresses_of(node) for node in plan.nodes if node.kind == "host"}
        self._cards = {card.end for card in plan.cards}
        self._kinds: dict[End, set[type[Pacer]]] = {}
        self._added: dict[End, list[PacedClass]] = defaultdict(list)

    def rate_bps(self, source: str, sink: str, pacing: fields.Pacing | None) -> int | None:
        """The rate to which packets from one host to another are limited, by a flow's own pacing, else by its host's;
        None: there is no limit."""
        if pacing is not None:
            return pacing.rate_bps
        # No host's words name a router: what is sent to one is of the host's rest.
        return host_rate_bps(self._ports[self._end(source, sink)].egress, self._addresses.get(sink, ()))

    def own(self, source: str, sink: str, pacing: fields.Pacing, connections: int) -> int:
        """The class that a flow's sockets name; PacingError where it cannot exist."""
        if pacing.rate_bps is None:
            return UNPACED
        return self._add(self._end(source, sink), (), pacing, connections)

    def found(self, source: str, sink: str, pacing: fields.Pacing, connections: int, to: To) -> None:
        """A class for the packets of another program; PacingError where it cannot exist."""
        address, protocol, port = to
        end = self._end(source, sink)
        if pacing.rate_bps is None and not isinstance(self._ports[end].egress, Sources):
            return
        if port is None:
            raise PacingError("finds no packets of this generator: pace its host in the lab (hosts:)")
        if self._ports[end].vlans is not None:
            raise PacingError(f"finds no packets with VLAN tags: put {source} on an access port")
        self._add(end, (Filter(address=address, protocol=protocol, port=port),), pacing, connections)

    def plan(self) -> Plan:
        """The run's: with the classes of its flows."""
        if not self._added:
            return self._plan
        return replace(
            self._plan,
            nodes=tuple(
                replace(node, interfaces=tuple(self._port(End(node.name, port.name), port) for port in node.interfaces))
                if any(End(node.name, port.name) in self._added for port in node.interfaces)
                else node
                for node in self._plan.nodes
            ),
        )

    def _port(self, end: End, port: Interface) -> Interface:
        return with_classes(port, self._added[end], self._virtual) if end in self._added else port

    def _end(self, source: str, sink: str) -> End:
        """The interface where packets leave their source."""
        return self._forwarding.ends(self._forwarding.path(source, sink).hops[0])[0]

    def _add(self, end: End, filters: tuple[Filter, ...], pacing: fields.Pacing, connections: int) -> int:
        port, those = self._ports[end], self._added[end]
        number = next_class(port.egress) + len(those)
        if number > MOST_CLASSES:
            raise PacingError(f"is of more than {MOST_CLASSES} flows of {end.node}: write fewer")
        added = PacedClass(filters=filters, pacer=pacer(pacing, port, end, self._cards, connections))
        if end not in self._kinds:
            classes = port.egress.classes if isinstance(port.egress, Sources) else ()
            self._kinds[end] = {type(each.pacer) for each in classes}
        self._kinds[end].add(type(added.pacer))
        check_together(self._kinds[end])
        those.append(added)
        return number


def host_rate_bps(egress: Egress, addresses: tuple[str, ...]) -> int | None:
    """The rate in bit/s to which a host's own pacing limits packets to these addresses; None: there is no limit."""
    if not isinstance(egress, Sources):
        return None
    for each in egress.classes:
        if any(filter.address in addresses and filter.port is None for filter in each.filters):
            return _rate_bps(each.pacer)
    return _rate_bps(egress.classes[egress.default - 1].pacer)


def _rate_bps(pacer: Pacer) -> int | None:
    match pacer:
        case NoPacer():
            return None
        case PspPacer() | GapPacer() | TbfPacer() | FqPacer():
            return pacer.rate_bps
