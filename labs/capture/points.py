"""Translates the places that a person writes into packet sockets in nodes. Pure.

In: `left1`, `r1:eth0`, `r1:core`, `core`, `core:r2`, `core:forward`, and the plan. Out: taps.

What enters a link is captured where it comes in at the link's port, what leaves it where it comes in at the node behind
it. So it is the same for all back ends: a link in user space sends past the kernel's taps, and the wire to the node
takes no time. The kernel stamps both when they come in; from the first of these stamps on a link counts its delay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ewan.labs.base.errors import UserError
from ewan.labs.base.wording import nearest
from ewan.labs.plan import End, Link, Node, Plan

Packets = Literal["all", "entering", "leaving"]
DIRECTIONS = ("forward", "backward")


class PointError(UserError):
    """No such place in the lab: one line."""


@dataclass(frozen=True, slots=True)
class Tap:
    """`name`: of the interface in the file, which several taps may share; `node`, `interface`: where the socket is."""

    name: str
    node: str
    interface: str
    packets: Packets


def taps(plan: Plan, text: str) -> list[Tap]:
    """The taps of `NODE[:INTERFACE]` or `LINK[:SIDE]`; PointError for a name that is not in the plan."""
    name, colon, rest = text.partition(":")
    if colon and not rest:
        raise PointError(f'"{text}": nothing stands after the colon: write {name}, or {name}:INTERFACE')
    nodes = {node.name: node for node in plan.nodes if node.kind != "emulator"}
    if name in nodes:
        return list(_of_node(plan, nodes[name], rest))
    for link in plan.links:
        if name in (link.name, link.node):
            return list(_of_link(link, rest))
    if name in {wire.link for wire in plan.wires}:
        ends = next((wire.a.node, wire.b.node) for wire in plan.wires if wire.link == name)
        raise PointError(f"{name} is a plain link, a wire: write one of its ends, {ends[0]}:{name} or {ends[1]}:{name}")
    known = [*nodes, *(link.name for link in plan.links)]
    raise PointError(f"lab {plan.lab} has no node and no link {name}: {nearest(name, known)}")


def _of_node(plan: Plan, node: Node, interface: str) -> Iterator[Tap]:
    """All interfaces, or the named one, by itself or by the link that ends there."""
    names = [each.name for each in node.interfaces]
    at_links = {wire.link: end.interface for wire in plan.wires for end in (wire.a, wire.b) if end.node == node.name}
    chosen = names if not interface else [interface] if interface in names else [at_links.get(interface, "")]
    if chosen == [""]:
        raise PointError(
            f"{node.name} has no interface and no link {interface}: {nearest(interface, [*names, *at_links])}"
        )
    if not chosen:
        raise PointError(f"{node.name} has no interfaces")
    yield from (Tap(f"{node.name}:{each}", node.name, each, "all") for each in chosen)


def _of_link(link: Link, side: str) -> Iterator[Tap]:
    """Both sides, one, or what goes one way: in at one side, out at the other."""
    sides = {"a": (link.a, link.port_a), "b": (link.b, link.port_b)}
    names = _side_names(link)
    if side in DIRECTIONS:
        source, sink = ("a", "b") if side == "forward" else ("b", "a")
        yield _entering(link, names[source], sides[source][1])
        yield _leaving(names[sink], sides[sink][0])
        return
    if side and side not in names.values():
        written = [name.partition(":")[2] for name in names.values()]
        if side not in written:
            allowed = ", ".join([*written, *DIRECTIONS])
            raise PointError(
                f"link {link.name} has no side {side}: write one of {allowed}, or {link.name} for both sides"
            )
    for key, (end, port) in sides.items():
        if not side or names[key] == f"{link.name}:{side}":
            yield _entering(link, names[key], port)
            yield _leaving(names[key], end)


def _side_names(link: Link) -> dict[str, str]:
    """LINK:NODE of each side, or of a link from a node to itself LINK:PORT."""
    if link.a.node == link.b.node:
        return {"a": f"{link.name}:{link.port_a}", "b": f"{link.name}:{link.port_b}"}
    return {"a": f"{link.name}:{link.a.node}", "b": f"{link.name}:{link.b.node}"}


def _entering(link: Link, name: str, port: str) -> Tap:
    return Tap(name, link.node, port, "entering")


def _leaving(name: str, end: End) -> Tap:
    return Tap(name, end.node, end.interface, "leaving")
