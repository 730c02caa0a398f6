"""A lab that containerlab deployed by hand, adopted, and used as an engineer uses it: one deployment for all of it.

A management network is at eth0 of every node, the lab's own interfaces follow. Routers run OSPF, hosts have switches.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import Ewan
from tests.container_engine.fixtures import EngineOfTests
from tests.containers.test_runtime import surroundings
from tests.test_inside import packets

pytestmark = pytest.mark.untimed

DELAY_NS = 10_000_000
DESCRIPTION = """
topology: dumbbell
rtt: 20ms
routing: ospf
ip: 4
wan: {rate: 50Mbit/s}
access: {switch: ovs}
containers: {management: true}
"""
TYPED = (
    *("traceroute -n -m 1 -q 1 right1", "mtr --version", "curl --version", "nc -h", "dig -v", "socat -V", "arping -V"),
    *("tcpdump --version", "ssh -V", "less --version"),
)


@dataclass(frozen=True)
class Adopted:
    """A lab that is deployed and adopted: its name, its file, the engine."""

    name: str
    file: Path
    engine: EngineOfTests
    ewan: Ewan

    def do(self, node: str, command: str) -> str:
        done = self.engine.docker("exec", f"ewan-{self.name}-{node}", *shlex.split(command))
        assert done.returncode == 0, f"{node}: {command}: {done.stdout}{done.stderr}"
        return done.stdout

    def pinging(self, node: str, sink: str) -> None:
        self.engine.docker("exec", "--detach", f"ewan-{self.name}-{node}", "ping", "-i", "0.1", "-c", "100", sink)


def clab(engine: EngineOfTests, file: Path, *words: str) -> tuple[int, str]:
    done = engine.clab(*words, cwd=file.parent, timeout=240)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def lab(engine: EngineOfTests, ewan: Ewan, state: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adopted]:
    folder = tmp_path_factory.mktemp("adopted")
    name = f"ad{os.getpid() % 100000}"
    description = folder / f"{name}.lab.yaml"
    description.write_text(DESCRIPTION)
    compiled = ewan("lab", "compile", str(description), "-o", str(folder / "out"))
    assert compiled.returncode == 0, compiled.stderr
    file = folder / "out" / f"{name}.clab.yml"
    before = surroundings(engine, state, name)
    written = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    try:
        early = ewan("lab", "adopt", str(file))
        assert early.returncode == 2 and f"lab {name} is not deployed from this file" in early.stderr
        status, said = clab(engine, file, "deploy", "-t", file.name)
        assert status == 0, said
        adopted = ewan("lab", "adopt", str(file))
        assert adopted.returncode == 0, adopted.stderr
        yield Adopted(name, file, engine, ewan)
        # One of them is gone before: `down` removes what there is.
        engine.docker("rm", "--force", f"ewan-{name}-right1")
        down = ewan("down", name, timeout=200)
        assert down.returncode == 0, down.stderr
        assert surroundings(engine, state, name) == before
        left = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        assert left == written, left.keys() ^ written.keys()
    finally:
        clab(engine, file, "destroy", "-t", file.name, "--cleanup")


def test_ewan_knows_it(lab: Adopted) -> None:
    (status,) = json.loads(lab.ewan("ps", lab.name, "--json").stdout)
    assert (status["state"], status["runtime"]) == ("complete", "containerlab")
    assert all(node["up"] and node["pids"] for node in status["nodes"])
    changed = lab.ewan("lab", "set", "--lab", lab.name, "core", "rate=40Mbit/s")
    assert changed.returncode == 0, changed.stderr
    assert "rate=40Mbit/s" in lab.ewan("ps", lab.name).stdout
    assert lab.ewan("lab", "set", "--lab", lab.name, "core", "rate=50Mbit/s").returncode == 0
    seen = json.loads(lab.ewan("lab", "watch", lab.name, "--once", "--json").stdout)
    assert {each["link"] for each in seen["links"]} == {"core"}
    assert lab.ewan("lab", "exec", "--lab", lab.name, "left1", "--", "sh", "-c", "exit 7").returncode == 7


def test_it_is_verified(lab: Adopted) -> None:
    told = lab.ewan("lab", "verify", lab.name, "--json", timeout=200)
    assert told.returncode in (0, 1), told.stderr  # other work on this machine may disturb its links
    rows: list[dict[str, Any]] = json.loads(told.stdout)["rows"]
    assert {"delay p50", "rate", "base RTT"} <= {row["quantity"] for row in rows}
    for row in rows:
        if (row["quantity"], row["link"]) == ("delay p50", "core"):
            assert 0 <= row["measured"] - row["configured"] <= 20e6, row


def test_its_links_are_captured_on_both_sides(lab: Adopted, tmp_path: Path) -> None:
    lab.pinging("left1", "right1")
    file = tmp_path / "core.pcapng"
    words = ("lab", "capture", "--lab", lab.name, "core:forward", "icmp", "-c", "8", "-w", str(file))
    done = lab.ewan(*words, timeout=60)
    assert done.returncode == 0, done.stderr
    found = packets(file)
    entered = {data[34:]: time_ns for name, _, time_ns, data in found if name == "core:r1"}
    delays = [when - entered[data[34:]] for name, _, when, data in found if name == "core:r2" and data[34:] in entered]
    assert delays and all(DELAY_NS <= delay < DELAY_NS + 50_000_000 for delay in delays), delays
    listed = lab.ewan("lab", "capture", "--lab", lab.name, "left1:eth1", "icmp", "-c", "2", timeout=60)
    assert listed.stdout.count(" left1:eth1 ") == 2, listed.stdout + listed.stderr


def test_services_tools_need_no_options(lab: Adopted) -> None:
    for told in (
        lab.do("r1", "vtysh -c 'show ip ospf neighbor'"),
        lab.ewan("lab", "exec", "--lab", lab.name, "r1", "--", "vtysh", "-c", "show ip ospf neighbor").stdout,
    ):
        assert "Full/" in told, told
    assert "OSPF Routing Process" in lab.do("r2", "vtysh -c 'show ip ospf'")
    for told in (
        lab.do("sw-r1", "ovs-vsctl show"),
        lab.ewan("lab", "exec", "--lab", lab.name, "sw-r1", "--", "ovs-vsctl", "show").stdout,
    ):
        assert "Bridge switch" in told and "sw-r1" not in told, told
    bridge = lab.do("sw-r1", "ovs-vsctl list-br").strip()
    assert "n_tables" in lab.do("sw-r1", f"ovs-ofctl show {bridge}")


def test_a_host_has_what_an_engineer_types(lab: Adopted) -> None:
    for command in TYPED:
        lab.do("left1", command)


def test_eth0_is_the_management_network(lab: Adopted) -> None:
    """Of the engine, as elsewhere; names of nodes mean the lab's own addresses, on the interfaces that follow."""
    network = json.loads(lab.engine.docker("network", "inspect", f"ewan-{lab.name}").stdout)[0]
    there = {each["Name"]: each["IPv4Address"].partition("/")[0] for each in network["Containers"].values()}
    for node in ("left1", "r1", "sw-r1", "core"):
        found = json.loads(lab.do(node, "ip -json -4 address show dev eth0"))[0]["addr_info"][0]["local"]
        assert there[f"ewan-{lab.name}-{node}"] == found
    own = json.loads(lab.do("left1", "ip -json -4 address show dev eth1"))[0]["addr_info"][0]["local"]
    assert lab.do("left1", "getent ahostsv4 left1").split()[0] == own
    assert " dev eth1 " in lab.do("left1", "ip -4 route get " + lab.do("left1", "getent ahostsv4 right1").split()[0])


