"""Our modules on Debian's own kernels, 6.1 and 6.12, in software-emulated machines: they load and unload, psp paces and
fills gaps, the congestion controls move bytes.

The emulated processor is slow, so rates are held to 2 % over seconds; spacing to the nanosecond is the virtual clock's
matter. Gaps are counted in bytes and must be right to the byte.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import orjson
import pytest

from ewan.labs.compile import HostFacts, compile
from ewan.labs.plan import Plan, to_json
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.spec import from_template, parse
from images.machine.stock import MissingError
from tests.vm.machine import OWN, Kernel

KERNELS = {
    "6.1": ("linux-image-amd64", "linux-headers-amd64"),
    "6.12": ("linux-image-6.12-amd64", "linux-headers-6.12-amd64"),
}
PROCESSORS = {"6.1": 1, "6.12": 2}
"""Linux 6.1 does not see its second processor start when QEMU 7.2 counts instructions."""
BOOT_S = 600
pytestmark = [pytest.mark.virtual, pytest.mark.timeout(900)]

Values = dict[str, str]


@pytest.fixture(scope="module")
def kernels() -> dict[str, Kernel]:
    try:
        return {name: Kernel(*packages) for name, packages in KERNELS.items()}
    except MissingError as missing:
        pytest.fail(str(missing), pytrace=False)


def lab() -> Plan:
    """A live dumbbell of 4 Mbit/s and 40 ms whose link is the kernel's."""
    words = {"name": "vm", "rtt": "40ms", "rate": "4Mbit/s", "buffer": "50pkt", "emulator": "kernel", "ip": "4"}
    return compile(from_template("dumbbell", words), HostFacts(cpus=(0, 1), networks=(), clock="live"))


def gaps() -> Plan:
    """A live dumbbell whose host left1 sends 10 Mbit/s by gap packets at a card of 1 Gbit/s."""
    text = """
topology: {dumbbell: {pairs: 1}}
name: gaps
rtt: 20ms
emulator: kernel
ip: 4
access: {rate: 1Gbit/s}
nodes: {left1: {interface: eth0}, r1: {interface: eth1}}
hosts: {left1: {pacing: {psp: 10Mbit/s, gap: packets}}}
"""
    return compile(parse(text, Path("gaps.lab.yaml")), HostFacts(cpus=(0, 1), networks=(), clock="live"))


@pytest.fixture(scope="module")
def runs(kernels: dict[str, Kernel]) -> Iterator[dict[str, Future[Values]]]:
    """Both machines, side by side where there is more than one processor."""
    with ThreadPoolExecutor(2 if (os.cpu_count() or 1) > 1 else 1) as pool:
        more = {"plan.json": to_json(lab()), "gaps.plan.json": to_json(gaps()), "tools/ewan-node": BINARY.read_bytes()}
        yield {name: pool.submit(each.boot, more, PROCESSORS[name], BOOT_S) for name, each in kernels.items()}


@pytest.fixture(params=KERNELS)
def seen(request: pytest.FixtureRequest, runs: dict[str, Future[Values]]) -> Values:
    return runs[request.param].result()


def near(value: str, wanted: float, tolerance: float) -> bool:
    return abs(float(value) - wanted) <= tolerance * wanted


@pytest.mark.parametrize("part", OWN)
@pytest.mark.parametrize("name", KERNELS)
def test_builds_without_a_warning(kernels: dict[str, Kernel], name: str, part: str) -> None:
    said = kernels[name].build(part)[1]
    assert "warning" not in said, said


def test_loads_and_unloads_without_a_word_from_the_kernel(seen: Values) -> None:
    assert "failed" not in seen, seen
    assert seen["loaded"] == "5"
    assert seen["unloaded"] == "0"
    assert seen["trouble"] == "0"


def test_tc_configures_and_shows(seen: Values) -> None:
    assert seen["qdisc"].startswith("qdisc psp 1: root")
    assert "mode timer default 0x1" in seen["qdisc"]
    assert "rate 4Mbit overhead 24 mpu 84 departure end" in seen["class"]


def test_refuses_in_words(seen: Values) -> None:
    assert "above 1 Tbit/s" in seen["refused-rate"]
    assert "the mode stays as created" in seen["refused-mode"]
    assert '"speed" is unknown' in seen["refused-word"]
    assert "filters point to this class" in seen["in-use"]


def test_timer_mode_paces_udp_and_follows_a_change(seen: Values) -> None:
    assert near(seen["udp-4mbit"], 4e6, 0.02)
    assert near(seen["udp-2mbit"], 2e6, 0.02)


