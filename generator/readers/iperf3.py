"""The JSON of iperf3 (`-J`) that a step runs, as a row for each interval of each stream. Pure.

In: what a command printed. Out: rows of `intervals`, and totals. As where iperf3 is a generator
(generator/external/iperf3.py, whose reading of reports this uses), times count from the start of the command: iperf3's
test begins some round trips later.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ewan.generator.external import iperf3
from ewan.generator.iperf3_report import Report
from ewan.generator.readers.reader import CommandOutput, Reader, ReaderResult
from ewan.generator.rows import Row
from ewan.labs.base import codec
from ewan.labs.base.units import NS_PER_MS, scale

MOST_ROWS = 1 << 20
_US_NS = scale("time")["us"]
_NO_JSON = "its output is no JSON: write iperf3 -J"


def read(printed: CommandOutput) -> ReaderResult | None:
    """All reports of a command, one after the other. The first one's times are known, unless something ran before.

    None: what a server prints that was not asked for JSON.
    """
    reports, whole = _reports(printed.text)
    if not reports:
        if printed.calls and all({"-s", "--server"} & set(call.arguments) for call in printed.calls):
            return None
        return ReaderResult(problem=_NO_JSON if printed.text.strip() else "it printed nothing")
    rows: list[Row] = []
    sent = received = 0
    targets: dict[str, None] = {}
    problem = None if whole else "its last report is not whole"
    for number, data in enumerate(reports):
        known = number == 0 and bool(printed.calls) and printed.calls[0].at_once
        try:
            if not {"start", "end"} <= data.keys():
                raise ValueError("a report of no test")
            report = codec.from_data(Report, data, "report")
        except ValueError:
            problem = "its JSON is none of iperf3's"
            continue
        targets[str(report.peer)] = None
        rows += _intervals(report, printed.started_ns if known else None)
        problem = problem or report.error
        sent += report.end.sum_sent.bytes if report.end.sum_sent else 0
        received += report.end.sum_received.bytes if report.end.sum_received else 0
    if len(rows) > MOST_ROWS:
        rows, problem = rows[:MOST_ROWS], f"more than {MOST_ROWS} intervals: the rest is left out"
    totals: Row = {"target": ", ".join(targets), "sent_bytes": sent or None, "received_bytes": received or None}
    return ReaderResult({"intervals": rows}, totals, problem)


def _reports(text: str) -> tuple[list[Any], bool]:
    """The JSON objects of a text; and whether all of them were whole."""
    found: list[Any] = []
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0:
        try:
            report, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return found, False
        found.append(report)
        at = text.find("{", end)
    return found, True


def _intervals(report: Report, started_ns: int | None) -> Iterator[Row]:
    omitted_s = report.start.test_start.omit
    for index, entry in report.entries():
        # After an omitted time (-O) iperf3 counts from nought again.
        end_s = entry.end + (0 if entry.omitted else omitted_s)
        yield {
            "target": str(report.peer),
            "stream": index + 1,
            "direction": "sent" if entry.sender else "received",
            "time_ns": None if started_ns is None else started_ns + iperf3.ns(end_s),
            "interval_ns": iperf3.ns(entry.seconds),
            "omitted": entry.omitted,
            "transferred_bytes": entry.bytes,
            "retransmitted_segments": entry.retransmits,
            "cwnd_bytes": entry.snd_cwnd,
            "srtt_ns": entry.rtt * _US_NS if entry.rtt else None,
            "rttvar_ns": entry.rttvar * _US_NS if entry.rttvar else None,
            "packets": entry.packets,
            "lost_packets": entry.lost_packets,
            "jitter_ns": None if entry.jitter_ms is None else entry.jitter_ms * NS_PER_MS,
        }


READER = Reader("iperf3", ("iperf3",), read)
