"""What the compiler is told of the machine, from captured files of /proc."""

from __future__ import annotations

from pathlib import Path

from ewan.labs.host import facts

ROUTE = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
"""
IPV6_ROUTE = """\
fd000000000000000000000000000000 40 00000000000000000000000000000000 00 \
00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
fe800000000000000000000000000000 40 00000000000000000000000000000000 00 \
00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
fd000000000000000000000000000001 00000400 00000001 00000000 00000003     eth0
"""


def test_networks_in_use_without_defaults_and_link_locals(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net/route").write_text(ROUTE)
    (tmp_path / "net/ipv6_route").write_text(IPV6_ROUTE)
    assert facts(tmp_path).networks == ("192.0.2.0/24", "fd00::/64")


def test_a_kernel_without_a_protocol_uses_none_of_it(tmp_path: Path) -> None:
    found = facts(tmp_path)
    assert found.networks == () and found.cpus
