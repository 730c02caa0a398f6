"""Documents about a lab's routes: whether a protocol has found them, what a failure did to them, and tables of nodes.

In and out: what `ewan-node` says (emulator/lab/src/converge), and what certificates and routing.json hold of it.
"""

from __future__ import annotations

from typing import Literal

from ewan.labs.base.codec import Document, Struct, field


class HostPair(Struct):
    """Two hosts, one of which sends."""

    source: str = field(name="from")
    sink: str = field(name="to")


class Reach(Struct):
    """The first pairs of each kind: without a route; without any path; not on the plan's path."""

    unreachable: tuple[HostPair, ...]
    cut_off: tuple[HostPair, ...]
    astray: tuple[HostPair, ...]


class Convergence(Document, tag="ewan-routing/1"):
    """The result of waiting for a protocol's routes, `after_ns` after the first router's services were started, and the
    missing routes, as `Reach` has them."""

    protocol: Literal["ospf", "isis", "bgp"]
    converged: bool
    after_ns: int
    waited_ns: int
    unreachable: tuple[HostPair, ...]
    cut_off: tuple[HostPair, ...]
    astray: tuple[HostPair, ...]


class Recovery(Struct):
    """The recovery of the routes after a link's change, `recovered_ns` after which the last of them was changed; None:
    not in the time that was waited."""

    recovered_ns: int | None
    unreachable: tuple[HostPair, ...]
    cut_off: tuple[HostPair, ...]


class RoutingTable(Struct):
    """The routing tables of a node. `interfaces`: index, name, whether frames can leave. `routes`: destination, its
    length, metric, index of the interface, gateway."""

    interfaces: tuple[tuple[int, str, bool], ...]
    routes: tuple[tuple[str, int, int, int, str | None], ...]
