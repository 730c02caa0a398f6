"""TTLs of labs with long paths."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from ewan.labs.compile import HostFacts, compile
from ewan.labs.plan import Plan
from ewan.labs.spec import DescriptionError, from_template, parse

HOST = HostFacts(cpus=(0, 1), networks=())


def _ttls(plan: Plan) -> set[tuple[str | None, ...]]:
    """The TTL and the hop limits of each host and router; None where the kernel's default stays."""
    found = set()
    for node in plan.nodes:
        if node.kind in ("host", "router"):
            limits = (node.sysctls.get(f"net/ipv6/conf/{port.name}/hop_limit") for port in node.interfaces)
            found.add((node.sysctls.get("net/ipv4/ip_default_ttl"), *set(limits)))
    return found


def _plan(template: str, **overrides: str) -> Plan:
    return compile(from_template(template, {"rtt": "100ms"} | overrides), HOST)


def test_a_path_of_63_routers_is_as_long_as_the_default_ttl_reaches() -> None:
    assert _ttls(_plan("chain", hops="62")) == {(None, None)}
    assert _ttls(_plan("chain", hops="63")) == {("255", "255")}


def test_without_ipv6_no_hop_limit_is_set() -> None:
    assert _ttls(_plan("chain", hops="63", ip="4")) == {("255", None)}


def _row(routers: int, routing: str = "static", closed: bool = False) -> Plan:
    """Routers in a row, or in a ring, with a host at the first and one halfway round or at the last."""
    names = [f"r{number}" for number in range(routers)]
    links = [*itertools.pairwise(names), *([(names[-1], names[0])] if closed else [])]
    links += [("a", names[0]), ("b", names[routers // 2 if closed else -1])]
    lines = ["ip: 4", "rtt: 100ms", f"routing: {routing}", "topology:", "  graph:", "    hosts: [a, b]"]
    lines += [f"    routers: [{', '.join(names)}]", "    links:"]
    lines += [f"      - {{between: [{a}, {b}], role: wan}}" for a, b in links]
    return compile(parse("\n".join(lines), Path("row.lab.yaml")), HOST)


def test_a_ring_counts_its_shorter_side_unless_a_protocol_may_find_a_detour() -> None:
    assert _ttls(_row(66, closed=True)) == {(None, None)}
    assert _ttls(_row(66, "ospf", closed=True)) == {("255", None)}
    assert _ttls(_row(130, closed=True)) == {("255", None)}


def test_a_path_that_no_ttl_crosses_is_refused() -> None:
    assert _ttls(_row(254)) == {("255", None)}
    with pytest.raises(DescriptionError, match=r"has 255 routers between . and ., and a TTL of 255 crosses 254"):
        _row(255)
