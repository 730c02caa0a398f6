"""Counters of a device beside those of our cards: since when, after a reset, and the rate."""

from __future__ import annotations

from ewan.labs.base import codec
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.hardware.counts import CardCount, DeviceCounts
from ewan.labs.hardware.driver import Counters


def both(packets: int, dropped: int = 0) -> dict[str, Counters]:
    return dict.fromkeys(("forward", "backward"), Counters(packets, packets * 1000, dropped))


def came(packets: int) -> dict[str, CardCount]:
    return dict.fromkeys(("forward", "backward"), CardCount(packets, packets * 900))


def test_what_was_counted_before_the_lab_is_not_the_labs() -> None:
    counts = DeviceCounts()
    counts.begin(both(100, 7), came(3))
    counts.read(0, both(100, 7))
    assert counts.told(came(3))["forward"].rate_bps is None, "it was read once"
    counts.read(NS_PER_SECOND // 10, both(600, 8))
    assert counts.told(came(503))["forward"].rate_bps is None, "0.1 s say too little"
    counts.read(2 * NS_PER_SECOND, both(1100, 9))
    assert codec.data_of(counts.told(came(1003))["backward"]) == {
        "out_packets": 1000, "out_bytes": 1_000_000, "dropped_packets": 2,
        "came_packets": 1000, "came_bytes": 900_000, "rate_bps": round(500_000 * 8 / 1.9),
    }  # fmt: skip


def test_after_a_reset_all_that_it_counts_is_the_labs() -> None:
    counts = DeviceCounts()
    counts.begin(both(100), came(0))
    counts.read(0, both(400))
    counts.read(NS_PER_SECOND, both(50))
    told = codec.data_of(counts.told(came(350))["forward"])
    assert (told["out_packets"], told["came_packets"], told["rate_bps"]) == (50, 350, 400_000)


def test_a_device_that_does_not_count_tells_nothing() -> None:
    counts = DeviceCounts()
    counts.begin({}, came(0))
    counts.read(0, {})
    assert counts.told(came(10)) == {}
