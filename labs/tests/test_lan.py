"""Switched access networks: addresses, routes, ports, what is refused; every way through them is walked."""

from __future__ import annotations

import ipaddress
import itertools
from typing import Any

import pytest

from ewan.labs.base import codec
from ewan.labs.compile import HostFacts, compile
from ewan.labs.host import virtual_facts
from ewan.labs.plan import Interface, Node, Plan, to_json
from ewan.labs.render import svg, table
from ewan.labs.render.places import places
from ewan.labs.spec import from_template
from ewan.labs.tests.texts import described, refusal
from ewan.labs.tests.walk import Network

pytestmark = pytest.mark.slow

HOST = HostFacts(cpus=(0, 1), networks=("10.64.0.0/15",))
SWITCHED = [
    ("dumbbell", {"pairs": "3"}),
    ("dumbbell", {"pairs": "1"}),
    ("dumbbell", {"pairs": "13", "reverse_pairs": "1"}),
    ("dumbbell", {"pairs": "3", "rtt": "10ms,40ms,160ms"}),
    ("parking-lot", {"hops": "3", "cross_pairs": "5"}),
    ("chain", {"hops": "3", "pairs": "2"}),
    ("ring", {"routers": "5"}),
    ("mesh", {"routers": "4"}),
    ("fishbone", {"ribs": "3"}),
    ("four-domain", {"hosts": "6"}),
    ("grid", {"rows": "2", "columns": "3"}),
]
CIRCUMSTANCES = [
    {"ip": "4", "mtu": "576"},
    {"ip": "6", "mtu": "9000"},
    {"ip": "dual"},
    {"routing": "ospf"},
]


def node(plan: Plan, name: str) -> Node:
    return next(node for node in plan.nodes if node.name == name)


def of_kind(plan: Plan, kind: str) -> list[Node]:
    return [node for node in plan.nodes if node.kind == kind]


@pytest.mark.parametrize("clock", ["live", "virtual"])
@pytest.mark.parametrize("circumstances", CIRCUMSTANCES, ids=lambda c: "-".join(c.values()))
@pytest.mark.parametrize("lab", SWITCHED, ids=lambda lab: f"{lab[0]}-{'-'.join(lab[1].values())}")
def test_every_host_reaches_every_other_through_the_switches(
    lab: tuple[str, dict[str, str]], circumstances: dict[str, str], clock: str
) -> None:
    kind, sizes = lab
    host = HOST if clock == "live" else virtual_facts()
    plan = compile(from_template(kind, {**sizes, **circumstances, "switch": "ovs"}), host)
    network = Network(plan)
    switches = {node.name for node in of_kind(plan, "switch")}
    hosts = [node.name for node in of_kind(plan, "host")]
    versions = {"4": [4], "6": [6]}.get(circumstances.get("ip", "dual"), [4, 6])
    routed = "routing" not in circumstances
    for version, (source, sink) in itertools.product(versions, itertools.permutations(hosts, 2)):
        (address,) = network.addresses(sink, version)
        ports = {port.name: port for port in node(plan, source).interfaces}
        near = any(
            address in ipaddress.ip_interface(text).network for port in ports.values() for text in port.addresses
        )
        if not routed and not near:
            continue  # FRRouting finds these
        passed, _ = network.walk(source, address)
        assert (passed[0], passed[-1]) == (source, sink)
        crossed = [name for name in passed if name in switches]
        assert len(crossed) == len(set(crossed)) <= 2
        # Hosts of one subnet talk through the switch alone.
        assert near == (len(crossed) == 1 and not any(node(plan, name).kind == "router" for name in passed))


def test_a_subnet_is_as_small_as_fits_and_subnets_do_not_meet() -> None:
    for hosts in (1, 2, 5, 6, 13, 14, 29):
        plan = compile(from_template("four-domain", {"hosts": str(hosts), "switch": "ovs"}), HOST)
        networks = [
            {ipaddress.ip_interface(text).network for port in each.interfaces for text in port.addresses}
            for each in of_kind(plan, "host")
        ]
        shared = set().union(*networks)
        assert len(shared) == 2 * 4
        for network in shared:
            if network.version == 4:
                needed = hosts + 3  # the network, the router, the broadcast
                assert needed <= network.num_addresses < max(2 * needed, 5)
            else:
                assert network.prefixlen == 64
        links = {
            ipaddress.ip_interface(text).network
            for each in of_kind(plan, "router")
            for port in each.interfaces
            for text in port.addresses
        }
        assert shared <= links
        for one, other in itertools.combinations(links, 2):
            assert one.version != other.version or not one.overlaps(other)


