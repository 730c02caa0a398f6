"""A plan as tables for people: nodes with their addresses, links with their stages, pairs.

Comes in: a plan. Goes out: (title, columns, rows of text).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from ewan.labs.base.units import Duration, Rate
from ewan.labs.link import Direction, Psp
from ewan.labs.link.direction import column_words, impairment_words
from ewan.labs.link.egress import card_of, limit_words, paced
from ewan.labs.plan import Interface, Node, Pair, Plan
from ewan.labs.render import vlan_words

Sheet = tuple[str, list[str], list[list[str]]]
COLUMNS = ("rate", "delay", "buffer", "queue", "loss")
_BELOW_NETEM = {"kernel": "netem + psp", "tbf": "netem + tbf"}


def sheets(plan: Plan, machine_of: Mapping[str, str] = MappingProxyType({})) -> list[Sheet]:
    """Nodes, links, pairs; `machine_of`: of each node of a lab over several machines, for a column of its own."""
    of_nodes = nodes(plan)
    if machine_of:
        of_nodes = [[name, machine_of[name], *rest] for name, *rest in of_nodes]
    return [
        (f"Nodes of {plan.lab}", ["node", *(["machine"] if machine_of else []), "kind", "addresses"], of_nodes),
        ("Links", ["link", "from → to", *COLUMNS, "other"], links(plan)),
        ("Pairs", ["from", "to", "base RTT", "bottleneck", "over"], pairs(plan)),
    ]


def nodes(plan: Plan) -> list[list[str]]:
    """A row for each host, router and switch. Emulators, which have no addresses, are among the links."""
    return [
        [node.name, _kind(node), " ".join(address for port in node.interfaces for address in _addresses(port))]
        for node in plan.nodes
        if node.kind != "emulator"
    ]


def _addresses(port: Interface) -> tuple[str, ...]:
    """Those of an interface; of one that is a VLAN of another, or a tunnel, its name before them."""
    return port.addresses if port.wired else (f"{port.name}:", *port.addresses)


def _kind(node: Node) -> str:
    """With a host's processing time in the virtual clock, which is uniform below that."""
    dithers = (card.dither_ns for port in node.interfaces if isinstance(card := card_of(port.egress), Psp))
    dither_ns = max(dithers, default=0)
    return f"{node.kind}, dither {Duration(dither_ns)}" if dither_ns else node.kind


def links(plan: Plan) -> list[list[str]]:
    """A row a link where both directions are equal, else one each; then the plain wires with their cards' rates."""
    table = []
    for link in plan.links:
        there, back = (stages(way, link.backend) for way in (link.forward, link.backward))
        if there == back:
            table.append([link.name, f"{link.a.node} ↔ {link.b.node}", *there])
        else:
            table.append([link.name, f"{link.a.node} → {link.b.node}", *there])
            table.append([link.name, f"{link.b.node} → {link.a.node}", *back])
    of_links = vlan_words.of_links(plan)
    cards = {(node.name, port.name): paced(port.egress) for node in plan.nodes for port in node.interfaces}
    for wire in plan.wires:
        a, b = (cards[end.node, end.interface] for end in (wire.a, wire.b))
        if a is not None and b is not None:
            rate = " / ".join(dict.fromkeys(str(Rate(card.rate_bps)) for card in (a, b)))
            limit = " / ".join(dict.fromkeys(limit_words(card) for card in (a, b)))
            other = ", ".join(["wire", *([of_links[wire.link]] if wire.link in of_links else [])])
            table.append([wire.link, f"{wire.a.node} ↔ {wire.b.node}", rate, "0ms", limit, "drop-tail", "", other])
    return table


def pairs(plan: Plan) -> list[list[str]]:
    """Each pair with the emulated links between, and what is slowest on the path."""
    emulated = {link.name for link in plan.links}
    return [
        [
            pair.source,
            pair.sink,
            str(Duration(pair.rtt_ns)),
            bottleneck(pair),
            over(pair, emulated),
        ]
        for pair in plan.pairs
    ]


def over(pair: Pair, among: Collection[str]) -> str:
    """`core`, of these links; where the way back has others, `satellite, back cable`."""
    there, back = ([hop.link for hop in path.hops if hop.link in among] for path in (pair.forward, pair.backward))
    words = " ".join(there)
    return words if there == back[::-1] else f"{words}, back {' '.join(back)}"


def bottleneck(pair: Pair) -> str:
    """`100Mbit/s at core`; where the way back is slower or faster, `100Mbit/s at core, back 10Mbit/s at core`."""
    there, back = (f"{Rate(path.bottleneck_bps)} at {path.slowest.link}" for path in (pair.forward, pair.backward))
    return there if pair.forward.bottleneck_bps == pair.backward.bottleneck_bps else f"{there}, back {back}"


def stages(way: Direction, backend: str) -> list[str]:
    """Rate, delay, buffer, queue, loss, other of one direction."""
    said = column_words(way)
    return [*(said[key] for key in COLUMNS), _other(way, backend)]


def _other(way: Direction, backend: str) -> str:
    words = [column_words(way)["framing"], *impairment_words(way)]
    words += ["a device"] if backend == "hardware" else []
    words += [_BELOW_NETEM[backend]] if backend in _BELOW_NETEM else []
    return ", ".join(words)
