"""Metrics of a run. Pure.

In: the tables of one run (labs/record/tables.py) and the links that its load crosses. Out: named values in ns, bit/s or
as a ratio; a metric that a run cannot have is absent. Load flows are those of role "load"; the streams of one transfer
count as one transfer for completion times, and as flows for goodput and fairness.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analysis.load import Link
from labs.units import BITS_PER_BYTE, NS_PER_SECOND

TIMED = ("requests", "messages")  # kinds that complete without a volume
STEADY_KINDS = ("bulk", "udp")
BYTE_NS = BITS_PER_BYTE * NS_PER_SECOND
"""bytes × this / (bit/s) is ns; bytes × this / ns is bit/s."""


class Metric(NamedTuple):
    unit: str  # ns, bit/s, ratio (shown as it is), share (shown as %), or count
    meaning: str


METRICS: dict[str, Metric] = {
    "mean completion time": Metric("ns", "mean over transfers of the time from scheduled start to last byte"),
    "max completion time": Metric("ns", "of the slowest transfer"),
    "min completion time": Metric("ns", "of the fastest transfer"),
    "deviation of completion time": Metric("ns", "σ = √(Σ(Tᵢ − T̄)²/N) over the transfers (HSTTS)"),
    "coefficient of variation": Metric("ratio", "σ/T̄ of completion times"),
    "incomplete transfers": Metric("count", "transfers that did not deliver all of their volume"),
    "mean goodput": Metric("bit/s", "mean over load flows of payload received per time of the flow"),
    "aggregate goodput": Metric("bit/s", "payload that load flows received per time in which any of them was active"),
    "steady goodput": Metric(
        "bit/s",
        "aggregate of load flows while all of them were active, without the first quarter of that time",
    ),
    "fairness": Metric("ratio", "Jain's index (Σx)²/(n·Σx²) of the load flows' goodput"),
    "utilisation": Metric(
        "share", "of the load's bottleneck: bytes sent, framing counted, of what its rate carries while load is active"
    ),
    "mean queueing delay": Metric("ns", "at the bottleneck: queue/rate, averaged over that time"),
    "loss": Metric("share", "at the bottleneck's queue: dropped/(sent + dropped) packets"),
    "retransmissions": Metric("share", "retransmitted segments of all that load flows sent"),
    "mean response time": Metric("ns", "from a request's first byte sent to its response's last received"),
    "p95 response time": Metric("ns", "95 % of responses took no longer"),
    "mean iteration time": Metric("ns", "mean over ranks and iterations of computing and exchanging messages"),
    "start lateness p99": Metric("ns", "99 % of flows made their first system call no later than this after schedule"),
    "udp loss": Metric("share", "packets sent by UDP flows that did not arrive"),
    "udp jitter": Metric("ns", "RFC 3550, section 6.4.1; mean over UDP flows"),
    "udp delay p50": Metric("ns", "one-way delay that half of the packets did not exceed; mean over UDP flows"),
    "udp delay p99": Metric("ns", "one-way delay that 99 % of packets did not exceed; mean over UDP flows"),
    "reverse goodput": Metric("bit/s", "aggregate of the flows of role reverse, while any of them was active"),
    "background goodput": Metric("bit/s", "aggregate of the flows of role background, while any of them was active"),
}


class Tables(NamedTuple):
    """One run's tables, as labs.record.tables has them."""

    flows: pl.DataFrame
    goodput: pl.DataFrame
    exchanges: pl.DataFrame
    links: pl.DataFrame


class LinkUse(NamedTuple):
    """What one direction of a link did while load flows were active. None: it was not watched long enough."""

    link: str
    direction: str
    rate_bps: int
    utilisation: float
    queueing_ns: float
    loss: float | None
    sent_bytes: int
    dropped_packets: int
    lost_packets: int


def loaded(flows: pl.DataFrame) -> pl.DataFrame:
    """The flows that the metrics are about."""
    return flows.filter(pl.col("role") == "load")


def ends(flows: pl.DataFrame) -> set[tuple[str, str]]:
    """Sources with their sinks; and the other way round where payload goes both ways: answers, the second parts of
    bidirectional transfers."""
    known = flows.filter(pl.col("source").is_not_null() & pl.col("sink").is_not_null())
    there = set(known.select("source", "sink").iter_rows())
    both = known.filter((pl.col("kind") == "requests") | ((pl.col("kind") == "bulk") & (pl.col("part") > 0)))
    return there | set(both.select("sink", "source").iter_rows())


def jain(values: Sequence[float]) -> float:
    """(Σx)²/(n·Σx²): 1 when all are equal, 1/n when one has everything (Jain, Chiu and Hawe 1984)."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def deviation(values: Sequence[float]) -> float:
    """Of the values themselves (÷ N), as the HSTTS poster writes it, not the estimate of a population's (÷ N − 1)."""
    mean = fmean(values)
    return math.sqrt(fmean([(value - mean) ** 2 for value in values]))


