"""Flows of captured packets against sequences that a person can count."""

from __future__ import annotations

import polars as pl
import pytest

from analysis import packets
from labs.record import tables

MSS = 1000
MS = 10**6
FLOW = {"source": "10.0.0.1", "source_port": 1, "destination": "10.0.0.2", "destination_port": 2, "protocol": "tcp"}


def frame(*segments: tuple[int, int, int], node: str = "left1", direction: str = "out") -> pl.DataFrame:
    """Time (ms), sequence number (in segments) and identification of each."""
    rows = [
        FLOW
        | {"node": node, "interface": "eth0", "direction": direction, "time_ns": time * MS, "ip_id": identification}
        | {"tcp_seq": number * MSS % 2**32, "tcp_flags": 16, "payload_bytes": MSS, "size_bytes": MSS + 54}
        for time, number, identification in segments
    ]
    return pl.DataFrame(rows, schema=tables.TABLES["packets"])


@pytest.mark.parametrize(
    ("numbers", "repeated", "late"),
    [
        ([1, 2, 3, 4], 0, 0),
        ([1, 2, 2, 3, 1], 2, 0),  # the sender's own interface: two retransmissions
        ([1, 3, 4, 2, 5], 0, 1),  # one hole, which is filled
        ([1, 4, 3, 2], 0, 2),
        ([1, 4, 2, 2, 3], 1, 2),  # the second copy of 2 fills nothing
    ],
)
def test_segments_are_repeated_or_fill_a_hole(numbers: list[int], repeated: int, late: int) -> None:
    (row,) = packets.sequences(frame(*((time, number, time) for time, number in enumerate(numbers)))).to_dicts()
    assert (row["segments"], row["repeated_segments"], row["late_segments"]) == (len(numbers), repeated, late)


def test_sequence_numbers_go_around() -> None:
    start = 2**32 // MSS - 1
    found = packets.sequences(frame(*((time, start + number, time) for time, number in enumerate((0, 1, 3, 2, 2)))))
    assert found.select("repeated_segments", "late_segments").row(0) == (1, 1)


def test_gaps_are_between_packets_of_one_flow_at_one_point() -> None:
    both = pl.concat([frame((0, 1, 1), (2, 2, 2), (5, 3, 3)), frame((1, 1, 1), direction="in")])
    out, into = packets.gaps(both).sort("direction", descending=True).to_dicts()
    assert (out["packets"], out["gap_min_ns"], out["gap_max_ns"]) == (3, 2 * MS, 3 * MS)
    assert (into["packets"], into["gap_p50_ns"]) == (1, None)


def test_a_burst_is_what_a_bucket_of_the_rate_must_hold() -> None:
    # Two at once, and a third when the bucket has got one packet's bytes back.
    rate = (MSS + 54) * 8 * 1000
    (row,) = packets.bursts(frame((0, 1, 1), (0, 2, 2), (1, 3, 3)), rate).to_dicts()
    assert row["burst_bytes"] == 2 * (MSS + 54)


def test_a_delay_is_that_of_the_transmission_that_came() -> None:
    sent = frame((0, 1, 1), (10, 2, 2), (50, 2, 3))
    came = frame((20, 1, 1), (72, 2, 3), node="right1", direction="in")
    found = packets.one_way_delays(pl.concat([sent, came]), "left1", "right1")
    assert found.select("sent_ns", "delay_ns").rows() == [(0, 20 * MS), (50 * MS, 22 * MS)]


def test_packets_that_nothing_tells_apart_have_no_delay() -> None:
    alike = pl.concat([frame((0, 1, 1), (5, 1, 1)), frame((20, 1, 1), node="right1", direction="in")])
    assert packets.one_way_delays(alike, "left1", "right1").is_empty()


def test_runs_are_apart() -> None:
    one, two = (frame((0, 1, 1)).select(pl.lit(run).alias("run"), pl.all()) for run in (1, 2))
    there = frame((7, 1, 1), node="right1", direction="in").select(pl.lit(2).alias("run"), pl.all())
    found = packets.one_way_delays(pl.concat([one, two, there]), "left1", "right1")
    assert found.select("run", "delay_ns").rows() == [(2, 7 * MS)]
    assert packets.sequences(pl.concat([one, two]))["run"].to_list() == [1, 2]
