"""What routers are told where a protocol finds the routes: it finds the plan's paths; what each daemon reads."""

from __future__ import annotations

import ipaddress
import re
from itertools import pairwise
from pathlib import Path

import jinja2
import networkx as nx
import pytest

from ewan.labs.base.source import DescriptionError
from ewan.labs.change import carrier_words
from ewan.labs.compile import HostFacts, compile
from ewan.labs.compile import routing as frr
from ewan.labs.compile.costs import nearest, of_links, towards
from ewan.labs.plan import Node, Plan
from ewan.labs.routing_documents import HostPair, Recovery
from ewan.labs.spec import from_template

HOST = HostFacts(cpus=(0, 1), networks=())
GOLDEN = Path(__file__).resolve().parents[2] / "tests/golden/frr"
PROTOCOLS = ("ospf", "isis", "bgp")
LABS: list[tuple[str, dict[str, str]]] = [
    ("ring", {"routers": "4"}),
    ("ring", {"routers": "7", "rtt": "99999999ns"}),
    ("mesh", {"routers": "5"}),
    ("grid", {"rows": "4", "columns": "5"}),
    ("chain", {"hops": "5", "rtt": "1ns"}),
    ("star", {"arms": "3"}),
    ("four-domain", {}),
]
COST = {
    "ospf": r"interface (?P<port>\S+)\n(?:(?!exit).*\n)*? ip ospf cost (?P<cost>\d+)",
    "isis": r"interface (?P<port>\S+)\n(?:(?!exit).*\n)*? isis metric (?P<cost>\d+)",
    "bgp": r"route-map over-(?P<port>\S+) permit 10\n set metric \+(?P<cost>\d+)",
}
DAEMON = {"ospf": "ospfd", "isis": "isisd", "bgp": "bgpd"}


def compiled(template: str, overrides: dict[str, str], routing: str) -> Plan:
    return compile(from_template(template, {**overrides, "routing": routing}), HOST)


def routers(plan: Plan) -> list[Node]:
    return [node for node in plan.nodes if node.kind == "router"]


def text(node: Node, daemon: str) -> str:
    (service,) = [service for service in node.services if service.name == daemon]
    return service.files[f"{daemon}.conf"]


def graph(plan: Plan, routing: str) -> nx.DiGraph[str]:
    """Routers and hosts with the costs that the routers are told; a host's own link costs 1."""
    found: nx.DiGraph[str] = nx.DiGraph()
    far = {}
    for wire in plan.wires:
        far[wire.a.node, wire.a.interface] = wire.b
        far[wire.b.node, wire.b.interface] = wire.a
    ports = {link.node: {link.port_a: link.port_b, link.port_b: link.port_a} for link in plan.links}
    costs = {}
    for node in routers(plan):
        for each in re.finditer(COST[routing], text(node, DAEMON[routing])):
            costs[node.name, each["port"]] = int(each["cost"])
    for node in plan.nodes:
        if node.kind == "emulator":
            continue
        for port in node.interfaces:
            end = far[node.name, port.name]
            link = ""
            if end.node in ports:
                link = end.node
                end = far[link, ports[link][end.interface]]
            found.add_edge(node.name, end.node, cost=costs.get((node.name, port.name), 1), link=link)
    return found


@pytest.mark.parametrize("routing", PROTOCOLS)
@pytest.mark.parametrize("template,overrides", LABS)
def test_the_cheapest_path_of_each_pair_is_the_plans_and_the_only_one(
    template: str, overrides: dict[str, str], routing: str
) -> None:
    plan = compiled(template, overrides, routing)
    static = compiled(template, overrides, "static")
    network = graph(plan, routing)
    for pair, before in zip(plan.pairs, static.pairs, strict=True):
        (path,) = nx.all_shortest_paths(network, pair.source, pair.sink, weight="cost")
        links = [network.edges[step]["link"] for step in pairwise(path)]
        emulated = {link.name for link in plan.links}
        assert [link for link in links if link] == [hop.link for hop in pair.forward.hops if hop.link in emulated]
        back = nx.shortest_path(network, pair.sink, pair.source, weight="cost")
        assert back == path[::-1]
        assert pair == before  # and it is the path of the shortest delay


