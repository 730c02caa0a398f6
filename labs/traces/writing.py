"""Traces as text: our CSV, and mahimahi's list of opportunities. Pure.

In: a `Trace`. Out: a file's text, which `ewan.labs.traces.reading` reads as the same trace, or as near as the format
allows.
"""

from __future__ import annotations

from collections.abc import Callable

from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_MS, NS_PER_SECOND, Duration, Fraction, Rate, Size
from ewan.labs.traces import (
    COLUMNS,
    OPPORTUNITY_BYTES,
    Opportunities,
    Trace,
    TraceError,
    TraceStep,
    TraceSteps,
    binned,
    spans,
)

BIN_NS = 100 * NS_PER_MS
_TEXT: dict[str, Callable[[int], str]] = {
    "rate": lambda bps: str(Rate(bps)) if bps else "0",
    "delay": lambda ns: str(Duration(ns)),
    "loss": lambda ppb: str(Fraction(ppb)),
    "buffer": lambda size: str(Size(size)),
}


def csv(trace: Trace, notes: tuple[str, ...] = ()) -> str:
    """Our CSV with comment lines before it; opportunities as the rate of each 100 ms."""
    rows = _rates(trace) if isinstance(trace, Opportunities) else trace
    columns = rows.columns
    lines = [*(f"# {note}" for note in notes), ",".join(("time", *columns))]
    before = dict.fromkeys(columns, -1)
    for row in rows.rows:
        cells = []
        for column in columns:
            value = getattr(row, COLUMNS[column])
            cells.append("" if value is None or value == before[column] else _TEXT[column](value))
            before[column] = before[column] if value is None else value
        if any(cells) or row.at_ns == rows.end_ns:
            lines.append(",".join((str(Duration(row.at_ns)), *cells)))
    if rows.end_ns > rows.rows[-1].at_ns:
        lines.append(",".join((str(Duration(rows.end_ns)), *("" for _ in columns))))
    return "\n".join(lines) + "\n"


def _rates(trace: Opportunities) -> TraceSteps:
    found = [TraceStep(at, rate_bps=rate if rate >= Rate.LOWEST else 0) for at, rate in binned(trace, BIN_NS)]
    return TraceSteps(tuple(found), trace.end_ns)


def mahimahi(trace: Trace) -> str:
    """Opportunities of 1504 bytes by the rate, each at the first whole millisecond by which it has been earned."""
    if isinstance(trace, Opportunities):
        return "".join(f"{at // NS_PER_MS}\n" * count for at, count in trace.instants)
    if "rate" not in trace.columns or not trace.end_ns:
        raise TraceError("mahimahi's format is of rates over time: write a trace with a rate and a length")
    # In bits × 10^9, so that nothing is rounded.
    worth = OPPORTUNITY_BYTES * BITS_PER_BYTE * NS_PER_SECOND
    lines, at_ns, earned = [], 0, 0
    for rate, took in spans(trace, "rate"):
        left = took
        while rate and earned + rate * left >= worth:
            step = -(-(worth - earned) // rate)
            earned += rate * step - worth
            at_ns, left = at_ns + step, left - step
            lines.append(f"{-(-at_ns // NS_PER_MS)}\n")
        earned, at_ns = earned + rate * left, at_ns + left
    if not lines:
        raise TraceError("earns no opportunity of 1504 bytes: write a longer trace or a higher rate")
    return "".join(lines)
