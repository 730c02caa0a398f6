"""The mean rate between two samples of its counters of each link whose rate a trace or an event moves. Pure.

In: the table of links' counters, in whose rows `rate_bps` is the rate of that instant, the plan's links, and the
events of events.json. Out: the same table, in which the rate of a direction that a trace or an event moves is the mean
since the row before, or since T0: where a rate moves between two samples, a rate at a sample is no measure of the time
between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_SECOND
from ewan.labs.link.keys import Direction
from ewan.labs.link.trace import Trace, TraceOpportunities, TraceRows, said
from ewan.labs.plan import Link
from ewan.labs.record.events import EventOutcome
from ewan.labs.traces import OPPORTUNITY_BYTES

Times = NDArray[np.int64]
Amounts = NDArray[np.float64]


def with_mean_rates(table: pl.DataFrame, links: Sequence[Link], events: Iterable[EventOutcome] = ()) -> pl.DataFrame:
    """`table`: of "links" (labs/record/columns.py), its times counted from T0, at which all traces begin. `events`: as
    events.json has them, in the order in which they were made."""
    if table.is_empty():
        return table
    made: dict[tuple[str, str], list[EventOutcome]] = {}
    for event in events:
        if event.applied_ns is not None:
            made.setdefault((event.link, event.direction), []).append(event)
    moved = {
        (link.name, name): parts
        for link in links
        for name, direction in (("forward", link.forward), ("backward", link.backward))
        if (parts := _parts(direction, made.get((link.name, name), [])))
    }
    if not moved:
        return table
    frames = [
        _with_means(own, moved[link, way]) if (link, way) in moved else own
        for (link, way), own in table.sort("time_ns", maintain_order=True).group_by("link", "direction")
    ]
    return pl.concat(frames)


class _Part(NamedTuple):
    """A source of a direction's rate from `begin_ns` on; `carried`: the bits that it lets pass in so many ns."""

    begin_ns: int
    carried: Callable[[Times], Amounts]
    traced: bool


def _parts(direction: Direction, events: Iterable[EventOutcome]) -> list[_Part]:
    """One after the other; none where the rate stays as it is."""
    trace = _carried(direction.trace) if "rate" in said(direction.trace) else None
    found = [_Part(0, _constant(direction.rate_bps) if trace is None else trace, trace is not None)]
    for event in events:
        begin_ns, rate_bps = event.applied_ns or 0, event.change.rate_bps
        if event.change.restart_trace and trace is not None:
            found.append(_Part(begin_ns, trace, True))
        elif rate_bps is not None:
            found.append(_Part(begin_ns, _constant(rate_bps), False))
    return found if len(found) > 1 or trace is not None else []


def _with_means(own: pl.DataFrame, parts: Sequence[_Part]) -> pl.DataFrame:
    times, rates_bps = (own[name].to_numpy() for name in ("time_ns", "rate_bps"))
    lengths, bits = np.diff(times, prepend=0), np.zeros(len(times))
    for number, part in enumerate(parts):
        end_ns = parts[number + 1].begin_ns if number + 1 < len(parts) else max(times[-1], part.begin_ns)
        bits += part.carried(np.clip(times, part.begin_ns, end_ns) - part.begin_ns)
    known = lengths > 0
    if any(part.traced for part in parts):
        # A trace's mean over a small part of the usual time, as at T0 and at the end, is no measure.
        known &= 2 * lengths >= np.median(lengths)
    means = np.where(known, np.diff(bits, prepend=0.0) * NS_PER_SECOND / np.maximum(lengths, 1), rates_bps)
    return own.with_columns(rate_bps=pl.Series(np.rint(means).astype(np.int64)))


def _constant(rate_bps: int) -> Callable[[Times], Amounts]:
    return lambda times: np.asarray(times * (rate_bps / NS_PER_SECOND), dtype=np.float64)


def _carried(trace: Trace) -> Callable[[Times], Amounts]:
    """A function that gives the number of bits that a trace lets pass from its beginning until each of some times."""
    match trace:
        case TraceOpportunities(opportunities=opportunities, period_ns=period):
            at, counts = (np.array(column, dtype=np.int64) for column in zip(*opportunities, strict=True))
            sums = np.concatenate(([0], np.cumsum(counts))) * float(OPPORTUNITY_BYTES * BITS_PER_BYTE)
            return _repeated(lambda times: sums[np.searchsorted(at, times, side="right")], period)
        case TraceRows(rows=rows, period_ns=period):
            rated = [(row[0] or 0, row[1]) for row in rows if row[1] is not None]
            at, rates = (np.array(column, dtype=np.int64) for column in zip(*rated, strict=True))
            sums = np.concatenate(([0.0], np.cumsum(np.diff(at) * (rates[:-1] / NS_PER_SECOND))))

            def until(times: Times) -> Amounts:
                row = np.searchsorted(at, times, side="right") - 1
                return np.asarray(sums[row] + (times - at[row]) * (rates[row] / NS_PER_SECOND))

            return _repeated(until, period)
        case _:
            raise ValueError(f"a trace that says no rate: {trace}")


def _repeated(once: Callable[[Times], Amounts], period_ns: int) -> Callable[[Times], Amounts]:
    """The same again and again; 0: it is not repeated."""
    if not period_ns:
        return once
    whole = once(np.array([period_ns]))[0]
    return lambda times: np.asarray(times // period_ns * whole + once(times % period_ns))
