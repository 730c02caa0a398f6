"""A device's milliseconds: when they were, also of a device that counts anew, and what a run keeps of them."""

from __future__ import annotations

import json
from pathlib import Path

from ewan.labs.hardware.device_answers import DeviceRows
from ewan.labs.hardware.driver import SeriesRows
from ewan.labs.hardware.readout import Readout, RowStretch
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.readouts import COLUMNS, Readouts
from ewan.labs.runtime.requests import ReadoutRequest

MS = 1_000_000
LATE = MS // 4
"""From a question to the answer."""


class Device:
    """Counts milliseconds from `zero_ns` on; each has its number by our clock as bytes."""

    def __init__(self, zero_ns: int, kept: int = 10_000, most: int = 500) -> None:
        self.zero_ns, self.kept, self.most, self.now_ns = zero_ns, kept, most, 0

    def series(self, since: int) -> SeriesRows:
        asked = self.now_ns
        self.now_ns += LATE
        complete = (asked + LATE // 2 - self.zero_ns) // MS
        first = max(since, complete - self.kept, 0)
        numbers = range(first, min(complete, first + self.most))
        sent = tuple((self.zero_ns + each * MS) // MS for each in numbers)
        return SeriesRows(MS, first, sent, tuple(0 for _ in sent))

    def clock(self) -> int:
        return self.now_ns

    def reset(self) -> None:
        self.zero_ns = self.now_ns


def asked(device: Device, readout: Readout, *, until_ms: int, each_ms: int = 250) -> None:
    for moment in range(device.now_ns // MS, until_ms, each_ms):
        device.now_ns = max(device.now_ns, moment * MS)
        readout.fetch(device.series, device.clock)


def test_each_row_has_its_time_within_the_uncertainty() -> None:
    device = Device(zero_ns=-3_000 * MS + 333_333)
    readout = Readout(MS, device.most)
    asked(device, readout, until_ms=5_000, each_ms=249)
    (stretch,) = readout.stretches(0)
    true = device.zero_ns + stretch.first * MS
    assert abs(stretch.begin_ns - true) <= stretch.uncertainty_ns <= (MS + LATE) // 2 + 1
    assert len(stretch.forward) > 7_900 and not stretch.restarted


def test_what_was_forgotten_is_no_row() -> None:
    device = Device(zero_ns=0, kept=100)
    readout = Readout(MS, device.most)
    asked(device, readout, until_ms=1_000, each_ms=400)
    stretches = list(readout.stretches(0))
    assert [(each.first, len(each.forward)) for each in stretches] == [(300, 100), (700, 100)]
    assert readout.known(0)[1]["forward"][:300] == [0] * 300


def test_a_device_that_counts_anew_goes_on() -> None:
    device = Device(zero_ns=-60_000 * MS)
    readout = Readout(MS, device.most)
    asked(device, readout, until_ms=1_000)
    before = readout.next
    device.now_ns = 1_100 * MS
    device.reset()
    asked(device, readout, until_ms=3_000)
    old, new = readout.stretches(before - 10)
    assert (old.restarted, new.restarted) == (False, True)
    assert new.first == before and abs(new.begin_ns - 1_100 * MS) <= new.uncertainty_ns
    assert new.forward[0] == 1_100, "nothing of the time before"
    assert [each.restarted for each in readout.stretches(before + 5)] == [False], "it is said once"


def test_a_device_that_was_away_and_counted_further_than_before() -> None:
    device = Device(zero_ns=0)
    readout = Readout(MS, device.most)
    asked(device, readout, until_ms=1_000)
    before = readout.next
    device.reset()
    device.now_ns += 1_400 * MS
    asked(device, readout, until_ms=3_000)
    new = next(iter(readout.stretches(before)))
    assert new.restarted and new.first == before
    assert abs(new.begin_ns - new.forward[0] * MS) <= new.uncertainty_ns + MS


def test_a_device_that_stands_still_has_not_counted_anew() -> None:
    device = Device(zero_ns=0)
    readout = Readout(MS, device.most)
    asked(device, readout, until_ms=1_000)
    stands = readout.next
    for _ in range(4):
        device.now_ns += 300 * MS
        at, device.zero_ns = device.zero_ns, device.now_ns - stands * MS  # its counter does not move
        readout.fetch(device.series, device.clock)
        device.zero_ns = at
    assert readout.next == stands and not any(each.restarted for each in readout.stretches(0))


def test_what_a_run_keeps(tmp_path: Path) -> None:
    stretches = (
        RowStretch(900, False, 99 * MS, 500, (7, 8), (0, 1)),
        RowStretch(902, True, 105 * MS, 700, (9,), (2,)),
    )
    told = [DeviceRows("core", MS, 900, ()), DeviceRows("core", MS, 903, stretches)]

    def ask(link: str, request: ReadoutRequest) -> DeviceRows:
        if link == "mute":
            raise LabError("the device tells nothing of its milliseconds")
        assert request.since in (-1, 900)
        return told.pop(0)

    apart = iter([1_000, 1_040])
    readouts = Readouts(ask, {"core": 0, "mute": 0}, lambda: 0, lambda: next(apart))
    readouts.fetch()
    assert len(told) == 1, "it is not time to ask yet"
    (tmp_path / "commands.json").write_text(json.dumps({"t0_unix_ns": 100 * MS + 1_000}))
    readouts.write(tmp_path)
    assert (tmp_path / "device.csv").read_text().splitlines() == [
        ",".join(COLUMNS),
        f"core,forward,{MS},540,{MS},8,false",
        f"core,backward,{MS},540,{MS},1,false",
        f"core,forward,{6 * MS},740,{MS},9,true",
        f"core,backward,{6 * MS},740,{MS},2,true",
    ], "none before T0; the step of the clock is in the uncertainty"


def test_a_lab_without_devices_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "commands.json").write_text('{"t0_unix_ns": 1}')
    Readouts(lambda link, _: DeviceRows(link, MS, 0, ()), {}).write(tmp_path)
    assert not (tmp_path / "device.csv").exists()
