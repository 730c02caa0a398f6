"""Switches of a graph and their VLANs: networks, addresses, paths, ports, what is refused; every way is walked."""

from __future__ import annotations

import ipaddress
import itertools
from pathlib import Path

import pytest

from ewan.labs.compile import HostFacts
from ewan.labs.forwarding import Forwarding
from ewan.labs.host import virtual_facts
from ewan.labs.link.egress import paced
from ewan.labs.plan import Hop, Interface, Node, Plan, Vlans
from ewan.labs.render import svg, table
from ewan.labs.render.places import places
from ewan.labs.tests.texts import HOST, described, refusal
from ewan.labs.tests.walk import Network

VIRTUAL = virtual_facts()
LIBRARY = Path(__file__).resolve().parents[1] / "library"
CAMPUS = (LIBRARY / "campus.lab.yaml").read_text()
# A line of three switches; r1 is in VLAN 10 without tags (native) and in 20 and 30 with them; VLAN 30 has a router of
# its own at the other end; far is on a switch of which nothing is said, so in VLAN 1, with an emulated link.
LINE = """
topology:
  graph:
    hosts: [a10, b10, a20, b20, c30, d30, far, near]
    switches: [s1, s2, s3, s4]
    routers: [r1, r2]
    links:
      - {between: [a10, s1], vlan: 10}
      - {between: [s3, b10], trunk: [10]}
      - {between: [a20, s2], vlan: 20}
      - {between: [b20, s3], vlan: 20}
      - {between: [c30, s1], vlan: 30}
      - {between: [d30, s3], vlan: 30}
      - {between: [s1, s2], vlan: 10, trunk: [20, 30], rate: 5Mbit/s}
      - {between: [s3, s2], trunk: [10, 20, 30], rate: 6Mbit/s}
      - {between: [s1, r1], vlan: 10, trunk: [20]}
      - {between: [r2, s3], trunk: [30]}
      - {between: [r1, r2], rate: 7Mbit/s, delay: 5ms}
      - {between: [far, s4], delay: 1ms}
      - {between: [s4, r2], rate: 8Mbit/s}
      - {between: [near, r2]}
    pairs: [[a10, b10], [b10, b20], [d30, a20], [near, far], [c30, d30]]
access: {rate: 100Mbit/s, buffer: 50pkt}
"""


def node(plan: Plan, name: str) -> Node:
    return next(node for node in plan.nodes if node.name == name)


def port(plan: Plan, name: str, interface: str) -> Interface:
    return next(port for port in node(plan, name).interfaces if port.name == interface)


@pytest.mark.parametrize("more", ["", "ip: 4\n", "ip: 6\nmtu: 9000\n", "routing: ospf\n"])
@pytest.mark.parametrize("host", [HOST, VIRTUAL], ids=["live", "virtual"])
@pytest.mark.parametrize("text", [CAMPUS, LINE], ids=["campus", "line"])
def test_every_host_reaches_every_other_and_only_routers_join_vlans(text: str, host: HostFacts, more: str) -> None:
    plan = described(text + more, host)
    network, forwarding = Network(plan), Forwarding(plan)
    hosts = [node.name for node in plan.nodes if node.kind == "host"]
    versions = {"ip: 4": [4], "ip: 6": [6]}.get(more[:5], [4, 6])
    for version, (source, sink) in itertools.product(versions, itertools.permutations(hosts, 2)):
        (address,) = network.addresses(sink, version)
        passed, _ = network.walk(source, address)
        assert network.hops(passed) == forwarding.path(source, sink).hops
        own = ipaddress.ip_interface(
            next(a for p in node(plan, source).interfaces for a in p.addresses if version == 4 or ":" in a)
        )
        assert (address in own.network) == (not any(node(plan, name).kind == "router" for name in passed))
    for pair in plan.pairs:
        assert forwarding.followed(pair.source, pair.sink) == pair.forward
        assert forwarding.followed(pair.sink, pair.source) == pair.backward


def test_a_vlan_is_a_subnet_of_each_family_and_no_two_meet() -> None:
    campus = [{"staff1", "staff2", "printer", "r1"}, {"guest1", "guest2", "r1"}]
    line = [{"a10", "b10", "r1"}, {"a20", "b20", "r1"}, {"c30", "d30", "r2"}, {"far", "r2"}]
    for text, members in ((CAMPUS, campus), (LINE, line)):
        subnets: dict[ipaddress.IPv4Network | ipaddress.IPv6Network, set[str]] = {}
        for each in described(text).nodes:
            for interface in each.interfaces:
                for address in interface.addresses:
                    subnets.setdefault(ipaddress.ip_interface(address).network, set()).add(each.name)
        for those in members:
            assert list(subnets.values()).count(those) == 2
        for one, other in itertools.combinations(subnets, 2):
            assert one.version != other.version or not one.overlaps(other)


