"""The trace of a direction: what it says must not be said beside it; and what it lets through at most."""

from __future__ import annotations

from typing import Literal

from ewan.labs.compile.settings import TRACED, Settings
from ewan.labs.compile.stages.context import LinkContext, Obstacle
from ewan.labs.spec import fields
from ewan.labs.stages import NoTrace, Trace, TraceOpportunities, TraceRows
from ewan.labs.traces import Opportunities, Rows, bounds, peak_bps


def compile_trace(way: Settings, at: LinkContext) -> Trace:
    """DescriptionError where a key says what the trace says."""
    written = way.written.trace
    if written is None:
        return NoTrace()
    trace = written.trace
    for column in trace.columns:
        for key in TRACED[column]:
            if key in way.paths:
                message = f"the trace of {at.link} says the {column}: leave {key} out, or take another trace"
                raise at.error(way, key, message, getattr(way.written, key))
    queue = way.written.queue
    if "buffer" in trace.columns and queue is not None and isinstance(queue.model, fields.Priority | fields.Weighted):
        message = f"{queue.kind} has a buffer for each class: take a trace without a buffer"
        raise at.error(way, "trace", message, None)
    period = trace.end_ns if written.after != "hold" else 0
    match trace:
        case Opportunities(instants):
            return TraceOpportunities(opportunities=instants, period_ns=period)
        case Rows(rows):
            # At the end of a period the first row holds again.
            kept = [row for row in rows if not period or row.at_ns < period]
            listed = ((row.at_ns, row.rate_bps, row.delay_ns, row.loss_ppb, row.limit_bytes) for row in kept)
            return TraceRows(period_ns=period, rows=tuple(listed))


def most(way: Settings, column: Literal["delay", "buffer"]) -> int | None:
    """The greatest delay (ns) or buffer (bytes) of the trace; None where it says none."""
    trace = way.traced(column)
    return None if trace is None else bounds(trace, column)[1]


def highest_bps(way: Settings, within_ns: int) -> int:
    """The rate of the link that its store must suffice for; `within_ns`: the longest delay."""
    trace = way.traced("rate")
    return way.rate.bps if trace is None else max(peak_bps(trace, within_ns), way.rate.bps)


def obstacle(trace: Trace) -> Obstacle | None:
    """The kernel's queueing disciplines change when they are told to."""
    return None if isinstance(trace, NoTrace) else ("trace", "the kernel's parts follow no trace")
