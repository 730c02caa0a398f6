"""Any connected graph: shortest routes both ways, and the wanted RTT to the nanosecond."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ewan.labs.compile import HostFacts, compile
from ewan.labs.plan import Plan, from_json, to_json
from ewan.labs.spec import DescriptionError, parse
from ewan.labs.tests.walk import Network

pytestmark = pytest.mark.torture

HOST = HostFacts((0, 1), ())
Drawn = list[tuple[str, str, int | None]]


@st.composite
def links(draw: st.DrawFn, all_known: bool) -> Drawn:
    """A tree of routers with some links more, delays in ns (both ways each), and two to five hosts."""
    delay = st.integers(0, 50).map(lambda ms: ms * 1_000_000)
    some = delay if all_known else st.one_of(st.none(), delay)
    routers = draw(st.integers(1, 6))
    drawn: Drawn = []
    for number in range(1, routers):
        drawn.append((f"r{draw(st.integers(0, number - 1))}", f"r{number}", draw(some)))
    for _ in range(draw(st.integers(0, 4)) if routers > 2 else 0):
        a, b = draw(st.integers(0, routers - 1)), draw(st.integers(0, routers - 1))
        if a != b and not any({f"r{a}", f"r{b}"} == set(link[:2]) for link in drawn):
            drawn.append((f"r{a}", f"r{b}", draw(some)))
    for number in range(draw(st.integers(2, 5))):
        drawn.append((f"h{number}", f"r{draw(st.integers(0, routers - 1))}", draw(some)))
    return drawn


def compiled(drawn: Drawn, rtt: str | None, ip: str = "dual") -> Plan:
    nodes = list(dict.fromkeys(end for link in drawn for end in link[:2]))
    lines = [f"ip: {ip}", *([f"rtt: {rtt}"] if rtt else [])]
    lines += ["topology:", "  graph:"]
    lines += [f"    {what}: [{', '.join(n for n in nodes if n[0] == what[0])}]" for what in ("hosts", "routers")]
    lines += ["    links:"]
    for a, b, delay in drawn:
        own = "" if delay is None else f", delay: {delay}ns"
        lines.append(f"      - {{between: [{a}, {b}], role: wan{own}}}")
    return compile(parse("\n".join(lines), Path("any.lab.yaml")), HOST)


def rtts(plan: Plan) -> dict[tuple[str, str], int]:
    """The base RTT between any two hosts, walked both ways; both ways take the same links."""
    network = Network(plan)
    hosts = [node.name for node in plan.nodes if node.kind == "host"]
    there_by, back_by = (next(v for v in order if network.addresses(hosts[0], v)) for order in ((4, 6), (6, 4)))
    found = {}
    for a in hosts:
        for b in hosts:
            if a < b:
                there, out = network.walk(a, network.addresses(b, there_by)[0])
                again, back = network.walk(b, network.addresses(a, back_by)[0])
                assert there == again[::-1]
                found[a, b] = out + back
    return found


def every_address_is_reached(plan: Plan) -> None:
    """Also those of routers, from everywhere; and no route stands beside the kernel's own to a connected network."""
    network = Network(plan)
    ends = [node for node in plan.nodes if node.kind in ("host", "router")]
    for node in ends:
        ports = [ipaddress.ip_interface(address) for port in node.interfaces for address in port.addresses]
        assert not {str(port.network) for port in ports} & {route.to for route in node.routes}, node.name
        for source in ends:
            for port in ports:
                network.walk(source.name, port.ip)


# Of r2's only link, r2-r1, r1 is the other end, and its way to r2 is another: a route to the link would be in the way.
ITS_OWN_NETWORK: Drawn = [
    ("r2", "r1", 10_000_000),
    ("r4", "r2", 500_000),
    ("r4", "r1", 500_000),
    ("r0", "r2", 500_000),
    ("h0", "r0", 0),
    ("h1", "r0", 0),
]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(links(all_known=True), st.sampled_from(["4", "6", "dual"]))
@example(ITS_OWN_NETWORK, "4")
@example(ITS_OWN_NETWORK, "6")
def test_routes_are_the_shortest(drawn: Drawn, ip: str) -> None:
    plan = compiled(drawn, None if any(link[2] for link in drawn) else "0ms", ip)
    assert from_json(to_json(plan)) == plan
    every_address_is_reached(plan)
    graph: nx.Graph[str] = nx.Graph()
    graph.add_weighted_edges_from((a, b, 2 * (delay or 0)) for a, b, delay in drawn)
    for (a, b), rtt in rtts(plan).items():
        assert rtt == nx.dijkstra_path_length(graph, a, b)


def longest(drawn: Drawn, share_ns: int) -> int:
    """The longest RTT between two hosts where links without a delay have `share_ns` both ways."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_weighted_edges_from((a, b, share_ns if delay is None else 2 * delay) for a, b, delay in drawn)
    hosts = [node for node in graph if node[0] == "h"]
    lengths = {host: nx.single_source_dijkstra_path_length(graph, host) for host in hosts}
    return max(int(lengths[a][b]) for a in hosts for b in hosts if a != b)


# Where no share is small enough, all pairs are equally far, and the one with the most free links must take the rest.
ALL_EQUAL_AT_ZERO: Drawn = [
    ("r0", "r1", None),
    ("r0", "r2", None),
    ("r1", "r3", None),
    ("r0", "r4", None),
    ("r0", "r3", 1_000_000),
    ("h0", "r0", None),
    ("h1", "r0", None),
    ("h2", "r1", None),
]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(links(all_known=False), st.integers(0, 400_000_000))
@example(ALL_EQUAL_AT_ZERO, 4)
def test_the_longest_rtt_is_the_wanted_one_or_none_can_be(drawn: Drawn, rtt_ns: int) -> None:
    least, most = longest(drawn, 0), longest(drawn, 10**10)
    if least <= rtt_ns <= most:
        assert max(rtts(compiled(drawn, f"{rtt_ns}ns")).values()) == rtt_ns
    else:
        with pytest.raises(DescriptionError, match="is smaller than" if rtt_ns < least else "is more than"):
            compiled(drawn, f"{rtt_ns}ns")
