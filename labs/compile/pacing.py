"""Paces the sources behind an interface's card: classes, and filters that assign packets to them.

Comes in: interfaces as the compiler or a plan has them, and pacing as a person wrote it. Goes out: the same interfaces
with `Sources` as their egress. A flow of ours names its class on its socket; for other programs and for destinations a
filter finds it. The first class is not paced: probes name it, so that a verification measures links, however the hosts
are paced.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Mapping, Sequence

from ewan.labs.base.codec import replace
from ewan.labs.base.source import Path
from ewan.labs.base.units import NS_PER_MS, Rate, Size, bytes_in
from ewan.labs.compile.hosts import names
from ewan.labs.compile.hosts import written as host_settings
from ewan.labs.link import (
    Card,
    Egress,
    Fifo,
    Filter,
    FqPacer,
    Framing,
    GapPacer,
    NoPacer,
    PacedClass,
    Pacer,
    Psp,
    PspPacer,
    Sources,
    Tbf,
    TbfPacer,
)
from ewan.labs.link.egress import UNPACED, card_of
from ewan.labs.link.framing import ETHERNET_HEADER, FRAMING, framed
from ewan.labs.plan import End, Interface, Node
from ewan.labs.spec import Spec, fields

MOST_PRIO = 16
"""Bands of the queueing discipline prio."""
MOST_CLASSES = 65_000
"""The most classes of one interface: classes and their contents have numbers of 16 bits."""
MOST_FQ = Rate.parse("34Gbit/s")
"""The kernel's fq has the rate of a connection in bytes per second, in 32 bits."""
BURST_NS = NS_PER_MS
"""The default burst of a token bucket: the packets of a clock's tick of 1 ms, as tc-tbf(8) advises."""
BURST_PACKETS = 4
_NOT = PacedClass(filters=(), pacer=NoPacer())
_NO_GAPS = (
    "gap packets need a port that sends at the rate of its line and a far end that discards PAUSE frames, and {} is an "
    'interface of a veth pair, which has neither: write "gap: timer", or give it a real card '
    "(docs/how-to/labs/hardware.md)"
)


class PacingError(ValueError):
    """The fault of a source's pacing and its remedy, in one line."""