def test_containerlabs_netem_changes_nothing_and_the_file_says_what_does(lab: Adopted) -> None:
    node = ("-n", f"ewan-{lab.name}-left1")
    before = lab.do("left1", "tc qdisc show dev eth1")
    status, said = clab(lab.engine, lab.file, "tools", "netem", "set", *node, "-i", "eth1", "--delay", "50ms")
    assert status != 0, said
    assert lab.do("left1", "tc qdisc show dev eth1") == before
    shown, said = clab(lab.engine, lab.file, "tools", "netem", "show", *node)
    assert shown == 0 and "eth1" in said, said
    assert "then `ewan lab set core delay=80ms`; not by `containerlab tools netem`" in lab.file.read_text()


def test_what_cannot_be_adopted_is_refused_in_one_line(lab: Adopted, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.clab.yml"
    foreign.write_text("name: x\ntopology: {nodes: {a: {kind: linux, image: alpine}}}\n")
    other = tmp_path / "other"
    shutil.copytree(lab.file.parent / lab.name, other / lab.name, ignore=lambda *_: ["nodes", "spinner-0.sock"])
    moved = Path(shutil.copy(lab.file, other))
    older = json.loads((other / lab.name / "plan.json").read_text()) | {"format": "ewan-plan/1"}
    changed = tmp_path / "changed"
    shutil.copytree(other, changed)
    (other / lab.name / "plan.json").write_text(json.dumps(older))
    described = yaml.safe_load(moved.read_text())
    described["topology"]["defaults"]["labels"]["ewan.plan"] = "0" * 64
    (changed / moved.name).write_text(yaml.safe_dump(described))
    cases = {
        str(tmp_path / "none"): "is no file of containerlab",
        str(foreign): "has no plan of ewan's",
        str(moved): "was compiled by another version of ewan",
        str(changed / moved.name): "are of different plans",
        str(lab.file): f"lab {lab.name} is ewan's already",
    }
    for file, said in cases.items():
        refused = lab.ewan("lab", "adopt", file)
        assert refused.returncode == 2 and said in refused.stderr, refused.stderr
        assert len(refused.stderr.splitlines()) == 1
