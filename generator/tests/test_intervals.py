"""Reports of a real iperf3, in fixtures/iperf3: of 2 s over 20 Mbit/s and 20 ms, an interval each 500 ms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ewan.generator.readers import iperf3
from ewan.generator.readers.call import calls
from ewan.generator.readers.reader import CommandOutput
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND

FIXTURES = Path(__file__).resolve().parent / "fixtures/iperf3"
STARTED_NS = 3 * NS_PER_SECOND
LINK_BPS = 20_000_000


def read(*names: str, words: str = "iperf3 -J -c right1") -> Any:
    text = "\n".join((FIXTURES / f"{name}.json").read_text() for name in names)
    return said(text, words)


def said(text: str, words: str = "iperf3 -J -c right1") -> Any:
    reading = iperf3.read(CommandOutput(text, tuple(calls(words.split(), ("iperf3",))), STARTED_NS, None))
    assert reading is not None
    return reading


def test_a_stream_that_sends() -> None:
    reading = read("tcp")
    rows = reading.rows["intervals"]
    assert [row["time_ns"] for row in rows] == pytest.approx(
        [STARTED_NS + number * 500 * NS_PER_MS for number in (1, 2, 3, 4)], abs=NS_PER_MS
    )
    assert {(row["target"], row["stream"], row["direction"], row["omitted"]) for row in rows} == {
        ("right1", 1, "sent", False)
    }
    assert rows[0]["srtt_ns"] == 42_072_000 and rows[0]["cwnd_bytes"] == 104_256
    assert sum(row["transferred_bytes"] for row in rows) == reading.totals["sent_bytes"] == 4_994_152
    assert reading.totals["received_bytes"] == 4_881_208
    assert all(row["packets"] is None and row["jitter_ns"] is None for row in rows)


def test_two_streams_that_receive() -> None:
    rows = read("reverse").rows["intervals"]
    assert [(row["stream"], row["direction"]) for row in rows[:2]] == [(1, "received"), (2, "received")]
    received_bps = sum(row["transferred_bytes"] for row in rows) * 8 / 2
    assert received_bps == pytest.approx(LINK_BPS * 1448 / 1538, rel=0.03)
    assert all(row["cwnd_bytes"] is None and row["srtt_ns"] is None for row in rows)


def test_both_ways() -> None:
    rows = read("bidir").rows["intervals"]
    assert [(row["stream"], row["direction"]) for row in rows[:2]] == [(1, "sent"), (2, "received")]


def test_datagrams() -> None:
    rows = read("udp").rows["intervals"]
    assert rows[0]["packets"] == 216
    assert sum(row["packets"] for row in rows) == 863


def test_several_reports_of_one_command_have_no_known_times_but_the_first() -> None:
    rows = read("tcp", "udp").rows["intervals"]
    assert [row["time_ns"] is None for row in rows] == [False] * 4 + [True] * 4
    assert {row["time_ns"] for row in read("tcp", words="true").rows["intervals"]} == {None}


def test_a_test_that_failed_says_so() -> None:
    reading = read("refused", words="iperf3 -J -c 10.99.9.9")
    assert reading.rows["intervals"] == []
    assert reading.problem == "unable to connect to server: Network is unreachable"


@pytest.mark.parametrize("text", ["", "Connecting to host right1, port 5201\n", '{"a": 1}', '{"start": {', "[1]"])
def test_what_cannot_be_read_is_said(text: str) -> None:
    reading = said(text)
    assert not reading.rows.get("intervals") and reading.problem


def test_a_report_that_was_cut_short_loses_only_itself() -> None:
    whole = (FIXTURES / "tcp.json").read_text()
    reading = said(whole + whole[:900])
    assert len(reading.rows["intervals"]) == 4
    assert reading.problem == "its last report is not whole"


def test_a_server_without_json_is_read_by_nobody() -> None:
    call = tuple(calls(("iperf3", "-s"), ("iperf3",)))
    assert iperf3.read(CommandOutput("Server listening on 5201\n", call, 0, None)) is None
