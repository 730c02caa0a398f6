"""Outputs of programs that are none: each is a problem in one line, and never an error of ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from ewan.generator import readers
from ewan.generator.rows import Row, bounded, frame_of
from ewan.generator.tests import schedules

PING = "PING 10.0.0.2 (10.0.0.2) 56(84) bytes of data.\n"
REPLY = PING + "64 bytes from 10.0.0.2: icmp_seq={} ttl={} time={} ms\n"
HEAD = "HOST: a                 Loss%   Snt   Last   Avg  Best  Wrst StDev\n"


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("ping", REPLY.format("9" * 20, 64, 1)),
        ("ping", REPLY.format("9" * 5000, 64, 1)),
        ("ping", REPLY.format(1, "9" * 30, 1)),
        ("ping", REPLY.format(1, 64, "9" * 400)),
        ("ping", PING + "9" * 30 + " packets transmitted, 1 received\n"),
        ("ping", "PING x (" + ") from :" * 100_000),
        ("mtr", HEAD + "  1.|-- 10.0.0.1   1.2.3%    10    0.5   0.5   0.5   0.5   0.0\n"),
        ("mtr", HEAD + f"  1.|-- 10.0.0.1   0.0%    {'9' * 400}    0.5   0.5   0.5   0.5   0.0\n"),
        ("mtr", '{"report": {"mtr": {"dst": "x"}, "hubs": [{"count": 1, "host": "a", "Loss%": "inf", "Snt": 1, '
                '"Last": 1, "Avg": 1, "Best": 1, "Wrst": 1}]}}'),
        ("mtr", "x 1 99999999999999999999\np 1 99999999999999999999 99999999999999999999\n"),
        ("traceroute", "traceroute to x (10.0.0.1), 30 hops max\n 1  a (10.0.0.1)  " + "9" * 5000 + " ms\n"),
        ("traceroute", "traceroute to x\n 1 " + "<" * 200_000),
        ("tracepath", " 99999999999: a   1.0ms\n"),
        ("iperf3", '{"start": {"connected": [{"socket": 1, "remote_host": "x"}]}, "intervals": [], "end": {"sum_sent": '
                   '{"bytes": 1e999}}}'),
        ("iperf3", '{"start": {}, "end": {"sum_sent": {"bytes": "many"}}}'),
        ("iperf3", "[" * 100_000 + "{" * 100_000),
        ("ITGDec", "ITGDec version 2\nFlow number: 1\nTo 10.0.0.1:99999999999999999999\nMaximum delay = inf s\n"),
    ],
)  # fmt: skip
def test_a_strange_output_is_a_problem_and_no_error(tmp_path: Path, program: str, text: str) -> None:
    (tmp_path / "out").write_text(text)
    for reader, reading in readers._readings(schedules.ran([program, "x"]), tmp_path, 0):
        for table, rows in reading.rows.items():
            frame_of(rows, table)
        frame_of([{**reading.totals, "problem": reading.problem}], "readings")
        assert reader.programs and (reading.problem is None or len(reading.problem) <= 80)


def test_rows_that_no_column_can_hold_are_left_out_and_counted() -> None:
    right: Row = {"number": 1, "rtt_ns": 5, "answered": True, "duplicate": False, "target": "x" * 10_000}
    rows, left_out = bounded([right, {**right, "number": 2**63}, {**right, "rtt_ns": float("inf")}], "pings")
    assert left_out == 2 and frame_of(rows, "pings").height == 1
    assert len(str(rows[0]["target"])) == 4096


def test_what_lies_in_place_of_an_output_is_not_waited_for(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "out")
    ((_, reading),) = readers._readings(schedules.ran(["ping", "x"]), tmp_path, 0)
    assert reading.problem == "its output is not readable (is not a regular file)"
