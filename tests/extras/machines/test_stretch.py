"""What a tunnel between two machines does to packets (`ewan-node stretch`), where it is known what that is.

Two "machines" are network namespaces of this host, so their clocks are one. Between them: a cable, or a lab whose link
delays and drops. Needs root; fails where it is missing.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ewan.generator.traffic_request import addresses_of
from ewan.labs import host
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.compile import compile
from ewan.labs.link import ConstantDelay
from ewan.labs.runtime.netns import NetnsRuntime
from ewan.labs.runtime.tests.lab import BINARY, own_state
from ewan.labs.spec import parse

pytestmark = pytest.mark.live

TAG = f"stretch-test-{os.getpid()}"
MS = NS_PER_SECOND // 1000
BURST_BYTES = 1_000_000


@dataclass(frozen=True)
class Machine:
    """A namespace that stands for a machine, and its address."""

    netns: str
    address: str

    def start(self, role: str, request: str, wrap: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        command = ["ip", "netns", "exec", self.netns, *wrap, str(BINARY), "stretch", role]
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        assert process.stdin is not None
        process.stdin.write(request)
        process.stdin.flush()
        return process


def request(local: Machine, remote: Machine, **other: Any) -> str:
    asked = {
        "format": "ewan-stretch/1",
        "vni": 18,
        "local": local.address,
        "remote": remote.address,
        "port": 4789,
        "mtu": 1450,
        "packets": 100,
        "interval_ns": 2 * MS,
        "rate_bytes": BURST_BYTES,
    }
    return json.dumps(asked | other)


@contextmanager
def answering(machine: Machine, other: Machine, **asked: Any) -> Iterator[subprocess.Popen[str]]:
    """Answers at a machine; all ends well afterwards."""
    with machine.start("answer", request(machine, other, **asked)) as process:
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert ready == '{"ready":true}\n', process.communicate()
        yield process
        assert process.communicate() == ("", "")
        assert process.returncode == 0


def finished(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, ""), err
    found: dict[str, Any] = json.loads(out)
    return found


def refusal(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, len(err.splitlines())) == (2, "", 1), err
    return err.strip()


def measured(here: Machine, there: Machine, **asked: Any) -> dict[str, Any]:
    with answering(there, here, **asked):
        return finished(here.start("measure", request(here, there, **asked)))


def ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


@contextmanager
def joined(mtu: int) -> Iterator[tuple[tuple[Machine, Machine], tuple[Machine, Machine]]]:
    """Two machines with a cable: with their addresses of IPv4, and of IPv6."""
    one, two = f"{TAG}-one", f"{TAG}-two"
    try:
        for netns in one, two:
            ip("netns", "add", netns)
        cable = ["eth0", "mtu", str(mtu)]
        ip("-n", one, "link", "add", *cable, "type", "veth", "peer", "name", *cable, "netns", two)
        for number, netns in enumerate((one, two), 1):
            ip("-n", netns, "address", "add", f"192.0.2.{number}/24", "dev", "eth0")
            ip("-n", netns, "address", "add", f"2001:db8::{number}/64", "dev", "eth0", "nodad")
            ip("-n", netns, "link", "set", "eth0", "up")
        ends4, ends6 = (tuple(Machine(n, f"{net}{k}") for k, n in ((1, one), (2, two))) for net in NETWORKS)
        yield (ends4[0], ends4[1]), (ends6[0], ends6[1])
    finally:
        for netns in one, two:
            subprocess.run(["ip", "netns", "del", netns], check=False)


NETWORKS = ("192.0.2.", "2001:db8::")


@pytest.fixture(scope="module")
def narrow() -> Iterator[tuple[tuple[Machine, Machine], tuple[Machine, Machine]]]:
    """Packets of up to 1400 bytes pass between the machines."""
    with joined(1400) as ends:
        yield ends


@pytest.fixture(scope="module", autouse=True)
def unheard(narrow: tuple[tuple[Machine, Machine], tuple[Machine, Machine]]) -> Iterator[subprocess.Popen[str]]:
    """Asks where nobody answers: it waits for 10 s, beside the other tests."""
    (one, two), _ = narrow
    with one.start("measure", request(one, two, vni=99, port=4790)) as process:
        yield process
        process.kill()


@pytest.mark.parametrize(("family", "largest"), [(0, 1350), (1, 1330)])
def test_a_cable_is_short_loses_nothing_and_carries_so_much(
    narrow: tuple[tuple[Machine, Machine], tuple[Machine, Machine]], family: int, largest: int
) -> None:
    found = measured(*narrow[family])
    counted = ("sent", "answered", "lost_there", "lost_back", "reordered_there", "reordered_back")
    assert [found[key] for key in counted] == [100, 100, 0, 0, 0, 0]
    assert (found["mtu"], found["mtu_there"], found["mtu_back"]) == (largest, largest, largest)
    for way in "there", "back":
        delay, burst = found[f"{way}_ns"], found[f"burst_{way}"]
        assert 0 < delay["min"] <= delay["p50"] <= delay["p99"] <= delay["max"]
        assert delay["min"] < MS
        assert burst["packet_bytes"] == largest
        assert burst["sent"] == BURST_BYTES // (largest - 28) == burst["arrived"]
        # The slowest machine sends faster; a rate in bytes, or of the whole burst's bits, would be outside.
        assert 5 * 10**7 < found[f"rate_{way}_bps"] < 10**11
    trip = found["round_trip_ns"]
    assert found["there_ns"]["min"] + found["back_ns"]["min"] <= trip["min"] < 2 * MS
    # Both read one clock.
    uncertainty = found["offset_uncertainty_ns"]
    assert abs(found["offset_ns"]) <= uncertainty <= trip["min"] * 1.01
    assert 0 <= found["offset_scatter_ns"] < MS
    assert found["drift_ppb"] is None
    assert found["drift_uncertainty_ppb"] > 0


def test_no_more_is_asked_of_the_tunnel_than_was_said(
    narrow: tuple[tuple[Machine, Machine], tuple[Machine, Machine]],
) -> None:
    found = measured(*narrow[0], mtu=600, packets=1, rate_bytes=0)
    assert (found["mtu"], found["sent"], found["answered"], found["offset_scatter_ns"]) == (600, 1, 1, None)
    assert (found["rate_there_bps"], found["rate_back_bps"], found["burst_there"]["sent"]) == (None, None, 0)


LAB = f"""
name: st{os.getpid()}
topology: dumbbell
rtt: 20ms
wan: {{forward: {{rate: 100Mbit/s, buffer: 2MB, loss: 10%}}, backward: {{rate: 20Mbit/s, buffer: 2MB, loss: 3%}}}}
"""


def test_a_lab_as_underlay_is_measured_as_it_was_described() -> None:
    plan = compile(parse(LAB, Path("stretch.lab.yaml")), host.facts())
    pair, addresses = plan.pairs[0], addresses_of(plan)
    with own_state("stretch") as state:
        NetnsRuntime(BINARY, state).up(plan)
        ends = [Machine(f"ewan-{plan.lab}-{node}", addresses[node]) for node in (pair.source, pair.sink)]
        found = measured(ends[0], ends[1], packets=300)
    link = plan.links[0]
    for way, direction, share in ("there", link.forward, 0.10), ("back", link.backward, 0.03):
        delay = found[f"{way}_ns"]
        # Of the smallest packets, whose bits take 12 µs and 60 µs; what a busy machine adds is not in the least.
        assert isinstance(direction.delay, ConstantDelay)
        assert direction.delay.delay_ns <= delay["min"] <= direction.delay.delay_ns + MS
        reaching = found["sent"] - (0 if way == "there" else found["lost_there"])
        assert found[f"lost_{way}"] == pytest.approx(share * reaching, abs=4 * (share * reaching) ** 0.5)
        # A packet of 1450 bytes is 1500 in the tunnel and 1538 on the wire.
        assert found[f"rate_{way}_bps"] == pytest.approx(direction.rate_bps * 1422 / 1538, rel=0.03)
    assert found["answered"] + found["lost_there"] + found["lost_back"] == found["sent"] == 300
    assert found["mtu"] == 1450
    assert abs(found["offset_ns"]) <= found["offset_uncertainty_ns"] <= 1.01 * found["round_trip_ns"]["min"]


def test_what_cannot_be_is_refused_in_one_line(
    narrow: tuple[tuple[Machine, Machine], tuple[Machine, Machine]],
) -> None:
    (one, two), (one6, _) = narrow
    foreign = Machine(one.netns, "192.0.2.77")
    far = Machine(two.netns, "198.51.100.1")
    limited = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
    for process, says in [
        (one.start("measure", request(foreign, two)), "local 192.0.2.77: this machine has no such address"),
        (one.start("answer", request(foreign, two)), "local 192.0.2.77: this machine has no such address"),
        (one.start("measure", request(one, far)), "no route from 192.0.2.1 to 198.51.100.1"),
        (one.start("measure", request(one, two, mtu="1450B")), "invalid type"),
        (one.start("measure", request(one, two, jitter=1)), "unknown field `jitter`"),
        (one.start("answer", request(one6, two)), "give two addresses of one family"),
        (one.start("measure", request(one, two), limited), "stretch: needs root: making a network namespace"),
    ]:
        assert says in refusal(process)


def test_two_at_once_do_not_meet_and_what_was_killed_leaves_nothing(
    narrow: tuple[tuple[Machine, Machine], tuple[Machine, Machine]],
) -> None:
    (one, two), _ = narrow
    quick = {"packets": 10, "rate_bytes": 0}
    with answering(two, one), answering(two, one, vni=19):
        said = "this machine has a tunnel of that number: take another vni"
        assert said in refusal(two.start("answer", request(two, one)))
        both = [one.start("measure", request(one, two, vni=vni, **quick)) for vni in (18, 19)]
        assert [finished(process)["answered"] for process in both] == [10, 10]
        assert "vxlan" not in ip("-n", one.netns, "-d", "link"), "it is seen in no namespace with a name"
    for end in signal.SIGKILL, signal.SIGTERM, signal.SIGINT:
        with two.start("answer", request(two, one)) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == '{"ready":true}\n'
            process.send_signal(end)
            process.wait()
    assert measured(one, two, **quick)["answered"] == 10


def test_silence_has_its_line(unheard: subprocess.Popen[str]) -> None:
    said = "no packet came back over the tunnel from 192.0.2.1 to 192.0.2.2, UDP port 4790: is a firewall in between?"
    assert refusal(unheard) == said