def pacer(pacing: fields.Pacing, interface: Interface, at: End, cards: Collection[End], connections: int = 1) -> Pacer:
    """The pacer that limits packets to the rate before the card of an interface; in fq each of the connections has its
    share.

    `at`: the end of the interface; `cards`: the ends that are network cards of this machine. Raises PacingError.
    """
    bps = pacing.rate_bps
    if bps is None:
        return NoPacer()
    egress, mtu = interface.egress, interface.mtu
    framing = FRAMING[pacing.framing or "wire"]
    if pacing.gap == "packets":
        _check_line(bps, card_of(egress), at, cards)
        return GapPacer(
            rate_bps=bps,
            overhead_bytes=framing.overhead_bytes - ETHERNET_HEADER,
            minimum_bytes=framing.minimum_bytes,
        )
    if pacing.psp is not None:
        return PspPacer(
            rate_bps=bps,
            overhead_bytes=framing.overhead_bytes - ETHERNET_HEADER,
            minimum_bytes=framing.minimum_bytes,
        )
    counted, meant = framed(_counting(card_of(egress)), mtu), framed(framing, mtu)
    here_bps = bps * counted // meant
    if pacing.tbf is not None:
        least = BURST_PACKETS * counted
        burst = max(bytes_in(here_bps, BURST_NS), least) if pacing.burst is None else pacing.burst.bytes
        if burst < counted:
            raise PacingError(f"a burst of {Size(burst)} holds less than one packet of {Size(counted)}: write more")
        return TbfPacer(rate_bps=here_bps, burst_bytes=burst)
    if bps > MOST_FQ.bps:
        raise PacingError(f'fq holds a connection to {MOST_FQ} at most: write a lower rate, or "psp {Rate(bps)}"')
    return FqPacer(rate_bps=max(here_bps // connections, 8))


def _check_line(bps: int, card: Card, at: End, cards: Collection[End]) -> None:
    """Refuses gap packets where they do not fill a line of a known rate."""
    if at not in cards:
        raise PacingError(_NO_GAPS.format(f"{at.node}:{at.interface}"))
    if not isinstance(card, Tbf):
        raise PacingError(
            "gap packets need the rate of the card's line, and the link behind it is emulated: "
            'write "gap: timer", or give the host a plain link'
        )
    if card.overhead_bytes != FRAMING["wire"].overhead_bytes - ETHERNET_HEADER:
        raise PacingError("gap packets need the rate of the line with all that is on it: leave out the link's framing")
    if bps > card.rate_bps:
        raise PacingError(f"{Rate(bps)} is more than the line's {Rate(card.rate_bps)}: write a lower rate")


def check_together(kinds: Collection[type[Pacer]]) -> None:
    """PacingError for pacers of kinds that one queueing discipline cannot have."""
    if PspPacer in kinds and GapPacer in kinds:
        raise PacingError("a card waits for all psp rates of a host by timers, or for all by gap packets: write one")


def _counting(card: Card) -> Framing:
    """The framing by which a packet's length counts while it waits for the card."""
    match card:
        case Psp():
            return Framing(card.overhead_bytes + ETHERNET_HEADER, card.minimum_bytes)
        case Tbf():  # it adds what its framing adds by itself
            return Framing(ETHERNET_HEADER, 0)
        case _:
            return FRAMING["wire"]


def with_classes(interface: Interface, classes: Sequence[PacedClass], virtual: bool, default: int = 0) -> Interface:
    """The interface with more classes; they are numbered from `next_class` on. `default` 0: as it is."""
    old = interface.egress
    if isinstance(old, Sources):
        egress = replace(old, classes=(*old.classes, *classes), default=default or old.default)
    else:
        card = card_of(old)
        packets, size = _limits(card, interface.mtu)
        counting = _counting(card)
        egress = Sources(
            card=card,
            classes=(_NOT, *classes),
            default=default or UNPACED,
            limit_packets=packets,
            limit_bytes=size,
            overhead_bytes=counting.overhead_bytes - ETHERNET_HEADER,
            minimum_bytes=counting.minimum_bytes,
            sorter="psp",
        )
    # A kernel without psp can sort by prio, as long as its bands suffice and nothing else needs psp.
    prio = not virtual and len(egress.classes) <= MOST_PRIO
    prio = prio and not any(isinstance(each.pacer, PspPacer) for each in egress.classes)
    if any(isinstance(each.pacer, GapPacer) for each in egress.classes):
        return replace(interface, egress=replace(egress, sorter="psp_gap"))
    return replace(interface, egress=replace(egress, sorter="prio" if prio else "psp"))


def next_class(egress: Egress) -> int:
    """The number of the next class of an interface."""
    return len(egress.classes) + 1 if isinstance(egress, Sources) else UNPACED + 1


def _limits(card: Card, mtu: int) -> tuple[int | None, int]:
    """Packets, or else bytes, that may wait before a card."""
    match card:
        case Fifo(packets):
            return packets, packets * framed(FRAMING["wire"], mtu)
        case Psp():
            return card.limit_packets, card.limit_bytes
        case Tbf():
            return None, card.limit_bytes
        case _:
            raise AssertionError("a host's interface has a card")


def hosts(spec: Spec, nodes: Sequence[Node], cards: Collection[End], *, virtual: bool) -> tuple[Node, ...]:
    """The nodes, hosts paced as the description says; DescriptionError where it cannot be. `cards`: see `pacer`."""
    if not spec.description.hosts:
        return tuple(nodes)
    known = {node.name: node for node in nodes if node.kind == "host"}
    of = host_settings(spec, known)
    addresses = {name: addresses_of(node) for name, node in known.items()}
    result = []
    for node in nodes:
        if node.name in of and (pacings := of[node.name][1].pacing):
            node = _paced(spec, node, (*of[node.name][0], "pacing"), pacings, addresses, cards, virtual)
        result.append(node)
    return tuple(result)


def _paced(
    spec: Spec,
    node: Node,
    path: Path,
    pacings: Iterable[fields.HostPacing],
    addresses: Mapping[str, Sequence[str]],
    cards: Collection[End],
    virtual: bool,
) -> Node:
    """A host with the classes that are written at `path`."""
    if any(each.vlans is not None for each in node.interfaces):
        message = f"{node.name} sends with VLAN tags, by which its packets are not found: put it on an access port"
        raise spec.error(path, message)
    if any(each.tunnel is not None for each in node.interfaces):
        message = (
            f"{node.name} is an end of a tunnel, whose packets are not found: leave pacing out, or end it at a router"
        )
        raise spec.error(path, message)
    found: dict[str, int] = {}
    interfaces = list(node.interfaces)
    classes: list[list[PacedClass]] = [[] for _ in interfaces]
    kinds: list[set[type[Pacer]]] = [set() for _ in interfaces]
    default = UNPACED
    for index, pacing in enumerate(pacings):
        here: Path = (*path, index)
        if pacing.rate_bps is None:
            continue
        sinks: list[str | None] = [None] if pacing.to is None else []
        for name in names(spec, (*here, "to"), pacing.to, addresses) if pacing.to is not None else ():
            if name == node.name:
                raise spec.error((*here, "to"), f"{name} sends nothing to itself: write another host")
            sinks.append(name)
        for sink in sinks:
            shown = sink or "all others"
            if shown in found:
                raise spec.error(here, f"says how {node.name} sends to {shown} a second time: write it once")
            found[shown] = index
            filters = (
                ()
                if sink is None
                else tuple(Filter(address=each, port=None, protocol=None) for each in addresses[sink])
            )
            for interface, those, of_port in zip(interfaces, classes, kinds, strict=True):
                at = End(node.name, interface.name)
                try:
                    those.append(PacedClass(filters=filters, pacer=pacer(pacing, interface, at, cards)))
                    of_port.add(type(those[-1].pacer))
                    check_together(of_port)
                except PacingError as error:
                    raise spec.error(here, str(error)) from None
            if sink is None:
                default = UNPACED + len(found)
    if not found:
        return node
    paced = (with_classes(port, those, virtual, default) for port, those in zip(interfaces, classes, strict=True))
    return replace(node, interfaces=tuple(paced))


def addresses_of(node: Node) -> tuple[str, ...]:
    """All addresses of a node, without their prefix lengths."""
    return tuple(str(ipaddress.ip_interface(text).ip) for port in node.interfaces for text in port.addresses)
