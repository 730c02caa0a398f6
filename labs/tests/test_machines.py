"""Hosts that are machines with kernels of their own: the plan, what is refused, what namespace and guest get."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ewan.labs.compile import HostFacts, compile
from ewan.labs.compile.machines import ALONE
from ewan.labs.plan import Node, Plan
from ewan.labs.runtime import machines
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.containerlab import ContainerlabRuntime
from ewan.labs.spec import DescriptionError, parse
from ewan.labs.spec.fields.host import MACHINES
from images.machine import build


def planned(right1: str, more: str = "", clock: str = "live") -> Plan:
    """A dumbbell of two pairs in which right1 is as said."""
    text = f"topology: {{dumbbell: {{pairs: 2}}}}\nrtt: 40ms\n{more}\nhosts:\n  right1: {right1}\n"
    facts = HostFacts((0, 1), (), "virtual" if clock == "virtual" else "live")
    return compile(parse(text, Path("x.lab.yaml")), facts)


def right1(settings: str, more: str = "") -> Node:
    return next(node for node in planned(settings, more).nodes if node.name == "right1")


def test_only_the_named_host_is_a_machine() -> None:
    assert [node.name for node in machines.of(planned("{machine: debian-12}"))] == ["right1"]
    assert machines.of(planned("{stack: linux}")) == ()


def test_every_machine_of_a_description_can_be_built() -> None:
    assert set(build.KERNELS) == set(MACHINES)


REFUSED = {
    ("{machine: debian-11}", "", "live"): 'hosts.right1.machine "debian-11": unknown machine, write "debian-12"',
    ("{machine: debian-12}", "", "virtual"): 'hosts.right1.machine "debian-12": a machine of its own runs '
    "only in namespaces: write --runtime netns",
    ("{machine: debian-12, pacing: {tbf: 5Mbit/s}}", "", "live"): "hosts.right1.pacing: a machine of its own is not "
    "paced: leave pacing out, or machine",
    ("{machine: debian-12}", "routing: ospf", "live"): "into a machine: write routing: static",
}


@pytest.mark.parametrize(("written", "says"), REFUSED.items())
def test_what_no_machine_can_do_is_refused_at_its_place(written: tuple[str, str, str], says: str) -> None:
    with pytest.raises(DescriptionError) as refused:
        planned(*written)
    assert says in str(refused.value) and "\n" not in str(refused.value)


def test_containers_hold_no_machine(tmp_path: Path) -> None:
    obstacle = ContainerlabRuntime(state=tmp_path).obstacle(planned("{machine: debian-12}"))
    assert obstacle == f"lab x: right1: {ALONE}"


def test_what_is_not_built_is_said_before_anything_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machines, "MACHINES", tmp_path)
    machines.check(planned("{stack: linux}"))
    with pytest.raises(LabError, match="right1 is a machine, and debian-12 is not built: make machine"):
        machines.check(planned("{machine: debian-12}"))


def guest(node: Node) -> list[str]:
    """The lines of the script that sets a guest up, which a shell can read."""
    script = machines.guest_script(node)
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)
    return script.splitlines()


def test_the_guest_has_the_nodes_addresses_routes_and_settings() -> None:
    node = right1("{machine: debian-12, stack: {sack: off}}", "mtu: 1400\nip: dual")
    lines, port = guest(node), node.interfaces[0]
    four, six = port.addresses
    assert f"ip address add {four} dev eth0" in lines and f"ip address add {six} dev eth0 nodad" in lines
    assert f"    {port.mac}) ip link set ${{at##*/}} name new0 ;;" in lines
    assert "ip link set eth0 mtu 1400" in lines
    assert "set_to net/ipv4/tcp_sack 0" in lines
    assert len(node.sysctls) == sum(line.startswith("set_to net/") for line in lines)
    routes = [line for line in lines if line.startswith("ip route")]
    assert routes == [f"ip route add {to} via {via} dev eth0 onlink" for to, via in _routes(node)]
    neighbours = [f"ip neighbour replace {n.address} lladdr {n.mac} dev eth0 nud permanent" for n in port.neighbours]
    assert neighbours and [line for line in lines if "neighbour" in line] == neighbours


def _routes(node: Node) -> list[tuple[str, str]]:
    return [(route.to, route.via) for route in node.routes]


def test_routes_of_the_guest_tell_tcp_what_the_stack_says() -> None:
    lines = guest(right1("{machine: debian-12, stack: {window: 64KiB, delayed_ack: off}}", "ip: dual"))
    routes = [line for line in lines if line.startswith("ip route")]
    assert len(routes) == 4, "two families: the link's own network and all others"
    assert all(line.endswith(" quickack 1 window 65536") for line in routes)


def test_the_namespace_keeps_no_address_and_another_mac() -> None:
    node = right1("{machine: debian-12}", "mtu: 9000")
    script, port = machines.namespace_script(node), node.interfaces[0]
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)
    used = {each.mac for other in planned("{machine: debian-12}").nodes for each in other.interfaces}
    other = script.partition("ip link set eth0 address ")[2].split()[0]
    assert "ip address flush dev eth0" in script and script.count("mtu 9000") == 2
    assert other not in used and int(other[:2], 16) & 3 == 2, "its own, administered locally, of one interface"
    assert other[2:] == port.mac[2:]


def test_the_machine_has_the_nodes_mac_and_no_offloads() -> None:
    node = right1("{machine: debian-12}")
    words = machines.qemu(node, Path("/state"), Path("/image"), "kvm")
    card, control = (word for word in words if word.startswith("virtio-net-pci"))
    assert f"mac={node.interfaces[0].mac}" in card and "gso=off" in card and "host_tso4=off" in card
    assert machines.CONTROL_MAC in control
    forwarded = next(word for word in words if word.startswith("user,"))
    assert "restrict=on" in forwarded and "hostfwd=tcp:127.0.0.1:2222-192.0.2.15:22" in forwarded


def test_a_machine_that_ended_is_seen_before_anyone_waits_for_it(tmp_path: Path) -> None:
    assert not machines.running(tmp_path)
    with subprocess.Popen(["sleep", "60"]) as process:
        (tmp_path / machines.PID).write_text(f"{process.pid}\n")
        assert machines.running(tmp_path)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not machines.running(tmp_path)