def test_a_router_knows_its_hosts_and_they_know_it_and_nobody_else() -> None:
    plan = compile(from_template("dumbbell", {"pairs": "3", "switch": "ovs"}), HOST)
    (lan,) = [port for port in node(plan, "r1").interfaces if len(port.neighbours) > 2]
    assert len(lan.neighbours) == 2 * 3
    for name in ("left1", "left2", "left3"):
        (port,) = node(plan, name).interfaces
        assert {neighbour.mac for neighbour in port.neighbours} == {lan.mac}
        assert {known.address for known in lan.neighbours if known.mac == port.mac} == {
            text.split("/")[0] for text in port.addresses
        }
    for port in node(plan, "sw-r1").interfaces:
        assert not port.addresses and not port.neighbours


def exits(plan: Plan, name: str) -> list[dict[str, Any]]:
    return [codec.data_of(port.egress) for port in node(plan, name).interfaces]


def test_the_port_to_the_router_holds_the_packets_that_were_written() -> None:
    text = (
        "topology: {dumbbell: {pairs: 2}}\nrtt: 10ms\n"
        "access: {rate: 100Mbit/s, buffer: 20pkt, switch: {ovs: {rate: 50Mbit/s, buffer: 70pkt}}}\n"
    )
    up, *down = exits(described(text), "sw-r1")
    assert (up["kind"], up["rate_bps"]) == ("tbf", 50_000_000)
    assert up["limit_bytes"] == 70 * 1514  # a token bucket's queue counts frames without preamble, gap and FCS
    assert up["overhead_bytes"] == 24
    assert [card["rate_bps"] for card in down] == [100_000_000] * 2
    assert exits(described(text), "r1")[0] == up
    exact = exits(described(text, virtual_facts()), "sw-r1")[0]
    assert (exact["kind"], exact["rate_bps"], exact["limit_packets"]) == ("psp", 50_000_000, 70)
    assert exact["dither_ns"] == 0
    assert [pair.bottleneck_bps for pair in described(text).pairs] == [50_000_000] * 2


def test_without_a_word_the_switch_has_equal_ports() -> None:
    plan = described("topology: dumbbell\nrtt: 10ms\naccess: {rate: 100Mbit/s, buffer: 20pkt, switch: ovs}\n")
    up, down = exits(plan, "sw-r1")
    assert up["rate_bps"] == down["rate_bps"] == 100_000_000
    assert up["limit_bytes"] == 20 * 1514
    text = "topology: dumbbell\nrtt: 10ms\naccess: {rate: 100Mbit/s, switch: ovs}\n"
    faster = described(f"{text}links: {{access-left1: {{rate: 1Gbit/s}}}}\n")
    assert [exits(faster, name)[0]["rate_bps"] for name in ("sw-r1", "sw-r2")] == [10**9, 10**8]


def test_a_delay_of_an_access_link_is_emulated_between_host_and_switch() -> None:
    plan = compile(from_template("dumbbell", {"pairs": "2", "rtt": "10ms,40ms", "switch": "ovs"}), HOST)
    link = next(link for link in plan.links if link.name == "access-left2")
    assert (link.a.node, link.b.node) == ("left2", "sw-r1")
    assert [pair.rtt_ns for pair in plan.pairs] == [10_000_000, 40_000_000]
    passed, _ = Network(plan).walk("left2", Network(plan).addresses("right2", 4)[0])
    assert passed == ["left2", "access-left2", "sw-r1", "r1", "core", "r2", "sw-r2", "right2"]


def test_hosts_of_one_switch_have_no_port_to_the_router_between_them() -> None:
    text = (
        "topology: {graph: {hosts: [a, b], routers: [r], links: [{between: [a, r]}, {between: [r, b]}], "
        "pairs: [[a, b]]}}\naccess: {rate: 100Mbit/s, switch: {ovs: {rate: 10Mbit/s}}}\nrtt: 0ms\n"
    )
    (pair,) = described(text).pairs
    assert (pair.bottleneck_bps, pair.rtt_ns) == (100_000_000, 0)
    assert Network(described(text)).walk("a", Network(described(text)).addresses("b", 6)[0])[0] == ["a", "sw-r", "b"]


