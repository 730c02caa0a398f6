"""Checks a topology and its links before anything is compiled: names, ends, MTUs.

Comes in: a spec, the layout of its topology, the settings of its links. Goes out: nothing, or a DescriptionError.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ewan.labs.base.values import LONGEST_NAME, NAME
from ewan.labs.base.wording import nearest
from ewan.labs.compile.addresses import LARGEST_LAB
from ewan.labs.compile.settings import LinkSettings
from ewan.labs.spec import Spec
from ewan.labs.topologies import Edge, Layout

LEAST_IPV6_MTU = 1280  # RFC 8200, section 5


def check_static(spec: Spec, key: str) -> None:
    """Refuses what `key` lists where a protocol finds the routes."""
    if getattr(spec.description, key) and spec.description.routing != "static":
        message = f"{spec.description.routing} finds the routes: leave them out, or write routing: static"
        raise spec.error((key,), message)


def check_layout(spec: Spec, layout: Layout) -> None:
    """Names are there, once, and short enough; links have two different ends that exist."""
    named = [*layout.hosts, *layout.routers, *layout.switches]
    nodes = dict.fromkeys(named)
    for word, count in Counter([*named, *(edge.name for edge in layout.edges)]).items():
        if count > 1:
            raise spec.error(("topology", "graph"), f"{word} names two things: write another name for one")
    ends, switches = set(), set(layout.switches)
    for edge in layout.edges:
        if len(edge.name) > LONGEST_NAME or not NAME.fullmatch(edge.name):
            raise spec.error(edge.path, f'{edge.name} is too long a name: write a shorter "name:"')
        for end in (edge.a, edge.b):
            if end not in nodes:
                raise spec.error((*edge.path, "between"), f"there is no node {end}: {nearest(end, nodes)}")
        if edge.a == edge.b:
            raise spec.error((*edge.path, "between"), f"links {edge.a} to itself: write another end")
        both = frozenset((edge.a, edge.b))
        if both in ends and both & switches:
            message = f"is a second link from {edge.a} to {edge.b}, and frames would go in a circle: leave it out"
            raise spec.error(edge.path, message)
        ends.add(both)
    names = dict.fromkeys(edge.name for edge in layout.edges)
    for name in spec.description.links:
        if name not in names:
            raise spec.error(("links", name), f"there is no such link, {nearest(name, names)}")
    hosts = dict.fromkeys(layout.hosts)
    several = Counter(end for edge in layout.edges for end in (edge.a, edge.b) if end in hosts)
    for edge in layout.edges if layout.switches else ():
        host = next((end for end in (edge.a, edge.b) if several[end] > 1), None)
        if host is not None and {edge.a, edge.b} & set(layout.switches):
            message = f"{host} has several links, and this one leads to a switch: link it to a router"
            raise spec.error((*edge.path, "between"), message)
    for index, pair in enumerate(layout.pairs):
        for end in pair:
            if end not in hosts:
                path = ("topology", "graph", "pairs", index)
                raise spec.error(path, f"there is no host {end}: {nearest(end, hosts)}")
        if pair[0] == pair[1]:
            raise spec.error(("topology", "graph", "pairs", index), f"pairs {pair[0]} with itself: write two")
    if len(layout.edges) > LARGEST_LAB:
        message = f"has {len(layout.edges)} links: write a topology of at most {LARGEST_LAB}"
        raise spec.error(("topology",), message)


def check_mtus(spec: Spec, layout: Layout, settings: Sequence[LinkSettings]) -> None:
    """One MTU among all links of one switched network, where no router says that a packet is too big; IPv6 needs
    1280."""
    first: dict[str, tuple[Edge, LinkSettings]] = {}
    behind = set(layout.routers) if spec.description.access.switch is not None else set()
    for edge, link in zip(layout.edges, settings, strict=True):
        switched = {edge.a, edge.b} & set(layout.switches)
        for network in ("switches",) if switched else ({edge.a, edge.b} & behind if edge.role == "access" else ()):
            other, before = first.setdefault(network, (edge, link))
            if link.mtu != before.mtu:
                message = (
                    f"{edge.name} has {link.mtu} and {other.name} has {before.mtu}, and a switch between them sends no "
                    f'"packet too big": write the same MTU for both'
                )
                path = link.mtu_path if link.mtu_path != ("mtu",) else before.mtu_path
                raise spec.error(path, message, link.mtu)
        if spec.description.ip != "4" and link.mtu < LEAST_IPV6_MTU:
            message = f'IPv6 needs {LEAST_IPV6_MTU} (RFC 8200): write at least "{LEAST_IPV6_MTU}", or ip 4'
            raise spec.error(link.mtu_path, message, link.mtu)


def check_trunks(spec: Spec, layout: Layout, settings: Sequence[LinkSettings]) -> None:
    """Links between switches, from switches to routers, and with tags are wires: nothing emulates them."""
    switches, hosts = set(layout.switches), set(layout.hosts)
    for edge, link in zip(layout.edges, settings, strict=True):
        ends = {edge.a, edge.b}
        if not ends & switches or (ends & hosts and not edge.tagged):
            continue
        if edge.role == "wan" or link.impaired:
            path = link.forward.why_impaired or link.backward.why_impaired or (*edge.path, "role")
            message = f"{edge.name} is a wire of a switch, with a rate and a buffer: write this of a link of routers"
            raise spec.error(path, message)