def test_a_router_on_a_stick_has_one_port_and_an_interface_in_each_vlan() -> None:
    plan = described(CAMPUS)
    r1 = node(plan, "r1")
    assert [each.name for each in r1.interfaces] == ["eth0", "eth1", "eth0.10", "eth0.20"]
    assert [wire.b.interface for wire in plan.wires if wire.b.node == "r1" and wire.a.node == "s1"] == ["eth0"]
    stick, staff = port(plan, "r1", "eth0"), port(plan, "r1", "eth0.10")
    assert stick.vlans is not None and staff.vlans is not None
    assert (stick.addresses, stick.vlans) == ((), Vlans((10, 20), None, None))
    assert staff.vlans == Vlans((10,), None, "eth0") and staff.mac != stick.mac
    assert {each.address for each in staff.neighbours} == {
        address.split("/")[0]
        for name in ("staff1", "staff2", "printer")
        for each in node(plan, name).interfaces
        for address in each.addresses
    }
    # The VLAN that crosses without a tag is the port's own.
    native = port(described(LINE), "r1", "eth0")
    assert native.vlans == Vlans((20,), 10, None) and native.addresses


def test_paths_cross_trunks_and_their_slowest_is_the_bottleneck() -> None:
    plan = described(LINE)
    a10, hairpin, joined, far, long = plan.pairs
    assert [hop.link for hop in a10.forward.hops] == ["a10-s1", "s1-s2", "s3-s2", "s3-b10"]
    assert (a10.forward.slowest, a10.bottleneck_bps) == (Hop("s1-s2", "forward"), 5_000_000)
    assert (
        hairpin.forward.hops.count(Hop("s1-s2", "backward")) == hairpin.forward.hops.count(Hop("s1-s2", "forward")) == 1
    )
    # By way of r2, the wide-area link and r1: VLANs 30 and 20 have different routers.
    assert Hop("r1-r2", "backward") in joined.forward.hops
    assert (joined.rtt_ns, joined.bottleneck_bps) == (10_000_000, 5_000_000)
    assert (far.rtt_ns, far.forward.slowest) == (2_000_000, Hop("s4-r2", "backward"))
    assert "r2-s3" not in [hop.link for hop in long.forward.hops]


def test_ports_of_trunks_count_tags_where_the_kernel_does_not() -> None:
    def overhead(host: HostFacts, name: str, interface: str) -> int:
        card = paced(port(described(CAMPUS, host), name, interface).egress)
        assert card is not None
        return card.overhead_bytes

    # eth3 of s1 leads to r1, eth0 to staff1; in user space Open vSwitch writes tags into the frames.
    kernel = HostFacts((0, 1), (), datapath="system")
    for host, switch in ((HOST, 24), (kernel, 28), (VIRTUAL, 28)):
        assert [overhead(host, "s1", "eth3"), overhead(host, "r1", "eth0"), overhead(host, "s1", "eth0")] == [
            switch,
            28,
            24,
        ]
    trunk = paced(port(described(CAMPUS), "s2", "eth3").egress)
    assert trunk is not None and (trunk.rate_bps, trunk.limit_bytes) == (50_000_000, 100 * 1518)


def test_open_vswitch_is_told_each_ports_vlans() -> None:
    (words,) = [service.argv for service in node(described(LINE), "s1").services if service.name == "ports"]
    said = " ".join(words)
    assert "set Port eth0 tag=10 vlan_mode=access" in said
    assert "set Port eth2 tag=10 trunks=20,30 vlan_mode=native-untagged" in said
    assert "set Port eth1 tag=30 vlan_mode=access" in said
    (words,) = [service.argv for service in node(described(LINE), "s4").services if service.name == "ports"]
    assert "set Port eth0 tag=1 vlan_mode=access" in " ".join(words)


def test_pictures_and_tables_tell_vlans() -> None:
    for text in (CAMPUS, LINE):
        plan = described(text)
        found = places(plan, [(edge.a, edge.b) for edge in svg.edges_of(plan)])
        for (one, (x, y)), (other, (a, b)) in itertools.combinations(found.items(), 2):
            assert (x - a) ** 2 + (y - b) ** 2 > 20**2, (one, other)
    picture = svg.picture(described(CAMPUS))
    assert picture.count(">VLAN 10<") == 2 and picture.count(">trunk 10, 20<") == 2
    links = {row[0]: row[-1] for row in table.links(described(LINE))}
    assert (links["a10-s1"], links["s1-s2"]) == ("wire, VLAN 10", "wire, trunk 20, 30, untagged 10")
    (r1,) = [row for row in table.nodes(described(CAMPUS)) if row[0] == "r1"]
    assert "eth0.20: 10." in r1[2]


