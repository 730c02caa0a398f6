"""What a run costs: coefficients found again from runs that were made of them, and those of the real kernel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ewan.calibration.host import virtual
from ewan.calibration.host.virtual import REFERENCE, CaseCost, VirtualCost
from ewan.generator import scenario as scenarios
from ewan.labs import host
from ewan.labs.base.codec import replace
from ewan.labs.context import Context
from ewan.labs.record.demand import Demand

CONTEXT = Context.of(os.environ)
COEFFICIENTS = tuple(virtual.CASES)


def demands() -> dict[str, Demand]:
    """Of each case of the measurement, as it is expected."""
    found = {}
    for name, text in virtual.CASES.items():
        scenario = scenarios.parse(text, Path(f"{name.replace('_', '-')}.scenario.yaml"))
        ((_, _, schedule),) = scenario.runs().scheduled(host.virtual_facts(), "virtual")
        found[name] = schedule.demand()
    return found


def test_the_cases_tell_all_coefficients_apart() -> None:
    truth = VirtualCost(30_000_000, 4_000, 300, 150, 1_100, 250, 1_000_000, 0.1)
    runs = [
        CaseCost(name, virtual.weights(demand), virtual.cpu_ns(truth, demand)) for name, demand in demands().items()
    ]
    found = virtual.solve(runs)
    for name in COEFFICIENTS:
        assert found[name] == pytest.approx(getattr(truth, name), rel=0.02, abs=2), name


def test_each_coefficient_is_in_the_time_of_a_run() -> None:
    demand = Demand(1_000_000, 500_000, 100_000, 10_000, 5, 20_000)
    wall_ns, u_ns = virtual.wall_ns(REFERENCE, demand)
    assert virtual.cpu_ns(REFERENCE, demand) + REFERENCE.outside_ns == wall_ns
    assert 0 < u_ns < wall_ns / 2
    for name in COEFFICIENTS:
        dearer = replace(REFERENCE, **{name: 2 * getattr(REFERENCE, name)})
        assert virtual.wall_ns(dearer, demand)[0] > wall_ns, name


def test_a_host_of_half_the_pace_takes_twice_as_long() -> None:
    entries = 4_000
    boot_ns = REFERENCE.boot_ns + entries * REFERENCE.entry_ns
    slower = virtual.scaled(REFERENCE, 2 * boot_ns, entries)
    demand = Demand(1_000_000, 0, 0, 0, 0, 20_000)
    assert virtual.wall_ns(slower, demand)[0] == pytest.approx(2 * virtual.wall_ns(REFERENCE, demand)[0], rel=0.01)
    assert slower.share >= REFERENCE.share


RUNS = [
    ("40ms", "20Mbit/s", "for: 60s, quic: {}", 592_480, 2_656),
    ("10ms", "1Gbit/s", "quic: 200MB", 852_478, 3_770),
    ("40ms", "20Mbit/s", "for: 60s, quic: {library: s2n-quic}", 430_446, 1_817),
    ("40ms", "20Mbit/s", "for: 60s, quic: {library: quic-go}", 605_410, 6_108),
    ("40ms", "50Mbit/s", "for: 60s, quic: {rate: 2Mbit/s}", 124_340, 649),
    ("40ms", "50Mbit/s", "quic: {http3: {count: 2000, size: 10kB, parallel: 4}}", 104_760, 505),
    ("40ms", "20Mbit/s", "quic: {library: aioquic, volume: 20MB}", 109_466, 4_537),
    ("40ms", "20Mbit/s", "quic: {library: aioquic, volume: 10kB}", 100, 719),
    ("40ms", "50Mbit/s", "quic: {library: aioquic, http3: {count: 500, size: 10kB, parallel: 4}}", 29_792, 1_661),
    ("50ms", "1Mbit/s", "for: 120s, media: {}", 53_294, 196),
    ("50ms", "10Mbit/s", "for: 120s, media: {control: scream, most: 6Mbit/s}", 423_586, 1_005),
    ("10ms", "1Gbit/s", "generator: iperf3, bulk: 200MB", 829_244, 885),
    ("10ms", "1Gbit/s", "udp: {size: 200B, interval: 100us, count: 100000}", 400_024, 629),
]
"""Runs over a dumbbell of this RTT and this rate, with the packets and the CPU time (ms) that they took (wall.json), on
the machine of `REFERENCE`."""


@pytest.mark.parametrize(("rtt", "rate", "does", "packets", "cpu_ms"), RUNS)
def test_runs_take_what_is_forecast_within_a_half(rtt: str, rate: str, does: str, packets: int, cpu_ms: int) -> None:
    pairs = 2 if "scream" in does else 1
    ends = f'from: "left[1-{pairs}]", to: "right[1-{pairs}]"'
    text = f"lab: {{topology: {{dumbbell: {{pairs: 2}}}}, rtt: {rtt}, wan: {{rate: {rate}, buffer: 1BDP}}}}\n"
    text += f"steps: [{{name: a, {ends}, {does}}}]\n"
    ((_, _, schedule),) = (
        scenarios.parse(text, Path("x.scenario.yaml")).runs().scheduled(host.virtual_facts(), "virtual")
    )
    demand = schedule.demand()
    assert demand.packets == pytest.approx(packets, rel=0.25)
    assert 1 / 1.5 < virtual.cpu_ns(REFERENCE, demand) / (cpu_ms * 1e6) < 1.5


@pytest.mark.virtual
def test_this_host_is_measured_and_a_run_takes_about_what_it_should(tmp_path: Path) -> None:
    """A neighbour may slow any of it down, so that only the order of magnitude can be asserted of times."""
    cost = virtual.measure(CONTEXT, budget_s=0)
    for name in VirtualCost.__struct_fields__:
        assert getattr(cost, name) >= 0, name
    assert cost.entry_ns > 500 and cost.packet_ns > 50
    run, took = virtual.weigh(CONTEXT.virtual(), "mixed_ns", tmp_path / "run")
    assert virtual.weighed_ns(cost, run.weights) == pytest.approx(took.cpu_ns, rel=2)
    assert took.packets == pytest.approx(demands()["mixed_ns"].packets, rel=0.1)
    assert took.entries == pytest.approx(demands()["mixed_ns"].entries, rel=0.2)
    assert took.cpu_ns > 0 and took.touched_bytes < took.memory_bytes
