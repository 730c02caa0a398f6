"""`ewan-node container`, each container by itself: order of starts, links that share a spinner, endings, refusals.

The containers are started by hand and wired afterwards, as an engine and containerlab do it: nothing of a runtime here.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ewan.labs import host, images
from ewan.labs.base.codec import replace
from ewan.labs.compile import compile
from ewan.labs.link import Bare
from ewan.labs.plan import End, Interface, Neighbour, Node, Plan, Service, Spinner, Stack, Wire, to_json
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.spec import from_template
from tests.container_engine.fixtures import EngineOfTests

pytestmark = pytest.mark.untimed

RTT_MS, HOPS = 60, 3
ENDS_S = 1.0


class BootedContainer:
    """One container: its name at the engine, its first process."""

    def __init__(self, engine: EngineOfTests, name: str) -> None:
        self.engine, self.name = engine, name
        self.pid = int(engine.docker("inspect", "--format", "{{.State.Pid}}", name).stdout)

    def do(self, *command: str, timeout: float = 60) -> str:
        done = self.engine.docker("exec", self.name, *command, timeout=timeout)
        assert done.returncode == 0, f"{self.name}: {command}: {done.stdout}{done.stderr}"
        return done.stdout

    def status(self) -> int:
        """The exit status, when it has ended."""
        return int(self.engine.docker("wait", self.name).stdout)

    def said(self) -> tuple[str, str]:
        logs = self.engine.docker("logs", self.name)
        return logs.stdout, logs.stderr


class BootedLab:
    """A lab's directory, and its containers, which are gone afterwards."""

    def __init__(self, engine: EngineOfTests, directory: Path, plan: Plan) -> None:
        self.engine, self.directory, self.plan = engine, directory, plan
        directory.mkdir()
        (directory / "plan.json").write_bytes(to_json(plan))
        self.nodes: dict[str, BootedContainer] = {}

    def start(self, node: str, *options: str) -> BootedContainer:
        kind = next((each.kind for each in self.plan.nodes if each.name == node), "host")
        name = f"ewan-{self.plan.lab}-{node}"
        binds = ("-v", f"{self.directory}:/lab", "-v", f"{BINARY}:/usr/local/bin/ewan-node:ro")
        entry = ("--entrypoint", "/usr/local/bin/ewan-node", images.image(kind))
        command = ("container", "--lab", "/lab", "--node", node)
        started = self.engine.docker(
            *("run", "--detach", "--privileged", "--network", "none", "--name", name),
            *binds,
            *options,
            *entry,
            *command,
        )
        assert started.returncode == 0, started.stderr
        self.nodes[node] = BootedContainer(self.engine, name)
        return self.nodes[node]

    def wire(self, wire: Wire) -> None:
        """A veth pair between two containers: never seen by the machine, with other MACs than the plan's."""
        a, b = self.nodes[wire.a.node].pid, self.nodes[wire.b.node].pid
        assert a and b, [node.said() for node in self.nodes.values()]
        peer = ("peer", "name", wire.b.interface, "netns", str(b))
        add = ("ip", "link", "add", wire.a.interface, "type", "veth", *peer)
        subprocess.run(("nsenter", "-t", str(a), "-n", *add), check=True, timeout=20)
        for end, pid in ((wire.a, a), (wire.b, b)):
            up = ("ip", "link", "set", end.interface, "up")
            subprocess.run(("nsenter", "-t", str(pid), "-n", *up), check=True, timeout=20)

    def own(self, node: str, file: str) -> Path:
        return self.directory / "nodes" / node / file

    def wait_ready(self, *nodes: str, longest_s: float = 60) -> None:
        until = time.monotonic() + longest_s
        while missing := [node for node in nodes if not self.own(node, "ready").exists()]:
            failed = [self.own(node, "failed").read_text() for node in nodes if self.own(node, "failed").exists()]
            assert not failed, failed
            assert time.monotonic() < until, f"not ready: {missing}"
            time.sleep(0.02)

    def remove(self) -> None:
        self.engine.docker("rm", "--force", *(node.name for node in self.nodes.values()))


@pytest.fixture
def labs(engine: EngineOfTests, tmp_path: Path, name: str) -> Iterator[list[BootedLab]]:
    made: list[BootedLab] = []
    yield made
    for lab in made:
        lab.remove()