@pytest.mark.parametrize("routing", PROTOCOLS)
def test_costs_are_what_the_protocol_carries(routing: str) -> None:
    plan = compiled("grid", {"rows": "4", "columns": "5"}, routing)
    hosts = {node.name for node in plan.nodes if node.kind == "host"}
    edges = graph(plan, routing).edges
    costs = [edges[ends]["cost"] for ends in edges if not hosts & set(ends)]
    assert len(costs) == 2 * 31
    assert all(1 <= cost <= {"ospf": 65534, "isis": 2**24 - 2, "bgp": 2**24 - 2}[routing] for cost in costs)


def test_paths_that_costs_cannot_tell_apart_have_the_rtt_of_the_one_that_is_found() -> None:
    """A link of 10 s leaves OSPF's 16 bits a unit of 150 µs: two ways of nearly the same delay look alike."""
    ways: nx.Graph[str] = nx.Graph()
    ways.add_edge("a", "z", rtt_ns=10_000_000_000, tie=1 << 31)
    ways.add_edge("a", "b", rtt_ns=1_000, tie=1 << 30)
    ways.add_edge("b", "d", rtt_ns=2_000, tie=5 << 28)
    ways.add_edge("a", "c", rtt_ns=900, tie=3 << 30)
    ways.add_edge("c", "d", rtt_ns=2_000, tie=7 << 28)
    wanted: dict[str, dict[str, str]] = {}
    for root in ways:
        found, _ = nx.dijkstra_predecessor_and_distance(ways, root, weight="rtt_ns")
        wanted[root] = {node: hops[0] for node, hops in found.items() if hops}
    assert of_links(ways, wanted, 65534) is None
    costs = nearest(ways, 65534)
    assert all(towards(ways, root, costs) is not None for root in ways)
    assert of_links(ways, wanted, 2**40) is not None


@pytest.mark.parametrize(
    "ip,routing,daemons",
    [
        ("4", "ospf", ["zebra", "ospfd"]),
        ("6", "ospf", ["zebra", "ospf6d"]),
        ("dual", "ospf", ["zebra", "ospfd", "ospf6d"]),
        ("4", "bgp", ["zebra", "bgpd"]),
        ("6", "isis", ["zebra", "isisd"]),
    ],
)
def test_each_family_has_its_daemons_and_no_other(ip: str, routing: str, daemons: list[str]) -> None:
    plan = compiled("ring", {"ip": ip}, routing)
    for node in routers(plan):
        assert [service.name for service in node.services] == daemons
        whole = "".join(file for service in node.services for file in service.files.values())
        assert ("ipv6" in whole or "fd65" in whole) == (ip != "4")
        assert bool(re.search(r"ip ospf|ip router|ipv4 unicast", whole)) == (ip != "6")
        for service in node.services:
            assert service.kind == "daemon" and service.ready
            assert service.argv[service.argv.index("-P") + 1] == "0"  # no TCP port for commands
            paths = [word for word in service.argv if "/" in word]
            assert paths and all(path.startswith("{run}/") for path in paths)
    assert all(not node.services for node in plan.nodes if node.kind != "router")


@pytest.mark.parametrize("ip", ["4", "6", "dual"])
@pytest.mark.parametrize("routing", PROTOCOLS)
def test_routers_have_identities_of_their_own(routing: str, ip: str) -> None:
    plan = compiled("grid", {"rows": "3", "columns": "3", "ip": ip}, routing)
    daemon = {"ospf": "ospfd" if ip != "6" else "ospf6d"}.get(routing, DAEMON[routing])
    pattern = {"ospf": r"router-id (\S+)", "isis": r"net (\S+)", "bgp": r"router bgp (\d+)\n bgp router-id \S+"}[
        routing
    ]
    found = [re.search(pattern, text(node, daemon)) for node in routers(plan)]
    assert len({each[1] for each in found if each}) == len(routers(plan))


def golden() -> dict[str, str]:
    """The files of one router for each daemon, by their names."""
    plans = [compiled("ring", {"routers": "3", "rtt": "100ms"}, routing) for routing in PROTOCOLS]
    return {name: file for plan in plans for each in routers(plan)[0].services for name, file in each.files.items()}


