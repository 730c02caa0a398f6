"""Hosts that are machines with a kernel of their own.

Comes in: nodes, and what the description says of hosts. Goes out: the same nodes, each machine with its system's name.
"""

from __future__ import annotations

from collections.abc import Sequence

from ewan.labs.base.codec import replace
from ewan.labs.compile.hosts import written
from ewan.labs.plan import Node
from ewan.labs.spec import Spec

ALONE = "a machine of its own runs only in namespaces: write --runtime netns"
CONTROL = "control"
"""The interface by which programs are started in a machine (labs/runtime/machines.py)."""


def hosts(spec: Spec, nodes: Sequence[Node], virtual: bool) -> tuple[Node, ...]:
    """The nodes; DescriptionError for a machine where none can be, and for what it cannot do."""
    if not spec.description.hosts:
        return tuple(nodes)
    found = written(spec, [node.name for node in nodes if node.kind == "host"])
    systems = {name: host.machine for name, (_, host) in found.items() if host.machine is not None}
    with_tags = {node.name for node in nodes if any(port.vlans is not None for port in node.interfaces)}
    for name in systems:
        path, host = found[name]
        if virtual:
            raise spec.error((*path, "machine"), ALONE)
        if host.pacing:
            raise spec.error((*path, "pacing"), "a machine of its own is not paced: leave pacing out, or machine")
        if name in with_tags:
            raise spec.error((*path, "machine"), f"a machine of its own has no VLAN tags: put {name} on an access port")
        _check_tunnels(spec, name)
        if spec.description.routing != "static":
            message = "the routing protocol's routes are not followed into a machine: write routing: static"
            raise spec.error((*path, "machine"), message)
    return tuple(replace(node, machine=systems[node.name]) if node.name in systems else node for node in nodes)


def _check_tunnels(spec: Spec, host: str) -> None:
    """DescriptionError for a tunnel that a machine cannot have."""
    for number, tunnel in enumerate(spec.description.tunnels):
        if host not in tunnel.between:
            continue
        if tunnel.name == CONTROL:
            raise spec.error(("tunnels", number, "name"), "is an interface of a machine: write another name", CONTROL)
        if len(tunnel.over or ()) > 1:
            message = f"{host} is a machine, whose card keeps its carrier when a link is down: write one link"
            raise spec.error(("tunnels", number, "over"), message)