def row(name: str) -> Plan:
    """left — hop1 — hop2 — hop3 — right: three links one after the other, all served by one spinner."""
    whole = compile(
        from_template("parking-lot", {"hops": str(HOPS), "rtt": f"{RTT_MS}ms", "rate": "50M"}), host.facts()
    )
    names = ["left", "hop1", "hop2", "hop3", "right"]

    def interface(number: int, name: str, *addresses: str) -> Interface:
        neighbours = {1: Neighbour("10.98.0.2", "02:00:00:00:00:08"), 8: Neighbour("10.98.0.1", "02:00:00:00:00:01")}
        known = tuple(neighbours[number] for _ in addresses)
        return Interface(name, f"02:00:00:00:00:{number:02x}", 1500, addresses, known, Bare(), False)

    quiet = {"net/ipv6/conf/all/disable_ipv6": "1", "net/ipv6/conf/default/disable_ipv6": "1"}
    nodes = [Node("left", "host", (interface(1, "eth0", "10.98.0.1/24"),), (), quiet, (), (), None, None)]
    for number in range(HOPS):
        ports = interface(2 * number + 2, "eth0"), interface(2 * number + 3, "eth1")
        nodes.append(Node(names[number + 1], "emulator", ports, (), quiet, (), (), None, None))
    nodes.append(Node("right", "host", (interface(8, "eth0", "10.98.0.2/24"),), (), quiet, (), (), None, None))
    ends = [End(a, "eth0" if a == "left" else "eth1") for a in names[:-1]]
    wires = tuple(Wire(b, end, End(b, "eth0")) for end, b in zip(ends, names[1:], strict=True))
    links = tuple(
        replace(link, name=node, node=node, a=wires[number].a, b=wires[number + 1].b, port_a="eth0", port_b="eth1")
        for number, (link, node) in enumerate(zip(whole.links, names[1:-1], strict=True))
    )
    spinners = (Spinner(whole.spinners[0].cpu, tuple(names[1:-1])),)
    return replace(whole, lab=name, nodes=tuple(nodes), wires=wires, links=links, spinners=spinners, pairs=())


def alone(name: str, *services: Service) -> Plan:
    """One host without interfaces."""
    plan = row(name)
    return replace(
        plan, nodes=(Node("one", "host", (), (), {}, services, (), None, None),), wires=(), links=(), spinners=()
    )


def test_three_links_on_one_spinner_whatever_starts_first(
    engine: EngineOfTests, labs: list[BootedLab], tmp_path: Path, name: str
) -> None:
    """The container that runs the spinner comes last, and the wires after all."""
    lab = BootedLab(engine, tmp_path / "lab", row(name))
    labs.append(lab)
    order = ("hop3", "right", "hop2", "left", "hop1")
    for node in order:
        lab.start(node)
    assert not any(lab.own(node, "ready").exists() for node in order)
    for wire in lab.plan.wires:
        lab.wire(wire)
    lab.wait_ready(*order)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control:
        control.connect(str(lab.directory / "spinner-0.sock"))
        control.sendall(b'{"command":"stats"}\n')
        stats = json.loads(control.makefile("rb").readline())
    assert list(stats["links"]) == ["hop1", "hop2", "hop3"]
    assert stats["cpu"] == lab.plan.spinners[0].cpu
    left = lab.nodes["left"]
    told = left.do("ping", "-c", "40", "-i", "0.05", "right")
    shortest = re.search(r"= ([\d.]+)/", told)
    assert "40 received" in told and shortest
    assert RTT_MS <= float(shortest[1]) < RTT_MS + 1
    assert left.do("cat", "/etc/hosts").startswith("10.98.0.1 left\n10.98.0.2 right\n")
    shown = left.do("ip", "link", "show", "eth0")
    assert "02:00:00:00:00:01" in shown and "mtu 1500" in shown
    for node in ("left", "hop2"):
        written, errors = lab.nodes[node].said()
        assert f"{node}: ready: " in written.splitlines()[-1] and not errors
    for node in order:
        check_ends(lab, node)
    assert not (lab.directory / "spinner-0.netns").exists()


