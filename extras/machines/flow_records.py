"""Records of flows whose two ends were on two machines, put together from the records of both ends. Pure.

In: for a flow and part, the record of each end (emulator/traffic/src/flows/records.rs). Out: the record that one
process gives which has both ends."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ewan.generator.traffic_request import FlowRecord
from ewan.labs.base.codec import replace
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_SECOND


def whole(source: FlowRecord | None, sink: FlowRecord | None, missing: str, drift_ns: int) -> FlowRecord:
    """One part's record. `missing`: why one of the two is not there; `drift_ns`: by how much more delays seem longer
    than was known when they were taken."""
    if source is None or sink is None:
        there = source or sink
        assert there is not None
        return replace(there, error=missing)
    if source.kind == "requests":
        return _session(source, sink)
    backward = source.part % 2 == 1 and source.kind == "bulk"
    sends, gets = (sink, source) if backward else (source, sink)
    record = replace(
        gets,
        segment_bytes=sends.segment_bytes,
        min_rtt_ns=sends.min_rtt_ns,
        retransmitted_segments=sends.retransmitted_segments,
        copied_segments=sends.copied_segments,
        timeouts=sends.timeouts,
        started_ns=source.started_ns,
        connected_ns=source.connected_ns,
        error=_error(source, sends, gets),
    )
    return record if gets.sent_packets is None else _datagrams(record, source, drift_ns)


def arrivals(
    sources: Sequence[FlowRecord], sinks: Sequence[FlowRecord], missing: str
) -> tuple[list[FlowRecord], dict[int, int]]:
    """The connections of one flow, one after the other, and the mapping from the part at the sink, which counts them as
    they come, to the part. Connections are distinguished by the source's port; of several with one port, the first came
    first."""
    by_port: dict[int, deque[FlowRecord]] = {}
    for sink in sorted(sinks, key=lambda record: record.part):
        if sink.port is not None:
            by_port.setdefault(sink.port, deque()).append(sink)
    found, part_of = {}, {}
    for source in sorted(sources, key=lambda record: (record.connected_ns or 0, record.part)):
        there = by_port.get(source.port or 0)
        if not there:
            why = source.error or missing
            found[source.part] = replace(source, received_bytes=0, completion_ns=None, error=why)
            continue
        sink = there.popleft()
        part_of[sink.part] = source.part
        found[source.part] = _arrival(source, sink)
    return [found[part] for part in sorted(found)], part_of


def _arrival(source: FlowRecord, sink: FlowRecord) -> FlowRecord:
    complete = sink.received_bytes >= (source.volume_bytes or 0)
    took = None if sink.ended_ns is None else max(sink.ended_ns - source.scheduled_ns, 0)
    return replace(
        source,
        ended_ns=sink.ended_ns,
        received_bytes=sink.received_bytes,
        completion_ns=took if complete else None,
        goodput_bps=_goodput(sink.received_bytes, took),
        error=None if complete else source.error,
    )


def _session(source: FlowRecord, sink: FlowRecord) -> FlowRecord:
    """Requests came at the sink, responses at the source, which knows how it went."""
    received = source.received_bytes + sink.received_bytes
    if source.volume_bytes is not None:
        received = min(received, source.volume_bytes)  # the sink's kernel counts the connection's end too
    took = None if source.ended_ns is None else source.ended_ns - source.scheduled_ns
    sizes, trips, sent = (
        [each for each in both if each is not None]
        for both in (
            (source.segment_bytes, sink.segment_bytes),
            (source.min_rtt_ns, sink.min_rtt_ns),
            (source.retransmitted_segments, sink.retransmitted_segments),
        )
    )
    return replace(
        source,
        received_bytes=received,
        goodput_bps=_goodput(received, took),
        segment_bytes=sizes[0] if sizes else None,
        min_rtt_ns=min(trips, default=None),
        retransmitted_segments=sum(sent) if sent else None,
    )


def _goodput(received_bytes: int, took_ns: int | None) -> float | None:
    return received_bytes * BITS_PER_BYTE * NS_PER_SECOND / took_ns if took_ns is not None and took_ns > 0 else None


def _error(source: FlowRecord, sends: FlowRecord, gets: FlowRecord) -> str | None:
    """The receiver knows whether all came; why not is known to the end where it was noticed."""
    if source.connected_ns is None and source.kind == "bulk" and source.error:
        return source.error
    if gets.received_packets == 0 and sends.error:
        return sends.error
    return gets.error


def _datagrams(record: FlowRecord, source: FlowRecord, drift_ns: int) -> FlowRecord:
    """A record of datagrams: the source's record has the number of packets that were sent."""

    def corrected(delay_ns: int | None) -> int | None:
        return None if delay_ns is None else delay_ns - drift_ns

    sent, received = source.sent_packets or 0, record.received_packets or 0
    record = replace(
        record,
        sent_packets=sent,
        lost_packets=max(sent - received, 0),
        delay_min_ns=corrected(record.delay_min_ns),
        delay_p50_ns=corrected(record.delay_p50_ns),
        delay_p95_ns=corrected(record.delay_p95_ns),
        delay_p99_ns=corrected(record.delay_p99_ns),
        delay_max_ns=corrected(record.delay_max_ns),
    )
    if record.ended_ns is None:
        return record
    # The flow ends when the last packet was sent, or came, whichever is later.
    ended = max(record.ended_ns, record.ended_ns if source.ended_ns is None else source.ended_ns)
    return replace(record, ended_ns=ended, goodput_bps=_goodput(record.received_bytes, ended - record.scheduled_ns))