def percentile(values: Iterable[float], share: float) -> float:
    """The least value that `share` of all do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(math.ceil(round(share * len(ordered), 9)), 1) - 1]


def completion_times(flows: pl.DataFrame) -> tuple[list[int], int]:
    """Completion times in ns of the load's transfers that completed, and how many that should have did not.

    A transfer of parallel streams completes when the last of them does, from the earliest scheduled start.
    """
    wanted = loaded(flows).filter(
        (pl.col("kind") != "udp")
        & (pl.col("volume_bytes").is_not_null() | pl.col("kind").is_in(TIMED) | pl.col("error").is_not_null())
    )
    transfers = (
        wanted.with_columns(
            end=pl.col("scheduled_ns") + pl.col("completion_ns"),
            # What was to last until a moment, and did, had nothing to complete.
            due=pl.col("completion_ns").is_null()
            & (pl.col("volume_bytes").is_not_null() | pl.col("error").is_not_null()),
            own=pl.coalesce("transfer", -1 - pl.col("flow")),
        )
        .group_by("own", "part", maintain_order=True)
        .agg(
            pl.col("due").any(),
            missing=pl.col("completion_ns").is_null().any(),
            time=pl.col("end").max() - pl.col("scheduled_ns").min(),
        )
    )
    times = transfers.filter(~pl.col("missing"))["time"].to_list()
    return [int(time) for time in times], int(transfers["due"].sum())


def active(flows: pl.DataFrame) -> list[tuple[int, int]]:
    """Times in which any of the flows was under way, from T0, as disjoint intervals in order."""
    known = flows.filter(pl.col("started_ns").is_not_null() & pl.col("ended_ns").is_not_null())
    merged: list[tuple[int, int]] = []
    for start, end in sorted(known.select("started_ns", "ended_ns").iter_rows()):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def aggregate_goodput(flows: pl.DataFrame) -> float | None:
    """bit/s while any flow was active."""
    time = sum(end - start for start, end in active(flows))
    return int(flows["received_bytes"].sum()) * BYTE_NS / time if time else None


def steady_goodput(load: pl.DataFrame, goodput: pl.DataFrame) -> float | None:
    """bit/s of all load flows together over the last three quarters of the time in which all were active."""
    lasting = load.filter(pl.col("kind").is_in(STEADY_KINDS) & pl.col("received_bytes").is_not_null())
    if not lasting.height or goodput.is_empty():
        return None
    start, end = lasting["started_ns"].max(), lasting["ended_ns"].min()
    if not isinstance(start, int) or not isinstance(end, int) or end <= start:
        return None
    start += (end - start) // 4
    whole = goodput.filter((pl.col("time_ns") - pl.col("bin_ns") >= start) & (pl.col("time_ns") <= end))
    whole = whole.join(lasting.select("flow", "part"), on=["flow", "part"], how="semi")
    if whole.is_empty():
        return None
    time = int(whole.select(pl.col("time_ns").max() - (pl.col("time_ns") - pl.col("bin_ns")).min()).item())
    return int(whole["bytes"].sum()) * BYTE_NS / time


def retransmissions(flows: pl.DataFrame) -> float | None:
    """The share of retransmitted ones in all segments sent; what was received counts in whole segments."""
    known = flows.filter(pl.col("retransmitted_segments").is_not_null() & (pl.col("segment_bytes") > 0))
    if known.is_empty():
        return None
    again = int(known["retransmitted_segments"].sum())
    first = int(known.select((pl.col("received_bytes").fill_null(0) / pl.col("segment_bytes")).ceil().sum()).item())
    return again / (first + again) if first + again else None


def link_use(links: pl.DataFrame, times: Sequence[tuple[int, int]]) -> list[LinkUse]:
    """Each direction of each link, over the samples' intervals whose middle lies in one of `times`."""
    found = []
    for (link, direction), rows in links.sort("time_ns").group_by("link", "direction", maintain_order=True):
        use = _use(str(link), str(direction), rows, times)
        if use is not None:
            found.append(use)
    return sorted(found, key=lambda use: (use.link, use.direction != "forward"))


