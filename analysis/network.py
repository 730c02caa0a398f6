"""Effects of the network on the load: use of links, queueing delays, losses. Pure.

In: the table of links (labs/record/tables.py), the times in which load was active, the links on the way of each pair of
nodes. Out: shares, and ns. Counters are of links, not of flows: statements about the load hold as far as its packets
fared like all others on the same links."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ewan.analysis.load import Link
from ewan.analysis.queries import collected, groups
from ewan.labs.base.units import BITS_PER_BYTE, NS_PER_SECOND
from ewan.labs.record.summary import LinkUse

BYTE_NS = BITS_PER_BYTE * NS_PER_SECOND
"""bytes × this / (bit/s) is ns; bytes × this / ns is bit/s."""

Ends = tuple[str | None, str | None]
"""From where to where."""
Ways = Mapping[Ends, Collection[Link]]
"""The link directions that payload crosses from one node to another; see `rundata.RunData.ways`."""


def ends_of_payload(kind: str | None, source: str | None, sink: str | None) -> Ends:
    """The source and the sink of most of a flow's payload, as `Ways` has them: requests are answered by the sink, which
    sends most."""
    return (sink, source) if kind == "requests" else (source, sink)


def crossed(ways: Ways) -> set[Link]:
    """The link directions that any of the load's payload crosses."""
    return {link for way in ways.values() for link in way}


class LossShares(NamedTuple):
    """Shares of packets: dropped by queues, or cut with a link, of those that came to a queue, copies too; lost on
    purpose of those that came to a link, without its copies; and how likely either is."""

    queue: float
    link: float
    total: float


