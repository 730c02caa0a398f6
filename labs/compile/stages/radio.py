"""Aggregates, a shared medium, slots and HARQ of a radio link."""

from __future__ import annotations

from ewan.labs.base.units import Duration
from ewan.labs.compile.settings import Settings
from ewan.labs.compile.stages.context import LinkContext, Obstacle
from ewan.labs.stages import NO_AGGREGATE, NO_HARQ, Aggregate, Direction, Harq, Trace, TraceOpportunities


def compile_aggregate(way: Settings, at: LinkContext, trace: Trace) -> Aggregate:
    """DescriptionError where a trace says when packets leave."""
    written = way.written.aggregate
    if written is None or written.packets is None:
        return NO_AGGREGATE
    if isinstance(trace, TraceOpportunities):
        raise at.error(way, "aggregate", 'the trace says when packets leave: write "aggregate: none"', None)
    return Aggregate(
        gap_ns=written.gap.ns if written.gap is not None else 0,
        packets=written.packets,
        time_ns=written.time.ns if written.time is not None else 0,
    )


def compile_duplex(way: Settings, at: LinkContext, trace: Trace, burst_bytes: int) -> bool:
    """DescriptionError where something else than the rate says when packets leave."""
    if way.written.duplex != "half":
        return False
    if isinstance(trace, TraceOpportunities):
        raise at.error(way, "duplex", 'the trace says when packets leave: write "duplex: full"', None)
    if burst_bytes:
        raise at.error(way, "duplex", 'who waits for tokens holds the medium: write "burst: none"', None)
    return True


def compile_harq(way: Settings) -> Harq:
    """What is sent again, and when."""
    written = way.written.harq
    if written is None or written.errors is None or written.round is None or not written.errors.ppb:
        return NO_HARQ
    return Harq(error_ppb=written.errors.ppb, round_ns=written.round.ns, rounds=written.rounds)


def longest_ns(way: Settings) -> int:
    """How much longer than the delay a packet may be held behind the rate stage."""
    return compile_harq(way).longest_ns + (way.written.slot.ns if isinstance(way.written.slot, Duration) else 0)


def obstacle(direction: Direction) -> Obstacle | None:
    """netem knows none of them."""
    for key, written, none in (
        ("aggregate", direction.aggregate != NO_AGGREGATE, "none"),
        ("duplex", direction.half_duplex, "full"),
        ("slot", direction.slot_ns > 0, "none"),
        ("harq", direction.harq != NO_HARQ, "none"),
    ):
        if written:
            return key, f'such a radio link is our own model\'s alone: write "{key}: {none}"'
    return None
