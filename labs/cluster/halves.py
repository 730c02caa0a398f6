"""Records of flows whose two ends were on two machines, put together from what each end saw. Pure.

In: of a flow and part, the record of each end (generator/src/traffic/records.rs). Out: the record that one process
gives which has both ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labs.units import NS_PER_SECOND

Row = dict[str, Any]
SENDERS = ("segment_bytes", "min_rtt_ns", "retransmitted_segments", "copied_segments", "timeouts")
"""What the end tells that sends."""
CONNECTING = ("started_ns", "connected_ns")
"""What the source tells, which connects."""
DELAYS = ("delay_min_ns", "delay_p50_ns", "delay_p95_ns", "delay_p99_ns", "delay_max_ns")
_BITS = 8


def whole(source: Row | None, sink: Row | None, missing: str, drift_ns: int) -> Row:
    """One part's record. `missing`: why one of the two is not there; `drift_ns`: by how much more delays seem longer
    than was known when they were taken."""
    if source is None or sink is None:
        there = source or sink
        assert there is not None
        return {**there, "error": missing}
    backward = source["part"] % 2 == 1 and source["kind"] == "bulk"
    sends, gets = (sink, source) if backward else (source, sink)
    row = {
        **gets,
        **{key: sends[key] for key in SENDERS},
        **{key: source[key] for key in CONNECTING},
        "error": _error(source, sends, gets),
    }
    return _datagrams(row, source, drift_ns) if "sent_packets" in gets else row


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
        took = ended - row["scheduled_ns"]
        row["goodput_bps"] = row["received_bytes"] * _BITS * NS_PER_SECOND / took if took > 0 else None
    return row