def test_the_golden_configurations() -> None:
    """`python -m ewan.labs.tests.test_routing` writes them anew."""
    assert golden() == {path.name: path.read_text() for path in sorted(GOLDEN.iterdir())}
    assert {f"{name}.j2" for name in golden()} == {path.name for path in frr.TEMPLATES.iterdir()}


def test_a_template_that_names_what_nobody_gives_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError, match="nothing"):
        frr._templates().from_string("{{ nothing }}").render()


def test_neighbours_agree_on_timers_and_systems() -> None:
    """Hello and dead intervals differ with the delay; both ends of a link must have the same (RFC 2328, 10.5)."""
    plan = compiled("ring", {"routers": "3", "rtt": "8s"}, "ospf")
    timers = {
        (node.name, port): (hello, dead)
        for node in routers(plan)
        for port, hello, dead in re.findall(
            r"interface (\S+)\n(?:(?!exit).*\n)*? ip ospf hello-interval (\d+)\n ip ospf dead-interval (\d+)",
            text(node, "ospfd"),
        )
    }
    for link in plan.links:
        ends = [timers[end.node, end.interface] for end in (link.a, link.b)]
        assert ends[0] == ends[1] and int(ends[0][1]) > 8
    plan = compiled("ring", {"routers": "3"}, "bgp")
    system = {node.name: re.search(r"router bgp (\d+)", text(node, "bgpd")) for node in routers(plan)}
    owner = {a.split("/")[0]: node.name for node in plan.nodes for p in node.interfaces for a in p.addresses}
    for node in routers(plan):
        peers = re.findall(r"neighbor (\S+) remote-as (\d+)", text(node, "bgpd"))
        assert len(peers) == 4  # two links, two families
        for address, number in peers:
            found = system[owner[address]]
            assert found and found[1] == number


def test_neighbours_know_each_others_link_local_addresses() -> None:
    """No discovery crosses a link: what routes over IPv6 point at is the kernel's address of the other end's MAC."""
    plan = compiled("ring", {}, "ospf")
    macs = {port.mac for node in plan.nodes for port in node.interfaces}
    for node in routers(plan):
        towards_routers = [port for port in node.interfaces if len(port.neighbours) == 3]
        assert len(towards_routers) == 2
        for port in towards_routers:
            local = port.neighbours[-1]
            address = ipaddress.IPv6Address(local.address)
            assert address.is_link_local and local.mac in macs
            assert address.packed[-3:] == bytes.fromhex(local.mac.replace(":", ""))[-3:]


def test_static_routing_starts_nothing() -> None:
    plan = compiled("ring", {}, "static")
    assert all(not node.services for node in plan.nodes)
    assert all("linkdown" not in key for node in plan.nodes for key in node.sysctls)
    assert all(node.routes for node in routers(plan))
    assert all(not node.routes for node in routers(compiled("ring", {}, "ospf")))


def test_an_unknown_protocol_is_refused_in_one_line() -> None:
    with pytest.raises(DescriptionError) as refused:
        compiled("ring", {}, "rip")
    assert "ROUTING" in str(refused.value) and "\n" not in str(refused.value)


def test_what_became_of_the_routes_is_said_in_words() -> None:
    plan, static = compiled("ring", {}, "ospf"), compiled("ring", {}, "static")
    pair = HostPair("host1", "host2")
    told = Recovery(110_000_000, (), ())
    assert carrier_words(plan, "ring1", False, told) == "; OSPF goes another way after 110ms"
    assert carrier_words(plan, "ring1", True, told) == "; OSPF is back on its paths after 110ms"
    assert carrier_words(plan, "ring1", False, Recovery(0, (), ())) == "; no path uses it"
    cut = Recovery(0, (), (pair, pair))
    assert carrier_words(plan, "ring1", False, cut) == "; no other path from host1 to host2 and 1 more pairs"
    lost = Recovery(None, (pair,), ())
    assert carrier_words(plan, "ring1", False, lost) == "; OSPF has found no way from host1 to host2 yet"
    assert carrier_words(static, "ring1", False, lost).startswith("; routes are static")


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for file, content in golden().items():
        (GOLDEN / file).write_text(content)
