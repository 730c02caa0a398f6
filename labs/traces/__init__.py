"""A link's rate, delay, loss and buffer over time: what a trace says, a window of it, and its statistics. Pure.

In: rows or opportunities, as `ewan.labs.traces.reading` finds them in a file. Out: the same in a window, and means,
bounds and peaks in whole bit/s, ns, parts per billion and bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_DAY, NS_PER_MS, NS_PER_SECOND, Duration, Rate

OPPORTUNITY_BYTES = 1504
"""The bytes of one opportunity (mahimahi)."""
MOST_ROWS = 2**20
LONGEST_NS = NS_PER_DAY
"""A day."""
SHORTEST_NS = NS_PER_MS
CLOSEST_NS = 1000
SOURCE_SUFFIX = ".source.yaml"
"""Follows a trace's name: beside an imported trace it tells where that is from, and its SHA-256."""

Column = Literal["rate", "delay", "loss", "buffer"]
COLUMNS: dict[Column, str] = {
    "rate": "rate_bps",
    "delay": "delay_ns",
    "loss": "loss_ppb",
    "buffer": "limit_bytes",
}
"""A column's name in a file, and the key of a row that holds it."""


class TraceError(ValueError):
    """The fault of a trace and its remedy, in one line."""


@dataclass(frozen=True, slots=True)
class TraceStep:
    """The settings of a link from an instant on; None: no change. A rate of 0 is an outage."""

    at_ns: int
    rate_bps: int | None = None
    delay_ns: int | None = None
    loss_ppb: int | None = None
    limit_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class TraceSteps:
    """In order of time, the first at 0 with a value for each column there is; `end_ns` is the trace's length."""

    rows: tuple[TraceStep, ...]
    end_ns: int

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those that the trace says."""
        return tuple(column for column, key in COLUMNS.items() if getattr(self.rows[0], key) is not None)


@dataclass(frozen=True, slots=True)
class Opportunities:
    """Instants (ns) in order, each with its number of opportunities; `end_ns` is the period."""

    instants: tuple[tuple[int, int], ...]
    end_ns: int

    @property
    def columns(self) -> tuple[Column, ...]:
        """They set only the rate."""
        return ("rate",)


Trace = TraceSteps | Opportunities


def window(trace: Trace, from_ns: int | None, to_ns: int | None) -> Trace:
    """The part of a trace between two of its times; TraceError where there is none, or where the trace ends before.

    Opportunities begin after `from_ns`.
    """
    begin, end = from_ns or 0, trace.end_ns if to_ns is None else to_ns
    if begin >= end and (begin or to_ns is not None):
        raise TraceError(f"the window from {Duration(begin)} to {Duration(end)} is empty: write a later to")
    if end > trace.end_ns:
        more = f", or give it rows until {Duration(end)}" if isinstance(trace, TraceSteps) else ""
        raise TraceError(
            f"ends at {Duration(trace.end_ns)}, before its to, {Duration(end)}: if it was cut off, fetch it again; "
            f"else write a to that is not later{more}"
        )
    if isinstance(trace, Opportunities):
        inside = [(at - begin, count) for at, count in trace.instants if begin < at <= end or at == begin == 0]
        if not inside:
            raise TraceError(f"nothing leaves from {Duration(begin)} to {Duration(end)}: write a longer window")
        return Opportunities(tuple(inside), end - begin)
    first, inside_rows = trace.rows[0], []
    for row in trace.rows:
        if row.at_ns <= begin:
            known = {key: value for key in COLUMNS.values() if (value := getattr(row, key)) is not None}
            first = replace(first, **known)
        elif row.at_ns <= end:
            inside_rows.append(replace(row, at_ns=row.at_ns - begin))
    return TraceSteps((replace(first, at_ns=0), *inside_rows), end - begin)


def spans(rows: TraceSteps, column: Column) -> Iterator[tuple[int, int]]:
    """A column's values in order, and for how long (ns) each holds; the last one to the trace's end."""
    value = 0
    for number, row in enumerate(rows.rows):
        said = getattr(row, COLUMNS[column])
        value = value if said is None else said
        following = rows.rows[number + 1].at_ns if number + 1 < len(rows.rows) else max(rows.end_ns, row.at_ns)
        yield value, following - row.at_ns


def mean(trace: Trace, column: Column) -> int:
    """A column's mean over time, rounded down; of a trace without length its value."""
    if isinstance(trace, Opportunities):
        bits = sum(count for _, count in trace.instants) * OPPORTUNITY_BYTES * BITS_PER_BYTE
        return bits * NS_PER_SECOND // trace.end_ns
    if not trace.end_ns:
        return list(spans(trace, column))[-1][0]
    return sum(value * took for value, took in spans(trace, column)) // trace.end_ns


