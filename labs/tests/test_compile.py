from __future__ import annotations

import ipaddress
import time
from pathlib import Path

import pytest

from ewan.labs.base import codec
from ewan.labs.compile import HostFacts, compile
from ewan.labs.link import Bare, ConstantDelay, Fifo, Tbf
from ewan.labs.link.egress import paced
from ewan.labs.plan import Plan, from_json, to_json
from ewan.labs.spec import DescriptionError, from_template, load, parse
from ewan.labs.tests.walk import Network

HOST = HostFacts(cpus=(0, 1), networks=("10.64.0.0/15", "172.17.0.0/16", "fd65:7761:6e00::/48"))
LIBRARY = sorted((Path(__file__).resolve().parents[1] / "library").glob("*.lab.yaml"))

LABS: list[tuple[str, dict[str, str]]] = [
    ("dumbbell", {}),
    ("dumbbell", {"pairs": "3", "reverse_pairs": "2"}),
    ("dumbbell", {"pairs": "3", "rtt": "10ms,40ms,160ms"}),
    ("dumbbell", {"ip": "4", "mtu": "576"}),
    ("dumbbell", {"ip": "6", "mtu": "9000"}),
    ("parking-lot", {"hops": "3", "cross_pairs": "2", "rtt": "100ms"}),
    ("parking-lot", {"hops": "7", "rtt": "100000001ns"}),
    ("star", {"arms": "5"}),
    ("chain", {"hops": "6", "pairs": "2", "rtt": "1ns"}),
    ("ring", {"routers": "7"}),
    ("ring", {"routers": "8"}),
    ("mesh", {"routers": "6"}),
    ("fishbone", {"ribs": "1"}),
    ("fishbone", {"ribs": "4"}),
    ("four-domain", {"hosts": "3"}),
    ("grid", {"rows": "4", "columns": "5", "rtt": "99999999ns"}),
    ("grid", {"rows": "1", "columns": "2"}),
]


def compiled(template: str, overrides: dict[str, str], host: HostFacts = HOST) -> Plan:
    return compile(from_template(template, overrides), host)


@pytest.fixture(params=LABS, ids=lambda lab: f"{lab[0]}-{'-'.join(lab[1].values())}")
def lab(request: pytest.FixtureRequest) -> tuple[Plan, dict[str, str]]:
    template, overrides = request.param
    return compiled(template, overrides), overrides


def test_every_host_reaches_every_other_in_both_families(lab: tuple[Plan, dict[str, str]]) -> None:
    plan, overrides = lab
    network = Network(plan)
    hosts = [node.name for node in plan.nodes if node.kind == "host"]
    for version in {"4": [4], "6": [6]}.get(overrides.get("ip", "dual"), [4, 6]):
        for source in hosts:
            for sink in hosts:
                (address,) = network.addresses(sink, version)
                passed, _ = network.walk(source, address)
                assert (passed[0], passed[-1]) == (source, sink)


def test_every_router_is_reached(lab: tuple[Plan, dict[str, str]]) -> None:
    plan, _ = lab
    network = Network(plan)
    first = next(node.name for node in plan.nodes if node.kind == "host")
    for node in plan.nodes:
        for version in (4, 6):
            for address in network.addresses(node.name, version):
                assert network.walk(first, address)[0][-1] == node.name


def test_pairs_have_the_rtt_that_the_plan_says_and_the_longest_the_wanted_one(
    lab: tuple[Plan, dict[str, str]],
) -> None:
    plan, overrides = lab
    network = Network(plan)
    version = 6 if overrides.get("ip") == "6" else 4
    for pair in plan.pairs:
        there, out = network.walk(pair.source, network.addresses(pair.sink, version)[0])
        again, back = network.walk(pair.sink, network.addresses(pair.source, version)[0])
        assert there == again[::-1]
        assert out + back == pair.rtt_ns
        assert (network.hops(there), network.hops(again)) == (pair.forward.hops, pair.backward.hops)
    wanted = {"10ms,40ms,160ms": 160_000_000, "100000001ns": 100_000_001, "1ns": 1, "99999999ns": 99_999_999}
    longest = wanted.get(overrides.get("rtt", ""), 100_000_000)
    if plan.topology != "fishbone" or len(plan.pairs) > 2:
        assert max(pair.rtt_ns for pair in plan.pairs) == longest


