"""Nodes of one's own: what the description says that they are made of.

Comes in: nodes, and what the description says of them by name and by kind. Goes out: the same nodes, each with what it
is made of where anything is said. A node's own words come before those of its kind; lists and variables add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from labs.compile.hosts import by_name
from labs.own import Bind, Own, Port
from labs.plan import Node
from labs.spec import Spec, fields
from labs.spec.source import Path

CONTAINERS_ALONE = ("image", "entrypoint", "cmd", "binds", "ports")
"""Keys that mean something where a node is a container; the runtimes of namespaces refuse them too."""
RUNTIME = "RUNTIME=containerlab"

_NOT_YET = ("image", "entrypoint", "cmd", "binds", "ports", "env", "exec", "startup")

_Said = tuple[Path, fields.Node]


def managed(spec: Spec) -> bool:
    """Whether nodes have the engine's network: it is asked for, or something is published there."""
    wanted = spec.description.containers
    return wanted.management or wanted.dashboards or any(node.ports for _, node in _all(spec))


def nodes(spec: Spec, found: Sequence[Node], *, virtual: bool) -> tuple[Node, ...]:
    """The nodes; DescriptionError for a name that is none, and for what a node cannot have."""
    if not _all(spec):
        return tuple(found)
    named = by_name(spec, "nodes", spec.description.nodes, [node.name for node in found])
    made = []
    published: dict[tuple[str, int, str], str] = {}
    for node in found:
        of_kind: fields.Node | None = getattr(spec.description.kinds, node.kind)
        said = [named[node.name]] if node.name in named else []
        said += [(("kinds", node.kind), of_kind)] if of_kind is not None else []
        for path, each in said:
            _check(spec, path, each, node, virtual)
        own = _own(said)
        for port in own.ports:
            place = (port.address, port.port, port.protocol)
            if place in published:
                path = (*next(path for path, each in said if each.ports), "ports")
                raise spec.error(path, f"port {port.port} is {published[place]}'s already: write another one")
            published[place] = node.name
        made.append(node if own == Own() else replace(node, own=own))
    return tuple(made)


def _all(spec: Spec) -> list[_Said]:
    kinds = spec.description.kinds
    of_kinds = [(("kinds", kind), getattr(kinds, kind)) for kind in fields.Kinds.model_fields]
    return [(("nodes", name), node) for name, node in spec.description.nodes.items()] + [
        (path, node) for path, node in of_kinds if node is not None
    ]


def _own(said: Sequence[_Said]) -> Own:
    """Of what is said of a node and of its kind, in this order."""

    def first(key: str) -> Any:
        return next((value for _, node in said if (value := getattr(node, key)) is not None), None)

    def of_all(key: str) -> list[Any]:
        return [value for _, node in reversed(said) for value in getattr(node, key)]

    binds = {bind.target: Bind(bind.source, bind.target, bind.read_only, bind.outside) for bind in of_all("binds")}
    ports = [Port(port.address, port.port, port.node_port, port.protocol) for port in of_all("ports")]
    startup = first("startup")
    return Own(
        image=first("image"),
        entrypoint=first("entrypoint") or (),
        cmd=first("cmd") or (),
        binds=tuple(binds.values()),
        ports=tuple(ports),
        env={name: value for _, node in reversed(said) for name, value in node.env.items()},
        exec=tuple(of_all("exec")),
        startup=startup.mode if startup is not None else None,
    )


def _check(spec: Spec, path: Path, said: fields.Node, node: Node, virtual: bool) -> None:
    written = [key for key in fields.Node.model_fields if key in said.model_fields_set]
    bridge = node.kind == "switch" and spec.description.containers.ovs_bridge
    for key in written:
        if key in _NOT_YET:
            raise spec.error((*path, key), "no runtime makes this yet: leave it out")
        if virtual and key in CONTAINERS_ALONE:
            raise spec.error((*path, key), f"a lab of the virtual clock has no containers: {RUNTIME}")
        if bridge:
            raise spec.error((*path, key), f"{node.name} is a bridge of the host, and no node: leave ovs-bridge out")
        if node.machine is not None:
            raise spec.error((*path, key), f"{node.name} is a machine of its own: leave machine out, or {key}")
    if said.startup is not None:
        if node.kind != "router":
            raise spec.error((*path, "startup"), f"{node.name} is a {node.kind}: only routers run FRRouting")
        if spec.description.routing == "static":
            message = "routers run FRRouting where a protocol finds the routes: write routing: ospf, isis or bgp"
            raise spec.error((*path, "startup"), message)
