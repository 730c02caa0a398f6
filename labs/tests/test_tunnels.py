"""Tunnels: what the compiler makes of them, what packets cross, and what is refused."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ewan.calibration.expect import expectations
from ewan.extras.machines.needs import check_possible
from ewan.extras.simulators.network import network
from ewan.generator.scenario.command_flows import CountedLinks
from ewan.generator.scenario.fields import CommandFlows
from ewan.labs.base.source import DescriptionError
from ewan.labs.compile import HostFacts, wireguard_keys
from ewan.labs.forwarding import Forwarding
from ewan.labs.link.encapsulation import outer_bytes
from ewan.labs.plan import Encapsulation, Interface, Node, Plan, from_json, to_json, tunnels_of
from ewan.labs.routed_paths import followed, planned
from ewan.labs.routing_documents import RoutingTable
from ewan.labs.runtime import machines
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.containerlab import ContainerlabRuntime
from ewan.labs.tests.texts import described, refusal

OFFICE = """
topology:
  graph:
    hosts: [pc, server]
    routers: [branch, isp1, isp2, hub]
    links:
      - {between: [pc, branch]}
      - {name: dsl, between: [branch, isp1], role: wan, rate: 50Mbit/s, delay: 10ms}
      - {name: lte, between: [branch, isp2], role: wan, rate: 20Mbit/s, delay: 30ms}
      - {name: metro, between: [isp1, hub], delay: 5ms}
      - {name: far, between: [isp2, hub], delay: 5ms}
      - {name: lan, between: [server, hub]}
    pairs: [[server, pc]]