@pytest.mark.parametrize(("host", "datapath"), [(HOST, "netdev"), (virtual_facts(), "system")])
def test_a_switch_keeps_all_that_it_writes_in_its_own_directory(host: HostFacts, datapath: str) -> None:
    plan = compile(from_template("dumbbell", {"pairs": "2", "switch": "ovs"}), host)
    for switch in of_kind(plan, "switch"):
        words = [word for service in switch.services for word in service.argv]
        assert [
            word for word in words if "/" in word and not word.split(":")[-1].split("=")[-1].startswith("{run}/")
        ] == []
        assert f"datapath_type={datapath}" in words
        assert [service.name for service in switch.services if service.kind == "daemon"] == [
            "ovsdb-server",
            "ovs-vswitchd",
        ]
        # In the kernel nothing is sent by a socket.
        assert ("packet-sockets" in words) == (datapath == "netdev")


def test_equal_descriptions_give_equal_plans_and_the_rest_stays_as_it_was() -> None:
    one, two = (compile(from_template("dumbbell", {"pairs": "2", "switch": "ovs"}), HOST) for _ in range(2))
    assert to_json(one) == to_json(two)
    plain = compile(from_template("dumbbell", {"pairs": "2"}), HOST)
    for switched, alone in zip(one.pairs, plain.pairs, strict=True):
        assert (switched.rtt_ns, switched.bottleneck_bps) == (alone.rtt_ns, alone.bottleneck_bps)
        assert [hop for hop in switched.forward.hops if hop.link not in ("sw-r1", "sw-r2")] == [*alone.forward.hops]
    assert [link.forward for link in one.links] == [link.forward for link in plain.links]


def test_pictures_and_tables_show_switches_apart_from_all_else() -> None:
    for kind, sizes in SWITCHED:
        plan = compile(from_template(kind, {**sizes, "switch": "ovs"}), HOST)
        found = places(plan, [(edge.a, edge.b) for edge in svg.edges_of(plan)])
        assert set(found) == {each.name for each in plan.nodes if each.kind != "emulator"}
        for (_, (x, y)), (_, (a, b)) in itertools.combinations(found.items(), 2):
            assert (x - a) ** 2 + (y - b) ** 2 > 20**2, kind
        assert "sw-" in svg.picture(plan)
        assert ["switch"] * len(of_kind(plan, "switch")) == [row[1] for row in table.nodes(plan) if row[1] == "switch"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "topology: star\naccess: {switch: ovs}",
            't.lab.yaml:2: access.switch "ovs": a star has no access links: leave',
        ),
        ("topology: dumbbell\naccess: {switch: bridge}", 'access.switch "bridge": unknown switch, write one of ovs'),
        ("topology: dumbbell\naccess: {switch: {ovs: {rate: 10}}}", 'access.switch.ovs.rate "10": '),
        ("topology: dumbbell\naccess: {switch: {ovs: {buffer: 10B}}}", "access.switch.ovs.buffer"),
        ("topology: dumbbell\nwan: {switch: ovs}", 'wan.switch "ovs": unknown key'),
        (
            "topology: {graph: {hosts: [a, sw-r], routers: [r], links: [{between: [a, r]}, {between: [sw-r, r]}]}}\n"
            "access: {switch: ovs}\nrtt: 0ms",
            "the switch of r is sw-r, as something else is: write another name there",
        ),
    ],
)
def test_what_cannot_be_is_refused_where_it_was_written(text: str, said: str) -> None:
    assert said in refusal(f"{text}\n")


def interfaces(plan: Plan) -> list[Interface]:
    return [port for each in plan.nodes for port in each.interfaces]


def test_names_and_macs_are_given_once_and_a_management_network_comes_first() -> None:
    plan = described("topology: {dumbbell: {pairs: 3}}\naccess: {switch: ovs}\ncontainers: {management: true}\n")
    macs = [port.mac for port in interfaces(plan)]
    assert len(macs) == len(set(macs))
    assert [port.name for port in node(plan, "sw-r1").interfaces] == ["eth1", "eth2", "eth3", "eth4"]
    (words,) = [s.argv for s in node(plan, "sw-r1").services if s.name == "ports"]
    assert [words[n + 2] for n, word in enumerate(words) if word == "add-port"] == ["eth1", "eth2", "eth3", "eth4"]
