"""Switched access networks as the verification sees them: the port to the router is a link like others. Pure.

In: a plan. Out: for each switch the hosts on plain cards behind it, and the link between it and its router as if it was
emulated: `forward` is the switch's port, where the hosts meet, `backward` the router's card.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from labs.plan import End, Interface, Link, Plan
from labs.stages import Direction, DropTail, Framing, Psp, Queue, Tbf, plain_direction
from labs.stages.egress import paced

ETHERNET_HEADER_BYTES = 14
USER_SPACE = (
    "Open vSwitch forwards in user space here, which is slow: write lower rates, load the host's kernel module "
    "openvswitch, or take the virtual clock"
)


@dataclass(frozen=True, slots=True, eq=False)
class SwitchedLan:
    """The hosts behind one switch, their router, and the port between switch and router as a link."""

    router: End
    hosts: tuple[End, ...]
    port: Link
    in_user_space: bool


def of_plan(plan: Plan) -> dict[str, SwitchedLan]:
    """By the switch's name."""
    kinds = {node.name: node.kind for node in plan.nodes}
    interfaces = {(node.name, port.name): port for node in plan.nodes for port in node.interfaces}
    found = {}
    for node in (node for node in plan.nodes if node.kind == "switch"):
        beside = [(wire.a, wire.b) if wire.a.node == node.name else (wire.b, wire.a) for wire in plan.wires]
        beside = [(own, far) for own, far in beside if own.node == node.name]
        own, router = next((own, far) for own, far in beside if kinds[far.node] == "router")
        hosts = tuple(far for _, far in beside if kinds[far.node] == "host")
        slow = any("datapath_type=netdev" in service.argv for service in node.services)
        found[node.name] = SwitchedLan(router, hosts, _port(node.name, own, router, interfaces), slow)
    return found


def _port(switch: str, own: End, router: End, interfaces: Mapping[tuple[str, str], Interface]) -> Link:
    """The port of a switch to its router as a link of the switch's name."""
    there, back = (interfaces[end.node, end.interface] for end in (own, router))
    backend: Literal["kernel", "tbf"] = "kernel" if isinstance(there.egress, Psp) else "tbf"
    ways = [_direction(each) for each in (there, back)]
    return Link(switch, "access", backend, switch, own.interface, router.interface, own, router, *ways)


def _direction(port: Interface) -> Direction:
    card = paced(port.egress)
    assert card is not None, "the compiler gives both ends of a switch's link to its router a rate"
    framing, queue = card_framing(card), Queue(None, card.limit_bytes, DropTail())
    if isinstance(card, Tbf):
        # Its queue counts frames without what the framing adds.
        packets = card.limit_bytes // (port.mtu + ETHERNET_HEADER_BYTES)
        queue = Queue(None, packets * (port.mtu + framing.overhead_bytes), DropTail())
    elif card.limit_packets is not None:
        queue = Queue(card.limit_packets, None, DropTail())
    return plain_direction(framing, card.rate_bps, queue, 0)


def card_framing(card: Psp | Tbf) -> Framing:
    """What a card's rate counts of an IP packet."""
    return Framing(card.overhead_bytes + ETHERNET_HEADER_BYTES, card.minimum_bytes if isinstance(card, Psp) else 0)
