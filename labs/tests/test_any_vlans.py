"""Any mixture of routers, plain links, switches and VLANs: what is linked is reached from everywhere, in both families.

A drawn graph has a tree of routers with some links more, hosts at routers, and islands of switches. Each VLAN of an
island has a router, sticks with several VLANs and native ones among them, and hosts with and without tags.
"""

from __future__ import annotations

import ipaddress
import itertools
from dataclasses import dataclass, field

import networkx as nx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ewan.labs.forwarding import Forwarding
from ewan.labs.plan import Node, Plan
from ewan.labs.tests.test_any_graph import every_address_is_reached
from ewan.labs.tests.texts import described
from ewan.labs.tests.walk import Network

pytestmark = pytest.mark.torture


@dataclass
class Drawn:
    """A graph's nodes and links; `vlans` are the hosts of each VLAN of each island, `plain` those at routers."""

    routers: list[str] = field(default_factory=list)
    switches: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    vlans: list[tuple[str, set[str]]] = field(default_factory=list)
    plain: dict[str, str] = field(default_factory=dict)
    graph: nx.Graph[str] = field(default_factory=nx.Graph)

    def host(self) -> str:
        self.hosts.append(f"h{len(self.hosts)}")
        return self.hosts[-1]

    def link(self, a: str, b: str, more: str = "", delay_ms: int = 0, swapped: bool = False) -> None:
        ends = (b, a) if swapped else (a, b)
        delay = f", delay: {delay_ms}ms" if delay_ms else ""
        self.links.append(f"{{between: [{', '.join(ends)}]{more}{delay}}}")
        self.graph.add_edge(a, b, rtt_ns=2_000_000 * delay_ms)

    def text(self, more: str) -> str:
        lists = {"hosts": self.hosts, "switches": self.switches, "routers": self.routers}
        nodes = "".join(f"    {what}: [{', '.join(names)}]\n" for what, names in lists.items() if names)
        links = "".join(f"      - {link}\n" for link in self.links)
        return f"topology:\n  graph:\n{nodes}    links:\n{links}{more}"


def words(carried: set[int], native: int | None) -> str:
    """A port's VLANs, one of them without a tag."""
    tagged = sorted(carried - {native})
    own = "" if native is None else f", vlan: {native}"
    return own + (f", trunk: [{', '.join(map(str, tagged))}]" if tagged else "")


@st.composite
def graphs(draw: st.DrawFn) -> Drawn:
    drawn = Drawn()
    drawn.routers = [f"r{number}" for number in range(draw(st.integers(1, 4)))]
    for number, router in enumerate(drawn.routers[1:], 1):
        other = drawn.routers[draw(st.integers(0, number - 1))]
        drawn.link(other, router, delay_ms=draw(st.integers(1, 9)), swapped=draw(st.booleans()))
    if len(drawn.routers) > 2 and not drawn.graph.has_edge("r0", "r2") and draw(st.booleans()):
        drawn.link("r0", "r2", delay_ms=draw(st.integers(1, 9)))
    for _ in range(draw(st.integers(1, 3))):
        host, router = drawn.host(), draw(st.sampled_from(drawn.routers))
        drawn.plain[host] = router
        drawn.link(host, router, delay_ms=draw(st.integers(0, 2)), swapped=draw(st.booleans()))
    for island in range(draw(st.integers(1, 2))):
        _island(draw, drawn, island)
    return drawn


