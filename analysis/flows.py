"""Activity, completion times and received payload of flows, from their tables. Pure.

In: rows of a run's tables (labs/record/columns.py). Out: ns, bit/s, ratios. Load flows are those of role "load"; the
streams of one transfer count as one transfer for completion times, and as flows for goodput and fairness."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

import polars as pl

from ewan.analysis.network import BYTE_NS

TIMED = ("requests", "messages")  # kinds that complete without a volume
UNCOUNTED = ("udp", "media")  # kinds that are no transfers


def loaded(flows: pl.DataFrame) -> pl.DataFrame:
    """The flows that the metrics are about."""
    return flows.filter(pl.col("role") == "load")


UNTOLD = pl.col("sent_packets").is_not_null() & pl.col("received_bytes").is_null()
"""True for a row whose datagrams were sent, and whose generator does not tell how many arrived."""


def untold(flows: pl.DataFrame) -> bool:
    """Return whether the payload that these flows received together is unknown, since one of them has such a row."""
    return not flows.filter(UNTOLD).is_empty()


def jain(values: Sequence[float]) -> float:
    """(Σx)²/(n·Σx²): 1 when all are equal, 1/n when one has everything (Jain, Chiu and Hawe 1984)."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def deviation(values: Sequence[float]) -> float:
    """The standard deviation of the values themselves (÷ N), as the HSTTS poster defines it, not the estimate for a
    population (÷ N − 1)."""
    mean = fmean(values)
    return math.sqrt(fmean([(value - mean) ** 2 for value in values]))


def percentile(values: Iterable[float], share: float) -> float:
    """The least value that `share` of all do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(math.ceil(round(share * len(ordered), 9)), 1) - 1]


def completion_times(flows: pl.DataFrame) -> tuple[list[int], int]:
    """Completion times in ns of the transfers that completed, and how many that should have did not.

    A transfer of parallel streams completes when the last of them does, from the earliest scheduled start.
    """
    found = transfers(flows)
    return [each.time_ns for each in found if each.time_ns is not None], sum(each.due for each in found)


class FlowTransfer(NamedTuple):
    """`time_ns` None: it did not complete; `due`: it should have. `volume_bytes` None: it has none."""

    time_ns: int | None
    due: bool
    volume_bytes: int | None
    source: str
    sink: str


def transfers(flows: pl.DataFrame) -> list[FlowTransfer]:
    """The transfers of flows that a volume, an exchange or an error ends, in their order."""
    streams: dict[tuple[int, int], list[_Stream]] = {}
    for kind, transfer, stream in zip(flows["kind"], flows["transfer"], _streams(flows), strict=True):
        if kind not in UNCOUNTED and (stream.volume_bytes is not None or kind in TIMED or stream.error is not None):
            own = -1 - stream.flow if transfer is None else transfer
            streams.setdefault((own, stream.part), []).append(stream)
    return [_transfer(each) for each in streams.values()]


class _Stream(NamedTuple):
    flow: int
    part: int
    scheduled_ns: int
    completion_ns: int | None
    volume_bytes: int | None
    error: str | None
    source: str
    sink: str


def _streams(flows: pl.DataFrame) -> Iterator[_Stream]:
    return map(_Stream._make, flows[list(_Stream._fields)].iter_rows())


def _transfer(streams: Sequence[_Stream]) -> FlowTransfer:
    """Complete when the last of its streams is, from the earliest scheduled start."""
    ends = [each.scheduled_ns + each.completion_ns for each in streams if each.completion_ns is not None]
    volumes = [each.volume_bytes for each in streams if each.volume_bytes is not None]
    complete = len(ends) == len(streams)
    return FlowTransfer(
        time_ns=max(ends) - min(each.scheduled_ns for each in streams) if complete else None,
        # Time-bounded flows have no completion time.
        due=any(
            each.completion_ns is None and (each.volume_bytes is not None or each.error is not None) for each in streams
        ),
        volume_bytes=sum(volumes) if len(volumes) == len(streams) else None,
        source=streams[0].source,
        sink=streams[0].sink,
    )


Times = Iterable[tuple[int | None, int | None]]


def active(flows: pl.DataFrame) -> list[tuple[int, int]]:
    """Times in which any of the flows was under way, from T0, as disjoint intervals in order."""
    return _merged(zip(flows["started_ns"], flows["ended_ns"], strict=True))


def _merged(times: Times) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted((start, end) for start, end in times if start is not None and end is not None):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def aggregate_goodput(flows: pl.DataFrame) -> float | None:
    """bit/s while any flow was active; None where the payload of one is not known."""
    if untold(flows):
        return None
    return _goodput(zip(flows["started_ns"], flows["ended_ns"], strict=True), int(flows["received_bytes"].sum()))


def _goodput(times: Times, size: int) -> float | None:
    time = sum(end - start for start, end in _merged(times))
    return size * BYTE_NS / time if time else None


def source_fairness(load: pl.DataFrame) -> float | None:
    """Jain's index over sending nodes, whatever number of flows each has; None for less than two of them, and where the
    payload of a flow is not known."""
    if untold(load):
        return None
    rows: dict[str, list[tuple[int | None, int | None, int]]] = {}
    for source, start, end, size in load[["source", "started_ns", "ended_ns", "received_bytes"]].iter_rows():
        if source is not None and size is not None:
            rows.setdefault(source, []).append((start, end, size))
    each = [_goodput((own[:2] for own in of), sum(own[2] for own in of)) for of in rows.values()]
    received = [goodput for goodput in each if goodput is not None]
    return jain(received) if len(received) > 1 else None


def retransmissions(flows: pl.DataFrame) -> float | None:
    """The share of retransmitted segments in all segments sent; received bytes count in whole segments."""
    columns = flows[["retransmitted_segments", "segment_bytes", "received_bytes"]]
    known = [
        (again, size, received or 0) for again, size, received in columns.iter_rows() if again is not None and size
    ]
    again = sum(each[0] for each in known)
    first = sum(math.ceil(received / size) for _, size, received in known)
    return again / (first + again) if first + again else None


def durations(flows: pl.DataFrame, exchanges: pl.DataFrame, kinds: Sequence[str]) -> list[int]:
    """The durations of the exchanges of flows of these kinds, in ns."""
    own = {flow for flow, each in zip(flows["flow"], flows["kind"], strict=True) if each in kinds}
    took = zip(exchanges["flow"], exchanges["duration_ns"], strict=True) if own else ()
    return [duration for flow, duration in took if flow in own and duration is not None]
