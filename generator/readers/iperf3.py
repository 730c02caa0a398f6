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
from ewan.generator.readers.reader import CommandOutput, Reader, ReaderResult
from ewan.generator.rows import Row
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
    for number, report in enumerate(reports):
        known = number == 0 and bool(printed.calls) and printed.calls[0].at_once
        try:
            targets[str(iperf3.peer(report))] = None
            rows += _intervals(report, printed.started_ns if known else None)
            problem = problem or report.get("error")
            sent += report["end"].get("sum_sent", {}).get("bytes", 0)
            received += report["end"].get("sum_received", {}).get("bytes", 0)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            problem = "its JSON is none of iperf3's"
    if len(rows) > MOST_ROWS:
        rows, problem = rows[:MOST_ROWS], f"more than {MOST_ROWS} intervals: the rest is left out"
    totals = {"target": ", ".join(targets), "sent_bytes": sent or None, "received_bytes": received or None}
    return ReaderResult({"intervals": rows}, totals, problem)


def _reports(text: str) -> tuple[list[dict[str, Any]], bool]:
    """The JSON objects of a text; and whether all of them were whole."""
    found: list[dict[str, Any]] = []
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0:
        try:
            report, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return found, False
        found.append(report)
        at = text.find("{", end)
    return found, True


def _intervals(report: dict[str, Any], started_ns: int | None) -> Iterator[Row]:
    omitted_s = report["start"].get("test_start", {}).get("omit", 0)
    for index, entry in iperf3.entries(report):
        # After an omitted time (-O) iperf3 counts from nought again.
        end_s = entry["end"] + (0 if entry["omitted"] else omitted_s)
        yield {
            "target": str(iperf3.peer(report)),
            "stream": index + 1,
            "direction": "sent" if entry["sender"] else "received",
            "time_ns": None if started_ns is None else started_ns + iperf3.ns(end_s),
            "interval_ns": iperf3.ns(entry["seconds"]),
            "omitted": entry["omitted"],
            "transferred_bytes": entry["bytes"],
            "retransmitted_segments": entry.get("retransmits"),
            "cwnd_bytes": entry.get("snd_cwnd"),
            "srtt_ns": entry["rtt"] * _US_NS if entry.get("rtt") else None,
            "rttvar_ns": entry["rttvar"] * _US_NS if entry.get("rttvar") else None,
            "packets": entry.get("packets"),
            "lost_packets": entry.get("lost_packets"),
            "jitter_ns": entry["jitter_ms"] * NS_PER_MS if "jitter_ms" in entry else None,
        }


READER = Reader("iperf3", ("iperf3",), read)
