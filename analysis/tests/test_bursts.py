"""The largest burst, against cases worked out by hand."""

from __future__ import annotations

import pytest

from ewan.analysis.bursts import largest_bunch, largest_burst_bytes

RATE = 100_000_000  # 1250 bytes take 100 µs


def test_a_paced_stream_needs_one_packet() -> None:
    times = [number * 100_000 for number in range(50)]
    assert largest_burst_bytes(times, [1250] * 50, RATE) == 1250


def test_packets_at_one_instant_need_a_bucket_for_all_of_them() -> None:
    assert largest_burst_bytes([0] * 8, [1250] * 8, RATE) == 8 * 1250


def test_bunches_each_millisecond_of_as_much_as_the_rate_carries_need_one_bunch() -> None:
    times = [tick * 1_000_000 for tick in range(20) for _ in range(10)]
    assert largest_burst_bytes(times, [1250] * 200, RATE) == 10 * 1250


def test_a_faster_stream_needs_what_it_is_ahead() -> None:
    # Twice the rate for 10 packets: each but the first finds half a packet drained.
    times = [number * 50_000 for number in range(10)]
    assert largest_burst_bytes(times, [1250] * 10, RATE) == 1250 + 9 * 625


def test_a_pause_empties_the_bucket_but_not_below_nothing() -> None:
    assert largest_burst_bytes([0, 0, 10_000_000, 10_000_000], [1250] * 4, RATE) == 2500


def test_nothing_has_no_burst() -> None:
    assert largest_burst_bytes([], [], RATE) == 0


def test_times_that_go_back_are_refused() -> None:
    with pytest.raises(ValueError, match="sort them first"):
        largest_burst_bytes([5, 4], [1, 1], RATE)


def test_a_bunch_is_what_arrives_at_one_instant() -> None:
    assert largest_bunch([]) == 0
    assert largest_bunch([1, 2, 2, 2, 3, 3]) == 3