@dataclass(frozen=True)
class LinkSeries:
    """The samples of one direction of a link, in order, as arrays of one length. Each ends an interval of `lengths_ns`.

    `rates_bps`: the configured rate, for each interval the mean where a trace or an event changed it. `grown`: by how
    much a counter grew in each interval, by its name; it began at T0 with zero. `told`: the counters of which every
    sample has a value; where one has none it counts as 0."""

    moments_ns: NDArray[np.int64]
    lengths_ns: NDArray[np.int64]
    rates_bps: NDArray[np.int64]
    queue_packets: NDArray[np.int64]
    queue_bytes: NDArray[np.float64]
    """NaN where it is not known."""
    grown: Mapping[str, NDArray[np.int64]]
    told: frozenset[str]

    def inside(self, times: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
        """The intervals whose middle lies in one of `times`."""
        return (self.lengths_ns > 0) & within(self.moments_ns - self.lengths_ns // 2, times)


COUNTERS = (
    "sent_bytes", "served_packets", "waited_ns", "dropped_packets", "lost_packets", "marked_packets", "in_packets",
    "duplicated_packets",
)  # fmt: skip


_IS_TOLD = "told "
"""Before the name of a counter: whether a row has it."""


def watched(links: pl.DataFrame) -> dict[Link, LinkSeries]:
    """The table of links, by link and direction, forward first."""
    there = [name for name in COUNTERS if name in links.columns]
    keys = ["link", "direction"]
    rows = collected(
        links.lazy()
        .sort("link", pl.col("direction") != "forward", "time_ns")
        .select(
            "time_ns",
            "rate_bps",
            pl.col("queue_packets", *there).fill_null(0),
            pl.col("queue_bytes").cast(pl.Float64).fill_null(math.nan),
            pl.col(there).is_not_null().name.prefix(_IS_TOLD),
            *(pl.col(name).rle_id().alias(f"{name} of") for name in keys),
            *keys,
        )
    )
    columns = {name: rows[name].to_numpy() for name in rows.columns if name not in keys}
    found: dict[Link, LinkSeries] = {}
    for own in groups(*(columns[f"{name} of"] for name in keys)):
        link, direction = rows["link"][own.start], rows["direction"][own.start]
        moments = columns["time_ns"][own]
        found[link, direction] = LinkSeries(
            moments_ns=moments,
            lengths_ns=np.diff(moments, prepend=0),
            rates_bps=columns["rate_bps"][own],
            queue_packets=columns["queue_packets"][own],
            queue_bytes=columns["queue_bytes"][own],
            grown={name: np.diff(columns[name][own], prepend=0) for name in there},
            told=frozenset(name for name in there if columns[_IS_TOLD + name][own].all()),
        )
    return found


def link_use(links: Mapping[Link, LinkSeries], times: Sequence[tuple[int, int]]) -> list[LinkUse]:
    """Each direction of each link, over the samples' intervals whose middle lies in one of `times`; without those that
    were not watched long enough."""
    return [use for at, samples in links.items() if (use := _use(at, samples, times)) is not None]


def _use(at: Link, samples: LinkSeries, times: Sequence[tuple[int, int]]) -> LinkUse | None:
    rate_bps = mean_rate_bps(samples, times)
    if rate_bps is None:
        return None
    inside = samples.inside(times)

    def grown(name: str) -> int:
        return int(samples.grown[name][inside].sum())

    capacity = rate_bps * int(samples.lengths_ns[inside].sum()) / BYTE_NS
    served, dropped, lost = grown("served_packets"), grown("dropped_packets"), grown("lost_packets")
    if {"in_packets", "duplicated_packets"} <= samples.told:
        came = grown("in_packets")
        # What waited before these times may be dropped in them.
        queued = max(came + grown("duplicated_packets") - lost, dropped)
    else:
        # Of a link that counts no arrivals, what left its queue; copies are taken for packets that came.
        queued = served + dropped
        came = lost + queued
    queue_loss = dropped / queued if queued else None
    link_loss = lost / came if came else None
    # A link that does not count waiting is known by its queue at each sample: packets × time, by the trapezoid rule.
    waited = float(grown("waited_ns")) if "waited_ns" in samples.told else _sampled_waiting(samples, inside)
    size = grown("sent_bytes")
    return LinkUse(
        link=at[0],
        direction=at[1],
        rate_bps=round(rate_bps),
        utilisation=size / capacity if capacity else 0.0,
        queueing_ns=waited / served if served else None,
        queue_loss=queue_loss,
        link_loss=link_loss,
        total_loss=None if link_loss is None else link_loss + (1 - link_loss) * (queue_loss or 0.0),
        sent_bytes=size,
        dropped_packets=dropped,
        lost_packets=lost,
    )


def mean_rate_bps(samples: LinkSeries, times: Sequence[tuple[int, int]]) -> float | None:
    """The configured rate of one direction of a link (bit/s), mean over the intervals inside of `times`; None without
    intervals."""
    inside = samples.inside(times)
    if not inside.any():
        return None
    return float(np.average(samples.rates_bps[inside], weights=samples.lengths_ns[inside]))


def _sampled_waiting(samples: LinkSeries, inside: NDArray[np.bool_]) -> float:
    queue = samples.queue_packets
    before = np.concatenate(([0], queue[:-1]))
    return float(((queue + before) / 2 * samples.lengths_ns)[inside].sum())


def queue_delays_ns(
    samples: LinkSeries, times: Sequence[tuple[int, int]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The delay (ns) that a packet would have had in the queue of one direction of a link, and the time (ns) for which
    each value held: the bytes queued at each sample, at the link's rate, for the interval that the sample ends."""
    known = samples.inside(times) & (samples.rates_bps > 0) & ~np.isnan(samples.queue_bytes)
    delays = samples.queue_bytes[known] * BYTE_NS / samples.rates_bps[known]
    return delays, samples.lengths_ns[known].astype(np.float64)


def weighted_percentile(values: NDArray[np.float64], weights: NDArray[np.float64], share: float) -> float | None:
    """The least value that is not exceeded for `share` of all weight; None without weight."""
    if not weights.sum():
        return None
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(weights[order])
    index = int(np.searchsorted(sums, share * sums[-1] * (1 - 1e-12)))
    return float(values[order][min(index, len(sums) - 1)])


def marked_share(samples: LinkSeries, times: Sequence[tuple[int, int]]) -> float | None:
    """The share of packets with ECN's mark of congestion among those that left the queue of one direction of a link in
    these times; None where the link does not count them, and without packets."""
    if "marked_packets" not in samples.told:
        return None
    inside = samples.inside(times)
    marked, served = (int(samples.grown[name][inside].sum()) for name in ("marked_packets", "served_packets"))
    return marked / served if served else None


def within(moments: NDArray[np.int64], times: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    """A mask of the moments that lie in any of the disjoint, ordered intervals."""
    if not times:
        return np.zeros(len(moments), dtype=np.bool_)
    starts, ends = np.array([start for start, _ in times]), np.array([end for _, end in times])
    index = np.searchsorted(starts, moments, side="right") - 1
    return (index >= 0) & (moments <= ends[np.maximum(index, 0)])


def bottleneck(uses: Sequence[LinkUse], among: Collection[Link] = ()) -> LinkUse | None:
    """The busiest of these link directions, or of all; of equally busy ones that with the longest wait."""
    own = [use for use in uses if not among or (use.link, use.direction) in among]
    return max(own, key=lambda use: (round(use.utilisation, 2), use.queueing_ns or 0.0), default=None)


def uncounted_bottleneck(
    load: pl.DataFrame, time_ns: int, uses: Sequence[LinkUse], ways: Ways, rates_bps: Mapping[Link, int]
) -> Link | None:
    """A plain link, which counts nothing, that carries more of its rate than any link that counts; None: there is none.

    An access link or a switch's port. Its use is the payload that the load's flows brought over it in `time_ns`.
    """
    if not uses or time_ns <= 0:
        return None
    counted = {(use.link, use.direction) for use in uses}
    sizes: dict[Link, int] = {}
    for kind, source, sink, size in load[["kind", "source", "sink", "received_bytes"]].iter_rows():
        for link in ways.get(ends_of_payload(kind, source, sink), ()):
            if link not in counted and link in rates_bps:
                sizes[link] = sizes.get(link, 0) + (size or 0)
    shares = {link: size * BYTE_NS / time_ns / rates_bps[link] for link, size in sizes.items()}
    busiest = bottleneck(uses, crossed(ways))
    # Of equally busy ones that over which most of the load goes, a switch's port before a host's link; then the first.
    found = max(shares, key=lambda link: (round(shares[link], 2), sizes[link]), default=None)
    return found if found and (busiest is None or shares[found] > busiest.utilisation) else None


def losses(load: pl.DataFrame, uses: Sequence[LinkUse], ways: Ways) -> LossShares | None:
    """The probability that a packet of the load was lost on its way, mean over flows by their received bytes.

    Losses at one link are taken as independent of those at another. Where no flow's way is known (members of a group),
    the value is that of the bottleneck; None where no link was watched."""
    by_link = {(use.link, use.direction): use for use in uses}
    found: list[LossShares] = []
    weights: list[int] = []
    columns = load[["kind", "source", "sink", "received_bytes"]]
    for kind, source, sink, received in columns.iter_rows():
        way = ways.get(ends_of_payload(kind, source, sink), ())
        known = [loss_shares(by_link[link]) for link in way if link in by_link]
        if known:
            found.append(LossShares(*(_either(shares) for shares in zip(*known, strict=True))))
            weights.append(received or 0)
    if not found:
        slowest = bottleneck(uses, crossed(ways))
        return None if slowest is None or slowest.total_loss is None else loss_shares(slowest)
    weighed = weights if any(weights) else None
    queue, link, total = (float(np.average(shares, weights=weighed)) for shares in zip(*found, strict=True))
    return LossShares(queue, link, total)


def loss_shares(use: LinkUse) -> LossShares:
    """The shares of packets of one direction of a link, 0 where no packet came."""
    return LossShares(use.queue_loss or 0.0, use.link_loss or 0.0, use.total_loss or 0.0)


def _either(shares: Sequence[float]) -> float:
    """The probability that one of several independent things happens."""
    return 1.0 - float(np.prod([1.0 - share for share in shares])) if len(shares) > 1 else shares[0]
