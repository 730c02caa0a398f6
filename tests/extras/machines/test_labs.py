"""Labs over several machines: real sshds in namespaces, real tunnels between them (tests/extras/machines_rig.py)."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import permutations
from pathlib import Path

import dpkt
import pytest
from pcapng import FileScanner, blocks

from ewan.calibration import LiveLab, verify_lab
from ewan.extras.machines.reading import load
from ewan.extras.machines.runtime import ClusterRuntime
from ewan.extras.machines.shares import PORT
from ewan.labs import spec
from ewan.labs.base import codec
from ewan.labs.base.codec import replace
from ewan.labs.capture import bpf, points
from ewan.labs.capture.words import Bounds, CaptureRequest
from ewan.labs.compile import compile
from ewan.labs.link import Change, ConstantDelay
from ewan.labs.plan import Plan
from ewan.labs.record import host_facts
from ewan.labs.routed_paths import RoutedPath, followed
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.binary import node_binary
from ewan.labs.runtime.live import LiveRuntime
from ewan.labs.runtime.requests import LinkSetRequest
from tests.extras.machines_rig import Rig, machines

pytestmark = pytest.mark.live

UNDERLAY_MTU = 1600
"""Full packets of a lab fit into it with what VXLAN adds."""


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with machines(3, mtu=UNDERLAY_MTU) as made:
        yield made


@pytest.fixture(autouse=True)
def inside(rig: Rig) -> Iterator[None]:
    """Each test is where the coordinator is."""
    with rig.inside():
        yield


@pytest.fixture
def runtime(rig: Rig, tmp_path: Path) -> ClusterRuntime:
    return ClusterRuntime(state=tmp_path / "state", cluster=load(rig.file), scheduling="shared")


def plan_for(runtime: ClusterRuntime, topology: str, **settings: str) -> Plan:
    return compile(spec.from_template(topology, settings), runtime.host_facts())


@contextmanager
def up(runtime: ClusterRuntime, plan: Plan) -> Iterator[list[str]]:
    warnings = runtime.up(plan)
    try:
        yield warnings
    finally:
        if plan.lab in runtime.names():
            runtime.down(plan.lab)


def there(rig: Rig, name: str) -> str:
    """What a machine has of labs: namespaces, shares, tunnels, processes; and which ports listen."""
    look = (
        "ls /run/netns /run/ewan-shares 2>/dev/null; ip -d link | grep vxlan; ps -e -o args | grep '[e]wan-node'; "
        "ss -Hltuwn | awk '{print \"listens\", $1, $5}'"
    )
    command = ["nsenter", "-t", str(rig.first(name)), "--net", "--mount", "--pid", "--", "sh", "-c", look]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def settled(rig: Rig, before: dict[str, str]) -> dict[str, str]:
    """What each machine has when it is as before, or after ten seconds: the kernel removes namespaces, and the tunnels
    that end with them, a moment later."""
    end = time.monotonic() + 10
    while (now := {name: there(rig, name) for name in rig.names}) != before and time.monotonic() < end:
        time.sleep(0.1)
    return now


def listening(rig: Rig, name: str) -> set[tuple[str, str]]:
    """Protocols and ports to which a machine listens."""
    lines = [line.split() for line in there(rig, name).splitlines() if line.startswith("listens ")]
    return {(protocol, where.rpartition(":")[2]) for _, protocol, where in lines}


def packets(file: Path) -> list[tuple[str, int, int]]:
    """Of a pcapng: interface, time in ns, sequence number of the echo request."""
    names, found = [], []
    with file.open("rb") as stream:
        for block in FileScanner(stream):
            if isinstance(block, blocks.InterfaceDescription):
                names.append(block.options["if_name"])
            elif isinstance(block, blocks.EnhancedPacket):
                echo = dpkt.ethernet.Ethernet(block.packet_data).data.data.data
                time_ns = (block.timestamp_high << 32) + block.timestamp_low
                found.append((names[block.interface_id], time_ns, int(echo.seq)))
    return found


def ping(
    runtime: ClusterRuntime, capfd: pytest.CaptureFixture[str], lab: str, source: str, sink: str, count: int = 10
) -> dict[str, float]:
    """`received`, and of round trips in ms `min`."""
    runtime.exec(lab, source, ["ping", "-c", str(count), "-i", "0.02", "-W", "2", sink])
    said = capfd.readouterr().out
    received = int(re.findall(r"(\d+) received", said)[0])
    shortest = re.findall(r"min/avg/max/mdev = ([\d.]+)/", said)
    return {"received": received, "min": float(shortest[0]) if shortest else 0.0}


def test_a_star_over_three_machines_is_one_lab_and_leaves_nothing(
    rig: Rig, runtime: ClusterRuntime, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    before = {name: there(rig, name) for name in rig.names}
    plan = plan_for(runtime, "star", arms="30", rtt="20ms", rate="100Mbit/s", name="wide")
    with up(runtime, plan):
        status = runtime.status("wide")
        assert status.state == "complete", status.note
        on: dict[str, list[str]] = {}
        for node in status.nodes:
            on.setdefault(str(node.machine), []).append(node.name)
            assert node.up, node
        assert on.keys() == set(rig.names) and max(map(len, on.values())) <= 26
        hosts = {name: [node for node in nodes if node.startswith("host")] for name, nodes in on.items()}
        # From every machine to every other, and within it.
        for source in rig.names:
            for sink in rig.names:
                found = ping(runtime, capfd, "wide", hosts[source][0], hosts[sink][-1], 3)
                assert found["received"] > 0, (source, sink)  # three machines' links share one CPU here
                assert 19.9 <= found["min"] <= 60.0, (source, sink, found)
        for name in rig.names:
            said = there(rig, name)
            assert said.count("ewan-wide-") == len(on[name]) and "vxlan" not in said, "nothing is in the host's own"
        for name in rig.names:
            assert listening(rig, name) == {("tcp", "22"), ("udp", str(PORT))}
        source, sink = hosts["one"][0], hosts["three"][-1]
        taps = [*points.taps(plan, source), *points.taps(plan, sink)]
        wanted = CaptureRequest(
            tuple(taps), Bounds(), bpf.compiled("icmp[icmptype] == icmp-echo"), str(tmp_path / "f.pcapng")
        )
        with closing(runtime.capture("wide", wanted)) as capture:
            runtime.exec("wide", source, ["ping", "-4", "-c", "5", "-i", "0.02", "-W", "2", sink])
            capture.end()
            counts = capture.wait()
        caught = packets(tmp_path / "f.pcapng")
        assert counts["end"] == "signal" and counts["kept"] == len(caught) >= 2
        assert [time_ns for _, time_ns, _ in caught] == sorted(time_ns for _, time_ns, _ in caught)
        left = {seq: time_ns for name, time_ns, seq in caught if name.startswith(source)}
        late = [time_ns - left[seq] for name, time_ns, seq in caught if name.startswith(sink)]
        assert late and all(9e6 < each < 60e6 for each in late), "10 ms, by the clock of one"
        with runtime.samples("wide") as samples:
            told = samples.now()
        lines = [line for each in told.samples for line in each["ewan_up"].splitlines()]
        assert not told.silent and len(lines) == 30
        assert 'ewan_up{machine="one",lab="wide",link="arm1",backend="user"} 1' in lines
        spinners = "".join(each["ewan_spinner_shared"] for each in told.samples)
        assert {*re.findall(r'spinner="(\d+)"', spinners)} == {"0", "1", "2"}, "as the whole lab numbers them"
        assert runtime.exec("wide", "host1", ["sh", "-c", "exit 7"]) == 7
        assert runtime.exec("wide", "host30", ["getent", "hosts", "host1"]) == 0, "all names are known everywhere"
        with pytest.raises(LabError, match="lab wide exists already"):
            runtime.up(plan)
    capfd.readouterr()
    # The kernel ends namespaces, and tunnels with them, when it comes to it.
    assert settled(rig, before) == before


def test_a_tunnels_delay_is_taken_out_of_the_links_also_after_a_change(
    rig: Rig, runtime: ClusterRuntime, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        rig.delay(name, 2)
    try:
        plan = plan_for(runtime, "dumbbell", rtt="100ms", rate="100Mbit/s", name="far")
        with up(runtime, plan):
            (tunnel,) = runtime.record("far").tunnels
            ways = tunnel.there, tunnel.back
            assert all(1_900_000 < way.min_ns < 2_600_000 for way in ways), tunnel
            # RTTs are free of the comparison of the clocks. The shortest has the tunnel's shortest delays, in place of
            # the medians that the link leaves out.
            early = sum(way.p50_ns - way.min_ns for way in ways) / 1e6

            def shortest(source: str, sink: str, expected: float) -> float:
                """Of the round trips until one is as it should be: a busy machine makes them longer, never shorter."""
                found = [ping(runtime, capfd, "far", source, sink, 25)["min"] + early]
                while min(found) > expected + 2.5 and len(found) < 8:
                    found.append(ping(runtime, capfd, "far", source, sink, 25)["min"] + early)
                return min(found)

            for source, sink in (("left1", "right1"), ("right1", "left1")):
                assert 99.5 < shortest(source, sink, 100) < 102.5, "4 ms more without it"
            runtime.control("far", "core", LinkSetRequest.of(Change(delay=ConstantDelay(30_000_000)), "core", "both"))
            assert 59.5 < shortest("left1", "right1", 60) < 62.5
        plan = plan_for(runtime, "dumbbell", rtt="3ms", rate="100Mbit/s", name="near")
        with pytest.raises(
            LabError, match=r"link core delays 1\.5ms forward, and the tunnel from one to two already takes"
        ):
            runtime.up(plan)
        assert runtime.names() == []
    finally:
        for name in ("one", "two"):
            rig.delay(name, 0)


def test_a_lab_over_machines_is_verified_and_one_way_delays_carry_the_clocks(rig: Rig, runtime: ClusterRuntime) -> None:
    plan = plan_for(runtime, "dumbbell", rtt="60ms", rate="10Mbit/s", name="known")
    with up(runtime, plan):
        up_now = runtime.load("known").plan
        certificate = verify_lab(up_now, LiveLab(runtime, node_binary()))
    rows = {(row.link, row.direction, row.quantity): row for row in certificate.rows}
    for direction in ("forward", "backward"):
        delay = rows["core", direction, "delay p50"]
        assert delay.measured is not None and delay.measured > 29e6, "later where machines' links share one CPU"
        assert delay.uncertainty is not None
        clocks = delay.uncertainty.components["clocks of two machines"]
        assert 0 < clocks < 1e6, "half of the shortest round trip of the tunnel bounds it"
        assert rows["core", direction, "loss"].measured == 0.0
    assert rows["left1 to right1", "", "path MTU"].measured == 1500
    assert rows["left1 to right1", "", "TCP goodput"].measured is not None
    assert certificate.host.versions["runtime"] == "cluster" and "tunnel one – two" in certificate.host.versions
    assert certificate.machines.keys() == {"one", "two"}
    for each in certificate.machines.values():
        assert each.facts == replace(host_facts({}), versions={}), "they are this machine"
        assert each.load.cpus == each.facts.cpus and set(each.host_cpus) <= set(range(each.facts.cpus))
    assert [each.link_cpus for each in certificate.machines.values()].count(()) == 1, "one of them has the link"
    assert codec.data_of(certificate.machine).keys() == {"disturbed"}, "nothing of where the user types"


def test_ospf_finds_its_way_over_machines_and_around_a_stretched_link_that_is_down(
    runtime: ClusterRuntime, capfd: pytest.CaptureFixture[str]
) -> None:
    plan = plan_for(runtime, "ring", routers="4", rtt="40ms", rate="100Mbit/s", routing="ospf", name="round")
    with up(runtime, plan):
        found = runtime.converge("round", 60)
        assert found is not None and found.converged, found
        record = runtime.record("round")
        link = record.stretched[0].link
        hosts = [node.name for node in plan.nodes if node.kind == "host"]

        def ways() -> list[RoutedPath]:
            told = runtime.routes("round")
            return [followed(plan, told, source, sink) for source, sink in permutations(hosts, 2)]

        before = ways()
        assert any(step.link == link for way in before for step in way.steps), before
        down = runtime.carrier("round", link, up=False)
        assert down.recovered_ns is not None and not down.cut_off, down
        for sink in hosts[1:]:
            assert ping(runtime, capfd, "round", hosts[0], sink, 3)["received"] == 3
        around = ways()
        assert not any(way.broken for way in [*before, *around]), around
        assert all(step.link != link for way in around for step in way.steps), around
        assert runtime.status("round").links_down == (link,)
        back = runtime.carrier("round", link, up=True)
        assert back.recovered_ns is not None and not back.unreachable, back


def test_a_network_that_is_too_narrow_for_a_labs_packets_is_said_before_anything_is_made(tmp_path: Path) -> None:
    with machines(2, mtu=1400) as narrow, narrow.inside():
        runtime = ClusterRuntime(state=tmp_path / "state", cluster=load(narrow.file), scheduling="shared")
        before = {name: there(narrow, name) for name in narrow.names}
        plan = plan_for(runtime, "dumbbell", rtt="20ms", rate="100Mbit/s", name="narrow")
        with pytest.raises(LabError, match=r'of 1500 bytes, and .* of 1350 at most: write "mtu: 1350"'):
            runtime.up(plan)
        assert settled(narrow, before) == before and runtime.names() == []
        small = plan_for(runtime, "dumbbell", rtt="20ms", rate="100Mbit/s", name="narrow", mtu="1350")
        with up(runtime, small):
            for size, status in ((1322, 0), (1323, 1)):
                command = ["ping", "-c", "1", "-W", "2", "-M", "do", "-s", str(size), "-4", "right1"]
                assert runtime.exec("narrow", "left1", command) == status, size


def test_packets_that_a_tunnel_loses_are_said(rig: Rig, runtime: ClusterRuntime) -> None:
    plan = plan_for(runtime, "dumbbell", rtt="20ms", rate="100Mbit/s", name="lossy")
    rig.lose(0.1, udp_port=14789)
    try:
        with up(runtime, plan) as warnings:
            assert any(re.search(r"the tunnel from one to two lost \d+ of 500 packets", line) for line in warnings)
    finally:
        rig.lose_none()


def test_a_machine_that_dies_is_named_and_its_share_removed_when_it_is_back(
    rig: Rig, runtime: ClusterRuntime, tmp_path: Path
) -> None:
    text = (
        "{name: mortal, topology: {star: {arms: 6}}, rtt: 20ms, nodes: {host3: {env: {COLOUR: red}, exec:"
        " ['sh -c \"sleep 600 & echo $COLOUR; cat /proc/net/dev\"', LAST]}}}"
    )
    file = Path("mortal.lab.yaml")
    with pytest.raises(LabError, match="lab mortal: host3: exec false: ended with status 1"):
        runtime.up(compile(spec.parse(text.replace("LAST", "'false'"), file), runtime.host_facts()))
    assert runtime.names() == [] and not any("mortal" in there(rig, name) for name in rig.names)
    plan = compile(spec.parse(text.replace("LAST", "'true'"), file), runtime.host_facts())
    runtime.up(plan)
    said = (tmp_path / "state/mortal/nodes/host3/exec-1.log").read_text()
    assert said.startswith("red\n") and "eth0" in said, "of the node itself, with its variables"
    rig.kill("three")
    # As another command would find it.
    other = ClusterRuntime(state=tmp_path / "state", connect_s=2.0)
    status = other.status("mortal")
    assert status.state == "incomplete" and "machine three" in status.note, status.note
    with pytest.raises(
        LabError, match=r"machine three: .*: what lab mortal has there is left: `ewan down mortal` again"
    ):
        other.down("mortal")
    for name in ("one", "two"):
        assert "mortal" not in there(rig, name)
    rig.revive("three")
    assert LiveRuntime(state=tmp_path / "state").names() == ["mortal"]
    later = ClusterRuntime(state=tmp_path / "state")
    removed = later.down("mortal")
    assert removed.namespaces == () and later.names() == []
