"""Clocks and timers of a host: what is measured here, and what follows from a measurement."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import orjson
import pytest

from ewan.calibration.host import timers
from ewan.calibration.host.finding import Finding
from ewan.calibration.host.timers import METHODS, ClockSource, Lateness, Method, Timers
from ewan.labs.base import codec
from ewan.labs.base.codec import replace
from ewan.labs.base.product import NODE_BINARY
from ewan.labs.runtime.base import LabError

CAPTURED = Path(__file__).resolve().parent / "fixtures/timers.json"
INTERVALS_NS = (50_000, 100_000, 500_000, 1_000_000, 10_000_000)


@pytest.fixture
def captured() -> Timers:
    """Of a virtual machine with two CPUs."""
    return codec.decode(Timers, CAPTURED.read_bytes(), "timers")


@pytest.fixture(scope="module")
def measured() -> Timers:
    return timers.measure(NODE_BINARY, "quick", lambda line: None)


def median_ns(found: Timers, method: Method) -> int:
    """Over all intervals, the CPUs idle and busy: the upper end of the class."""
    counts: Counter[int] = Counter()
    for each in found.lateness:
        if each.method == method:
            counts.update(dict(each.classes))
    half = counts.total() / 2
    for upper in sorted(counts):
        half -= counts[upper]
        if half <= 0:
            return upper
    raise AssertionError(f"{method}: no samples")


@pytest.mark.untimed
def test_every_method_is_measured_at_every_interval_idle_and_busy(measured: Timers) -> None:
    assert not measured.not_measured
    for method in METHODS:
        for loaded in (False, True):
            for interval_ns in INTERVALS_NS:
                late = measured.late(method, loaded, interval_ns)
                assert late is not None, f"{method} {interval_ns}"
                assert sum(count for _, count in late.classes) == late.samples
                assert list(late.classes) == sorted(late.classes)


@pytest.mark.untimed
def test_percentiles_are_of_their_samples(measured: Timers) -> None:
    for late in measured.lateness:
        told = [value for value in (late.p50_ns, late.p99_ns, late.p999_ns, late.max_ns) if value is not None]
        assert told == sorted(told)
        assert (late.p99_ns is not None) == (late.samples >= 100)
        assert (late.p999_ns is not None) == (late.samples >= 1000)
        if late.max_ns is not None:
            # A class ends at most a sixteenth above what is in it.
            assert late.max_ns <= late.classes[-1][0] <= late.max_ns * 17 / 16


@pytest.mark.untimed
def test_who_spins_meets_deadlines_sooner_than_who_sleeps(measured: Timers) -> None:
    spun = median_ns(measured, "spin")
    # Reading the clock in a loop ends within a few reads; waking a thread takes an interrupt and a switch.
    assert spun <= 20 * measured.reads[0].cost_ns
    for method in ("nanosleep", "timerfd", "qdisc"):
        assert spun < median_ns(measured, method)


@pytest.mark.untimed
def test_clocks_are_read_in_less_than_ten_microseconds_and_agree(measured: Timers) -> None:
    assert [each.clock for each in measured.reads[1:]] == ["CLOCK_MONOTONIC", "CLOCK_MONOTONIC_RAW", "CLOCK_REALTIME"]
    for each in measured.reads:
        assert 0 < each.cost_ns < 10_000 and 0 < each.resolution_ns < 10_000_000
    # 100 ms of calibration with ends known to 100 ns; NTP turns by 500 ppm at most.
    assert abs(measured.clock.against_raw_ppb) <= 2_000 + measured.clock.uncertain_ppb
    assert abs(measured.clock.monotonic_against_raw_ppb) <= 500_000 + measured.clock.uncertain_ppb


@pytest.mark.untimed
def test_gaps_are_part_of_the_time_that_was_spun(measured: Timers) -> None:
    assert [each.loaded for each in measured.spinning] == [False, True]
    for each in measured.spinning:
        assert each.cpu == measured.link_cpu
        assert each.longest_gap_ns <= each.gaps_ns <= each.duration_ns
        assert (each.gaps == 0) == (each.gaps_ns == 0)
        assert each.gaps_ns >= 10_000 * each.gaps


@pytest.mark.untimed
def test_the_same_document_comes_back(measured: Timers) -> None:
    assert codec.decode(Timers, codec.sorted_line(measured), "timers") == measured


@pytest.mark.untimed
def test_a_cpu_that_may_not_be_used_is_refused_in_one_line() -> None:
    with pytest.raises(LabError, match=r"^ewan-node timers: CPU 4000: this process may use \["):
        timers.measure(NODE_BINARY, 0.5, lambda line: None, link_cpu=4000)


def test_a_captured_measurement_is_read(captured: Timers) -> None:
    assert captured.clock.source == "tsc"
    assert len(captured.lateness) == len(METHODS) * len(INTERVALS_NS) * 2


@pytest.mark.parametrize(
    "change, says",
    [
        ({"format": "ewan-timers/0"}, "format is 'ewan-timers/0', this version reads 'ewan-timers/1'"),
        ({"colour": 1}, "timers has an unknown key 'colour'"),
        ({"elapsed_ns": "2s"}, "timers.elapsed_ns"),
    ],
)
def test_a_document_of_another_kind_is_refused(change: dict[str, object], says: str) -> None:
    text = orjson.dumps({**orjson.loads(CAPTURED.read_bytes()), **change})
    with pytest.raises(ValueError) as error:
        codec.decode(Timers, text, "timers")
    assert str(error.value).startswith(says)


def named(found: Timers) -> dict[str, Finding]:
    return {each.what: each for each in timers.findings(found)}


def test_findings_tell_of_clock_deadlines_and_the_links_cpu(captured: Timers) -> None:
    found = named(captured)
    assert found["clock"].verdict == "good" and found["clock"].found.startswith("tsc, ")
    assert found["spinning to a deadline"].verdict == "good"
    assert "with busy CPUs" in found["timers of the kernel"].found


@pytest.mark.parametrize(
    "change, meaning",
    [
        ({"against_raw_ppb": -5_000, "uncertain_ppb": 40}, "delays and rates are wrong by this"),
        ({"source": "clock_gettime"}, "each look at the clock is dearer; releases are later"),
        ({"against_raw_ppb": -5_000, "uncertain_ppb": 9_000}, "read without a system call"),
    ],
)
def test_a_clock_that_is_wrong_or_dear_is_found_wanting(
    captured: Timers, change: dict[str, object], meaning: str
) -> None:
    changed = codec.from_data(ClockSource, {**codec.data_of(captured.clock), **change}, "clock")
    found = named(replace(captured, clock=changed))["clock"]
    assert found.meaning == meaning


def test_what_was_not_measured_says_why(captured: Timers) -> None:
    lateness = tuple(each for each in captured.lateness if each.method != "qdisc")
    why = "making a network namespace: Operation not permitted (os error 1)"
    found = named(replace(captured, lateness=lateness, not_measured={"qdisc": why}))
    assert found["timers of the kernel"] == Finding("timers of the kernel", "not measured", "limited", why)


def test_a_spinner_that_lost_its_cpu_and_a_late_one_are_found_wanting(captured: Timers) -> None:
    taken = replace(captured.spinning[0], gaps=3, gaps_ns=9_000_000, longest_gap_ns=4_000_000, steal_ns=0)
    late = Lateness("spin", False, 1_000_000, 1000, 2_000, 3_000, 4_000, 5_000, ((5_119, 1000),))
    found = named(replace(captured, spinning=(taken,), lateness=(late,)))
    cpu = found[f"CPU {taken.cpu}, where links spin"]
    assert cpu.verdict == "limited" and "taken 3 times" in cpu.found and "4ms at once" in cpu.found
    assert found["spinning to a deadline"].verdict == "limited"


def test_a_measurement_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timers, "PATIENCE_S", 0.2)
    program = tmp_path / "ewan-node"
    program.write_text("#!/bin/sh\necho begins >&2\nexec sleep 100\n")
    program.chmod(0o755)
    with pytest.raises(LabError, match=r"ewan-node timers: it was ended, or took 0.3 s; its last line: begins"):
        timers.measure(program, 0.1, lambda line: None)
