"""Verdicts before anything is made, on a host whose capacity and whose cost of the virtual clock are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from ewan.calibration.envelope import Frontier, LoadLateness
from ewan.calibration.host import calibrations, measurement
from ewan.experiments import feasibility
from ewan.experiments.feasibility import Verdicts, lines
from ewan.generator import scenario as scenarios
from ewan.labs.context import Context
from ewan.labs.record.demand import Demand
from ewan.labs.runtime import kernel

LATE = LoadLateness(0.9, 10_000, True, 5_000, 40_000, 80_000, 200_000, 0, 0)
CARRIES = 50_000.0
"""Packets a second, of whatever size and number of links."""


class Host:
    links = (Frontier("user", 1500, 1, CARRIES, "rate", 0.0, (LATE,)),)
    time = "2026-01-31T12:00:00+00:00"
    virtual = None


def costs(demand: Demand) -> tuple[int, int]:
    """A microsecond a packet."""
    return demand.packets * 1000, demand.packets * 100


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Verdicts:
    monkeypatch.setattr(calibrations, "load", lambda context: Host)
    monkeypatch.setattr(kernel, "built", lambda: Path("/linux"))
    monkeypatch.setattr(measurement, "wall_of", lambda context: costs)
    monkeypatch.setattr(feasibility, "check_cpus", lambda lab, spinners: None)
    return Verdicts(Context.of({"EWAN_STATE": str(tmp_path)}))


@pytest.mark.parametrize(("rate", "word"), [("100Mbit/s", "inside"), ("1Gbit/s", "outside")])
def test_a_lab_is_held_against_the_envelope(known: Verdicts, rate: str, word: str) -> None:
    found = known.of_lab(f"topology: dumbbell\nwan: {{rate: {rate}}}\n", Path("x.lab.yaml"))
    assert found.live.verdict == word and found.live.measured == Host.time
    packets_per_s = {"100Mbit/s": 8127, "1Gbit/s": 81274}[rate]
    assert found.live.share == pytest.approx(1.1 * packets_per_s / CARRIES, rel=1e-3)
    assert f"{packets_per_s:,}" in found.live.why


def test_a_lab_costs_the_virtual_clock_what_its_pairs_send(known: Verdicts) -> None:
    slow, fast = (
        known.of_lab(f"topology: dumbbell\nrtt: 2ms\nwan: {{rate: {rate}, buffer: 1BDP}}\n", Path("x.lab.yaml")).virtual
        for rate in ("100Mbit/s", "1Gbit/s")
    )
    assert slow.wall_ns is not None and fast.wall_ns is not None
    assert 8 < fast.wall_ns / slow.wall_ns < 12
    # Data and an ACK for two, each at three nodes or four, a microsecond each: 8,127 packets a second at 100 Mbit/s.
    assert 8127 * 3 * 1000 < slow.wall_ns < 8127 * 8 * 1000
    assert "a second with all pairs sending" in slow.why


SWEEP = """name: x
lab: {topology: dumbbell, rtt: 2ms, wan: {rate: "${rate}"}}
sweep: {rate: [10Mbit/s, 1Gbit/s]}
seeds: 3
steps: [{name: load, from: left1, to: right1, for: 5s, congestion: reno, bulk: }]
"""


def test_a_scenario_is_as_hard_as_its_hardest_point(known: Verdicts, tmp_path: Path) -> None:
    found = known.of_scenario(scenarios.parse(SWEEP, tmp_path / "x.scenario.yaml"), tmp_path)
    assert found.live.verdict == "outside" and (found.looked, found.points) == (2, 2)
    one = scenarios.parse(SWEEP.replace("seeds: 3", "seeds: 1"), tmp_path / "x.scenario.yaml")
    thrice, once = found.virtual.wall_ns, known.of_scenario(one, tmp_path).virtual.wall_ns
    assert thrice is not None and once is not None and thrice > 1.4 * once
    assert lines(found)[0].startswith("live: outside: ") and "its runs take about" in lines(found)[-1]


def test_what_a_run_is_refused_for_is_said(known: Verdicts, tmp_path: Path) -> None:
    text = SWEEP.replace("bulk: }", "bulk: }, {name: tool, on: left1, run: nosuchtool}")
    found = known.of_scenario(scenarios.parse(text, tmp_path / "x.scenario.yaml"), tmp_path)
    assert found.live.verdict == found.virtual.verdict == "refused"
    assert "nosuchtool" in found.live.why and "nosuchtool" in found.virtual.why


def test_what_nobody_knows_is_said(known: Verdicts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrations, "load", lambda context: None)
    monkeypatch.setattr(kernel, "built", lambda: None)
    found = known.of_lab("topology: dumbbell\n", Path("x.lab.yaml"))
    assert (found.live.verdict, found.virtual.verdict) == ("unknown", "unknown")
    assert "ewan measure host" in found.live.why and "make kernel" in found.virtual.why
