"""Completion times of transfers beside their sizes: bins of sizes, and slowdowns against an empty path. Pure.

In: flows, the rate of each way. Out: times by bin, ratios. The bins and the ratio are those of M. Alizadeh et al.,
"pFabric: minimal near-optimal datacenter transport", SIGCOMM 2013, section 5: short up to 100 kB, long from 10 MB on;
completion times are divided by what an empty path would take.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from ewan.analysis.flows import transfers
from ewan.analysis.network import BYTE_NS, Ends

SHORT_BYTES, LONG_BYTES = 100_000, 10_000_000


class TransferTime(NamedTuple):
    """One that completed: its time, its volume, from where to where."""

    time_ns: int
    volume_bytes: int
    ends: Ends


def completed(flows: pl.DataFrame) -> list[TransferTime]:
    """The completed transfers with a volume."""
    return [
        TransferTime(each.time_ns, each.volume_bytes, (each.source, each.sink))
        for each in transfers(flows)
        if each.time_ns is not None and each.volume_bytes is not None
    ]


def bins(found: list[TransferTime]) -> dict[str, list[int]]:
    """Completion times (ns) of short, medium and long transfers."""
    sorted_: dict[str, list[int]] = {"short": [], "medium": [], "long": []}
    for each in found:
        name = "short" if each.volume_bytes <= SHORT_BYTES else "long" if each.volume_bytes >= LONG_BYTES else "medium"
        sorted_[name].append(each.time_ns)
    return sorted_


def base_rtts_ns(flows: pl.DataFrame) -> dict[Ends, int]:
    """The least RTT that a sender measured between two nodes, in both orders."""
    found: dict[Ends, int] = {}
    for source, sink, rtt in flows[["source", "sink", "min_rtt_ns"]].iter_rows():
        if None in (source, sink, rtt):
            continue
        for ends in ((source, sink), (sink, source)):
            found[ends] = min(found.get(ends, rtt), rtt)
    return found


def slowdowns(found: list[TransferTime], rates_bps: Mapping[Ends, int], rtts_ns: Mapping[Ends, int]) -> list[float]:
    """Completion times divided by a base RTT and the payload at the bottleneck's rate; without transfers of which one
    of the two is not known."""
    return [
        each.time_ns / (rtts_ns[each.ends] + each.volume_bytes * BYTE_NS / rates_bps[each.ends])
        for each in found
        if rates_bps.get(each.ends) and rtts_ns.get(each.ends)
    ]