def _use(link: str, direction: str, rows: pl.DataFrame, times: Sequence[tuple[int, int]]) -> LinkUse | None:
    def steps(name: str) -> NDArray[np.int64]:
        """By how much a counter grew in each interval; it began at T0 with zero."""
        return np.diff(rows[name].fill_null(0).to_numpy(), prepend=0)

    moments = rows["time_ns"].to_numpy()
    lengths = np.diff(moments, prepend=0)
    inside = (lengths > 0) & _within(moments - lengths // 2, times)
    if not inside.any():
        return None
    # Of an interval the rate and the queue are known at its end; the queue at its beginning is the sample's before.
    rates = rows["rate_bps"].to_numpy()
    queues = rows["queue_bytes"].fill_null(0).to_numpy()
    before = np.concatenate(([0], queues[:-1]))
    waiting = (queues + before) / 2 * BYTE_NS / rates
    sent, dropped = int(steps("sent_packets")[inside].sum()), int(steps("dropped_packets")[inside].sum())
    capacity = float((rates[inside] * lengths[inside].astype(np.float64)).sum()) / BYTE_NS
    size = int(steps("sent_bytes")[inside].sum())
    return LinkUse(
        link=link,
        direction=direction,
        rate_bps=int(rates[-1]),
        utilisation=size / capacity,
        queueing_ns=float((waiting[inside] * lengths[inside]).sum() / lengths[inside].sum()),
        loss=dropped / (sent + dropped) if sent + dropped else None,
        sent_bytes=size,
        dropped_packets=dropped,
        lost_packets=int(steps("lost_packets")[inside].sum()),
    )


def _within(moments: NDArray[np.int64], times: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    """Which moments lie in any of the disjoint, ordered intervals."""
    if not times:
        return np.zeros(len(moments), dtype=np.bool_)
    starts, ends = np.array([start for start, _ in times]), np.array([end for _, end in times])
    index = np.searchsorted(starts, moments, side="right") - 1
    return (index >= 0) & (moments <= ends[np.maximum(index, 0)])


def bottleneck(uses: Sequence[LinkUse], crossed: Collection[Link] = ()) -> LinkUse | None:
    """The busiest of the link directions that the load crosses; of equally busy ones that with the longest queue."""
    own = [use for use in uses if not crossed or (use.link, use.direction) in crossed]
    return max(own, key=lambda use: (round(use.utilisation, 2), use.queueing_ns), default=None)


def of_run(tables: Tables, crossed: Collection[Link] = ()) -> dict[str, float]:
    """Every metric that the run has, by name, in the unit of `METRICS`."""
    flows = tables.flows
    load, datagrams = loaded(flows), flows.filter(pl.col("kind") == "udp")
    found: dict[str, float | None] = {**_completion(load), **_goodput(load, tables.goodput)}
    for role in ("reverse", "background"):
        found[f"{role} goodput"] = aggregate_goodput(flows.filter(pl.col("role") == role)) or None
    slowest = bottleneck(link_use(tables.links, active(load)), crossed)
    if slowest is not None:
        found["utilisation"], found["mean queueing delay"] = slowest.utilisation, slowest.queueing_ns
        found["loss"] = slowest.loss
    found["retransmissions"] = retransmissions(load)
    found |= _exchanges(load, tables.exchanges)
    late = flows.select((pl.col("started_ns") - pl.col("scheduled_ns")).drop_nulls()).to_series()
    found["start lateness p99"] = percentile(late.to_list(), 0.99) if late.len() else None
    found |= _datagrams(datagrams)
    return {name: float(value) for name in METRICS if (value := found.get(name)) is not None}


def _completion(load: pl.DataFrame) -> dict[str, float | None]:
    times, missing = completion_times(load)
    found: dict[str, float | None] = {"incomplete transfers": missing if times or missing else None}
    if times:
        found["mean completion time"], spread = fmean(times), deviation(times)
        found["max completion time"], found["min completion time"] = max(times), min(times)
        if len(times) > 1:
            found["deviation of completion time"] = spread
            found["coefficient of variation"] = spread / fmean(times) if any(times) else None
    return found


def _goodput(load: pl.DataFrame, goodput: pl.DataFrame) -> dict[str, float | None]:
    each = load["goodput_bps"].drop_nulls().to_list()
    return {
        "mean goodput": fmean(each) if each else None,
        "aggregate goodput": aggregate_goodput(load),
        "steady goodput": steady_goodput(load, goodput),
        "fairness": jain(each) if len(each) > 1 else None,
    }


def durations(flows: pl.DataFrame, exchanges: pl.DataFrame, kind: str) -> list[int]:
    """How long the exchanges of flows of a kind took, in ns."""
    own = flows.filter(pl.col("kind") == kind).select("flow").unique()
    return exchanges.join(own, on="flow", how="semi")["duration_ns"].drop_nulls().to_list()


def _exchanges(load: pl.DataFrame, exchanges: pl.DataFrame) -> dict[str, float | None]:
    responses, iterations = durations(load, exchanges, "requests"), durations(load, exchanges, "messages")
    return {
        "mean response time": fmean(responses) if responses else None,
        "p95 response time": percentile(responses, 0.95) if responses else None,
        "mean iteration time": fmean(iterations) if iterations else None,
    }


def _datagrams(flows: pl.DataFrame) -> dict[str, float | None]:
    sent, lost = int(flows["sent_packets"].sum()), int(flows["lost_packets"].sum())
    columns = {"udp jitter": "jitter_ns", "udp delay p50": "delay_p50_ns", "udp delay p99": "delay_p99_ns"}
    means = {name: flows[column].mean() for name, column in columns.items()}
    known = {name: float(value) for name, value in means.items() if isinstance(value, int | float)}
    return {"udp loss": lost / sent if sent else None, **known}
