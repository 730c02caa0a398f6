"""Measures of captured packets: how many are between two nodes at an instant. Pure.

In: the table `packets` of a run whose scenario captures at both nodes. Out: numbers of packets.
"""

from __future__ import annotations

import polars as pl

from ewan.extras.course.measures.base import MeasuredRun, NoValueError, measure
from ewan.labs.base.units import NS_PER_SECOND

_FLOW = ("source", "destination", "protocol", "source_port", "destination_port", "ip_id")


@measure
def on_the_way(run: MeasuredRun, start: str, end: str, at: float) -> float:
    """Packets that had left one node at so many seconds, and came to the other after that: on links and in queues,
    without those that were lost. A packet is known by its addresses, ports and IP's identification, as far as that goes
    round more slowly than packets are on their way."""
    packets = run.table("packets").filter(pl.col("payload_bytes") > 0)
    left = packets.filter((pl.col("node") == start) & (pl.col("direction") == "out"))
    came = packets.filter((pl.col("node") == end) & (pl.col("direction") == "in"))
    if left.is_empty() or came.is_empty():
        raise NoValueError(f"packets: none was captured at {start if left.is_empty() else end}")
    instant = round(at * NS_PER_SECOND)
    before = left.filter(pl.col("time_ns") <= instant).unique(list(_FLOW), keep="last")
    after = came.filter(pl.col("time_ns") > instant).unique(list(_FLOW), keep="first")
    return float(before.join(after, on=list(_FLOW), how="inner", nulls_equal=True).height)
