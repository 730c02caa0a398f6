"""Switched access networks with Open vSwitch in both clocks: hosts of one network talk, and the port to the router is
the bottleneck: its rate, what its queue holds, what it drops.

Live: Open vSwitch in user space, at rates that it carries on a busy machine. Virtual: the kernel's datapath, exact.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ewan

pytestmark = pytest.mark.virtual

FRAME, PAYLOAD = 1538, 1472
"""Bytes of a full packet on the wire, and of its UDP payload."""
QUEUE_PACKETS = 50
MOST_RTT_MS = {"netns": 30, "virtual": 23}
"""Live: two switches in user space, each way; virtual: dither at both hosts. The core alone makes 20."""
PORT_BPS = {"netns": 2_000_000, "virtual": 10_000_000}
PROBLEM = "forwards in user space here, which is slow"


def described(directory: Path, name: str, port_bps: int, queue_packets: int = QUEUE_PACKETS) -> str:
    """The file of a lab: three hosts on either side, whose cards are faster than the ports of their switches."""
    file = directory / f"{name}.lab.yaml"
    file.write_text(
        "topology: {dumbbell: {pairs: 3}}\nrtt: 20ms\nwan: {rate: 1Gbit/s}\n"
        f"access: {{rate: 100Mbit/s, switch: {{ovs: {{rate: {port_bps}bit/s, buffer: {queue_packets}pkt}}}}}}\n"
    )
    return str(file)


def leftovers(lab: str) -> list[str]:
    """Namespaces of the lab, and programs that run below its directory."""
    found = [path.name for path in Path("/run/netns").glob(f"ewan-{lab}-*")]
    ovs = subprocess.run(["pgrep", "-af", f"ovs.*/{lab}/nodes"], capture_output=True, text=True)
    return found + ovs.stdout.splitlines()


def rtts_ms(ping: str) -> list[float]:
    return [float(value) for value in re.findall(r"time=([\d.]+) ms", ping)]


def overload(number: int, port_bps: int) -> tuple[str, ...]:
    """Twice the port's rate from one host, in full packets, for 4 s; the receiver counts."""
    command = f"iperf3 -4 -u -c right{number} -b {2 * port_bps} -l {PAYLOAD} -t 4 --json"
    return "--service", f"right{number}: iperf3 -s", "--do", f"left{number} at 5s: {command}"


