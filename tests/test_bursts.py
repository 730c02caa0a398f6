"""eWAN's figures 5 and 6, again: netem that releases packets on a tick turns a smooth stream into bursts; psp below it
makes it smooth again. Real packets in the virtual kernel."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest

from ewan.calibration import bursts
from ewan.calibration.bursts import BurstSeries
from ewan.calibration.tests.plans import filled
from ewan.labs.base.units import NS_PER_MS
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.probe_documents import DelayResult, ProbeAnswer, StreamResult
from ewan.labs.runtime.program import Program
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime
from tests.test_virtual import contents

pytestmark = pytest.mark.virtual

FRAMED_BYTES = 1538
PACKET_NS = 123_040  # of 1538 bytes at 100 Mbit/s
TICK_NS = NS_PER_MS
ON_A_TICK = TICK_NS // PACKET_NS
DELAY_NS = NS_PER_MS


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bursts")


@pytest.fixture(scope="module")
def series(place: Path) -> dict[str, BurstSeries]:
    return {each.key: each for each in bursts.measure(VirtualRuntime(BINARY), place / "first")}


def gaps_ns(series: BurstSeries) -> list[int]:
    return [after - before for before, after in pairwise(series.times_ns)]


def test_every_stream_is_twenty_milliseconds_of_full_packets(series: dict[str, BurstSeries]) -> None:
    assert {len(each.times_ns) for each in series.values()} == {163}
    assert {each.packet_bytes for each in series.values()} == {FRAMED_BYTES}


def test_netem_on_a_tick_sends_bunches(series: dict[str, BurstSeries]) -> None:
    alone = series["netem-tick"]
    assert ON_A_TICK == 8
    assert ON_A_TICK <= alone.largest_bunch <= ON_A_TICK + 1
    assert alone.largest_burst_bytes >= ON_A_TICK * FRAMED_BYTES
    # Between bunches a tick, within them nothing.
    assert set(gaps_ns(alone)) == {0, TICK_NS}
    # A packet waits for the next tick, once its delay is over.
    assert all(DELAY_NS <= latency <= DELAY_NS + TICK_NS for latency in alone.latencies_ns)


def test_psp_below_it_lets_no_two_packets_leave_closer_than_the_rate_says(series: dict[str, BurstSeries]) -> None:
    paced = series["netem-tick-psp"]
    assert min(gaps_ns(paced)) == PACKET_NS
    assert paced.largest_bunch == 1
    assert paced.largest_burst_bytes == FRAMED_BYTES
    # What smoothing costs: the longest wait of the others in a bunch, for all.
    assert all(DELAY_NS + PACKET_NS <= latency <= DELAY_NS + TICK_NS + PACKET_NS for latency in paced.latencies_ns)


def test_todays_netem_has_no_tick(series: dict[str, BurstSeries]) -> None:
    today = series["netem-today"]
    assert set(today.latencies_ns) == {DELAY_NS}
    assert today.largest_burst_bytes == FRAMED_BYTES


def test_a_link_whose_disciplines_were_replaced_is_told_of_instead_of_its_counters(
    series: dict[str, BurstSeries], place: Path
) -> None:
    def told(key: str) -> tuple[list[str], list[dict[str, Any]]]:
        directory = place / "first" / key
        ended, links = (orjson.loads((directory / name).read_bytes()) for name in ("ended.json", "links.json"))
        return ended["warnings"], links["links"]

    (warning,), (backward,) = told("netem-tick")
    assert warning.startswith("link core forward: its queueing disciplines were replaced")
    assert backward["direction"] == "backward"
    none, (forward, _) = told("netem-tick-psp")
    assert none == [] and forward["sent_packets"] == 163


def test_a_second_time_gives_the_same_bytes(series: dict[str, BurstSeries], place: Path) -> None:
    again = bursts.measure(VirtualRuntime(BINARY), place / "second")
    assert bursts.csv(again) == bursts.csv(list(series.values()))
    first = contents(place / "first")
    assert first and first == contents(place / "second")


def test_packets_that_are_missing_are_not_passed_over() -> None:
    plan, setting = bursts.plan_of(), bursts.SETTINGS[0]
    program: Program = bursts.program_of(plan, setting)
    stream = filled(StreamResult, {"received_packets": 162, "delays_ns": [DELAY_NS] * 162})
    with pytest.raises(RuntimeError, match="162 of 163 packets arrived"):
        bursts.series_of(plan, setting, program, ProbeAnswer((DelayResult("stream", 1, 0, (stream,)),)))


def test_a_machine_without_tc_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bursts, "PROGRAM_PATH", str(tmp_path))
    with pytest.raises(LabError, match="install iproute2"):
        bursts.measure(VirtualRuntime(BINARY), tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