"""
MS = 10**6


def office(*tunnels: str, more: str = "") -> str:
    return OFFICE + "tunnels:\n" + "".join(f"  - {{{each}}}\n" for each in tunnels) + more


def node(plan: Plan, name: str) -> Node:
    (found,) = [each for each in plan.nodes if each.name == name]
    return found


def end(plan: Plan, name: str, tunnel: str = "vpn") -> tuple[Interface, Encapsulation]:
    (found,) = [port for port in node(plan, name).interfaces if port.name == tunnel]
    assert found.tunnel is not None
    return found, found.tunnel


def steps(plan: Plan, source: str, sink: str) -> list[str]:
    return [" ".join((step.link, *step.tunnels)) for step in planned(plan, source, sink).steps]


@pytest.mark.parametrize(
    ("kind", "ip", "mtu"),
    [
        ("gre", "4", 1476),
        ("vxlan", "4", 1450),
        ("wireguard", "dual", 1440),
        ("gre", "6", 1456),
        ("wireguard", "6", 1420),
    ],
)
def test_a_tunnel_has_the_mtu_that_its_headers_leave(kind: str, ip: str, mtu: int) -> None:
    plan = described(office(f"name: vpn, between: [branch, hub], kind: {kind}", more=f"ip: {ip}\n"))
    port, tunnel = end(plan, "branch")
    other, far = end(plan, "hub")
    assert (port.mtu, other.mtu) == (mtu, mtu)
    assert (tunnel.local, tunnel.remote) == (far.remote, far.local)
    assert (":" in tunnel.local) == (ip == "6")
    assert bool(port.neighbours) == (kind == "vxlan"), "the others have no addresses of Ethernet"
    assert plan == from_json(to_json(plan))


def test_hosts_of_both_ends_send_by_the_tunnel_and_all_else_beside_it() -> None:
    plan = described(office("name: vpn, between: [branch, hub], kind: gre"))
    assert steps(plan, "pc", "server") == ["pc-branch", "dsl vpn", "metro vpn", "lan"]
    assert steps(plan, "server", "pc") == ["lan", "metro vpn", "dsl vpn", "pc-branch"]
    assert steps(plan, "pc", "isp2") == ["pc-branch", "lte"]
    (pair,) = plan.pairs
    assert pair.rtt_ns == 30 * MS
    assert [hop.link for hop in pair.forward.hops] == ["lan", "metro", "dsl", "pc-branch"]
    assert Forwarding(plan).largest("pc", "server") == 1476
    (expected,) = expectations(plan).pairs
    assert expected.mtu_bytes == 1476
    assert expected.goodput_bps == pytest.approx(50e6 * (1476 - 52) / 1538, rel=1e-3), "the outer packet has 1500 bytes"


def test_the_outer_packets_of_an_end_may_have_a_link_and_come_back_by_it() -> None:
    plan = described(office("name: vpn, between: [branch, hub], kind: gre, over: lte"))
    assert steps(plan, "pc", "server") == ["pc-branch", "lte vpn", "far vpn", "lan"]
    assert steps(plan, "server", "pc") == ["lan", "far vpn", "lte vpn", "pc-branch"]
    assert plan.pairs[0].rtt_ns == 70 * MS
    assert [hop.link for hop in plan.pairs[0].backward.hops] == ["pc-branch", "lte", "far", "lan"]
    _, tunnel = end(plan, "branch")
    (bound,) = [route for route in node(plan, "branch").routes if route.source]
    assert (bound.source, bound.interface, bound.to) == (tunnel.local, tunnel.over, "0.0.0.0/0")


def test_two_tunnels_over_two_links_carry_what_is_written() -> None:
    plan = described(
        office(
            "name: one, between: [branch, hub], kind: vxlan, over: dsl, carries: {hub: [server]}",
            "name: two, between: [branch, hub], kind: wireguard, over: lte, carries: {branch: [pc]}",
        )
    )
    assert steps(plan, "pc", "server") == ["pc-branch", "dsl one", "metro one", "lan"]
    assert steps(plan, "server", "pc") == ["lan", "far two", "lte two", "pc-branch"]


def test_a_host_has_an_address_at_its_tunnel() -> None:
    plan = described(office("name: vpn, between: [pc, hub], kind: wireguard"))
    assert steps(plan, "pc", "server") == ["pc-branch", "dsl", "metro", "lan"]
    assert steps(plan, "pc:vpn", "server") == ["pc-branch vpn", "dsl vpn", "metro vpn", "lan"]
    assert steps(plan, "server", "pc:vpn") == ["lan", "metro vpn", "dsl vpn", "pc-branch vpn"]
    assert Forwarding(plan).links_of("pc") == ["pc-branch", "vpn"]


def test_a_tunnel_goes_by_another_one() -> None:
    plan = described(
        office("name: site, between: [branch, hub], kind: gre", "name: own, between: [pc, server], kind: vxlan")
    )
    assert steps(plan, "pc:own", "server:own") == ["pc-branch own", "dsl own site", "metro own site", "lan own"]
    assert end(plan, "pc", "own")[0].mtu == 1500 - 24 - 50


def test_routes_lead_into_a_tunnel() -> None:
    plan = described(
        office(
            "name: vpn, between: [branch, hub], kind: gre, over: lte, carries: {}",
            more="routes: [{at: branch, to: server, over: vpn}]\n",
        )
    )
    assert steps(plan, "pc", "server") == ["pc-branch", "lte vpn", "far vpn", "lan"]
    assert steps(plan, "server", "pc") == ["lan", "metro", "dsl", "pc-branch"]


def test_a_link_in_reserve_is_taken_when_the_first_has_no_carrier() -> None:
    plan = described(office("name: vpn, between: [branch, hub], kind: wireguard, over: [dsl, lte], keepalive: 25s"))
    branch = node(plan, "branch")
    first, reserve = [route for route in branch.routes if route.source]
    assert (first.metric, reserve.metric) == (0, 1)
    assert first.source == reserve.source
    assert first.interface != reserve.interface
    for route in (first, reserve):
        assert branch.sysctls[f"net/ipv4/conf/{route.interface}/ignore_routes_with_linkdown"] == "1"
    assert end(plan, "branch")[1].keepalive_s == 25
    assert steps(plan, "pc", "server") == ["pc-branch", "dsl vpn", "metro vpn", "lan"]


def test_keys_of_wireguard_are_those_of_x25519() -> None:
    # RFC 7748, section 5.2: the first iteration.
    expected = "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079"
    assert wireguard_keys.public(bytes([9, *31 * [0]])).hex() == expected
    plan = described(office("name: vpn, between: [branch, hub], kind: wireguard"))
    (_, near), (_, far) = end(plan, "branch"), end(plan, "hub")
    assert wireguard_keys.public(bytes.fromhex(near.private_key)).hex() == far.peer_key
    assert near.private_key != far.private_key


def test_wireguard_pads_short_packets() -> None:
    assert [outer_bytes("wireguard", False, 1440, size) for size in (100, 112, 1431, 1440)] == [172, 172, 1500, 1500]
    assert outer_bytes("wireguard", False, 1436, 1433) == 1496, "not beyond the MTU"
    assert outer_bytes("gre", True, 1456, 100) == 144


@pytest.mark.parametrize(
    ("tunnels", "message"),
    [
        (["name: vpn, between: [branch, hub], kind: ipsec"], 'kind "ipsec": write "gre", "vxlan" or "wireguard"'),
        (["name: vpn, between: [branch, branch], kind: gre"], "both ends are branch: write two nodes"),
        (["name: vpn, between: [branch, hob], kind: gre"], 'there is no host or router hob: write "hub"'),
        (["name: dsl, between: [branch, hub], kind: gre"], "dsl names something else too: write another name"),
        (
            ["name: vpn, between: [branch, hub], kind: gre", "name: vpn, between: [pc, hub], kind: gre"],
            "vpn names something else too: write another name",
        ),
        (["name: eth0, between: [branch, hub], kind: gre"], "is an interface that nodes have of their own"),
        (["name: a-very-long-name, between: [branch, hub], kind: gre"], "longer than 15 characters"),
        (["name: vpn, between: [branch, hub], kind: gre, over: dls"], "no link dls leads from branch or hub"),
        (["name: vpn, between: [branch, hub], kind: gre, over: lan"], "no link lan leads from branch or hub"),
        (["name: vpn, between: [branch, hub], kind: gre, over: [dsl, lte]"], "gre has one address at branch"),
        (["name: vpn, between: [branch, hub], kind: wireguard, over: [dsl, dsl]"], "lists dsl twice"),
        (
            ["name: vpn, between: [branch, hub], kind: gre, mtu: 1477"],
            "leave 1476 bytes of a packet: write 1476 at most",
        ),
        (["name: vpn, between: [branch, hub], kind: gre, mtu: 500"], "from 576 to 65535"),
        (["name: vpn, between: [branch, hub], kind: gre, mtu: 1000"], "IPv6 needs 1280 (RFC 8200), and vpn has 1000"),
        (["name: vpn, between: [branch, hub], kind: gre, keepalive: 25s"], "is of WireGuard, and this is gre"),
        (["name: vpn, between: [branch, hub], kind: wireguard, keepalive: 100ms"], "write whole seconds from 1s"),
        (["name: vpn, between: [branch, hub], kind: gre, carries: {isp1: [pc]}"], "isp1 is no end of vpn"),
        (["name: vpn, between: [branch, hub], kind: gre, carries: {hub: [pcc]}"], "there is no host pcc"),
        (["name: vpn, between: [branch, hub], kind: gre, carries: {hub: [pc]}"], "pc is at branch itself"),
        (["name: vpn, between: [pc, hub], kind: gre, carries: {hub: [server]}"], "pc is a host: leave it out"),
        (
            ["name: one, between: [branch, hub], kind: gre", "name: two, between: [branch, hub], kind: vxlan"],
            "hub sends to pc by one already: write other carries of one of them",
        ),
        (
            [
                "name: one, between: [branch, hub], kind: gre",
                "name: two, between: [hub, branch], kind: gre, carries: {}",
            ],
            "has the same outer addresses as one",
        ),
    ],
)
def test_what_is_no_tunnel_is_refused_in_one_line(tunnels: list[str], message: str) -> None:
    said = refusal(office(*tunnels))
    assert message in said
    assert "\n" not in said
    assert "tunnels" in said


def test_a_tunnel_that_goes_by_itself_is_refused() -> None:
    into = "routes: [{at: branch, to: isp1, over: vpn}]\n"
    said = refusal(office("name: vpn, between: [branch, hub], kind: gre", more=into))
    assert "the outer packets of vpn go by vpn itself" in said


@pytest.mark.parametrize("keys", ["kind: gre", "kind: wireguard, over: [dsl]"])
def test_a_host_with_several_links_answers_by_the_tunnel_from_each_address(keys: str) -> None:
    text = office(f"name: vpn, between: [pc, server], {keys}").replace(
        "{between: [pc, branch]}", "{name: dsl, between: [pc, isp1]}\n      - {name: cable, between: [pc, isp2]}"
    )
    plan = described(text.replace("{name: dsl, between: [branch, isp1]", "{name: old, between: [branch, isp1]"))
    for ends in (("server:vpn", "pc"), ("pc", "server:vpn"), ("pc:vpn", "server:vpn")):
        assert all(each.endswith(" vpn") for each in steps(plan, *ends))


def test_tunnels_end_at_no_switch_and_need_static_routes() -> None:
    switched = """