@pytest.mark.parametrize("runtime", [pytest.param("netns", marks=pytest.mark.live), "virtual"])
def test_the_switchs_port_is_the_bottleneck_of_hosts_that_talk_through_it(
    ewan: Ewan, tmp_path: Path, name: str, runtime: str
) -> None:
    port_bps = PORT_BPS[runtime]
    lab = described(tmp_path, name, port_bps)
    result = ewan(
        *("lab", "batch", lab, "--runtime", runtime, "--json"),
        *("--do", "left1: ping -4 -c 5 -i 0.2 left2", "--do", "left1: ping -6 -c 5 -i 0.2 left3"),
        *("--do", "left1: ping -4 -c 20 -i 0.1 right1"),
        *overload(1, port_bps),
        *overload(2, port_bps),
        *("--do", "sw-r1 at 8s: tc -s qdisc show dev eth0"),
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    document = json.loads(result.stdout)

    def said(words: str) -> str:
        """What the command with these words printed."""
        (out,) = [each["out"] for each in document["commands"] if words in " ".join(each["argv"])]
        return Path(tmp_path, document["directory"], out).read_text()

    for neighbour in ("ping -4 -c 5 -i 0.2 left2", "ping -6 -c 5 -i 0.2 left3"):
        answers = said(neighbour)
        assert len(rtts_ms(answers)) == 5, answers
        assert answers.count("ttl=64") == 5, "no router between hosts of one network"
        assert min(rtts_ms(answers)) < 5
    far = said("ping -4 -c 20 -i 0.1 right1")
    assert far.count("ttl=62") == 20
    assert 20 <= min(rtts_ms(far)) < MOST_RTT_MS[runtime]

    received = [json.loads(said(f"-4 -u -c right{number} "))["end"]["sum_received"] for number in (1, 2)]
    total = sum(each["bits_per_second"] for each in received)
    assert total == pytest.approx(port_bps * PAYLOAD / FRAME, rel=0.03)
    assert all(each["lost_percent"] > 25 for each in received), "two sources of twice the rate share it"

    counters = said("tc -s qdisc")
    assert max(int(dropped) for dropped in re.findall(r"dropped (\d+)", counters)) > 300
    waiting = max(int(packets) for packets in re.findall(r"backlog \S+ (\d+)p", counters))
    # One may be in service, and one have just left.
    assert QUEUE_PACKETS - 5 <= waiting <= QUEUE_PACKETS + 1, counters
    if runtime == "netns":
        assert leftovers(name) == []


def rows(certificate: dict[str, Any], link: str) -> dict[str, dict[str, Any]]:
    return {row["quantity"]: row for row in certificate["rows"] if row["link"] == link}


@pytest.mark.live
def test_live_the_port_is_measured_like_a_link(ewan: Ewan, tmp_path: Path, name: str) -> None:
    # More than Open vSwitch's sockets hold of themselves, which is 92 packets.
    port_bps, queue_packets = 4_000_000, 200
    lab = described(tmp_path, name, port_bps, queue_packets)
    result = ewan("lab", lab, "--runtime", "netns", "--json", cwd=tmp_path)
    try:
        assert result.returncode in (0, 1), result.stderr
        for switch in ("sw-r1", "sw-r2"):
            port = rows(json.loads(result.stdout), switch)
            assert port["rate"]["measured"] == pytest.approx(port_bps, rel=0.005), port["rate"]
            assert port["queue limit"]["measured"] == pytest.approx(queue_packets * FRAME, abs=10 * FRAME)
            assert 0 <= port["delay p50"]["measured"] < 2e6
            assert port["loss"]["measured"] == 0
    finally:
        ewan("down", name)
    assert leftovers(name) == []


@pytest.mark.live
def test_what_a_switch_in_user_space_cannot_carry_is_found_and_named(ewan: Ewan, tmp_path: Path, name: str) -> None:
    if Path("/sys/module/openvswitch").exists():
        pytest.skip("this host's kernel forwards for Open vSwitch, so nothing is slow here")
    file = tmp_path / f"{name}.lab.yaml"
    # A queue that holds out for as long as any pause of the senders: they are no excuse, however fast this host is.
    text = "topology: dumbbell\nrtt: 10ms\naccess: {rate: 10Gbit/s, buffer: 20000pkt, switch: {ovs: {rate: 5Gbit/s}}}\n"
    file.write_text(text)
    result = ewan("lab", str(file), "--runtime", "netns", "--json", cwd=tmp_path)
    try:
        assert result.returncode == 1, result.stdout + result.stderr
        found = [rows(json.loads(result.stdout), switch)["rate"] for switch in ("sw-r1", "sw-r2")]
        assert any(row["verdict"] == "outside" and PROBLEM in row["note"] for row in found), found
        assert not any(row["verdict"] == "ok" for row in found)
    finally:
        ewan("down", name)


def test_virtual_the_port_is_exact_and_the_record_is_the_same_each_time(ewan: Ewan, tmp_path: Path) -> None:
    """The poster's case: senders as fast as the port that they share."""
    text = "topology: {dumbbell: {pairs: 3}}\nrtt: 20ms\nwan: {rate: 10Gbit/s, buffer: 1000pkt}\n"
    text += "access: {rate: 1Gbit/s, buffer: 100pkt, switch: ovs}\n"
    contents = []
    for place in ("first", "second"):
        directory = tmp_path / place
        directory.mkdir()
        (directory / "poster.lab.yaml").write_text(text)
        result = ewan("lab", "poster.lab.yaml", "--runtime", "virtual", "--json", cwd=directory)
        assert result.returncode == 0, result.stdout + result.stderr
        (run,) = (directory / "results").iterdir()
        contents.append((run / "certificate.json").read_bytes())
    assert contents[0] == contents[1]
    for switch in ("sw-r1", "sw-r2"):
        port = rows(json.loads(contents[0]), switch)
        assert port["rate"]["measured"] == pytest.approx(1e9, rel=0.02)
        assert port["queue limit"]["measured"] == pytest.approx(100 * FRAME, abs=FRAME)
        # A small packet takes its time on the host's card, and again at the switch's port.
        small = (100 + 38) * 8
        assert port["delay min"]["measured"] >= 2 * small
        assert port["delay min"]["configured"] == 2 * small
