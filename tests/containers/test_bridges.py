"""Switches as bridges of the host's Open vSwitch (containerlab's kind ovs-bridge), made by the script beside the file.

containerlab takes bridges of Open vSwitch's kernel datapath only, which many kernels lack. What is tested here is the
file and the script; the host, in namespaces of the test's own, plays Open vSwitch with the kernel's plain bridges.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.conftest import Ewan
from tests.container_engine.fixtures import EngineOfTests

pytestmark = pytest.mark.untimed

HOST = """
cp /etc/hosts hosts && mount --bind hosts /etc/hosts
[ ! -d /etc/ssh/ssh_config.d ] || mount -t tmpfs none /etc/ssh/ssh_config.d
ip link set lo up && ip link add docker0 type bridge && touch there && exec sleep infinity
"""
# The words that containerlab and the script say to Open vSwitch; each is written down too.
OVS_VSCTL = """#!/bin/sh
echo "$*" >>{log}
case "$*" in
list-br) ip -o link show type bridge | sed 's/^[0-9]*: \\([^:@]*\\).*/\\1/' ;;
"--may-exist add-br "*) ip link add "$3" type bridge ;;
"--may-exist add-port "*) ip link set "$4" master "$3" && ip link set "$4" up ;;
"--if-exists del-port "*) ip link show "$4" >/dev/null 2>&1 && ip link set "$4" nomaster || true ;;
"--if-exists del-br "*) ip link delete "$3" ;;
*QoS*) ;;
*) echo "unexpected: $*" >&2; exit 1 ;;
esac
"""
# containerlab asks Open vSwitch by way of sudo; the tests are root already.
SUDO = '#!/bin/sh\nexec "$@"\n'
DESCRIPTION = """
topology: {dumbbell: {pairs: 2}}
rtt: 40ms
wan: {rate: 50Mbit/s}
access: {switch: ovs, rate: 100Mbit/s}
containers: {ovs-bridge: true}
"""


class Host:
    """A host of its own: network, mounts, and who plays Open vSwitch."""

    def __init__(self, folder: Path, process: int) -> None:
        self.said = folder / "said"
        for name, text in (("ovs-vsctl", OVS_VSCTL.format(log=self.said)), ("sudo", SUDO)):
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        self.environment = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}:/usr/sbin:/sbin"}
        self.enter = ["nsenter", f"--net=/proc/{process}/ns/net", f"--mount=/proc/{process}/ns/mnt"]

    def run(self, folder: Path, *words: str) -> str:
        command: Sequence[str] = [*self.enter, f"--wdns={folder}", *words]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def interfaces(self, folder: Path) -> set[str]:
        lines = self.run(folder, "ip", "-o", "link").splitlines()
        return {line.split(": ")[1].split("@")[0] for line in lines}


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    folder = tmp_path / "host"
    folder.mkdir()
    process = subprocess.Popen(["unshare", "--net", "--mount", "sh", "-c", HOST], cwd=folder)
    try:
        end = time.monotonic() + 20
        while not (folder / "there").exists():
            assert time.monotonic() < end
            time.sleep(0.02)
        yield Host(folder, process.pid)
    finally:
        process.terminate()
        process.wait(20)


@pytest.mark.timeout(400)
def test_hosts_meet_on_bridges_of_the_host(
    engine: EngineOfTests, ewan: Ewan, host: Host, tmp_path: Path, name: str
) -> None:
    description = tmp_path / f"{name}.lab.yaml"
    description.write_text(DESCRIPTION)
    compiled = ewan("lab", "compile", str(description), "-o", str(tmp_path))
    assert compiled.returncode == 0, compiled.stderr
    containerlab, script, file = str(engine.containerlab), f"{name}/bridges.sh", f"{name}.clab.yml"
    before = host.interfaces(tmp_path)
    host.run(tmp_path, "sh", script, "add")
    try:
        host.run(tmp_path, containerlab, "deploy", "-t", file)
        host.run(tmp_path, "sh", script, "limit")
        assert engine.docker("ps", "-a", "--filter", f"name=ewan-{name}-sw", "-q").stdout == ""
        ping = engine.docker("exec", f"ewan-{name}-left1", "ping", "-4", "-i", "0.05", "-c", "40", "right2")
        shortest = re.search(r"= ([\d.]+)/", ping.stdout)
        assert shortest and " 0% packet loss" in ping.stdout, ping.stdout + ping.stderr
        assert 0 <= float(shortest[1]) - 40 < 1
        # One LAN: left1 reaches left2 without the router.
        near = engine.docker("exec", f"ewan-{name}-left1", "ping", "-4", "-c", "3", "left2").stdout
        assert "ttl=64" in near
        ports = host.run(tmp_path, "tc", "qdisc", "show")
        assert len(re.findall(r"dev sw-r[12]-\d root .*rate 100Mbit", ports)) == 6, ports
    finally:
        host.run(tmp_path, containerlab, "destroy", "-t", file, "--cleanup")
        host.run(tmp_path, "sh", script, "remove")
    assert host.interfaces(tmp_path) == before
    said = host.said.read_text()
    assert said.count("create QoS type=linux-noop") == 6  # or Open vSwitch would take the limits away
