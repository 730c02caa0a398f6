"""The captured packets of some flows, as they left their sources and as they came to their sinks. Pure.

In: the table `packets` of a run, rows of `flows`, the addresses of nodes. Out: delays, gaps, shares. Flows are told
apart by their two nodes: packets between two nodes are those of all flows that send from one to the other, while any of
the flows that are asked for is under way. Packets without payload (acknowledgments) are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from ewan.analysis import packets
from ewan.analysis.flows import active
from ewan.analysis.network import BYTE_NS, ends_of_payload, within
from ewan.labs.forwarding import node_of


@dataclass(frozen=True)
class WirePackets:
    """`sent`: rows of `packets` at the sources, `came`: at the sinks. `ends`: the pairs of nodes."""

    sent: pl.DataFrame
    came: pl.DataFrame
    ends: tuple[tuple[str, str], ...]

    @cached_property
    def _matches(self) -> list[packets.Matches]:
        both = pl.concat([self.sent, self.came])
        return [packets.matches(both, *ends) for ends in self.ends]

    @cached_property
    def delays(self) -> pl.DataFrame:
        """See `packets.one_way_delays`, of all pairs."""
        return pl.concat([each.delays for each in self._matches])

    @property
    def matched(self) -> float | None:
        """The share of the packets that came which are known again as packets that were captured as they left; None
        where nothing was captured at one of the ends."""
        came = sum(each.came for each in self._matches)
        return self.delays.height / came if came and self.sent.height else None

    @property
    def reordering(self) -> float | None:
        """The share of packets that came after one of their connection that was sent later; None without packets."""
        came = self.delays.sort(pl.col("sent_ns") + pl.col("delay_ns"), "sent_ns")
        late = pl.col("sent_ns") < pl.col("sent_ns").cum_max().over(packets.FLOW)
        return None if came.is_empty() else float(came.select(late.mean()).item())

    @property
    def retransmissions(self) -> float | None:
        """The share of data segments that had left before; None without segments."""
        found = packets.sequences(self.sent)
        segments = int(found["segments"].sum())
        return int(found["repeated_segments"].sum()) / segments if segments else None

    @cached_property
    def gaps_ns(self) -> pl.Series:
        """The times from a packet to the next of its connection, at the sink."""
        ordered = self.came.sort("time_ns", maintain_order=True)
        return ordered.select(pl.col("time_ns").diff().over([*packets.POINT, *packets.FLOW])).to_series().drop_nulls()

    def largest_burst_ns(self, rate_bps: float | None) -> float | None:
        """The largest burst of any connection as it left its source, as time at a rate (ns); None without packets or a
        rate."""
        if not rate_bps:
            return None
        most = packets.bursts(self.sent, round(rate_bps))["burst_bytes"].max()
        return float(most) * BYTE_NS / rate_bps if isinstance(most, float) else None


def of(table: pl.DataFrame, flows: pl.DataFrame, addresses: Mapping[str, frozenset[str]]) -> WirePackets | None:
    """The packets of these flows; None where none was captured."""
    rows = flows.select("kind", "source", "sink").unique(maintain_order=True).iter_rows()
    ends = dict.fromkeys(ends_of_payload(*row) for row in rows)
    pairs = tuple((one, other) for one, other in ends if one and other and one in addresses and other in addresses)
    known = table.filter(pl.col("payload_bytes") > 0, pl.Series(within(table["time_ns"].to_numpy(), active(flows))))
    none = known.clear()
    sent = pl.concat([none, *(_at(known, one, "out", addresses[one], addresses[other]) for one, other in pairs)])
    came = pl.concat([none, *(_at(known, other, "in", addresses[one], addresses[other]) for one, other in pairs)])
    nodes = tuple(dict.fromkeys((node_of(one), node_of(other)) for one, other in pairs))
    return WirePackets(sent, came, nodes) if sent.height or came.height else None


def _at(table: pl.DataFrame, end: str, direction: str, sources: frozenset[str], sinks: frozenset[str]) -> pl.DataFrame:
    return table.filter(
        (pl.col("node") == node_of(end))
        & (pl.col("direction") == direction)
        & pl.col("source").is_in(list(sources))
        & pl.col("destination").is_in(list(sinks))
    )
