"""Nodes of one's own: what the description says that they are made of.

Comes in: nodes, and what the description says of them by name and by kind. Goes out: the same nodes, each with what it
is made of where anything is written. A node's own words come before those of its kind; lists and variables add up.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from ewan.labs.base.codec import replace
from ewan.labs.base.source import Path
from ewan.labs.compile.hosts import by_name
from ewan.labs.node_overrides import Bind, NodeOverrides, PublishedPort
from ewan.labs.plan import Node
from ewan.labs.spec import Spec, fields

CONTAINERS_ALONE = ("image", "entrypoint", "cmd", "binds", "ports")
"""Keys that mean something where a node is a container; the runtimes of namespaces refuse them too."""
RUNTIME = "RUNTIME=containerlab"

_Said = tuple[Path, fields.NodeKeys]


def managed(spec: Spec) -> bool:
    """Return whether nodes have the engine's network: because it is requested, or because ports are published there."""
    wanted = spec.description.containers
    return wanted.management or wanted.dashboards or any(node.ports for _, node in _all(spec))


def said_of(spec: Spec, kinds: Mapping[str, str]) -> Mapping[str, Sequence[_Said]]:
    """The keys that are written for each node: those of its name first, then those of its kind. `kinds`: the kind of
    each node, by name."""
    named = by_name(spec, "nodes", spec.description.nodes, kinds) if spec.description.nodes else {}
    found: dict[str, list[_Said]] = {}
    for name, kind in kinds.items():
        of_kind: fields.NodeKeys | None = getattr(spec.description.kinds, kind)
        found[name] = [named[name]] if name in named else []
        found[name] += [(("kinds", kind), of_kind)] if of_kind is not None else []
    return found


def startups(spec: Spec, kinds: Mapping[str, str]) -> dict[str, fields.Startup]:
    """The configurations that nodes have of their own."""
    found = {name: _first(said, "startup") for name, said in said_of(spec, kinds).items()}
    return {name: startup for name, startup in found.items() if startup is not None}


def nodes(spec: Spec, found: Sequence[Node], *, virtual: bool) -> tuple[Node, ...]:
    """The nodes; DescriptionError for a name that is none, and for what a node cannot have."""
    if not _all(spec):
        return tuple(found)
    of_nodes = said_of(spec, {node.name: node.kind for node in found})
    made = []
    published: dict[tuple[int, str], list[tuple[str, str]]] = {}
    for node in found:
        said = of_nodes[node.name]
        for path, each in said:
            _check(spec, path, each, node, virtual)
        own = _own(said)
        for port in own.ports:
            others = published.setdefault((port.port, port.protocol), [])
            for other, address in others:
                if _meet(address, port.address):
                    path = (*next(path for path, each in said if each.ports), "ports")
                    raise spec.error(path, f"port {port.port} is {other}'s already: write another one")
            others.append((node.name, port.address))
        made.append(node if own == NodeOverrides() else replace(node, own=own))
    return tuple(made)


def _meet(one: str, other: str) -> bool:
    """Return whether a port cannot be published at both addresses: they are equal, or one stands for all of its
    family."""
    a, b = ipaddress.ip_address(one), ipaddress.ip_address(other)
    return a == b or (a.version == b.version and (a.is_unspecified or b.is_unspecified))


def _all(spec: Spec) -> list[_Said]:
    kinds = spec.description.kinds
    of_kinds = [(("kinds", kind), getattr(kinds, kind)) for kind in fields.Kinds.model_fields]
    return [(("nodes", name), node) for name, node in spec.description.nodes.items()] + [
        (path, node) for path, node in of_kinds if node is not None
    ]


def _first(said: Sequence[_Said], key: str) -> Any:
    return next((value for _, node in said if (value := getattr(node, key)) is not None), None)


def _own(said: Sequence[_Said]) -> NodeOverrides:
    """The overrides from the keys written for a node and for its kind, in this order."""

    def of_all(key: str) -> list[Any]:
        return [value for _, node in reversed(said) for value in getattr(node, key)]

    binds = {bind.target: Bind(bind.source, bind.target, bind.read_only, bind.outside) for bind in of_all("binds")}
    ports = [PublishedPort(port.address, port.port, port.node_port, port.protocol) for port in of_all("ports")]
    startup = _first(said, "startup")
    return NodeOverrides(
        image=_first(said, "image"),
        entrypoint=_first(said, "entrypoint") or (),
        cmd=_first(said, "cmd") or (),
        binds=tuple(binds.values()),
        ports=tuple(ports),
        env={name: value for _, node in reversed(said) for name, value in node.env.items()},
        exec=tuple(of_all("exec")),
        startup=startup.mode if startup is not None else None,
        too_big="silent" if _first(said, "too_big") == "silent" else None,
    )


def _check(spec: Spec, path: Path, said: fields.NodeKeys, node: Node, virtual: bool) -> None:
    written = [key for key in fields.NodeKeys.model_fields if key in said.model_fields_set]
    bridge = node.kind == "switch" and spec.description.containers.ovs_bridge
    for key in written:
        if virtual and key in CONTAINERS_ALONE:
            raise spec.error((*path, key), f"a lab of the virtual clock has no containers: {RUNTIME}")
        if bridge:
            raise spec.error((*path, key), f"{node.name} is a bridge of the host, and no node: leave ovs-bridge out")
        if node.machine is not None:
            raise spec.error((*path, key), f"{node.name} is a machine of its own: leave machine out, or {key}")
    targets: set[str] = set()
    for index, bind in enumerate(said.binds):
        if bind.target in targets:
            raise spec.error((*path, "binds", index), f"{bind.target} is another bind's already: write another target")
        targets.add(bind.target)
    if said.too_big is not None and node.kind != "router":
        raise spec.error((*path, "too_big"), f"{node.name} is a {node.kind}: only routers find a packet too big")
    if said.startup is not None:
        if node.kind != "router":
            raise spec.error((*path, "startup"), f"{node.name} is a {node.kind}: only routers run FRRouting")
        if spec.description.routing == "static":
            message = "routers run FRRouting where a protocol finds the routes: write routing: ospf, isis or bgp"
            raise spec.error((*path, "startup"), message)