topology:
  graph:
    hosts: [a, b]
    routers: [r, s]
    switches: [w]
    links: [{between: [a, w]}, {between: [r, w]}, {between: [r, s]}, {between: [b, s]}]
tunnels: [{name: vpn, between: [END, s], kind: gre}]
"""
    assert "w is a switch, and tunnels end at hosts and routers" in refusal(switched.replace("END", "w"))
    assert "a is behind a switch" in refusal(switched.replace("END", "a"))
    protocol = office("name: vpn, between: [branch, hub], kind: gre", more="routing: ospf\n")
    assert "ospf finds the routes: leave them out, or write routing: static" in refusal(protocol)
    assert described(office("name: vpn, between: [branch, hub], kind: gre"), HostFacts((0,), (), "virtual"))


def examples() -> list[str]:
    page = (Path(__file__).resolve().parents[2] / "docs/how-to/labs/tunnels.md").read_text()
    return re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)


@pytest.mark.parametrize("text", examples())
def test_each_example_of_the_page_is_a_description(text: str) -> None:
    plan = described(text)
    assert tunnels_of(plan) == ["vpn"]
    ends = ("left1:vpn", "right1:vpn") if "dumbbell" in text else ("pc", "server")
    assert steps(plan, *ends)[1].endswith(" vpn")


def test_flows_of_commands_are_not_counted_where_only_outer_packets_pass() -> None:
    def counted(text: str) -> str:
        plan = described(text, HostFacts((0,), (), "virtual"))
        links = CountedLinks(plan, Forwarding(plan))
        wanted = CommandFlows.model_validate({"to": "pc"})
        return links.tool(wanted, "copy", "server", "pc", lambda path, message: DescriptionError(message)).link

    text = office("name: vpn, between: [branch, hub], kind: gre")
    with pytest.raises(DescriptionError, match="that count flows see packets of the tunnel vpn alone"):
        counted(text)
    assert counted(text.replace("{between: [pc, branch]}", "{name: near, between: [pc, branch], delay: 1ms}")) == "near"


def machine_script(tunnel: str, more: str = "ip: 4\n") -> list[str]:
    """The lines that set up the host pc, which is a machine."""
    plan = described(office(tunnel, more=f"{more}hosts: {{pc: {{machine: debian-12}}}}\n"))
    script = machines.guest_script(next(node for node in plan.nodes if node.name == "pc"))
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)
    return script.splitlines()


def of_tunnels(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith(("ip link add", "wg", "ip -4 rule add fwmark", "echo"))]


def test_a_tunnel_ends_in_a_host_that_is_a_machine() -> None:
    (gre,) = of_tunnels(machine_script("name: vpn, between: [pc, hub], kind: gre"))
    assert re.fullmatch(r"ip link add vpn type gre local [\d.]+ remote [\d.]+ ttl 255 tos inherit", gre)
    (vxlan,) = of_tunnels(machine_script("name: vpn, between: [pc, hub], kind: vxlan"))
    assert " type vxlan id 1 local " in vxlan
    assert "dstport 4789 nolearning df set" in vxlan
    (over_v6,) = of_tunnels(machine_script("name: vpn, between: [pc, hub], kind: gre", "ip: 6\n"))
    assert " type ip6gre local fd65:" in over_v6
    lines = machine_script("name: vpn, between: [pc, hub], kind: wireguard, keepalive: 5s")
    interface, key, peer = of_tunnels(lines)
    assert interface == "ip link add vpn type wireguard"
    assert re.fullmatch(r"echo [\w+/]{43}= >/machine/vpn.key", key)
    assert re.search(r"listen-port 51820 .* endpoint [\d.]+:51820 .* persistent-keepalive 5$", peer)
    assert any(line.endswith(" dev vpn onlink table 101") for line in lines)


def test_what_a_machine_cannot_have_of_a_tunnel_is_refused() -> None:
    machine = "hosts: {pc: {machine: debian-12}}\n"
    said = refusal(office("name: control, between: [pc, hub], kind: gre", more=machine))
    assert 'tunnels[0].name "control": is an interface of a machine' in said
    two = office("name: vpn, between: [pc, hub], kind: wireguard, over: [dsl, lte]", more=machine)
    two = two.replace("between: [branch, isp1]", "between: [pc, isp1]").replace(
        "between: [branch, isp2]", "between: [pc, isp2]"
    )
    assert "pc is a machine, whose card keeps its carrier" in refusal(
        two.replace("- {between: [pc, branch]}", "").replace("[branch, isp1, isp2, hub]", "[isp1, isp2, hub]")
    )


def test_a_lab_says_the_paths_of_tunnels_that_end_in_machines() -> None:
    machine = "hosts: {pc: {machine: debian-12}, server: {machine: debian-12}}\n"
    plan = described(office("name: vpn, between: [pc, server], kind: gre", more=machine))
    told = {node.name: RoutingTable((), ()) for node in plan.nodes}
    assert followed(plan, told, "pc:vpn", "server:vpn").broken.startswith("branch has no route to")


def test_containers_several_machines_and_simulators_have_no_tunnels(tmp_path: Path) -> None:
    plan = described(office("name: vpn, between: [branch, hub], kind: gre"))
    said = ContainerlabRuntime(state=tmp_path).obstacle(plan)
    assert said is not None
    assert "tunnel vpn can only be in a lab of network namespaces" in said
    with pytest.raises(LabError, match="has a tunnel, and stretches over several machines"):
        check_possible(plan)
    with pytest.raises(DescriptionError, match="tunnel vpn of lab t: a tunnel cannot be expressed"):
        network(plan)
    paced = "hosts: {pc: {pacing: {tbf: 10Mbit/s}}}\n"
    assert "pc is an end of a tunnel" in refusal(office("name: vpn, between: [pc, hub], kind: gre", more=paced))
