"""How a direction changes over time by itself: rows of what it becomes, or opportunities at which packets leave.

Times in ns after the trace's beginning, rates in bit/s, losses in parts per billion. The other keys of a direction hold
the means of what a trace says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, assert_never

from ewan.labs.base.units import Duration

Said = Literal["rate", "delay", "loss", "buffer"]
"""What a trace may say."""


@dataclass(frozen=True, slots=True)
class NoTrace:
    """Nothing changes by itself."""

    kind: Literal["none"] = field(default="none", init=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRows:
    """Each row is (at_ns, rate_bps, delay_ns, loss_ppb, limit_bytes), None where it stays; the first says all.

    Repeated after `period_ns`; 0: the last row holds.
    """

    kind: Literal["rows"] = field(default="rows", init=False)
    period_ns: int
    rows: tuple[tuple[int | None, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOpportunities:
    """Each is (at_ns, count): so many times 1504 bytes of what waits leave then. Repeated after `period_ns`."""

    kind: Literal["opportunities"] = field(default="opportunities", init=False)
    opportunities: tuple[tuple[int, ...], ...]
    period_ns: int


Trace = NoTrace | TraceRows | TraceOpportunities


def said(trace: Trace) -> frozenset[Said]:
    """What a trace says instead of the direction's other keys."""
    match trace:
        case NoTrace():
            return frozenset()
        case TraceOpportunities():
            return frozenset({"rate"})
        case TraceRows(rows=rows):
            names: tuple[Said, ...] = ("rate", "delay", "loss", "buffer")
            return frozenset(name for name, value in zip(names, rows[0][1:], strict=True) if value is not None)
        case _:
            assert_never(trace)


def length(trace: Trace) -> int:
    """Rows, or instants with opportunities."""
    match trace:
        case NoTrace():
            return 0
        case TraceRows(rows=rows):
            return len(rows)
        case TraceOpportunities(opportunities=opportunities):
            return len(opportunities)
        case _:
            assert_never(trace)


def beyond(trace: Trace, lasts_ns: int) -> str:
    """What becomes of a trace that is shorter than a run of so many ns; empty where it is not."""
    match trace:
        case NoTrace():
            return ""
        case TraceRows(period_ns=0, rows=rows):
            last = rows[-1][0] or 0
            return f"its trace ends after {Duration(last)}, and its last row holds" if 0 < last < lasts_ns else ""
        case TraceRows(period_ns=period) | TraceOpportunities(period_ns=period):
            if period >= lasts_ns:
                return ""
            return f"its trace of {Duration(period)} begins again, {lasts_ns / period:.3g} times in all"
        case _:
            assert_never(trace)


def words(trace: Trace) -> str:
    """`trace of 600 rows, 60s repeated`; empty for none."""
    match trace:
        case NoTrace():
            return ""
        case TraceRows(period_ns=period, rows=rows):
            return f"trace of {len(rows)} rows, {f'{Duration(period)} repeated' if period else 'then held'}"
        case TraceOpportunities(opportunities=opportunities, period_ns=period):
            count = sum(each[1] for each in opportunities)
            return f"trace of {count} opportunities, {Duration(period)} repeated"
        case _:
            assert_never(trace)