def bounds(trace: Trace, column: Column) -> tuple[int, int]:
    """A column's least and greatest value; of opportunities, the rates of windows of 100 ms."""
    if isinstance(trace, Opportunities):
        rates = [rate for _, rate in binned(trace, NS_PER_SECOND // 10)]
        return min(rates), max(rates)
    values = [value for value, _ in spans(trace, column)]
    return min(values), max(values)


def binned(trace: Opportunities, width_ns: int) -> list[tuple[int, int]]:
    """The mean rate of opportunities, bit/s, from each multiple of `width_ns` on; the last bin may be shorter."""
    counts = [0] * max(1, -(-trace.end_ns // width_ns))
    for at, count in trace.instants:
        counts[min(max(at - 1, 0) // width_ns, len(counts) - 1)] += count
    found = []
    for number, count in enumerate(counts):
        took = min(width_ns, trace.end_ns - number * width_ns)
        found.append((number * width_ns, count * OPPORTUNITY_BYTES * BITS_PER_BYTE * NS_PER_SECOND // took))
    return found


def peak_bps(trace: Trace, within_ns: int) -> int:
    """A rate at which no more leaves within any `within_ns` than the trace lets through; `within_ns` 0: the mean."""
    if isinstance(trace, TraceSteps):
        return bounds(trace, "rate")[1]
    if not within_ns:
        return mean(trace, "rate")
    # So many periods as the time touches, from each opportunity on.
    whole, rest = divmod(within_ns, trace.end_ns)
    total = sum(count for _, count in trace.instants)
    twice = [*trace.instants, *((at + trace.end_ns, count) for at, count in trace.instants)]
    most = held = first = 0
    for at, count in twice:
        held += count
        while twice[first][0] < at - rest:
            held -= twice[first][1]
            first += 1
        most = max(most, held)
    bits = (whole * total + most) * OPPORTUNITY_BYTES * BITS_PER_BYTE
    return -(-bits * NS_PER_SECOND // within_ns)


def check(trace: Trace, after: Literal["repeat", "hold"]) -> None:
    """TraceError for what a link cannot follow, or could not get out of."""
    count = len(trace.rows if isinstance(trace, TraceSteps) else trace.instants)
    if isinstance(trace, Opportunities) and max(at_once for _, at_once in trace.instants) > MOST_ROWS:
        raise TraceError(f"has more than {MOST_ROWS} opportunities at once: write fewer")
    if count > MOST_ROWS:
        raise TraceError(f"has {count} rows: write at most {MOST_ROWS}")
    if trace.end_ns > LONGEST_NS:
        raise TraceError(f"is {Duration(trace.end_ns)} long: write a window of at most {Duration(LONGEST_NS)}")
    if isinstance(trace, Opportunities) and after == "hold":
        raise TraceError("would deliver nothing after its end: write after: repeat")
    if after == "repeat" and trace.end_ns:
        if trace.end_ns < SHORTEST_NS:
            raise TraceError(f"repeats after {Duration(trace.end_ns)}: write a window of at least 1ms")
        if count > trace.end_ns // CLOSEST_NS:
            raise TraceError(f"has {count} rows in {Duration(trace.end_ns)}: write at most one a microsecond")
    if "rate" not in trace.columns:
        return
    held = list(spans(trace, "rate"))[-1][0] if isinstance(trace, TraceSteps) else 0
    if isinstance(trace, TraceSteps) and (after == "hold" or not trace.end_ns) and not held:
        raise TraceError("ends with an outage that would hold for ever: write a rate at its end, or after: repeat")
    rate = mean(trace, "rate")
    if not Rate.LOWEST <= rate <= Rate.HIGHEST:
        lowest, highest = Rate(Rate.LOWEST), Rate(Rate.HIGHEST)
        raise TraceError(f"has a mean rate of {rate}bit/s: write a window with a mean from {lowest} to {highest}")
