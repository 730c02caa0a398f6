"""Payload received over time, and measures of it: shares, convergence, smoothness, the warm-up. Pure.

In: flows and the table `goodput` (labs/record/columns.py). Out: bytes between any two moments, by flow; shares, ns,
ratios.

For a flow whose arrivals are recorded, arrivals count, without copies; for others, the bytes delivered in order. Bytes
are taken to come evenly within a bin, and those of a flow without bins (a file of many, a scenario with `series: 0`)
from its start to its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ewan.analysis import arrivals
from ewan.analysis.arrivals import FLOW, STEADY_KINDS, TELLS, TOLD
from ewan.analysis.network import BYTE_NS
from ewan.analysis.queries import collected, groups
from ewan.analysis.statistics import mser5
from ewan.labs.base.units import NS_PER_SECOND

Key = tuple[int, int]
"""A flow and its part."""
Times = Sequence[tuple[int, int]]

DELTA = 0.1
"""The relative distance from an equal share at which a flow's share still counts as fair: the δ of Bansal et al."""
WINDOW_NS = NS_PER_SECOND
"""Over what time shares are taken for convergence, and goodput for smoothness."""
LEAST_INTERVALS = 5
"""For smoothness."""


@dataclass(frozen=True)
class FlowBytes:
    """The received bytes of one flow: their number (`sums`) until each moment (`times`, ns, in order)."""

    times: NDArray[np.int64]
    sums: NDArray[np.float64]

    def until(self, moments: NDArray[np.int64]) -> NDArray[np.float64]:
        """Bytes until each moment."""
        return np.interp(moments, self.times, self.sums)

    def within(self, times: Times) -> float:
        """Bytes in disjoint intervals."""
        if not times:
            return 0.0
        found = self.until(np.asarray(times, dtype=np.int64))
        return float((found[:, 1] - found[:, 0]).sum())

    @property
    def total(self) -> float:
        """All bytes."""
        return float(self.sums[-1])


class Binned(NamedTuple):
    """Properties of one flow's bins: `told` is true where they record arrivals; `longest_ns` is the length of the
    longest."""

    told: bool
    longest_ns: int


def bins(goodput: pl.DataFrame) -> dict[Key, Binned]:
    """The properties of the bins of each flow and part; without flows that have none."""
    each = goodput.lazy().group_by(FLOW, maintain_order=True).agg(TELLS.alias("told"), pl.col("bin_ns").max())
    return {(flow, part): Binned(told, longest) for flow, part, told, longest in collected(each).iter_rows()}


def came(flows: pl.DataFrame, goodput: pl.DataFrame) -> dict[Key, FlowBytes]:
    """The received bytes of each flow and part; without flows that got nothing."""
    own = goodput.lazy().join(flows.lazy().select(FLOW), on=FLOW, how="semi")
    told = arrivals.distinct(own, flows.lazy()).select(*FLOW, "time_ns", "bin_ns", size="distinct_bytes")
    others = own.filter(~TOLD).sort(*FLOW, "time_ns").select(*FLOW, "time_ns", "bin_ns", size="delivered_bytes")
    rows = collected(pl.concat([told, others]).with_columns(pl.col("size").fill_null(0)))
    columns = {name: rows[name].to_numpy() for name in (*FLOW, "time_ns", "bin_ns", "size")}
    found: dict[Key, FlowBytes] = {}
    for own_rows in groups(*(columns[name] for name in FLOW)):
        ends, widths = columns["time_ns"][own_rows], columns["bin_ns"][own_rows]
        sums = np.cumsum(columns["size"][own_rows]).astype(np.float64)
        # What lies between two bins is a time in which nothing came.
        moments = np.stack([ends - widths, ends], axis=1).ravel()
        steps = np.stack([np.concatenate(([0.0], sums[:-1])), sums], axis=1).ravel()
        key = int(columns["flow"][own_rows.start]), int(columns["part"][own_rows.start])
        found[key] = FlowBytes(np.maximum.accumulate(moments), steps)
    for flow, part, begin, end, size in flows[[*FLOW, "started_ns", "ended_ns", "received_bytes"]].iter_rows():
        if size and None not in (begin, end) and (flow, part) not in found:
            found[flow, part] = FlowBytes(np.array([begin, max(end, begin + 1)]), np.array([0.0, float(size)]))
    return found


def share(own: Iterable[FlowBytes], others: Iterable[FlowBytes], times: Times) -> float | None:
    """The share of the flows `own` in all bytes that came in these times; None where nothing came."""
    ours = sum(each.total for each in own)
    theirs = sum(each.within(times) for each in others)
    return ours / (ours + theirs) if ours + theirs else None