def test_names_addresses_and_macs_are_unique_and_clash_with_nobody(lab: tuple[Plan, dict[str, str]]) -> None:
    plan, _ = lab
    ports = [port for node in plan.nodes for port in node.interfaces]
    interfaces = [ipaddress.ip_interface(address) for port in ports for address in port.addresses]
    taken = [ipaddress.ip_network(network) for network in HOST.networks]
    for distinct in ([node.name for node in plan.nodes], [port.mac for port in ports], [i.ip for i in interfaces]):
        assert len(set(distinct)) == len(distinct)
    for interface in interfaces:
        assert interface.ip.is_private
        assert not any(interface.ip in network for network in taken if network.version == interface.version)
    written = [address for port in ports for address in port.addresses]
    assert written == [str(interface) for interface in interfaces], "in canonical form"
    for port in ports:
        assert int(port.mac[:2], 16) & 3 == 2, "locally administered, for one station"
    for node in plan.nodes:
        assert [route.to for route in node.routes] == [str(ipaddress.ip_network(route.to)) for route in node.routes]


def test_no_route_leads_elsewhere_to_what_a_node_is_on(lab: tuple[Plan, dict[str, str]]) -> None:
    """The kernel has such a route already, with the address, and refuses a second."""
    for node in lab[0].nodes:
        networks = {str(ipaddress.ip_interface(a).network) for port in node.interfaces for a in port.addresses}
        assert not networks & {route.to for route in (*node.routes, *node.learned_routes)}, node.name


def test_one_mtu_on_every_path(lab: tuple[Plan, dict[str, str]]) -> None:
    plan, overrides = lab
    assert {port.mtu for node in plan.nodes for port in node.interfaces} == {int(overrides.get("mtu", 1500))}


def test_emulators_are_nodes_of_their_own_with_two_bare_ports(lab: tuple[Plan, dict[str, str]]) -> None:
    plan, _ = lab
    network = Network(plan)
    assert sorted(link for spinner in plan.spinners for link in spinner.links) == sorted(x.name for x in plan.links)
    for link in plan.links:
        node = network.nodes[link.node]
        assert (node.name, node.kind, len(node.interfaces), node.routes) == (link.name, "emulator", 2, ())
        for port in node.interfaces:
            assert (port.addresses, port.neighbours, port.steer, port.egress) == ((), (), False, Bare())
        for end, port_name in ((link.a, link.port_a), (link.b, link.port_b)):
            assert network.far_end[end.node, end.interface] == (link.node, port_name)
            port = network.ports[end.node, end.interface]
            assert port.steer and port.egress == Fifo(10000)


def test_two_compilations_are_byte_identical(lab: tuple[Plan, dict[str, str]]) -> None:
    plan, overrides = lab
    assert to_json(compiled(plan.topology, overrides)) == to_json(plan)


@pytest.mark.parametrize("file", LIBRARY, ids=lambda file: file.name)
def test_the_library_compiles_under_its_files_names(file: Path) -> None:
    plan = compile(load(file), HOST)
    assert f"{plan.lab}.lab.yaml" == file.name
    network = Network(plan)
    for pair in plan.pairs:
        assert network.walk(pair.source, network.addresses(pair.sink, 6)[0])[0][-1] == pair.sink


def test_a_missing_route_does_not_escape_the_walk() -> None:
    plan = compiled("dumbbell", {})
    nodes = tuple(codec.replace(n, routes=()) if n.name == "r2" else n for n in plan.nodes)
    broken = Network(codec.replace(plan, nodes=nodes))
    assert broken.walk("left1", broken.addresses("right1", 4)[0])[0] == ["left1", "r1", "core", "r2", "right1"]
    with pytest.raises(AssertionError, match="r2 has no route"):
        broken.walk("right1", broken.addresses("left1", 4)[0])


def test_the_default_dumbbell() -> None:
    plan = compiled("dumbbell", {"rtt": "100ms", "rate": "1G"})
    (core,) = plan.links
    assert (core.name, core.a.node, core.b.node) == ("core", "r1", "r2")
    assert core.forward.delay == ConstantDelay(50_000_000)
    assert core.forward.queue.limit_bytes == 12_500_000, "one BDP"
    assert (core.forward.framing.overhead_bytes, core.forward.framing.minimum_bytes) == (38, 84)
    assert core.forward.store_bytes >= 6_250_000 + 12_500_000, "the delay line and the queue"
    assert core.forward.store_packets >= (6_250_000 + 12_500_000) // 84
    assert codec.replace(core.forward, seed=0) == codec.replace(core.backward, seed=0)
    assert (plan.spinners[0].cpu, plan.host_cpus) == (1, (0,))
    left = Network(plan).nodes["left1"]
    assert left.interfaces[0].egress == Tbf(
        rate_bps=10_000_000_000, burst_bytes=125_000, limit_bytes=1_538_000, overhead_bytes=24
    )
    assert [(route.to, route.interface) for route in left.routes] == [("0.0.0.0/0", "eth0"), ("::/0", "eth0")]
    assert int(left.sysctls["net/ipv4/tcp_rmem"].split()[2]) >= 4 * 12_500_000
    assert left.sysctls["net/ipv4/tcp_congestion_control"] == "cubic"


