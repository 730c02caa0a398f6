"""Switched access networks as the verification sees them: the port to the router is a link like others. Pure.

In: a plan. Out: for each switch the hosts on plain cards behind it, and the link between it and its router as if it was
emulated: `forward` is the switch's port, where the hosts meet, `backward` the router's card.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from labs.plan import Direction, End, Framing, Interface, Link, Plan, Queue

ETHERNET_HEADER_BYTES = 14
USER_SPACE = (
    "Open vSwitch forwards in user space here, which is slow: write lower rates, load the host's kernel module "
    "openvswitch, or take the virtual clock"
)


@dataclass(frozen=True, slots=True, eq=False)
class Lan:
    router: End
    hosts: tuple[End, ...]
    port: Link
    in_user_space: bool


def of_plan(plan: Plan) -> dict[str, Lan]:
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
        found[node.name] = Lan(router, hosts, _port(node.name, own, router, interfaces), slow)
    return found


def _port(switch: str, own: End, router: End, interfaces: Mapping[tuple[str, str], Interface]) -> Link:
    there, back = (interfaces[end.node, end.interface] for end in (own, router))
    backend = "kernel" if there.egress["kind"] == "psp" else "tbf"
    ways = [_direction(each.egress, each.mtu) for each in (there, back)]
    return Link(switch, "access", backend, switch, own.interface, router.interface, own, router, *ways)  # type: ignore[arg-type]


def _direction(egress: Mapping[str, Any], mtu: int) -> Direction:
    framing = Framing(egress["overhead_bytes"] + ETHERNET_HEADER_BYTES, egress.get("minimum_bytes", 0))
    packets, size = egress.get("limit_packets"), egress["limit_bytes"]
    if egress["kind"] == "tbf":
        # Its queue counts frames without what the framing adds.
        size = size // (mtu + ETHERNET_HEADER_BYTES) * (mtu + framing.overhead_bytes)
    queue = Queue(packets, None if packets is not None else size, {"kind": "drop_tail"})
    delay = {"kind": "constant", "delay_ns": 0}
    return Direction(framing, egress["rate_bps"], {"kind": "none"}, 0, 0, queue, delay, False, 0, 0, 0)