@dataclass(frozen=True)
class CommonInterval:
    """The time in which all lasting flows were active, and the bytes that came to each of them in it."""

    flows: tuple[FlowBytes, ...]
    start_ns: int
    """The time when the last of them started."""
    end_ns: int
    """The time when the first of them ended."""
    bin_ns: int


def together(
    flows: pl.DataFrame, binned: Mapping[Key, Binned], known: Mapping[Key, FlowBytes]
) -> CommonInterval | None:
    """The common interval of the lasting flows; None where there are none or they were never active together, and where
    the arrivals of one are not recorded.

    `binned`, `known`: the results of `bins` and `came` for these flows, and perhaps for others."""
    rows = flows[[*FLOW, "kind", "received_bytes", "started_ns", "ended_ns"]].iter_rows()
    lasting = {
        (flow, part): (start, end)
        for flow, part, kind, size, start, end in rows
        if kind in STEADY_KINDS and size is not None
    }
    own = [binned[key] for key in lasting if key in binned]
    starts = [start for start, _ in lasting.values() if start is not None]
    ends = [end for _, end in lasting.values() if end is not None]
    if not own or not all(each.told for each in own) or not starts or not ends or min(ends) <= max(starts):
        return None
    if any(key not in known for key in lasting):
        return None
    width = max(each.longest_ns for each in own)
    return CommonInterval(tuple(known[key] for key in lasting), max(starts), min(ends), width)


def steady_goodput(found: CommonInterval) -> float | None:
    """The goodput (bit/s) of all lasting flows together while all were active, without the warm-up, in whole bins. It
    counts arrivals without copies, so it is never more than the links carried to the receivers."""
    edges = _edges(found, found.start_ns + warmup_ns(found))
    if len(edges) < 2:
        return None
    return sum(each.within([(edges[0], edges[-1])]) for each in found.flows) * BYTE_NS / float(edges[-1] - edges[0])


def _edges(found: CommonInterval, from_ns: int) -> NDArray[np.int64]:
    """The edges (ns) of the bins that lie wholly in the time from `from_ns` on; bins are counted from T0."""
    first = -(-from_ns // found.bin_ns) * found.bin_ns
    return np.arange(first, found.end_ns + 1, found.bin_ns)


def warmup_ns(found: CommonInterval) -> int:
    """The time after `start_ns` in which these flows warmed up, by the bytes that came to all of them in each bin
    (MSER-5, `warmup`).

    Where that cannot be determined (fewer than fifty bins, or no end of it in the first half), a quarter of the
    time."""
    edges = _edges(found, found.start_ns)
    sums = np.sum([each.until(edges) for each in found.flows], axis=0)
    cut = mser5(np.diff(sums).tolist())
    return (found.end_ns - found.start_ns) // 4 if cut is None else int(edges[cut]) - found.start_ns


def convergence_ns(found: CommonInterval) -> int | None:
    """The δ-fair convergence time: from the start of the last flow to the end of the first second in which each flow
    had from (1 − δ) to (1 + δ) of an equal share. None for one flow, and where that never was.

    Source: RFC 5166, section 2.3, after D. Bansal, H. Balakrishnan, S. Floyd and S. Shenker, "Dynamic behavior of
    slowly-responsive congestion control algorithms", SIGCOMM 2001; there of two flows, here of any number.
    """
    if len(found.flows) < 2:
        return None
    ends = np.arange(found.start_ns + WINDOW_NS, found.end_ns + 1, found.bin_ns)
    sizes = np.array([each.until(ends) - each.until(ends - WINDOW_NS) for each in found.flows])
    fair = sizes.mean(axis=0)
    # Bytes are whole: values that differ only by rounding are equal.
    within = (np.abs(sizes - fair) <= DELTA * fair + 1e-6).all(axis=0) & (fair > 0)
    return int(ends[np.argmax(within)]) - found.start_ns if within.any() else None


def smoothness(found: CommonInterval) -> float | None:
    """The coefficient of variation of the bytes that came to a flow in each second after the warm-up, mean over flows.

    Source: RFC 5166, section 2.2.2; S. Floyd, M. Handley, J. Padhye and J. Widmer, "Equation-based congestion control
    for unicast applications", SIGCOMM 2000, section 4. None for less than five seconds."""
    edges = np.arange(found.start_ns + warmup_ns(found), found.end_ns + 1, WINDOW_NS)
    if len(edges) <= LEAST_INTERVALS:
        return None
    sizes = [np.diff(each.until(edges)) for each in found.flows]
    varying = [float(own.std() / own.mean()) for own in sizes if own.mean() > 0]
    return float(np.mean(varying)) if varying else None
