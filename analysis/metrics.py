"""Metrics of a run. Pure.

In: the tables of one run (labs/record/tables.py) and the links that its load crosses. Out: named values in ns, bit/s or
as a ratio; a metric that a run cannot have is absent. Load flows are those of role "load"; the streams of one transfer
count as one transfer for completion times, and as flows for goodput and fairness.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

import polars as pl

from analysis import arrivals, network
from analysis.network import BYTE_NS, Ways

TIMED = ("requests", "messages")  # kinds that complete without a volume


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
        "payload that arrived for load flows while all were active, without copies or the first quarter of that "
        "time; TCP of external generators does not tell it",
    ),
    "fairness per flow": Metric("ratio", "Jain's index (Σx)²/(n·Σx²) of the load flows' goodput"),
    "fairness per source": Metric(
        "ratio", "Jain's index of what the load flows of each sending node received together, while any was active"
    ),
    "utilisation": Metric(
        "share", "of the load's bottleneck: bytes sent, framing counted, of what its rate carries while load is active"
    ),
    "mean queueing delay": Metric(
        "ns", "at the bottleneck: mean wait of a packet in the queue before its first bit is sent (W_q)"
    ),
    "queue loss": Metric("share", "packets dropped by queues (full, or their discipline) on the load's ways"),
    "link loss": Metric("share", "packets lost on purpose by links (loss in the description) on the load's ways"),
    "total loss": Metric("share", "packets lost to queues or links on the load's ways"),
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


def loaded(flows: pl.DataFrame) -> pl.DataFrame:
    """The flows that the metrics are about."""
    return flows.filter(pl.col("role") == "load")


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


def retransmissions(flows: pl.DataFrame) -> float | None:
    """The share of retransmitted ones in all segments sent; what was received counts in whole segments."""
    known = flows.filter(pl.col("retransmitted_segments").is_not_null() & (pl.col("segment_bytes") > 0))
    if known.is_empty():
        return None
    again = int(known["retransmitted_segments"].sum())
    first = int(known.select((pl.col("received_bytes").fill_null(0) / pl.col("segment_bytes")).ceil().sum()).item())
    return again / (first + again) if first + again else None


def of_run(tables: Tables, ways: Ways | None = None) -> dict[str, float]:
    """Every metric that the run has, by name, in the unit of `METRICS`. `ways`: as far as they are known."""
    flows = tables.flows
    load, datagrams = loaded(flows), flows.filter(pl.col("kind") == "udp")
    found: dict[str, float | None] = {**_completion(load), **_goodput(load, tables.goodput)}
    for role in ("reverse", "background"):
        found[f"{role} goodput"] = aggregate_goodput(flows.filter(pl.col("role") == role)) or None
    found |= _network(load, tables.links, ways or {})
    found["retransmissions"] = retransmissions(load)
    found |= _exchanges(load, tables.exchanges)
    late = flows.select((pl.col("started_ns") - pl.col("scheduled_ns")).drop_nulls()).to_series()
    found["start lateness p99"] = percentile(late.to_list(), 0.99) if late.len() else None
    found |= _datagrams(datagrams)
    return {name: float(value) for name in METRICS if (value := found.get(name)) is not None}


def _network(load: pl.DataFrame, links: pl.DataFrame, ways: Ways) -> dict[str, float | None]:
    uses = network.link_use(links, active(load))
    slowest = network.bottleneck(uses, {link for way in ways.values() for link in way})
    if slowest is None:
        return {}
    found: dict[str, float | None] = {
        "utilisation": slowest.utilisation,
        "mean queueing delay": slowest.queueing_ns,
    }
    if (lost := network.losses(load, uses, ways)) is not None:
        found |= {"queue loss": lost.queue, "link loss": lost.link, "total loss": lost.total}
    return found


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
        "steady goodput": arrivals.steady_goodput(load, goodput),
        "fairness per flow": jain(each) if len(each) > 1 else None,
        "fairness per source": source_fairness(load),
    }


def source_fairness(load: pl.DataFrame) -> float | None:
    """Jain's index over sending nodes, whatever number of flows each has; None for less than two of them."""
    known = load.filter(pl.col("source").is_not_null() & pl.col("received_bytes").is_not_null())
    each = [aggregate_goodput(flows) for _, flows in known.group_by("source", maintain_order=True)]
    received = [goodput for goodput in each if goodput is not None]
    return jain(received) if len(received) > 1 else None


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
