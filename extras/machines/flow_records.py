"""Records of flows whose two ends were on two machines, put together from what each end saw. Pure.

In: of a flow and part, the record of each end (emulator/traffic/src/flows/records.rs). Out: the record that one
process gives which has both ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_SECOND

Row = dict[str, Any]
SENDERS = ("segment_bytes", "min_rtt_ns", "retransmitted_segments", "copied_segments", "timeouts")
"""What the end tells that sends."""
CONNECTING = ("started_ns", "connected_ns")
"""What the source tells, which connects."""
DELAYS = ("delay_min_ns", "delay_p50_ns", "delay_p95_ns", "delay_p99_ns", "delay_max_ns")


def whole(source: Row | None, sink: Row | None, missing: str, drift_ns: int) -> Row:
    """One part's record. `missing`: why one of the two is not there; `drift_ns`: by how much more delays seem longer
    than was known when they were taken."""
    if source is None or sink is None:
        there = source or sink
        assert there is not None
        return {**there, "error": missing}
    if source["kind"] == "requests":
        return _session(source, sink)
    backward = source["part"] % 2 == 1 and source["kind"] == "bulk"
    sends, gets = (sink, source) if backward else (source, sink)
    row = {
        **gets,
        **{key: sends[key] for key in SENDERS},
        **{key: source[key] for key in CONNECTING},
        "error": _error(source, sends, gets),
    }
    return _datagrams(row, source, drift_ns) if "sent_packets" in gets else row


def arrivals(sources: Sequence[Row], sinks: Sequence[Row], missing: str) -> tuple[list[Row], dict[int, int]]:
    """One flow's connections that came one after the other, and part at the sink, which counts them as they come, →
    part. One is told from the others by the source's port; of several that had one, the first came first."""
    by_port: dict[int, deque[Row]] = {}
    for sink in sorted(sinks, key=lambda row: row["part"]):
        if sink.get("port") is not None:
            by_port.setdefault(sink["port"], deque()).append(sink)
    found, part_of = {}, {}
    for source in sorted(sources, key=lambda row: (row["connected_ns"] or 0, row["part"])):
        there = by_port.get(source.get("port") or 0)
        if not there:
            why = source["error"] or missing
            found[source["part"]] = {**source, "received_bytes": 0, "completion_ns": None, "error": why}
            continue
        sink = there.popleft()
        part_of[sink["part"]] = source["part"]
        found[source["part"]] = _arrival(source, sink)
    return [found[part] for part in sorted(found)], part_of


def _arrival(source: Mapping[str, Any], sink: Mapping[str, Any]) -> Row:
    complete = sink["received_bytes"] >= source["volume_bytes"]
    took = None if sink["ended_ns"] is None else max(sink["ended_ns"] - source["scheduled_ns"], 0)
    return {
        **source,
        "ended_ns": sink["ended_ns"],
        "received_bytes": sink["received_bytes"],
        "completion_ns": took if complete else None,
        "goodput_bps": _goodput(sink["received_bytes"], took),
        "error": None if complete else source["error"],
    }


def _session(source: Mapping[str, Any], sink: Mapping[str, Any]) -> Row:
    """Requests came at the sink, responses at the source, which knows how it went."""
    received = source["received_bytes"] + sink["received_bytes"]
    if source["volume_bytes"] is not None:
        received = min(received, source["volume_bytes"])  # the sink's kernel counts the connection's end too
    took = None if source["ended_ns"] is None else source["ended_ns"] - source["scheduled_ns"]

    def both(key: str) -> list[int]:
        return [each[key] for each in (source, sink) if each[key] is not None]

    return {
        **source,
        "received_bytes": received,
        "goodput_bps": _goodput(received, took),
        "segment_bytes": next(iter(both("segment_bytes")), None),
        "min_rtt_ns": min(both("min_rtt_ns"), default=None),
        "retransmitted_segments": sum(sent) if (sent := both("retransmitted_segments")) else None,
    }


def _goodput(received_bytes: int, took_ns: int | None) -> float | None:
    return received_bytes * BITS_PER_BYTE * NS_PER_SECOND / took_ns if took_ns is not None and took_ns > 0 else None


def _error(source: Mapping[str, Any], sends: Mapping[str, Any], gets: Mapping[str, Any]) -> str | None:
    """The receiver knows whether all came; why not is known to the end where it was noticed."""
    if source["connected_ns"] is None and source["kind"] == "bulk" and source["error"]:
        return str(source["error"])
    if gets.get("received_packets") == 0 and sends["error"]:
        return str(sends["error"])
    error: str | None = gets["error"]
    return error


def _datagrams(row: Row, source: Mapping[str, Any], drift_ns: int) -> Row:
    """What was sent is told by who sent it."""
    sent, received = source["sent_packets"], row["received_packets"]
    row |= {"sent_packets": sent, "lost_packets": max(sent - received, 0)}
    row |= {key: None if row[key] is None else row[key] - drift_ns for key in DELAYS}
    # The flow ends when the last packet was sent, or came, whichever is later.
    ends = [each for each in (row["ended_ns"], source["ended_ns"]) if each is not None]
    if ends and row["ended_ns"] is not None:
        row["ended_ns"] = ended = max(ends)
        row["goodput_bps"] = _goodput(row["received_bytes"], ended - row["scheduled_ns"])
    return row
