"""The counters of some flows at one direction of a link: their packets, drops, marks and waiting times. Pure.

In: the tables link_flows and link_waits. Out: the counters of these flows together at the end of the run."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import polars as pl

from ewan.analysis.load import Link
from ewan.analysis.network import weighted_percentile

LOST = ("lost_packets", "blackhole_packets", "policed_packets", "queue_full_packets", "aqm_packets",
        "store_full_packets", "cut_packets")  # fmt: skip
"""Packets that did not leave the link, without those in whose place a later one came."""


@dataclass(frozen=True)
class CountedPackets:
    """Counters of some flows together; `waits`: packets by the longest time (ns) of their class."""

    in_packets: int
    sent_packets: int
    sent_bytes: int
    lost_packets: int
    marked_packets: int
    served_packets: int
    waited_ns: int
    waits: pl.DataFrame

    def waited_percentile_ns(self, part: float) -> float | None:
        """The time in the queue that this part of the packets did not exceed."""
        if self.waits.is_empty():
            return None
        return weighted_percentile(self.waits["most_ns"].to_numpy(), self.waits["packets"].to_numpy(), part)


def at(link: Link, flows: Collection[int], counted: pl.DataFrame, waits: pl.DataFrame) -> CountedPackets | None:
    """The counters of the flows of these numbers at one direction of a link; None where it counted none of them."""
    here = (pl.col("link") == link[0]) & (pl.col("direction") == link[1])
    last = counted.filter(here & pl.col("flow").is_in(list(flows))).group_by("entry").last()
    if last.is_empty():
        return None
    own = waits.filter(here & pl.col("entry").is_in(last["entry"].implode())).group_by("entry", "most_ns").last()
    return CountedPackets(
        in_packets=int(last["in_packets"].sum()) + int(last["duplicated_packets"].sum()),
        sent_packets=int(last["sent_packets"].sum()),
        sent_bytes=int(last["sent_bytes"].sum()),
        lost_packets=sum(int(last[name].sum()) for name in LOST),
        marked_packets=int(last["marked_packets"].sum()),
        served_packets=int(last["served_packets"].sum()),
        waited_ns=int(last["waited_ns"].sum()),
        waits=own.group_by("most_ns").agg(pl.col("packets").sum()).sort("most_ns"),
    )
