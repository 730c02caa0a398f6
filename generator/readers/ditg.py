"""The summary that ITGDec prints of a log of D-ITG, as a row for each flow. Pure.

In: what a command printed. Out: rows of `decoded_flows`, and totals. A delay is the time of arrival less that of
sending: of one machine's nodes both are of one clock. The log of a sender has only the times of sending; ITGDec prints
0 for its delays, which are null here. Lost are those that are missing in the sequence numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ewan.generator.readers.reader import CommandOutput, Reader, ReaderResult, lines
from ewan.generator.rows import Row, number, text
from ewan.labs.base.units import NS_PER_SECOND

_FLOW = re.compile(r"Flow number: (\d+)")
_END = re.compile(r"(From|To) +(\S+):(\d+)$")
_VALUE = re.compile(r"([A-Z][\w -]*?) += +(-?\d+(?:\.\d+)?|-?nan|-?inf)(?: |$)")
_TOTAL = "TOTAL RESULTS"
_HEAD = "ITGDec version"
_TIMES = {
    "Total time": "duration_ns",
    "Minimum delay": "delay_min_ns",
    "Average delay": "delay_mean_ns",
    "Maximum delay": "delay_max_ns",
    "Delay standard deviation": "delay_deviation_ns",
    "Average jitter": "jitter_ns",
}
"""Printed in seconds with six digits."""
_COUNTS = {"Total packets": "packets", "Bytes received": "payload_bytes", "Packets dropped": "lost_packets"}
_OF_ARRIVALS = ("delay_min_ns", "delay_mean_ns", "delay_max_ns", "delay_deviation_ns", "jitter_ns")


def read(printed: CommandOutput) -> ReaderResult:
    """The flows of all logs of a command, in the order in which ITGDec prints them."""
    if _HEAD not in printed.text:
        return ReaderResult(problem="its output is none of ITGDec's" if printed.text.strip() else "it printed nothing")
    rows = list(_flows(printed.text))
    whole = [row for row in rows if "lost_packets" in row]
    problem = None
    if not rows:
        problem = "it found no flow in the log: write its summary to the output (ITGDec LOG)"
    elif len(whole) < len(rows) or _TOTAL not in printed.text:
        problem = "its summary is not whole"
    return ReaderResult({"decoded_flows": whole}, _totals(whole), problem)


def _totals(rows: Sequence[Row]) -> Row:
    if not rows:
        return {}
    totals: Row = {"target": ", ".join(dict.fromkeys(text(row, "target") for row in rows))}
    for log, done in (("sender", "sent"), ("receiver", "received")):
        those = [row for row in rows if row["log"] == log]
        if those:
            totals[f"{done}_packets"] = sum(number(row, "packets") for row in those)
            totals[f"{done}_bytes"] = sum(number(row, "payload_bytes") for row in those)
    return totals


def _flows(text: str) -> Iterator[Row]:
    row: Row | None = None
    for line in lines(text):
        match = _FLOW.match(line)
        if match or _TOTAL in line or line.startswith(_HEAD):
            if row is not None:
                yield _with_its_log(row)
            row = {"flow": int(match[1])} if match else None
        elif row is not None:
            _take(line, row)
    if row is not None:
        yield _with_its_log(row)


def _take(line: str, row: Row) -> None:
    if match := _END.match(line):
        end = "source" if match[1] == "From" else "target"
        row |= {end: match[2], f"{end}_port": int(match[3])}
    elif match := _VALUE.match(line):
        name, value = match[1], float(match[2])
        if name in _TIMES:
            row[_TIMES[name]] = round(value * NS_PER_SECOND)
        elif name in _COUNTS:
            row[_COUNTS[name]] = int(value)


def _with_its_log(row: Row) -> Row:
    """A sender's log is one whose delays are all nought: no packet arrives when it is sent."""
    if row.get("delay_max_ns") == 0:
        return {**row, **dict.fromkeys(_OF_ARRIVALS), "log": "sender"}
    return {**row, "log": "receiver"}


READER = Reader("ITGDec", ("ITGDec",), read)
