"""The time that TCP takes until a transfer shows the bottleneck's rate. Pure; times in ns."""

from __future__ import annotations

import math

from ewan.calibration.expectation import BYTE_NS, PairExpectation, framed_bytes
from ewan.labs.link import Direction

SEGMENT_BYTES = 1500
INITIAL_SEGMENTS = 10
"""RFC 6928."""


def segment_ns(pair: PairExpectation) -> float:
    """The time of a full segment at the bottleneck."""
    return SEGMENT_BYTES * BYTE_NS / pair.bottleneck_bps


def full_round_trip_ns(pair: PairExpectation) -> float:
    """A round trip while the bottleneck's queue is full."""
    queues = (direction for direction in pair.directions if direction.rate_bps == pair.bottleneck_bps)
    return pair.round_trip_ns(SEGMENT_BYTES) + max((_queue_ns(direction) for direction in queues), default=0.0)


def slow_start_ns(pair: PairExpectation) -> float:
    """Slow start, which doubles the window each round trip, until it has filled the path and the bottleneck's queue."""
    filled = full_round_trip_ns(pair) / segment_ns(pair)
    doublings = math.ceil(math.log2(max(filled / INITIAL_SEGMENTS, 1)))
    return (doublings + 1) * pair.round_trip_ns(SEGMENT_BYTES)


def _queue_ns(direction: Direction) -> float:
    size = framed_bytes(direction.framing, SEGMENT_BYTES)
    limits = direction.queue.limit_bytes, direction.queue.limit_packets
    held = min(limit * unit for limit, unit in zip(limits, (1, size), strict=True) if limit is not None)
    return held * BYTE_NS / direction.rate_bps