def test_a_host_with_a_stack_of_its_own(
    engine: EngineOfTests, labs: list[BootedLab], tmp_path: Path, name: str
) -> None:
    """Two hosts on one wire: the sysctls of one, and what its route tells TCP."""
    whole = row(name)
    left, *_, right = whole.nodes
    own = left.sysctls | {"net/ipv4/tcp_sack": "0", "net/ipv4/tcp_rmem": "4096 50000 50000"}
    nodes = (replace(left, sysctls=own, stack=Stack(True, 17_520)), right)
    wire = Wire("wire", End("left", "eth0"), End("right", "eth0"))
    plan = replace(whole, nodes=nodes, wires=(wire,), links=(), spinners=())
    lab = BootedLab(engine, tmp_path / "lab", plan)
    labs.append(lab)
    for node in ("left", "right"):
        lab.start(node)
    lab.wire(wire)
    lab.wait_ready("left", "right")
    read = ("sysctl", "-n", "net.ipv4.tcp_sack", "net.ipv4.tcp_rmem")
    assert lab.nodes["left"].do(*read).split() == ["0", "4096", "50000", "50000"]
    assert lab.nodes["right"].do(*read).split()[0] == "1"
    told = lab.nodes["left"].do("ip", "route", "show")
    assert told.startswith("10.98.0.0/24 ") and "window 17520" in told and "quickack 1" in told
    assert "window" not in lab.nodes["right"].do("ip", "route", "show")
    assert "1 received" in lab.nodes["left"].do("ping", "-c", "1", "right")


def check_ends(lab: BootedLab, node: str) -> None:
    """SIGTERM is enough, and soon; nobody then takes the node for one that is ready."""
    container = lab.nodes[node]
    first = os.pidfd_open(container.pid)
    try:
        begin = time.monotonic()
        signal.pidfd_send_signal(first, signal.SIGTERM)
        ended, _, _ = select.select([first], [], [], 10)
        took = time.monotonic() - begin
    finally:
        os.close(first)
    assert ended and took < ENDS_S, f"{node}: {took:.2f} s"
    assert container.status() == 0
    assert not lab.own(node, "ready").exists()


def test_services_and_orphans(engine: EngineOfTests, labs: list[BootedLab], tmp_path: Path, name: str) -> None:
    """Services run as elsewhere; what an earlier container left is gone; what ends is reaped."""
    look = Service("look", "setup", ("sh", "-c", "ls; cat words"), {"words": "{run}\n"}, None)
    stay = Service("stay", "daemon", ("sh", "-c", ": > up; trap 'exit 0' TERM; while sleep 0.1; do :; done"), {}, "up")
    lab = BootedLab(engine, tmp_path / "lab", alone(name, look, stay))
    labs.append(lab)
    lab.own("one", "conf.db").mkdir(parents=True)
    lab.own("one", "failed").write_text("an earlier container\n")
    one = lab.start("one")
    lab.wait_ready("one")
    assert lab.own("one", "look.log").read_text().split() == ["look.log", "started", "words", "/lab/nodes/one"]
    assert "127.0.0.1\tlocalhost\n" in one.do("cat", "/etc/hosts")
    one.do("sh", "-c", "sh -c 'sleep 0.1 & exit' & exit")
    time.sleep(0.5)
    assert "\nState:\tZ" not in one.do("sh", "-c", "cat /proc/[0-9]*/status || true")
    check_ends(lab, "one")


def test_refusals_are_one_line(engine: EngineOfTests, labs: list[BootedLab], tmp_path: Path, name: str) -> None:
    plan = row(name)
    broken = Service("zebra", "daemon", ("sh", "-c", "echo starting; echo line 3: unknown word; exit 1"), {}, "up")
    nobody = replace(plan.spinners[0], cpu=9999)
    missing = Service("ospfd", "daemon", ("/nowhere/ospfd",), {}, None)
    cases = [
        ("service", alone(f"{name}a", broken), "one", "node one: service zebra: it ended: line 3: unknown word"),
        ("cpu", replace(plan, lab=f"{name}b", spinners=(nobody,)), "hop1", "hop1: its link spins on CPU 9999, and "),
        ("node", replace(plan, lab=f"{name}c"), "hop9", f"lab {name}c has no node hop9: nearest are hop1, hop2, hop3"),
        ("package", alone(f"{name}d", missing), "one", "node one: service ospfd: there is no program /nowhere/ospfd "),
    ]
    for case, wanted, node, line in cases:
        lab = BootedLab(engine, tmp_path / case, wanted)
        labs.append(lab)
        assert lab.start(node).status() == 2
        errors = lab.nodes[node].said()[1]
        assert errors.startswith(line) and errors.count("\n") == 1, errors
        if case != "node":
            assert lab.own(node, "failed").read_text() == errors
    lab = labs[0]
    (lab.directory / "plan.json").unlink()
    engine.docker("rm", lab.nodes["one"].name)
    assert lab.start("one").status() == 2
    errors = lab.nodes["one"].said()[1]
    assert errors.startswith("/lab/plan.json: ") and "the lab's directory belongs at /lab" in errors, errors