def _island(draw: st.DrawFn, drawn: Drawn, island: int) -> None:
    """A tree of switches that all carry all of its VLANs, with each one's router and hosts."""
    switches = [f"s{island}x{number}" for number in range(draw(st.integers(1, 3)))]
    drawn.switches += switches
    vlans = set(draw(st.lists(st.integers(1, 4094), min_size=1, max_size=3, unique=True)))
    native = st.sampled_from([None, *sorted(vlans)])
    for number, switch in enumerate(switches[1:], 1):
        drawn.link(switches[draw(st.integers(0, number - 1))], switch, words(vlans, draw(native)))
    of_router: dict[str, set[int]] = {}
    for vlan in sorted(vlans):
        of_router.setdefault(draw(st.sampled_from(drawn.routers)), set()).add(vlan)
    for router, of_it in of_router.items():
        its_native = draw(st.sampled_from([None, *sorted(of_it)]))
        at = draw(st.sampled_from(switches))
        drawn.link(at, router, words(of_it, its_native), swapped=draw(st.booleans()))
        for vlan in sorted(of_it):
            members = set()
            for _ in range(draw(st.integers(1, 3))):
                host = drawn.host()
                members.add(host)
                tagged, ends = draw(st.booleans()), (host, draw(st.sampled_from(switches)))
                port = f", trunk: [{vlan}]" if tagged else f", vlan: {vlan}"
                delay_ms = 0 if tagged else draw(st.integers(0, 2))  # a trunk is a wire
                drawn.link(*ends, port, delay_ms=delay_ms, swapped=draw(st.booleans()))
            drawn.vlans.append((router, members))


def networks(node: Node) -> set[str]:
    return {str(ipaddress.ip_interface(text).network) for port in node.interfaces for text in port.addresses}


def check_subnets(plan: Plan, drawn: Drawn) -> None:
    """A VLAN is one subnet of each family with all of its hosts and its router, and no two subnets meet."""
    nodes = {node.name: node for node in plan.nodes}
    for router, members in drawn.vlans:
        for host in members:
            assert networks(nodes[host]) == networks(nodes[min(members)]) <= networks(nodes[router])
    found = {ipaddress.ip_network(text) for node in plan.nodes for text in networks(node)}
    for one, other in itertools.combinations(found, 2):
        assert one.version != other.version or not one.overlaps(other)


def check_paths(plan: Plan, drawn: Drawn) -> None:
    """Hosts of one VLAN meet on its switches, all others by routers; the plan's paths are those of its routes."""
    network, forwarding = Network(plan), Forwarding(plan)
    same = {frozenset(pair) for _, members in drawn.vlans for pair in itertools.permutations(members, 2)}
    for source, sink in itertools.permutations(drawn.hosts, 2):
        for version in (4, 6):
            for address in network.addresses(sink, version):
                passed, _ = network.walk(source, address)
                assert network.hops(passed) == forwarding.path(source, sink).hops
                assert (frozenset((source, sink)) in same) == (not set(passed) & set(drawn.routers)), passed


STICK_LAN_AND_LINKS = Drawn(
    routers=["r0", "r1", "r2"],
    switches=["s0", "s1"],
    hosts=["h0", "h1", "h2", "h3", "h4"],
    links=[
        "{between: [r0, r1], delay: 3ms}",
        "{between: [r2, r1], delay: 1ms}",
        "{between: [h0, r0]}",
        "{between: [s0, r0], vlan: 7, trunk: [8]}",
        "{between: [h1, s0], vlan: 7}",
        "{between: [h2, s0], trunk: [8]}",
        "{between: [s1, r1]}",
        "{between: [h3, s1]}",
        "{between: [h4, s1]}",
    ],
    vlans=[("r0", {"h1"}), ("r0", {"h2"}), ("r1", {"h3", "h4"})],
    plain={"h0": "r0"},
)
"""A router on a stick that has a host of its own, a switch out of its box, and a router with nothing but a link."""


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(graphs(), st.sampled_from(["", "ip: 4\n", "ip: 6\n", "routing: ospf\n", "containers: {management: true}\n"]))
@example(STICK_LAN_AND_LINKS, "")
def test_all_that_is_linked_is_reached(drawn: Drawn, more: str) -> None:
    delays = drawn.text(more)
    plan = described(delays if "delay" in delays else f"{delays}rtt: 0ms\n")
    every_address_is_reached(plan)
    check_subnets(plan, drawn)
    check_paths(plan, drawn)
