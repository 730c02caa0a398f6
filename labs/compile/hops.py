"""Counts the routers that packets cross, and raises the TTL if it is too small for them.

Comes in: the layout and its paths. Goes out: sysctls of nodes for labs whose paths are longer than Linux's default TTL
allows, or a DescriptionError where no TTL reaches. A router discards a packet that arrives with a TTL of 1.
"""

from __future__ import annotations

from ewan.labs.compile.numbering import Numbering
from ewan.labs.compile.paths import Paths
from ewan.labs.compile.wiring import WiredNode
from ewan.labs.spec import Spec
from ewan.labs.topologies import Layout

DEFAULT_TTL = 64  # Linux, IPDEFTTL and IPV6_DEFAULT_HOPLIMIT
LARGEST_TTL = 255  # RFC 791, section 3.1, and RFC 8200, section 3: a field of eight bits


def ttl_of(spec: Spec, layout: Layout, paths: Paths) -> int:
    """The TTL that the lab's nodes send with: Linux's default where that reaches, else the largest.

    Raises DescriptionError where a path between two hosts has more routers than the largest TTL crosses. Where a
    protocol or the description finds the routes, a detour may lead through all routers.
    """
    if len(layout.routers) < DEFAULT_TTL:
        return DEFAULT_TTL
    most, near, far = _longest(layout, paths)
    if most >= LARGEST_TTL:
        message = (
            f"has {most} routers between {near} and {far}, and a TTL of {LARGEST_TTL} crosses {LARGEST_TTL - 1}: "
            "write a topology with shorter paths"
        )
        raise spec.error(("topology",), message)
    fixed = spec.description.routing == "static" and not paths.turns
    detour = most if fixed else len(layout.routers)
    return DEFAULT_TTL if detour < DEFAULT_TTL else LARGEST_TTL


def sysctls(ttl: int, machine: WiredNode, numbering: Numbering) -> dict[str, str]:
    """Sysctls that give a host or router this TTL; none for the default. IPv6 has a hop limit for each interface."""
    if ttl == DEFAULT_TTL or machine.kind not in ("host", "router"):
        return {}
    found = {"net/ipv4/ip_default_ttl": str(ttl)}
    if numbering.with_v6:
        found |= {f"net/ipv6/conf/{port.name}/hop_limit": str(ttl) for port in machine.all_interfaces}
    return found


def _longest(layout: Layout, paths: Paths) -> tuple[int, str, str]:
    """The most routers on a path between two hosts, and these hosts."""
    hosts = {paths.router_of(host): host for host in layout.hosts}
    longest = (0, "", "")
    for root, host in hosts.items():
        onward, routers = paths.next_hops[root], {root: 1}
        for router, other in hosts.items():
            way = []
            here = router
            while here not in routers:
                way.append(here)
                here = onward[here]
            for count, each in enumerate(reversed(way), routers[here] + 1):
                routers[each] = count
            if routers[router] > longest[0]:
                longest = (routers[router], host, other)
    return longest