def test_tcp_gets_its_share_whatever_ip_and_mtu(seen: Values) -> None:
    # 10 Mbit/s on the wire: 1448 of 1538 bytes are payload, 1428 with IPv6, 8948 of 9038 with jumbo frames.
    assert near(seen["tcp"], 10e6 * 1448 / 1538, 0.05)
    assert near(seen["tcp6"], 10e6 * 1428 / 1538, 0.05)
    assert near(seen["tcp-jumbo"], 10e6 * 8948 / 9038, 0.05)
    assert int(seen["segmented"]) > 100, "no GSO packet met psp"


def test_our_congestion_controls_move_bytes(seen: Values) -> None:
    names = {"fast", "ghstcp", "ghstcp0", "hstcp", "bbr3", "prague"}
    assert names <= set(seen["congestion"].split())
    for name in names:
        assert near(seen[f"tcp-{name}"], 10e6 * 1448 / 1538, 0.1), name


def test_filters_choose_the_class(seen: Values) -> None:
    assert seen["filtered"] == "5"


def test_dither_adds_half_of_its_width(seen: Values) -> None:
    # Uniform in 0 to 3 ms: mean 1.5 ms, of 40 packets within 0.3; the machine itself adds some.
    assert 1.1 <= float(seen["dithered"]) <= 4.0
    assert seen["backlog"] == "0b 0p"


def test_netem_with_psp_as_its_child(seen: Values) -> None:
    assert 20 <= float(seen["netem-rtt"]) < 30
    assert near(seen["netem-udp-4mbit"], 4e6, 0.02)
    assert near(seen["netem-tcp"], 4e6 * 1448 / 1538, 0.1)
    assert set(re.findall(r"\S+ \S+", seen["netem-backlog"])) == {"0b 0p"}, "packets are counted that are not there"


def test_gap_mode_fills_the_line_with_pause_frames(seen: Values) -> None:
    # 1066 bytes at 200 kbit/s of 1 Mbit/s: the next may begin 5330 bytes later, so 4264 bytes of gap, in 3 frames.
    assert int(seen["gap-pairs"]) > 300
    assert int(seen["gap-of-4264"]) >= int(seen["gap-pairs"]) - 1
    frames, sent = re.findall(r"(\d+) (?:frames|bytes)", seen["gap-stats"])
    assert (frames, sent) == (seen["pause-frames"], seen["pause-bytes"]), "not every frame arrived"
    least, most = map(int, seen["pause-sizes"].split())
    assert least >= 60
    assert most <= 1514
    assert "01:80:c2:00:00:01" in seen["pause"]
    assert re.search(r"8808 0001\s+0x0010:\s+0000", seen["pause"]), "opcode 1, pause time 0"


def test_a_live_lab_of_kernel_links(seen: Values) -> None:
    assert re.search(
        r"qdisc netem 1: root .* delay 20ms.*qdisc psp 2: parent 1:1 .*qdisc pfifo 3: parent 2:1 limit 50p",
        seen["lab-qdiscs"],
    )
    assert 40 <= float(seen["lab-rtt"]) < 55
    assert near(seen["lab-tcp"], 4e6 * 1448 / 1538, 0.1)
    assert seen["lab-left"] == "0"


def test_a_live_link_of_the_kernel_changes_and_loses_nothing(seen: Values) -> None:
    assert seen["lab-changed-lost"] == "0% packet loss"
    assert 120 <= float(seen["lab-changed-rtt"]) < 140
    assert near(seen["lab-changed-tcp"], 2e6 * 1448 / 1538, 0.1)
    assert seen["lab-changes"] == "3"
    assert "netem loses at random only" in seen["lab-refused"]


def test_gap_packets_pace_a_host_at_its_card(seen: Values) -> None:
    """1466 bytes at 10 Mbit/s of 1 Gbit/s: PAUSE frames of 145 134 bytes before the next, 95 of the largest and one.

    The emulated processor often is later with a packet than its gap would have ended: then there is none. The far card
    discards PAUSE frames, as cards do.
    """
    assert re.search(r"^qdisc psp \w+: root .*mode gap .*line 1Gbit", seen["gaps-qdisc"])
    assert seen["gaps-lost"] == "0% packet loss"
    gaps, frames, sent = map(int, re.findall(r"(\d+) (?:pause|frames|bytes)", seen["gaps-stats"]))
    assert 1 <= gaps <= 30
    assert 60 * gaps < frames <= 96 * gaps
    assert 100_000 * gaps < sent <= 145_134 * gaps
    assert [card["speed_bps"] for card in orjson.loads(seen["gaps-cards"])] == [10**9] * 2
    assert seen["gaps-left"] == "0 2", "namespaces, cards"
