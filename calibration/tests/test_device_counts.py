"""What a device counted while the probes ran, beside our cards, by hand."""

from __future__ import annotations

from ewan.calibration.devices import Counts, counted
from ewan.labs.hardware.counts import DeviceCount


def told(device: int, ours: int, dropped: int = 0) -> Counts:
    each = DeviceCount(device, 0, dropped, ours, 0, None)
    return {"core": {"backward": each, "forward": each}}


def test_a_devices_packets_stand_beside_ours() -> None:
    forward, backward = counted(told(10, 5, 1), told(1010, 1003, 4))
    assert (forward.direction, backward.direction) == ("forward", "backward")
    assert (forward.configured, forward.measured, forward.error, forward.verdict) == (998.0, 1000.0, 2.0, "shown")
    assert forward.note == "beside what our card behind it counted; it dropped 3"


def test_a_device_that_was_reset_meanwhile_says_what_it_counted_since() -> None:
    (forward, _) = counted(told(500, 500), told(20, 600))
    assert (forward.measured, forward.configured) == (20.0, 100.0)
    assert forward.note.startswith("it was reset meanwhile")


def test_what_does_not_count_or_answer_has_no_row() -> None:
    assert counted({}, told(1, 1)) == () and counted(told(1, 1), {"core": {}}) == ()