def test_seeds_depend_on_names_not_on_order() -> None:
    def seeds(arms: str, seed: str) -> dict[str, tuple[int, int]]:
        links = compiled("star", {"arms": arms, "seed": seed}).links
        return {link.name: (link.forward.seed, link.backward.seed) for link in links}

    few, many = seeds("2", "1"), seeds("9", "1")
    assert few["arm2"] == many["arm2"]
    assert len({seed for both in many.values() for seed in both}) == 18
    assert seeds("2", "2")["arm1"] != few["arm1"]


def test_access_links_follow_a_faster_core() -> None:
    plan = compiled("dumbbell", {"rate": "40G", "rtt": "10ms"})
    assert plan.pairs[0].bottleneck_bps == 40_000_000_000
    assert compiled("dumbbell", {"access": "10M"}).pairs[0].bottleneck_bps == 10_000_000


def test_rtts_of_pairs_come_from_their_access_links() -> None:
    plan = compiled("dumbbell", {"pairs": "3", "rtt": "10ms,40ms,160ms"})
    assert [pair.rtt_ns for pair in plan.pairs] == [10_000_000, 40_000_000, 160_000_000]
    assert [(link.name, link.role) for link in plan.links] == [
        ("core", "wan"),
        ("access-left2", "access"),
        ("access-left3", "access"),
    ]
    assert plan.links[0].forward.queue.limit_bytes == 20_000_000, "a BDP of the longest RTT"


def test_cpus() -> None:
    def placed(*cpus: int) -> tuple[list[int], tuple[int, ...]]:
        plan = compiled("star", {"arms": "5"}, HostFacts(cpus, ()))
        return [spinner.cpu for spinner in plan.spinners], plan.host_cpus

    assert placed(0) == ([0], (0,))
    assert placed(2, 3) == ([3], (2,))
    assert placed(*range(16)) == ([12, 13, 14, 15], tuple(range(12)))


def test_links_that_never_sleep_are_of_the_live_clock_and_no_other_plan_says_it() -> None:
    text = "topology: dumbbell\ncpus: {idle: spin}\n"
    assert compile(parse(text, Path("x.lab.yaml")), HOST).always_spins
    assert not compile(parse(text, Path("x.lab.yaml")), VIRTUAL).always_spins
    assert b"always_spins" not in to_json(compiled("dumbbell", {}))
    assert from_json(to_json(compile(parse(text, Path("x.lab.yaml")), HOST))).always_spins
    with pytest.raises(DescriptionError, match="idle"):
        parse("topology: dumbbell\ncpus: {idle: always}\n", Path("x.lab.yaml"))


def test_a_host_that_uses_all_private_addresses() -> None:
    busy = HostFacts((0, 1), ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "0.0.0.0/0"))
    plan = compiled("dumbbell", {}, busy)
    assert Network(plan).nodes["left1"].interfaces[0].addresses[0].startswith("198.18.")


def test_a_star_of_ten_thousand_hosts_compiles_in_seconds() -> None:
    """A sanity bound on CPU time, which other work does not add to; `python -m tests.bench.compile`
    measures.
    """
    begin = time.process_time()
    plan = compiled("star", {"arms": "10000"})
    text = to_json(plan)
    assert time.process_time() - begin < 10
    assert len(plan.nodes) == 20_001
    assert len(text) > 10**7
    assert len({a for node in plan.nodes for port in node.interfaces for a in port.addresses}) == 40_000


VIRTUAL = HostFacts(cpus=(0, 1), networks=(), clock="virtual")


@pytest.mark.parametrize(("rate", "kind"), [("1Gbit/s", "psp"), ("1.1Gbit/s", "tbf")])
def test_a_routers_card_is_exact_in_the_virtual_clock_up_to_a_rate(rate: str, kind: str) -> None:
    plan = compile(from_template("dumbbell", {"access": rate, "rate": "100Mbit/s"}), VIRTUAL)
    cards = {
        (node.kind, interface.egress.kind)
        for node in plan.nodes
        for interface in node.interfaces
        if paced(interface.egress) is not None
    }
    assert cards == {("host", "psp"), ("router", kind)}
