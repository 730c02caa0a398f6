"""Summaries of a real ITGDec, in fixtures/ditg: UDP of 400 and 2400 kbit/s for 3 s into 2 Mbit/s at 20 ms, and TCP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ewan.generator.readers import ditg
from ewan.generator.readers.call import calls
from ewan.generator.readers.reader import CommandOutput
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND

FIXTURES = Path(__file__).resolve().parent / "fixtures/ditg"
HEADER_BYTES = 38 + 40 + 8
"""Ethernet on the wire, IPv6, UDP."""


def read(name: str) -> Any:
    return said((FIXTURES / f"{name}.txt").read_text())


def said(text: str) -> Any:
    reading = ditg.read(CommandOutput(text, tuple(calls(("ITGDec", "recv.log"), ("ITGDec",))), 0, None))
    assert reading is not None
    return reading


def test_what_a_receiver_wrote_down() -> None:
    reading = read("receiver")
    large, small = reading.rows["decoded_flows"]
    assert (large["flow"], large["source_port"], large["target"], large["target_port"]) == (
        2,
        50033,
        "fd65:7761:6e00:4::1",
        9001,
    )
    assert (large["packets"], large["lost_packets"], large["payload_bytes"]) == (553, 347, 553_000)
    assert (small["packets"], small["lost_packets"]) == (279, 21)
    assert {row["log"] for row in (large, small)} == {"receiver"}
    assert large["delay_mean_ns"] == 91_974_000 and large["jitter_ns"] == 1_585_000
    # One way takes 10 ms, and 20 kB of queue at 2 Mbit/s 80 ms more.
    assert 10 * NS_PER_MS < small["delay_min_ns"] < large["delay_max_ns"] < 100 * NS_PER_MS
    assert reading.totals["received_packets"] == 553 + 279 and reading.totals["received_bytes"] == 692_500
    assert "sent_packets" not in reading.totals and reading.problem is None


def test_what_arrived_is_what_the_link_carries() -> None:
    rows = read("receiver").rows["decoded_flows"]
    sent_bits = 8 * sum(row["payload_bytes"] + HEADER_BYTES * row["packets"] for row in rows)
    assert sent_bits / (max(row["duration_ns"] for row in rows) / NS_PER_SECOND) == pytest.approx(2e6, rel=0.02)


def test_the_log_of_a_sender_knows_no_delays() -> None:
    reading = read("sender")
    assert [row["log"] for row in reading.rows["decoded_flows"]] == ["sender", "sender"]
    assert {row["delay_mean_ns"] for row in reading.rows["decoded_flows"]} == {None}
    assert reading.totals == {"target": "fd65:7761:6e00:4::1", "sent_packets": 1200, "sent_bytes": 1_050_000}


def test_of_tcp_nothing_is_lost_and_delays_are_long() -> None:
    (row,) = read("tcp").rows["decoded_flows"]
    assert (row["packets"], row["lost_packets"], row["payload_bytes"]) == (58, 0, 29_000)
    assert row["delay_mean_ns"] > NS_PER_SECOND > row["delay_min_ns"]


def test_two_logs_of_one_command() -> None:
    text = "".join((FIXTURES / f"{name}.txt").read_text() for name in ("sender", "receiver"))
    totals = said(text).totals
    assert (totals["sent_packets"], totals["received_packets"]) == (1200, 832)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it printed nothing"),
        ("no log\n", "its output is none of ITGDec's"),
        ("ITGDec version 2.8.1 (r1023)\n\n Error opening log file 'x'\n", "it found no flow in the log"),
        ("ITGDec version 2.8.1 (r1023)\nFlow number: 1\nTotal time = 1.0 s\n", "its summary is not whole"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, problem: str) -> None:
    reading = said(text)
    assert reading.rows["decoded_flows"] == [] if "ITGDec" in text else not reading.rows
    assert reading.problem is not None and reading.problem.startswith(problem)


def test_a_summary_that_was_cut_short_keeps_its_whole_flows() -> None:
    text = (FIXTURES / "receiver.txt").read_text()
    reading = said(text[: text.index("Average packet rate", text.index("Flow number: 1"))])
    assert [row["flow"] for row in reading.rows["decoded_flows"]] == [2]
    assert reading.problem == "its summary is not whole"
