"""What sockets and IP of hosts drop stands beside the results, in either clock; without drops nothing is said."""

from __future__ import annotations

import re
from pathlib import Path

import orjson
import pytest

from ewan.labs.record import tables
from tests.conftest import Ewan

HEARS_NOTHING = (
    "import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
    "s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096); s.bind((str(), 9000)); time.sleep(2)"
)
SENDS = (
    "import socket, sys, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); time.sleep(1); "
    "[s.sendto(bytes(1000), (sys.argv[1], 9000)) for _ in range(50)]"
)
LARGE = """name: large
lab: {topology: dumbbell, rtt: 20ms, ip: 4, wan: {rate: 100Mbit/s, loss: 2%}}
steps:
  - {name: call, from: left1, to: right1, for: 8s, udp: {rate: 40Mbit/s, size: SIZE}}
"""


@pytest.mark.parametrize(
    "runtime", [pytest.param("virtual", marks=pytest.mark.virtual), pytest.param("netns", marks=pytest.mark.untimed)]
)
def test_a_full_receive_buffer_is_told(ewan: Ewan, tmp_path: Path, name: str, runtime: str) -> None:
    lab = ("dumbbell", "--pairs", "1", "--rtt", "2ms", "--ip", "4", "--name", name, "--runtime", runtime)
    commands = ("--do", f"right1: python3 -c '{HEARS_NOTHING}'", "--do", f"left1: python3 -c '{SENDS}' right1")
    result = ewan("lab", "batch", *lab, *commands, cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    told = re.findall(r"^(\S+) dropped (\d+) datagrams for want of receive buffer \(SO_RCVBUF\)$", result.stdout, re.M)
    assert [node for node, _ in told] == ["right1"] and 40 <= int(told[0][1]) < 50, result.stdout


@pytest.mark.virtual
def test_full_memory_for_fragments_stands_beside_the_results(ewan: Ewan, tmp_path: Path) -> None:
    (tmp_path / "large.scenario.yaml").write_text(LARGE.replace("SIZE", "8000B"))
    result = ewan("run", "large.scenario.yaml", "--runtime", "virtual", cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    line = r"right1 dropped [\d,]+ fragments for want of memory to put them together \(ipfrag_high_thresh\)"
    assert re.search(line, result.stdout), result.stdout
    (experiment,) = (path.parent for path in tmp_path.glob("results/*/summary.json"))
    (run,) = orjson.loads((experiment / "summary.json").read_bytes())["runs"]
    (row,) = tables.read(experiment / "runs/001", "drops").iter_rows(named=True)
    assert run["dropped"] == {"right1": {"IpReasmFails": row["count"]}} and row["count"] > 1000
    assert not (experiment / "runs/001/drops.csv").exists(), "the table has it"
    assert re.search(line, (experiment / "report.html").read_text())


@pytest.mark.virtual
def test_a_run_that_drops_nothing_says_nothing(ewan: Ewan, tmp_path: Path) -> None:
    (tmp_path / "small.scenario.yaml").write_text(LARGE.replace("SIZE", "1000B"))
    result = ewan("run", "small.scenario.yaml", "--runtime", "virtual", cwd=tmp_path)
    assert result.returncode == 0 and "dropped" not in result.stdout, result.stdout + result.stderr
    (experiment,) = (path.parent for path in tmp_path.glob("results/*/summary.json"))
    assert b'"dropped"' not in (experiment / "summary.json").read_bytes()
    assert not (experiment / "runs/001/drops.parquet").exists()


@pytest.mark.virtual
@pytest.mark.parametrize("corrupt, nodes", [("1%", {"r1", "r2"}), ("0%", set())])
def test_a_certificate_has_what_hosts_dropped_while_it_was_measured(
    ewan: Ewan, tmp_path: Path, corrupt: str, nodes: set[str]
) -> None:
    (tmp_path / "small.lab.yaml").write_text(
        f"topology: dumbbell\nrtt: 2ms\nwan: {{rate: 10Mbit/s, corrupt: {corrupt}}}\n"
    )
    result = ewan("lab", "small.lab.yaml", "--runtime", "virtual", cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    (certificate,) = (orjson.loads(path.read_bytes()) for path in tmp_path.glob("results/*/certificate.json"))
    assert nodes <= certificate.get("dropped", {}).keys()
    assert ("dropped" in certificate) == bool(nodes) == ("while the lab was measured" in result.stdout)


SENT_ON = """name: sent-on
lab: {topology: {dumbbell: {pairs: 1}}, rtt: RTT, dither: 0, ip: 4, wan: {rate: 10Mbit/s, buffer: 1000pkt}}
steps: [{name: call, from: left1, to: right1, for: 1s, udp: {interval: 4ms, size: 1000B}}]
events: [EVENTS]
metrics: [udp loss]
"""


@pytest.mark.virtual
@pytest.mark.parametrize(
    "rtt, events, lost",
    [
        ("12s", "", "0.0000"),
        ("20ms", "{at: 900ms, link: core, delay: 800ms}", "0.0000"),
        ("20ms", "{at: 300ms, link: core, down: true}, {at: 700ms, link: core, up: true}", "40.80"),
    ],
)
def test_packets_on_their_way_are_no_losses_and_what_routers_drop_is_told(
    ewan: Ewan, tmp_path: Path, rtt: str, events: str, lost: str
) -> None:
    """A link that goes down loses what is on it, here two packets, and a router has no use for what comes then."""
    (tmp_path / "on.scenario.yaml").write_text(SENT_ON.replace("RTT", rtt).replace("EVENTS", events))
    result = ewan("run", "on.scenario.yaml", "--runtime", "virtual", cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(rf"udp loss \(%\)\s+{lost}", result.stdout), result.stdout
    told = re.findall(r"^(\S+) dropped (.*) packets at an interface that was down", result.stdout, re.M)
    assert told == ([("r1", "100")] if "down" in events else [])


@pytest.mark.virtual
def test_what_ip_and_udp_refuse_is_told(ewan: Ewan, tmp_path: Path) -> None:
    lab = tmp_path / "damaged.lab.yaml"
    lab.write_text("topology: {dumbbell: {pairs: 1}}\nrtt: 2ms\nip: 4\nwan: {rate: 100Mbit/s, corrupt: 50%}\n")
    pings = "ping -q -c 40 -i 0.01 "
    steps = [f"left1: sh -c '{pings} -s 1400 right1; {pings} 10.99.0.9; true'", f"left1: python3 -c '{SENDS}' r1"]
    words = [word for step in steps for word in ("--do", step)]
    result = ewan("lab", "batch", str(lab), "--runtime", "virtual", *words, cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "r1 dropped 40 packets to where they had no route (InNoRoutes)" in result.stdout
    assert "r1 dropped 50 datagrams for a port that no program had open (UdpNoPorts)" in result.stdout
    assert re.search(r"right1 dropped \d+ ICMP messages that had been damaged on their way", result.stdout)
