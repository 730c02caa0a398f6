"""The file of machines, and the facts that machines report."""

from __future__ import annotations

from pathlib import Path

import pytest

from ewan.extras.machines import facts
from ewan.extras.machines.file import ClusterMachine
from ewan.extras.machines.reading import load, parse
from ewan.labs.base.source import DescriptionError
from ewan.labs.runtime.base import LabError

TEXT = """\
ssh_config: config
machines:
  one: {ssh: root@node-1, interface: eth1, cpus: [2, 3]}
  two: {ssh: "node-2:2222", interface: eth1, address: 10.0.0.2, sudo: true}
placement:
  r1,left[1-3]: one
"""


def test_a_file_of_machines_is_read(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("")
    (tmp_path / "machines.yaml").write_text(TEXT)
    found = load(tmp_path / "machines.yaml")
    assert found.machines == (
        ClusterMachine("one", "root@node-1", "eth1", None, (2, 3), False),
        ClusterMachine("two", "node-2:2222", "eth1", "10.0.0.2", None, True),
    )
    assert found.ssh_config == tmp_path / "config"
    assert found.placement == {"r1,left[1-3]": "one"}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("interface: eth1, cpus", "cpus", "m.yaml:3: machines.one"),
        ("[2, 3]", "[2, 2]", 'm.yaml:3: machines.one.cpus: write each CPU once, like "[2, 3]"'),
        ("[2, 3]", "[-1]", "m.yaml:3: machines.one.cpus"),
        ("10.0.0.2", "127.0.0.1", "m.yaml:4: machines.two.address"),
        ("10.0.0.2", "node-2", "m.yaml:4: machines.two.address"),
        ('"node-2:2222"', "root@node-1", 'm.yaml:4: machines.two.ssh "root@node-1": is one\'s too'),
        ('"node-2:2222"', '"-oProxyCommand=x"', "m.yaml:4: machines.two.ssh"),
        ("sudo: true", "sodu: true", "m.yaml:4: machines.two.sodu"),
        ("]: one", "]: three", 'm.yaml:6: placement.r1,left[1-3] "three": there is no machine three'),
        ("two:", '"t/wo":', "m.yaml:4: machines.t/wo"),
        ("ssh_config: config", "ssh_config: nowhere", 'm.yaml:1: ssh_config "nowhere": there is no such file'),
    ],
)
def test_what_is_wrong_is_said_at_its_line(old: str, new: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "config").write_text("")
    assert old in TEXT
    with pytest.raises(DescriptionError) as caught:
        parse(TEXT.replace(old, new, 1), tmp_path / "m.yaml")
    said = str(caught.value).replace(f"{tmp_path}/", "")
    assert says in said and "\n" not in said, said


TOLD = """
== user
0

== kernel
Linux 6.1.0-28-amd64 x86_64

== cpus
0-1,4

== ipv4
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth1\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0

== ipv6

== addresses
3: eth1    inet6 fe80::1/64 scope link
3: eth1    inet6 2001:db8::7/64 scope global
3: eth1    inet 10.0.0.2/24 brd 10.0.0.255 scope global eth1\\       valid_lft forever

== mtu
1500

== vswitch

== clock
tsc
"""
TWO = ClusterMachine("two", "node-2", "eth1", None, None, True)


def test_what_a_machine_tells_of_itself_is_read() -> None:
    found = facts.read(TWO, TOLD)
    assert (found.cpus, found.address, found.mtu, found.vswitch) == ((0, 1, 4), "10.0.0.2", 1500, False)
    assert (found.networks, found.kernel, found.clock_source) == (("10.0.0.0/24",), "6.1.0-28-amd64", "tsc")
    six = facts.read(ClusterMachine("two", "node-2", "eth1", "2001:db8::7", (4,), True), TOLD)
    assert (six.address, six.cpus) == ("2001:db8::7", (4,))
    with pytest.raises(LabError, match=r'machine two has IPv4 .*, one IPv6 .*: write an "address:" of one family'):
        facts.check_together({"two": found, "one": six})
    with pytest.raises(LabError, match="have one address"):
        facts.check_together({"two": found, "one": found})


@pytest.mark.parametrize(
    ("old", "new", "machine", "says"),
    [
        ("== user\n0", "== user\n1000", TWO, "machine two: making a lab needs root"),
        ("x86_64", "aarch64", TWO, "machine two runs Linux on aarch64"),
        ("Linux", "FreeBSD", TWO, "machine two runs FreeBSD"),
        ("== mtu\n1500", "== mtu\n", TWO, "machine two has no interface eth1"),
        ("", "", ClusterMachine("two", "n", "eth1", "10.0.0.9", None, True), "eth1 there has no address 10.0.0.9"),
        (
            "",
            "",
            ClusterMachine("two", "n", "eth1", None, (2,), True),
            "cpus: 2 may not be used there: write some of 0, 1, 4",
        ),
    ],
)
def test_a_machine_on_which_no_lab_can_be_is_refused(old: str, new: str, machine: ClusterMachine, says: str) -> None:
    with pytest.raises(LabError, match=r".") as caught:
        facts.read(machine, TOLD.replace(old, new) if old else TOLD)
    assert says in str(caught.value)
