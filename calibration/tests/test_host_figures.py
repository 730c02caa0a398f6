"""Figures of a host: what is drawn is what was measured, and what was not measured is not drawn."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from ewan.calibration.host import figures
from ewan.calibration.host.buffers import Buffers
from ewan.calibration.host.path_lab import PORT_BPS
from ewan.calibration.host.paths import PacketRate, PathMeasurements, Throughput, expected_udp_bps
from ewan.calibration.host.timers import METHODS, Timers
from ewan.labs.base import codec
from ewan.labs.base.codec import replace

BUFFERS = Buffers(None, None, (), (), None, 10**9)
FOUND = PathMeasurements(
    elapsed_ns=1,
    latency=(),
    packet_rates=(PacketRate(64, 250_000, 1000, 0), PacketRate(1500, 200_000, 1000, 0)),
    throughput=(
        Throughput("udp", 0, False, None, 2.4e9, None, None),
        Throughput("udp", 0, False, PORT_BPS, 955e6, expected_udp_bps(PORT_BPS, 1500), None),
        Throughput("tcp", 0, False, None, 2.8e9, None, 0),
        Throughput("tcp", 1, False, None, 2.2e9, None, 0),
        Throughput("tcp", 0, True, None, 25e9, None, 0),
        Throughput("tcp", 0, False, PORT_BPS, 940e6, 941.5e6, 0),
    ),
    buffers=BUFFERS,
    not_measured="",
    failed={},
    cards=(),
)


@pytest.fixture(scope="module")
def timers() -> Timers:
    return codec.decode(Timers, (Path(__file__).resolve().parent / "fixtures/timers.json").read_bytes(), "timers")


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_lateness_is_drawn_for_each_method_idle_and_busy(timers: Timers) -> None:
    drawing = figures.lateness(timers)
    assert drawing is not None and drawing.svg.startswith("<?xml")
    found = rows(drawing.csv)
    for method in METHODS:
        for busy in ("True", "False"):
            line = [r for r in found if (r["method"], r["busy"], r["interval (ns)"]) == (method, busy, "1000000")]
            shares = [float(each["share"]) for each in line]
            assert shares == sorted(shares) and shares[-1] == 1
    assert f"CPU {timers.link_cpu}, where links spin" in drawing.caption


def test_the_same_measurement_gives_the_same_bytes(timers: Timers) -> None:
    assert figures.lateness(timers) == figures.lateness(timers)


def test_of_too_few_samples_nothing_is_drawn(timers: Timers) -> None:
    few = tuple(replace(each, samples=3) for each in timers.lateness)
    assert figures.lateness(replace(timers, lateness=few)) is None


def test_packets_have_what_ethernet_carries_beside_them() -> None:
    drawing = figures.packet_rates(FOUND)
    assert drawing is not None
    small, large = rows(drawing.csv)
    assert float(small["packets/s"]) == 250_000
    # RFC 2544's 1488095 frames/s are of frames of 64 bytes: IP packets of 46.
    assert float(small["Ethernet of 1Gbit/s (packets/s)"]) == pytest.approx(1e9 / (102 * 8))
    assert float(large["Ethernet of 10Gbit/s (packets/s)"]) == pytest.approx(812_744, abs=1)


def test_throughput_has_the_expected_figures_beside_it() -> None:
    drawing = figures.throughput(FOUND)
    assert drawing is not None
    found = [each for each in rows(drawing.csv) if each["port (bit/s)"]]
    expected = {each["protocol"]: float(each["expected (bit/s)"]) / 1e6 for each in found}
    assert {protocol: round(value) for protocol, value in expected.items()} == {"udp": 957, "tcp": 942}


def test_what_was_not_measured_is_not_drawn() -> None:
    none = replace(FOUND, packet_rates=(), throughput=(), not_measured="needs root")
    assert figures.packet_rates(none) is None and figures.throughput(none) is None
    # Without offloads' part there is room for the others.
    some = replace(FOUND, throughput=FOUND.throughput[:2])
    assert figures.throughput(some) is not None
