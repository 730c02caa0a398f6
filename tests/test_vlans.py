"""VLANs on the wire, in all runtimes by the same commands: a trunk carries tags, hosts of different VLANs do not hear
each other, and the router on a stick joins them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ewan
from tests.container_engine.fixtures import EngineOfTests

CAMPUS = Path(__file__).parents[1] / "labs/library/campus.lab.yaml"
FULL, TAG = 1538, 4
SECONDS = 5
"""How long each capture lasts; what it is to see is sent one second after its start."""
DUMP = f"timeout --preserve-status -s INT {SECONDS} tcpdump -l -e -n -i"
SHOUT = 'ping -b -q -c 3 -i 0.3 -W 1 $(ip -4 -o addr show eth0 | grep -o "brd [0-9.]*" | cut -c5-); true'
"""To the broadcast address of the own network, from which no answer comes."""
CAPTURES = {"s2": "eth3", "r1": "eth0", "staff2": "eth0", "guest1": "eth0", "guest2": "eth0", "printer": "eth0"}
"""The trunk from both of its ends, and the hosts' wires."""


@dataclass(frozen=True)
class Said:
    """What the commands of a run printed."""

    directory: Path
    document: dict[str, Any]

    def by(self, node: str, words: str) -> str:
        """What the command of a node with these words printed."""
        (out,) = [
            each["out"]
            for each in self.document["commands"]
            if each["node"] == node and words in " ".join(each["argv"])
        ]
        return Path(self.directory, self.document["directory"], out).read_text()


def run(ewan: Ewan, tmp_path: Path, runtime: str, *more: str) -> Said:
    """The campus with captures on its wires, pings within a VLAN and across, and broadcasts in one VLAN."""
    commands = [f"{node} at 1s: {DUMP} {interface}" for node, interface in CAPTURES.items()]
    commands += [
        f"staff1 at 2s: ping -{family} -c 3 -i 0.2 {sink}" for family in (4, 6) for sink in ("staff2", "printer")
    ]
    commands += [f"staff1 at 3s: ping -{family} -c 3 -i 0.2 guest2" for family in (4, 6)]
    commands.append(f"staff1 at 2s: sh -c '{SHOUT}'")
    words = [word for command in commands for word in ("--do", command)]
    result = ewan("lab", "batch", str(CAMPUS), "--runtime", runtime, "--json", *words, *more, cwd=tmp_path, timeout=240)
    assert result.returncode == 0, result.stdout + result.stderr
    return Said(tmp_path, json.loads(result.stdout))


def echoes(capture: str, vlan: int | None) -> int:
    """Echo requests of a capture, with the tag of a VLAN or without one."""
    lines = [line for line in capture.splitlines() if re.search(r"echo request", line)]
    return sum((f" vlan {vlan}," in line) if vlan else (" vlan " not in line) for line in lines)


def check(said: Said) -> None:
    """Tags are on the trunk alone, and VLANs do not hear each other."""
    for family in (4, 6):
        assert said.by("staff1", f"ping -{family} -c 3 -i 0.2 staff2").count("ttl=64") == 3, "no router within a VLAN"
        assert said.by("staff1", f"ping -{family} -c 3 -i 0.2 printer").count("ttl=64") == 3
        assert said.by("staff1", f"ping -{family} -c 3 -i 0.2 guest2").count("ttl=63") == 3, "one router between two"
    captures = {node: said.by(node, "tcpdump") for node in CAPTURES}
    # To staff2 and the printer, three of each family, and three broadcasts; to guest2, six in VLAN 20 on the way back.
    assert echoes(captures["s2"], 10) == 15 and echoes(captures["s2"], 20) == 6, captures["s2"]
    assert echoes(captures["s2"], None) == 0
    # One port: what r1 sends on came in there with another tag. It hears the broadcasts of VLAN 10.
    assert echoes(captures["r1"], 10) == 9 and echoes(captures["r1"], 20) == 6, captures["r1"]
    assert echoes(captures["printer"], 10) == 9 and echoes(captures["printer"], None) == 0
    assert echoes(captures["staff2"], None) == 9 and " vlan " not in captures["staff2"]
    assert echoes(captures["guest2"], None) == 6 and " vlan " not in captures["guest2"]
    assert echoes(captures["guest1"], None) == 0, captures["guest1"]
    heard = {node for node in CAPTURES if "ff:ff:ff:ff:ff:ff" in captures[node] and "echo request" in captures[node]}
    assert heard == {"s2", "r1", "staff2", "printer"}


@pytest.mark.parametrize(
    "runtime",
    [pytest.param("virtual", marks=pytest.mark.virtual), pytest.param("netns", marks=pytest.mark.untimed)],
)
def test_tags_are_on_the_trunk_alone_and_vlans_do_not_hear_each_other(ewan: Ewan, tmp_path: Path, runtime: str) -> None:
    check(run(ewan, tmp_path, runtime))


