"""Kernel settings of each kind of node, inside its own network namespace only.

Comes in: the bandwidth-delay product and the largest queue in bytes. Goes out: paths below /proc/sys and values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ewan.labs.plan import Route

_MIB = 2**20
LEAST_BUFFER = 4 * _MIB
LARGEST_BUFFER = 2**31 - _MIB  # the kernel holds it in an int


def of_nodes(bdp_bytes: int, queue_bytes: int, with_v6: bool) -> dict[str, dict[str, str]]:
    """Settings by kind of node.

    A TCP receiver offers about half of its buffer as window, and the window must cover the pipe and the queue.
    """
    buffer = max(4 * bdp_bytes, 2 * (bdp_bytes + queue_bytes), LEAST_BUFFER)
    buffer = min(-(-buffer // _MIB) * _MIB, LARGEST_BUFFER)
    common = {"net/ipv4/conf/all/rp_filter": "0", "net/ipv4/conf/default/rp_filter": "0"}
    if with_v6:
        for scope in ("all", "default"):
            base = f"net/ipv6/conf/{scope}"
            common |= {f"{base}/accept_dad": "0", f"{base}/accept_ra": "0", f"{base}/router_solicitations": "0"}
    without_v6 = {f"net/ipv6/conf/{scope}/disable_ipv6": "1" for scope in ("all", "default")}
    end = {
        "net/ipv4/tcp_congestion_control": "cubic",
        "net/ipv4/tcp_no_metrics_save": "1",
        "net/ipv4/tcp_rmem": f"4096 131072 {buffer}",
        "net/ipv4/tcp_wmem": f"4096 65536 {buffer}",
    }
    forwarding = {"net/ipv4/ip_forward": "1"} | ({"net/ipv6/conf/all/forwarding": "1"} if with_v6 else {})
    stack = common if with_v6 else common | without_v6
    return {"host": stack | end, "router": stack | end | forwarding, "switch": without_v6, "emulator": without_v6}


def of_backups(routes: Mapping[str, Sequence[Route]], with_v6: bool) -> dict[str, dict[str, str]]:
    """Settings of nodes that have a route in reserve: by default the kernel uses a route whose link has no carrier."""
    found: dict[str, dict[str, str]] = {}
    for node, own in routes.items():
        in_reserve = {(route.to, route.source) for route in own if route.metric}
        for route in own:
            if (route.to, route.source) in in_reserve:
                for family in ("ipv4", "ipv6") if with_v6 else ("ipv4",):
                    key = f"net/{family}/conf/{route.interface}/ignore_routes_with_linkdown"
                    found.setdefault(node, {})[key] = "1"
    return found
