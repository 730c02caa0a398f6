"""The mean rate of each link that follows a trace between two samples of its counters. Pure.

In: the table of links' counters, in whose rows `rate_bps` is the rate of that instant, and the plan's links. Out: the
same table, in which the rate of a direction that a trace moves is the mean since the row before, or since T0. Where a
trace's rows are shorter than the time between two samples, the rate at each sample says nothing of the time between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from labs.plan import Link
from labs.stages.trace import Trace, TraceOpportunities, TraceRows, said
from labs.traces import OPPORTUNITY_BYTES
from labs.units import BITS_PER_BYTE, NS_PER_SECOND

Times = NDArray[np.int64]
Amounts = NDArray[np.float64]


def with_mean_rates(table: pl.DataFrame, links: Sequence[Link]) -> pl.DataFrame:
    """`table`: of "links" (labs/record/columns.py), its times counted from T0, at which all traces begin."""
    traced = {
        (link.name, name): direction.trace
        for link in links
        for name, direction in (("forward", link.forward), ("backward", link.backward))
        if "rate" in said(direction.trace)
    }
    if not traced or table.is_empty():
        return table
    parts = [
        _with_means(own, traced[link, way]) if (link, way) in traced else own
        for (link, way), own in table.sort("time_ns", maintain_order=True).group_by("link", "direction")
    ]
    return pl.concat(parts)


def _with_means(own: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    times = own["time_ns"].to_numpy()
    bits = _carried(trace)(times)
    lengths, grown = np.diff(times, prepend=0), np.diff(bits, prepend=0.0)
    # A mean over a small part of the usual time, as at T0 and at the end, says nothing.
    whole = 2 * lengths >= np.median(lengths)
    means = np.where(whole & (lengths > 0), grown * NS_PER_SECOND / np.maximum(lengths, 1), own["rate_bps"].to_numpy())
    return own.with_columns(rate_bps=pl.Series(np.rint(means).astype(np.int64)))


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