def small(*links: str, switches: str = "s1, s2", hosts: str = "a, b", routers: str = "r") -> str:
    return (
        f"topology:\n  graph:\n    hosts: [{hosts}]\n    switches: [{switches}]\n    routers: [{routers}]\n    links:\n"
        + "".join(f"      - {{between: {link}}}\n" for link in links)
        + "rtt: 0ms\n"
    )


A, B, JOIN, STICK = "[a, s1], vlan: 10", "[b, s2], vlan: 20", "[s1, s2], trunk: [10, 20]", "[s1, r], trunk: [10, 20]"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            small("[a, s1], vlan: 4095", B, JOIN, STICK),
            't.lab.yaml:7: topology.graph.links[0].vlan "4095": write a whole',
        ),
        (small("[a, s1], vlan: 0", B, JOIN, STICK), "from 1 to 4094"),
        (small("[a, s1], trunk: []", B, JOIN, STICK), "links[0].trunk: has 0 in its list: write 1 or more"),
        (small(A, B, JOIN, "[s1]"), "links[3].between: has 1 in its list: write 2, like [a, b]"),
        (small(A, B, JOIN, "[s1, r, s2]"), "links[3].between: has too many in its list: write 2 at most"),
        (small(A, B, JOIN, STICK, hosts="a"), "topology.graph.hosts: has 1 in its list: write 2 or more"),
        (small(A, B, "[s1, s2], trunk: [10]", STICK), "VLAN 20 of host b leads to no router: write 20 at each link up"),
        (small(A, "[b, s2], vlan: 10", JOIN, STICK), "no host is in VLAN 20 that s1-r carries: leave it out there, or"),
        (small(A, B, "[s1, s2], vlan: 10, trunk: [10, 20]", STICK), "VLAN 10 of s1-s2 is both tagged and untagged"),
        (small(A, B, "[s1, s2], trunk: [10, 20, 10]", STICK), "lists VLAN 10 twice"),
        (small(A, "[b, s2], vlan: 20, trunk: [30]", JOIN, STICK), 'host b is in one VLAN: write "vlan: 10"'),
        (
            small(A, B, JOIN, STICK, "[s2, s3], trunk: [10]", "[s1, s3], trunk: [10]", switches="s1, s2, s3"),
            "closes a loop of switches in VLAN 10, and no spanning tree runs",
        ),
        (
            small(A, B, JOIN, STICK, "[s2, q], trunk: [20]", "[q, r], delay: 1ms", routers="r, q"),
            "r and q are both routers in VLAN 20",
        ),
        (small(A, B, JOIN, STICK, "[s2, r], vlan: 20"), "r has two links in VLAN 20"),
        (small(A, B, JOIN, STICK, switches="s1, s2, s3"), "switch s3 has no link"),
        (
            small(A, "[b, r], vlan: 20", STICK, switches="s1"),
            "b and r are no switches, and VLANs are of switches' links",
        ),
        (small(A, B, f"{JOIN}, delay: 1ms", STICK), 'links[2].delay "1ms": s1-s2 is a wire of a switch'),
        (small(A, B, f"{JOIN}, role: wan", STICK), 'links[2].role "wan": s1-s2 is a wire of a switch'),
        (small(A, B, JOIN, STICK, "[s2, s1]"), "is a second link from s2 to s1"),
        (small(A, B, JOIN, STICK, "[a, s2]"), "a has several links, and this one leads to a switch"),
        (small(A, B, JOIN, STICK, hosts="a, b, s1"), "s1 names two things"),
        (small(A, B, JOIN, STICK) + "access: {switch: ovs}\n", "the graph has switches of its own: leave it out"),
        (small(A, B, JOIN, STICK) + "containers: {ovs-bridge: true}\n", "bridges of the host have no VLANs"),
        (
            small("[a, s1], trunk: [10]", B, JOIN, STICK) + "hosts: {a: {pacing: [{to: b, psp: 1Mbit/s}]}}\n",
            "a sends with VLAN tags",
        ),
        (small("[a, s1], vlam: 10", B, JOIN, STICK), "unknown key"),
        ("topology: dumbbell\nwan: {vlan: 10}\n", "unknown key"),
    ],
)
def test_what_cannot_be_is_refused_where_it_was_written(text: str, said: str) -> None:
    assert said in refusal(text)
    assert "\n" not in refusal(text)
