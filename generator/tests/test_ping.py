"""Outputs of real pings, in fixtures/ping, become the requests that were sent. All but `ipv6-stamped` go over 20 ms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from ewan.generator import readers
from ewan.generator.readers import ping
from ewan.generator.readers.call import Call, calls
from ewan.generator.readers.reader import CommandOutput, ReaderResult
from ewan.generator.tests import schedules
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from ewan.labs.record.tables import TABLES

FIXTURES = Path(__file__).resolve().parent / "fixtures/ping"
T0_UNIX_NS = 1_700_000_003 * NS_PER_SECOND
STARTED_NS = 5 * NS_PER_SECOND


def read(name: str, words: str = "ping -i 0.1 right1", t0_unix_ns: int | None = T0_UNIX_NS) -> Any:
    found = tuple(calls(words.split(), ping.PROGRAMS))
    return ping.read(CommandOutput((FIXTURES / f"{name}.txt").read_text(), found, STARTED_NS, t0_unix_ns))


def pings(reading: ReaderResult) -> Any:
    return reading.rows["pings"]


def test_what_was_not_answered_is_a_row_without_rtt() -> None:
    reading = read("loss")
    rows = pings(reading)
    assert [row["number"] for row in rows] == list(range(1, 13))
    assert [row["number"] for row in rows if not row["answered"]] == [2, 10, 12], "the last one, too"
    assert [row.get("rtt_ns") for row in rows[:3]] == [20_600_000, None, 20_300_000]
    assert {(row["target"], row["size_bytes"]) for row in rows} == {("right1", 56)}
    assert {row.get("ttl") for row in rows} == {62, None}
    assert (reading.totals["sent_packets"], reading.totals["received_packets"]) == (12, 9)
    assert reading.totals["rtt_mean_ns"] == 20_294_000
    assert reading.problem is None


def test_without_stamps_requests_are_counted_from_the_start() -> None:
    rows = pings(read("loss"))
    assert {row["timed"] for row in rows} == {ping.COUNTED}
    # 100 ms were asked for; the last one went 1106 ms after the first, as ping says.
    mean_ns = 1106 * NS_PER_MS // 11
    assert [row["time_ns"] for row in rows] == [STARTED_NS + number * mean_ns for number in range(12)]
    text = (FIXTURES / "loss.txt").read_text().partition("---")[0]
    unended = ping.read(CommandOutput(text, tuple(calls(["ping", "-i", "0.1", "right1"], ping.PROGRAMS)), 0, None))
    assert pings(unended)[3]["time_ns"] == 300 * NS_PER_MS, "it was ended before it said so"
    assert pings(read("loss", "ping right1"))[4]["time_ns"] == STARTED_NS + 4 * NS_PER_SECOND, "once a second"


def test_a_stamp_less_the_rtt_is_when_a_request_was_sent() -> None:
    rows = pings(read("stamped-loss"))
    assert rows[0]["time_ns"] == 454_744_000 - 20_400_000
    assert [row["number"] for row in rows if row["timed"] == ping.COUNTED] == [6, 8, 10]
    assert rows[5]["time_ns"] == 856_386_000 - 20_100_000 + 100 * NS_PER_MS, "one interval after the one before"
    assert pings(read("stamped-loss", t0_unix_ns=None))[0]["timed"] == ping.COUNTED, "nobody knows where T0 was"


@pytest.mark.parametrize("words", ["ping -f right1", "ping -A right1", "ping -i x right1"])
def test_requests_that_go_by_the_replies_have_no_known_time(words: str) -> None:
    assert {row["time_ns"] for row in pings(read("loss", words))} == {None}


def test_a_further_reply_is_marked_and_counts_as_no_request() -> None:
    reading = read("duplicates")
    assert [row["number"] for row in pings(reading)] == [1, 1, 2, 3, 4, 5, 5, 6]
    assert [row["number"] for row in pings(reading) if row["duplicate"]] == [1, 5]
    totals = reading.totals
    assert (totals["sent_packets"], totals["received_packets"], totals["duplicate_packets"]) == (6, 6, 2)


@pytest.mark.parametrize(("name", "sent", "received"), [("quiet", 20, 18), ("flood", 40, 27)])
def test_a_ping_that_tells_of_no_packet_has_totals(name: str, sent: int, received: int) -> None:
    reading = read(name)
    assert pings(reading) == []
    assert (reading.totals["sent_packets"], reading.totals["received_packets"]) == (sent, received)
    assert reading.totals["rtt_mean_ns"] == pytest.approx(20.4 * NS_PER_MS, abs=0.1 * NS_PER_MS)
    assert reading.problem is not None and "leave -q and -f out" in reading.problem


@pytest.mark.parametrize(("name", "sent"), [("unanswered", 4), ("unreachable", 2)])
def test_a_target_that_does_not_answer_loses_all(name: str, sent: int) -> None:
    reading = read(name)
    assert [(row["number"], row["answered"]) for row in pings(reading)] == [(each + 1, False) for each in range(sent)]
    assert reading.totals["received_packets"] == 0 and reading.totals["rtt_mean_ns"] is None


def test_an_answer_without_a_time_is_an_answer() -> None:
    rows = pings(read("no-time"))
    assert [(row["answered"], row["rtt_ns"], row["size_bytes"]) for row in rows] == [(True, None, 8)] * 3


def test_an_answer_below_the_resolution_has_no_value() -> None:
    text = "PING a (10.0.0.1): 56 data bytes\n64 bytes from 10.0.0.1: icmp_seq=0 ttl=64 time<1 ms\n"
    (row,) = pings(ping.read(CommandOutput(text, (), 0, None)))
    assert (row["answered"], row["rtt_ns"], row["number"]) == (True, None, 0)


def test_one_that_was_killed_counts_what_it_told_of() -> None:
    reading = read("killed")
    assert (reading.totals["sent_packets"], reading.totals["received_packets"]) == (4, 4)
    assert read("interrupted").totals["sent_packets"] == 4
    text = (FIXTURES / "outstanding.txt").read_text().partition("---")[0]
    cut = ping.read(CommandOutput(text, (), 0, None)).totals
    assert (cut["sent_packets"], cut["received_packets"], cut["rtt_mean_ns"]) == (12, 10, None)


def test_others_than_iputils_number_from_nought() -> None:
    assert [row["number"] for row in pings(read("inetutils"))] == [0, 1, 2]
    assert pings(read("inetutils"))[1]["rtt_ns"] == 100_296_000
    rows = pings(read("busybox", "busybox ping -c 8 right1"))
    assert [row["number"] for row in rows if not row["answered"]] == [0]
    assert rows[1]["time_ns"] == STARTED_NS + NS_PER_SECOND


def test_ipv6_by_name() -> None:
    reading = read("ipv6-stamped", "ping -D -i 0.2 -c 60 right2")
    assert len(pings(reading)) == 60 == reading.totals["received_packets"]
    assert reading.totals["target"] == "right2"
    assert max(row["rtt_ns"] for row in pings(reading)) < 250 * NS_PER_MS


def test_a_target_whose_name_ping_does_not_print() -> None:
    rows = pings(read("nameless", "ping -n -4 -Q 1 -i 0.02 right1"))
    assert {row["target"] for row in rows} == {"10.64.0.17"}
    assert [row["rtt_ns"] for row in rows] == [20_100_000] * 3


def test_numbers_go_on_after_sixteen_bits() -> None:
    lines = [f"64 bytes from 10.0.0.1: icmp_seq={number} ttl=64 time=1.00 ms" for number in (65_535, 0, 2, 1)]
    text = "\n".join(["PING a (10.0.0.1) 56(84) bytes of data.", *lines])
    rows = ping.read(CommandOutput(text, (), 0, None)).rows["pings"]
    answered = [row["number"] for row in rows if row["answered"]]
    assert answered == [65_535, 65_536, 65_537, 65_538] and len(rows) == 65_538


def test_a_line_of_the_shell_with_two_pings() -> None:
    both = (FIXTURES / "loss.txt").read_text() + (FIXTURES / "no-time.txt").read_text()
    found = tuple(calls(("sh", "-c", "ping -i 0.1 right1; ping -s 8 -i 0.1 right1"), ping.PROGRAMS))
    reading = ping.read(CommandOutput(both, found, 0, None))
    assert reading.totals["sent_packets"] == 15
    assert [row["time_ns"] for row in pings(reading)][11:13] == [1106 * NS_PER_MS // 11 * 11, None], (
        "when the second began"
    )


def test_an_output_of_something_else_is_a_problem() -> None:
    reading = ping.read(CommandOutput("ping: right9: Name or service not known\n", (), 0, None))
    assert (reading.rows["pings"], reading.problem) == ([], "its output is none of ping's")


@pytest.mark.parametrize(
    ("argv", "found"),
    [
        (("ping", "right1"), [Call("ping", ("right1",), True)]),
        (("/bin/busybox", "ping", "right1"), [Call("ping", ("right1",), True)]),
        (("sh", "-c", "sleep 1; ping a 2>/dev/null | tail -3"), [Call("ping", ("a",), False)]),
        (("sh", "-c", "exec timeout 5 ping a > x"), [Call("ping", ("a",), True)]),
        (("sh", "-c", "A=1 ping a & ping b"), [Call("ping", ("a",), True), Call("ping", ("b",), False)]),
        (("sh", "-c", "for a in 1 2; do ping -c 1 $a; done"), [Call("ping", ("-c", "1", "$a"), False)]),
        (("sh", "-c", "sh -c 'ping a; echo x'"), [Call("ping", ("a",), True)]),
        (("sh", "-c", "sleep 1; timeout 9 bash -ec 'A=1 ping a'"), [Call("ping", ("a",), False)]),
        (("nice", "sh", "-c", "ping a"), [Call("ping", ("a",), True)]),
        (("sh", "-c", "echo sh -c 'ping a'"), []),
        (("echo", "ping", "a"), []),
        (("sh", "-c", "echo 'ping a"), []),
        (("iperf3", "-c", "ping"), []),
    ],
)
def test_calls_in_a_command(argv: tuple[str, ...], found: list[Call]) -> None:
    assert calls(argv, ("ping",)) == found


@pytest.mark.parametrize(
    ("argv", "file", "problem"),
    [
        (["./measure.sh"], "loss.txt", "it printed what ping prints, and is not read"),
        (["sh", "-c", "$TOOL -i 0.1 right1"], "loss.txt", "its command does not name ping"),
        (["sh", "-c", "sh -c 'ping -i 0.1 right1; echo x'"], "loss.txt", None),
        (["true"], None, None),
    ],
)
def test_an_output_that_is_not_read_is_said(
    tmp_path: Path, argv: list[str], file: str | None, problem: str | None
) -> None:
    (tmp_path / "out").write_bytes((FIXTURES / file).read_bytes() if file else b"PING? 1 2 3 x\n")
    ran = {"argv": argv, "error": None, "started_ns": 0, "out": "out", "files": "x"}
    (tmp_path / "commands.json").write_bytes(orjson.dumps({"t0_unix_ns": T0_UNIX_NS, "commands": [ran]}))
    scheduled = schedules.schedule(commands=[schedules.command(0, "s", "left1")])
    found = readers.results(scheduled, tmp_path).tables
    if file is None:
        assert found == {}
        return
    ((tool, said),) = found["readings"].select("tool", "problem").rows()
    assert tool == "ping" and (problem in said if problem else said is None)
    assert found["pings"].is_empty() == bool(problem)


def test_a_run_has_tables_of_what_its_commands_printed(tmp_path: Path) -> None:
    (tmp_path / "commands").mkdir()
    (tmp_path / "commands/2-left2.out").write_bytes((FIXTURES / "loss.txt").read_bytes())
    ran = {"argv": ["ping", "right1"], "error": None, "started_ns": 0, "out": "commands/2-left2.out", "files": "x"}
    absent = {**ran, "error": "ping: there is no such program", "started_ns": None}
    document = {"t0_unix_ns": T0_UNIX_NS, "commands": [{"argv": ["true"], **absent}, ran, absent]}
    (tmp_path / "commands.json").write_bytes(orjson.dumps(document))
    commands = [schedules.command(index, f"s{index}", "left2") for index in (1, 2, 3)]
    commands.insert(0, schedules.command(0, "s1", "left2", "server"))
    frames = readers.results(schedules.schedule(commands=commands), tmp_path).tables
    assert {name: frame.schema for name, frame in frames.items()} == {
        name: pl.Schema(TABLES[name]) for name in readers.TABLES
    }
    assert frames["pings"].select("step", "command").unique().rows() == [("s1", 2)]
    assert frames["readings"].select("step", "sent_packets", "problem").rows() == [
        ("s1", 12, None),
        ("s2", None, "ping: there is no such program"),
    ]
    assert readers.results(schedules.schedule(), tmp_path).tables == {}
