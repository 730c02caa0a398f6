"""A live lab in which hosts are machines with Debian's kernel: tunnels, commands, iperf3; nothing is left."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ewan.labs.link.encapsulation import OVERHEAD, TunnelKind
from tests.kept import ROOT

pytestmark = [pytest.mark.untimed, pytest.mark.machines, pytest.mark.timeout(400)]

NAME = f"mc{os.getpid()}"
TEXT = f"""
name: {NAME}
topology: {{dumbbell: {{pairs: 2}}}}
rtt: 40ms
ip: dual
wan: {{rate: 20Mbit/s, buffer: 1BDP}}
hosts:
  right1: {{machine: debian-12, stack: {{sack: off, window: 128KiB}}}}
  left2: {{machine: debian-12}}
tunnels:
  - {{name: g, between: [left2, right1], kind: gre}}
  - {{name: v, between: [left2, right1], kind: vxlan}}
  - {{name: w, between: [left2, right1], kind: wireguard}}
"""


KIND: dict[str, TunnelKind] = {"g": "gre", "v": "vxlan", "w": "wireguard"}


class Lab:
    """`ewan`, with labs of its own."""

    def __init__(self, place: Path) -> None:
        self.environment = {**os.environ, "EWAN_STATE": str(place / "state"), "EWAN_RUNTIME": "netns"}

    def ewan(self, *words: str, status: int = 0) -> str:
        command = [sys.executable, str(ROOT / "ewan" / "cli.py"), *words]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == status, (words, done.stdout, done.stderr)
        return done.stdout if status == 0 else done.stderr

    def on(self, node: str, *words: str, status: int = 0) -> str:
        return self.ewan("lab", "exec", node, "--", *words, status=status)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    place = tmp_path_factory.mktemp("machine")
    (place / f"{NAME}.lab.yaml").write_text(TEXT)
    lab = Lab(place)
    try:
        said = lab.ewan("up", str(place / f"{NAME}.lab.yaml"))
        assert f"{NAME} is up" in said
        yield lab
    finally:
        lab.ewan("down", "--all")


def running() -> list[int]:
    """QEMUs of the lab that run, by their command lines."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or []
        if words and "qemu" in words[0] and any(f"/{NAME}/nodes/" in word for word in words):
            found.append(process.pid)
    return found


OUTER = {"g": "proto 47", "v": "udp port 4789", "w": "udp port 51822"}
"""The outer packets of each tunnel, as a filter of tcpdump."""


@pytest.mark.parametrize("tunnel", OUTER)
def test_a_tunnel_of_the_machines_kernels_carries_packets(lab: Lab, tunnel: str) -> None:
    """This host's kernel need not have its kind."""
    addresses = lab.on("right1", "ip", "-4", "-o", "address", "show", "dev", tunnel)
    (address,) = re.findall(r"inet ([\d.]+)/", addresses)
    mtu = int(lab.on("left2", "cat", f"/sys/class/net/{tunnel}/mtu"))
    assert mtu == 1500 - OVERHEAD[KIND[tunnel]][0]
    seen = ["lab", "exec", "r1", "--", "timeout", "60", "tcpdump", "-ni", "any", "-c", "3", *OUTER[tunnel].split()]
    with subprocess.Popen(
        [sys.executable, str(ROOT / "ewan" / "cli.py"), *seen], env=lab.environment, stderr=subprocess.PIPE, text=True
    ) as capture:
        assert capture.stderr is not None
        while "listening on" not in capture.stderr.readline():
            pass
        pings = lab.on("left2", "ping", "-c", "5", "-i", "0.2", "-M", "do", "-s", str(mtu - 28), address)
        assert capture.wait(60) == 0, "outer packets cross the router"
    fastest = min(float(found) for found in re.findall(r"time=([\d.]+) ms", pings))
    assert 40 <= fastest < 80, pings
    assert "0% packet loss" in pings
    path = lab.ewan("lab", "path", f"left2:{tunnel}", f"right1:{tunnel}")
    assert f"left2:{tunnel} → right1:{tunnel}  {tunnel} (" in path


def test_a_host_is_a_machine_with_debians_kernel(lab: Lab) -> None:
    assert re.fullmatch(r"6\.1\.\d+-\d+-amd64\n", lab.on("right1", "uname", "-r"))
    assert lab.on("left1", "uname", "-r") == os.uname().release + "\n"
    assert lab.on("right1", "sh", "-c", 'echo "it\'s $0" in $(hostname)') == "it's sh in right1\n"
    lab.on("right1", "sh", "-c", "exit 7", status=7)
    # What the description says of its TCP.
    sysctls = lab.on("right1", "sysctl", "-n", "net.ipv4.tcp_sack", "net.ipv4.tcp_moderate_rcvbuf").split()
    assert sysctls == ["0", "0"]
    routes = [line for line in lab.on("right1", "ip", "route").splitlines() if "eth0" in line]
    assert len(routes) == 2 and all("window 131072" in line for line in routes)
    # It lies behind the link, in both families, and its packets are at most an MTU.
    for more in (["-4"], ["-6"], ["-4", "-M", "do", "-s", "1472"]):
        pings = lab.on("left1", "ping", *more, "-c", "15", "-i", "0.2", "right1")
        fastest = min(float(found) for found in re.findall(r"time=([\d.]+) ms", pings))
        assert 40 <= fastest < 80, pings
    # Its TCP receives no more than the link carries.
    # It goes into the background before it listens at 5201.
    waits = "until grep -qs ':1451 ' /proc/net/tcp6 /proc/net/tcp; do sleep 0.1; done"
    lab.on("right1", "sh", "-c", f"iperf3 -s -1 -D && {waits}")
    report = json.loads(lab.on("left1", "iperf3", "-c", "right1", "-t", "3", "-J"))
    got = report["end"]["sum_received"]["bits_per_second"]
    assert 0 < got < 20e6, "TCP's payload on a link of 20 Mbit/s"
    refused = lab.ewan("lab", "verify", status=2)
    assert "right1, left2: a machine of its own answers no probe" in refused and refused.count("\n") == 1
    # One command ends in the machine when it is ended here.
    command = [
        sys.executable,
        str(ROOT / "ewan" / "cli.py"),
        "lab",
        "exec",
        "right1",
        "--",
        "sh",
        "-c",
        "echo begun; exec sleep 4321",
    ]
    with subprocess.Popen(command, env=lab.environment, stdout=subprocess.PIPE, text=True) as sleeping:
        assert sleeping.stdout is not None and sleeping.stdout.readline() == "begun\n"
        sleeping.terminate()
    until = "for i in 1 2 3 4 5 6 7 8; do pidof sleep >/dev/null || exit 0; usleep 500000; done; exit 1"
    lab.on("right1", "sh", "-c", until)
    assert len(running()) == 2
    assert f"{NAME} is down" in lab.ewan("down", NAME)
    assert running() == [] and not list(Path("/run/netns").glob(f"ewan-{NAME}-*"))
    assert not (Path(lab.environment["EWAN_STATE"]) / NAME).exists()
