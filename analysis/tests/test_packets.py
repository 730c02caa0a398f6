"""Flows of captured packets against sequences that a person can count."""

from __future__ import annotations

import polars as pl
import pytest

from ewan.analysis import packets
from ewan.labs.record import tables

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


def datagrams(node: str, *rows: tuple[int, int | None, int | None, int]) -> pl.DataFrame:
    """Time (ms), identification, digest and size of each, as it left left1 or came to right1."""
    direction = "out" if node == "left1" else "in"
    told = FLOW | {"protocol": "udp", "node": node, "interface": "eth0", "direction": direction}
    names = ("time_ns", "ip_id", "payload_digest", "payload_bytes", "size_bytes")
    values = [(time * MS, identification, digest, size - 42, size) for time, identification, digest, size in rows]
    return pl.DataFrame(
        [told | dict(zip(names, each, strict=True)) for each in values], schema=tables.TABLES["packets"]
    )


def delays_ms(sent: pl.DataFrame, came: pl.DataFrame) -> tuple[list[int], int]:
    found = packets.matches(pl.concat([sent, came]), "left1", "right1")
    return [delay // MS for delay in found.delays["delay_ns"]], found.came


def test_a_size_alone_says_not_which_packet_it_is() -> None:
    # Of two packets of one size, one left before the capture began at the sender, and one came after it ended.
    assert delays_ms(datagrams("left1", (1900, None, None, 700)), datagrams("right1", (1100, None, None, 700))) == (
        [],
        1,
    )
    assert delays_ms(datagrams("left1", (100, 0, None, 700)), datagrams("right1", (300, 0, None, 700))) == ([], 1)


def test_a_packet_does_not_come_before_it_left() -> None:
    assert delays_ms(datagrams("left1", (1900, 7, None, 700)), datagrams("right1", (1100, 7, None, 700))) == ([], 1)


def test_payloads_tell_apart_what_has_the_same_identification_after_65536_packets() -> None:
    sent, came = [(0, 7, 1, 142), (3000, 7, 2, 142)], [(10, 7, 1, 142), (3050, 7, 2, 142)]
    assert delays_ms(datagrams("left1", *sent), datagrams("right1", *came)) == ([10, 50], 2)
    unkept = [[(time, number, None, size) for time, number, _, size in each] for each in (sent, came)]
    assert delays_ms(datagrams("left1", *unkept[0]), datagrams("right1", *unkept[1])) == ([], 2)


def test_the_first_of_a_link_s_copies_counts() -> None:
    came = [(10, 7, 1, 142), (12, 7, 1, 142), (13, 8, 2, 142)]
    assert delays_ms(datagrams("left1", (0, 7, 1, 142)), datagrams("right1", *came)) == ([10], 2)
    # Over IPv6 a program may have sent the same twice.
    unnumbered = [(time, None, digest, size) for time, _, digest, size in came]
    assert delays_ms(datagrams("left1", (0, None, 1, 142)), datagrams("right1", *unnumbered)) == ([], 3)


def test_tables_of_a_version_without_digests_are_read() -> None:
    sent, came = datagrams("left1", (0, 7, 1, 142)), datagrams("right1", (9, 7, 1, 142))
    assert delays_ms(sent.drop("payload_digest"), came.drop("payload_digest")) == ([9], 1)


def test_runs_are_apart() -> None:
    one, two = (frame((0, 1, 1)).select(pl.lit(run).alias("run"), pl.all()) for run in (1, 2))
    there = frame((7, 1, 1), node="right1", direction="in").select(pl.lit(2).alias("run"), pl.all())
    found = packets.one_way_delays(pl.concat([one, two, there]), "left1", "right1")
    assert found.select("run", "delay_ns").rows() == [(2, 7 * MS)]
    assert packets.sequences(pl.concat([one, two]))["run"].to_list() == [1, 2]