@pytest.mark.containers
def test_in_containers_too(engine: EngineOfTests, ewan: Ewan, tmp_path: Path) -> None:
    check(run(ewan, tmp_path, "containerlab"))


def rows(certificate: dict[str, Any], link: str) -> dict[str, dict[str, Any]]:
    return {row["quantity"]: row for row in certificate["rows"] if row["link"] == link}


@pytest.mark.virtual
def test_virtual_trunks_are_exact_tags_included(ewan: Ewan, tmp_path: Path) -> None:
    result = ewan("lab", str(CAMPUS), "--runtime", "virtual", "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    certificate = json.loads(result.stdout)
    uplink = rows(certificate, "uplink")
    assert uplink["rate"]["measured"] == pytest.approx(50e6, rel=1e-6)
    assert uplink["queue limit"]["configured"] == 100 * (FULL + TAG)
    # A small packet takes its time at the host's card without a tag, on the trunk and on the stick with one.
    small = 100 + 38
    wire_ns = small * 8 / 0.1 + (small + TAG) * 8 / 0.05 + (small + TAG) * 8 / 0.1
    assert uplink["delay min"]["configured"] == pytest.approx(wire_ns)
    assert wire_ns <= uplink["delay min"]["measured"] < wire_ns + 20e3
    pair = rows(certificate, "staff1 to staff2")
    assert pair["path MTU"]["measured"] == 1500
    assert pair["TCP goodput"]["measured"] == pytest.approx(50e6 * 1448 / (FULL + TAG), rel=0.03)


@pytest.mark.virtual
def test_virtual_routers_of_a_protocol_take_vlans_as_their_own(ewan: Ewan, tmp_path: Path) -> None:
    """OSPF announces the VLANs' subnets, and convergence follows hops through switches within one VLAN."""
    (tmp_path / "ospf.lab.yaml").write_text(CAMPUS.read_text() + "routing: ospf\n")
    words = ("--do", "server: ping -4 -c 3 -i 0.1 printer", "--do", "server: ping -6 -c 3 -i 0.1 guest2")
    result = ewan("lab", "batch", "ospf.lab.yaml", "--runtime", "virtual", "--json", *words, cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    said = Said(tmp_path, json.loads(result.stdout))
    assert said.by("server", "ping -4").count("ttl=62") == said.by("server", "ping -6").count("ttl=62") == 3


MIXED = """
topology:
  graph:
    hosts: [plain, native, tagged, far, shop, guest]
    switches: [s0, s1, s2]
    routers: [r0, r1, r2]
    links:
      - {between: [r0, r1], delay: 3ms, rate: 50Mbit/s}
      - {between: [r2, r1], delay: 1ms, rate: 50Mbit/s}
      - {between: [plain, r0]}                    # a router with a stick and a host of its own
      - {between: [s0, r0], vlan: 7, trunk: [8]}
      - {between: [s0, s2], trunk: [7, 8]}
      - {between: [native, s0], vlan: 7}
      - {between: [tagged, s0], trunk: [8]}
      - {between: [guest, s2], vlan: 8}
      - {between: [s1, r1]}                       # a switch of which nothing is said
      - {between: [far, s1], delay: 2ms}
      - {between: [shop, r2]}
access: {rate: 100Mbit/s}
"""
MIXED_MS = {"plain": 0, "native": 0, "tagged": 0, "guest": 0, "far": 10, "shop": 8}
"""The RTT of each host and the router r0."""


@pytest.mark.virtual
def test_virtual_sticks_plain_links_and_switches_in_one_lab(ewan: Ewan, tmp_path: Path) -> None:
    """Each host reaches all others in both families, at the RTT of the links between them."""
    (tmp_path / "mixed.lab.yaml").write_text(MIXED)
    commands = []
    for number, source in enumerate(MIXED_MS):
        pings = "; ".join(
            f"echo {sink}; ping -{family} -q -n -c 2 -i 0.1 -W 2 {sink}"
            for sink in MIXED_MS
            for family in (4, 6)
            if sink != source
        )
        commands += ["--do", f"{source} at {5 * number}s: sh -c '{pings}'"]
    result = ewan("lab", "batch", "mixed.lab.yaml", "--runtime", "virtual", "--json", *commands, cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    said = Said(tmp_path, json.loads(result.stdout))
    for source in MIXED_MS:
        told = said.by(source, "ping")
        assert told.count(" 2 received") == 2 * (len(MIXED_MS) - 1), told
        for sink, answer in re.findall(r"^(\w+)\nPING.*?= ([0-9.]+)/", told, re.DOTALL | re.MULTILINE):
            away = MIXED_MS[source] + MIXED_MS[sink] - (12 if {source, sink} == {"far", "shop"} else 0)
            assert away <= float(answer) < away + 1, (source, sink, answer)
