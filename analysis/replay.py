"""A run as it can be shown again: its links and flows over time, in as many bins as are asked for.

In: a run of an experiment. Out: what there is of it, and series of a part of it. Bins are as long as the samples are
apart, or a multiple of that; a series of any run has a bounded size. The queue of a bin is the largest that was sampled
in it, its rate what was sent per time, its drops, losses and marks are sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ewan.analysis import arrivals
from ewan.analysis.arrivals import FLOW
from ewan.analysis.figures.happenings import words_of
from ewan.analysis.load import PLAN, LoadError, RunResults
from ewan.analysis.network import BYTE_NS, ends_of_payload
from ewan.analysis.queries import groups
from ewan.labs.base.codec import JsonValue
from ewan.labs.base.units import NS_PER_MS
from ewan.labs.link.direction import Heading
from ewan.labs.record.events import EventOutcome

MOST_VALUES = 60_000
"""Values of each column, in one answer, over all links or flows."""
MOST_BINS, LEAST_BINS = 1000, 50
MOST_FLOWS = 200
STEPS = (1, 2, 5)
GROWING = ("dropped_packets", "lost_packets", "marked_packets")
LINK = ("link", "direction")

Kind = Literal["set", "fail", "mend"]


@dataclass(frozen=True, slots=True)
class RunEvent:
    """A change of a link that was made; `words`: `core: rate 5Mbit/s`."""

    at_ns: int
    kind: Kind
    link: str
    words: str


@dataclass(frozen=True, slots=True)
class RunFlow:
    """A flow, or a part of one; `links`: those that its payload crosses, by link and direction."""

    flow: int
    part: int
    name: str
    kind: str
    congestion: str | None
    started_ns: int | None
    ended_ns: int | None
    links: tuple[tuple[str, Heading], ...]


@dataclass(frozen=True, slots=True)
class LinkBins:
    """A direction of a link. Of a bin without a sample `rate_bps` is that of the bin before, `queue_bytes` that of the
    last sample.

    `capacity_bps`: the configured rate; one value if it is the same in all bins.
    """

    link: str
    direction: Heading
    capacity_bps: tuple[int, ...]
    rate_bps: tuple[int, ...]
    queue_bytes: tuple[int, ...]
    dropped_packets: tuple[int, ...]
    lost_packets: tuple[int, ...]
    marked_packets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """Bins one after the other from `begin_ns` on; `links`: those that did anything in them."""

    begin_ns: int
    bin_ns: int
    bins: int
    links: tuple[LinkBins, ...]


@dataclass(frozen=True, slots=True)
class FlowBins:
    """A flow's samples; None in a bin without one."""

    flow: int
    part: int
    goodput_bps: tuple[int | None, ...]
    cwnd_segments: tuple[int | None, ...]
    rtt_ns: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class FlowPiece:
    """The flows of a whole run."""

    bin_ns: int
    bins: int
    flows: tuple[FlowBins, ...]


@dataclass(frozen=True)
class Replay:
    """The series of a run over time; LoadError where they cannot be read."""

    run: RunResults

    @property
    def plan(self) -> dict[str, JsonValue]:
        """The plan of the run, as JSON data."""
        data = self.run.json(PLAN)
        if not data:
            raise LoadError(f"run {self.run.number} has no {PLAN}: it was not begun")
        return data

    @cached_property
    def every_ns(self) -> int:
        """The interval between samples of the links, in whole ms (as ns); 0: there are none."""
        if not self.run.has("links"):
            return 0
        spans = self._links().group_by(LINK).agg(
            span=pl.col("time_ns").max() - pl.col("time_ns").min(), count=pl.len()
        ).filter(pl.col("count") > 1).select((pl.col("span") / (pl.col("count") - 1)).median())  # fmt: skip
        between = spans.collect().item()
        return 0 if between is None else max(1, round(between / NS_PER_MS)) * NS_PER_MS

    @cached_property
    def directions(self) -> int:
        """The number of directions of links that were sampled."""
        if not self.run.has("links"):
            return 0
        return int(self._links().select(pl.struct(LINK).n_unique()).collect().item())

    @cached_property
    def end_ns(self) -> int:
        """The last moment of which anything is known."""
        last = [self._links().select(pl.col("time_ns").max()).collect().item()] if self.run.has("links") else []
        ended = self.run.table("flows")["ended_ns"].max() if self.run.has("flows") else None
        return max([each for each in [*last, ended, *(event.at_ns for event in self.events)] if each], default=0)

    @cached_property
    def bins(self) -> int:
        """The number of bins of one piece."""
        return bins_of(self.directions)

    @cached_property
    def levels_ns(self) -> tuple[int, ...]:
        """Lengths of bins, the finest first; one piece of the last is the whole run. None without samples."""
        return levels_ns(self.every_ns, self.end_ns, self.bins) if self.every_ns else ()

    def piece(self, level: int, number: int) -> Piece:
        """The links in the bins of one piece; ValueError for one that there is not."""
        if not 0 <= level < len(self.levels_ns):
            raise ValueError(f"level {level}: there are {len(self.levels_ns)}, from 0 on")
        bin_ns = self.levels_ns[level]
        begin_ns, pieces = number * bin_ns * self.bins, -(-self.end_ns // (bin_ns * self.bins))
        if not 0 <= number < max(1, pieces):
            raise ValueError(f"piece {number}: there are {max(1, pieces)} of level {level}, from 0 on")
        own = self._links().filter(pl.col("time_ns") <= begin_ns + bin_ns * self.bins)
        return Piece(begin_ns, bin_ns, self.bins, tuple(binned(own, begin_ns, bin_ns, self.bins)))

    def _links(self) -> pl.LazyFrame:
        self.run.check_once("links")
        wanted = [*LINK, "time_ns", "rate_bps", "sent_bytes", "queue_bytes", *GROWING]
        return pl.scan_parquet(self.run.path("links")).select(wanted)

    @cached_property
    def events(self) -> tuple[RunEvent, ...]:
        """Changes of links that were made, in their order; one of both directions is one."""
        asked: dict[tuple[Any, ...], tuple[RunEvent, list[str]]] = {}
        for applied_ns, each in self.made:
            kind: Kind = "set" if each.down is None else "fail" if each.down else "mend"
            event = RunEvent(applied_ns, kind, each.link, words_of(each))
            # In the live clock the second direction follows some microseconds after the first.
            key = each.at_ns, event.kind, event.link, event.words
            asked.setdefault(key, (event, []))[1].append(each.direction)
        return tuple(
            replace(event, words=f"{event.words}, {ways[0]}") if event.kind == "set" and len(ways) == 1 else event
            for event, ways in asked.values()
        )

    @cached_property
    def made(self) -> list[tuple[int, EventOutcome]]:
        """The changes with when they were made, in that order."""
        made = [(each.applied_ns, each) for each in self.run.events if each.applied_ns is not None]
        return sorted(made, key=lambda each: each[0])

    @cached_property
    def flows(self) -> tuple[RunFlow, ...]:
        """Its first `MOST_FLOWS` flows, in the order of their starts."""
        if not self.run.has("flows"):
            return ()
        ways = {(path.role, path.source, path.sink): path.hops for path in self.run.paths}
        columns = [*FLOW, "name", "kind", "congestion", "started_ns", "ended_ns", "role", "source", "sink"]
        rows = self.run.table("flows").sort("scheduled_ns", *FLOW).head(MOST_FLOWS).select(columns)
        return tuple(
            RunFlow(
                flow, part, str(name), str(kind), congestion, started, ended,
                tuple((hop.link, hop.direction) for hop in ways.get((role, *ends_of_payload(kind, source, sink)), ())),
            )
            for flow, part, name, kind, congestion, started, ended, role, source, sink in rows.iter_rows()
        )  # fmt: skip

    @property
    def more_flows(self) -> int:
        """The number of further flows."""
        return self.run.table("flows").height - len(self.flows) if self.run.has("flows") else 0

    def flow_bins(self) -> FlowPiece:
        """The samples of `flows` over the whole run."""
        series, goodput = self.run.table("series"), arrivals.shown(self.run.table("goodput"))
        every = [rows.select(pl.col(name).min()).item() for rows, name in ((goodput, "bin_ns"),) if not rows.is_empty()]
        bins = min(bins_of(len(self.flows)), MOST_BINS)
        bin_ns = levels_ns(min(every, default=100 * NS_PER_MS), self.end_ns, bins)[-1]
        count = max(1, -(-self.end_ns // bin_ns))
        keys = [(each.flow, each.part) for each in self.flows]
        return FlowPiece(bin_ns, count, tuple(flow_binned(keys, series, goodput, bin_ns, count)))


def bins_of(members: int) -> int:
    """The number of bins in an answer of so many series."""
    return max(LEAST_BINS, min(MOST_BINS, MOST_VALUES // max(1, members)))


def levels_ns(every_ns: int, end_ns: int, bins: int) -> tuple[int, ...]:
    """1, 2, 5, 10, … times the finest, until so many bins are the whole time."""
    found: list[int] = []
    power = 1
    while True:
        for step in STEPS:
            found.append(every_ns * step * power)
            if found[-1] * bins >= end_ns:
                return tuple(found)
        power *= 10


def binned(rows: pl.LazyFrame, begin_ns: int, bin_ns: int, bins: int) -> Iterator[LinkBins]:
    """Samples of directions of links as bins. `rows`: all until the end of the last bin; those before the first one
    give the initial values of counters.

    A direction that sent, lost, dropped and queued nothing is left out."""
    number = ((pl.col("time_ns") - begin_ns - 1) // bin_ns).clip(-1, bins - 1)
    last = pl.col("time_ns").arg_max()
    grid = (
        rows.group_by(*LINK, number.alias("bin"))
        .agg(
            pl.col("time_ns", "sent_bytes", *GROWING).max().fill_null(0),  # counters: the largest is the last
            pl.col("rate_bps").get(last).alias("capacity"),
            pl.col("queue_bytes").max().fill_null(0).alias("queue"),
            pl.col("queue_bytes").get(last).fill_null(0).alias("queue at last"),
        )
        .sort(*LINK, "bin")
        .collect()
    )
    places = grid.select(pl.struct(LINK).rle_id()).to_series().to_numpy()
    columns = {name: grid[name].to_numpy() for name in grid.columns if name not in LINK}
    for own in groups(places):
        # The first place is the time before the bins.
        at = columns["bin"][own] + 1
        known = np.zeros(bins + 1, dtype=bool)
        known[at] = True

        def spread(name: str, own: slice = own, at: NDArray[np.int64] = at) -> NDArray[np.int64]:
            values = np.zeros(bins + 1, dtype=np.int64)
            values[at] = columns[name][own]
            return values

        grown = {name: np.diff(np.maximum.accumulate(spread(name))) for name in ("sent_bytes", "time_ns", *GROWING)}
        of_run = known | (np.arange(bins + 1) == 0)  # before its first sample nothing waits
        queue = np.where(known, spread("queue"), _held(spread("queue at last"), of_run))[1:]
        if not (queue.any() or any(grown[name].any() for name in ("sent_bytes", *GROWING))):
            continue
        passed = grown["time_ns"]
        rate = grown["sent_bytes"] * float(BYTE_NS) / np.maximum(passed, 1)
        capacity = _held(spread("capacity"), known)[1:].tolist()
        link, direction = grid.row(own.start)[:2]
        yield LinkBins(
            link,
            direction,
            tuple(capacity[:1] if len(set(capacity)) == 1 else capacity),
            tuple(_held(np.rint(rate).astype(np.int64), passed > 0).tolist()),
            tuple(queue.tolist()),
            *(tuple(grown[name].tolist()) for name in GROWING),
        )


def _held(values: NDArray[np.int64], known: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Each value that is not known is the last one that is; those before the first are the first."""
    if not known.any():
        return np.zeros_like(values)
    before = np.maximum.accumulate(np.where(known, np.arange(len(values)), -1))
    held: NDArray[np.int64] = values[np.where(before < 0, int(np.argmax(known)), before)]
    return held


def flow_binned(
    keys: Sequence[tuple[int, int]], series: pl.DataFrame, goodput: pl.DataFrame, bin_ns: int, bins: int
) -> Iterator[FlowBins]:
    """Samples of flows as bins from 0 on: means of cwnd and RTT, payload per time; of flows that have any.

    `goodput`: the table with the series `bytes` that is counted (analysis.arrivals).
    """
    number = ((pl.col("time_ns") - 1).clip(0) // bin_ns).alias("bin")
    seen = series.group_by(*FLOW, number).agg(
        pl.col("cwnd_segments").mean(), pl.col("srtt_ns").filter(pl.col("srtt_ns") > 0).mean()
    )
    got = goodput.group_by(*FLOW, number).agg(pl.col("bytes").sum(), pl.col("bin_ns").sum())
    got = got.select(*FLOW, "bin", goodput=pl.col("bytes") * BYTE_NS / pl.col("bin_ns"))
    rows = seen.join(got, on=[*FLOW, "bin"], how="full", coalesce=True).partition_by(*FLOW, as_dict=True)
    every = pl.DataFrame({"bin": range(bins)}, schema={"bin": pl.Int64})
    for key in keys:
        if key not in rows:
            continue
        own = every.join(rows[key], on="bin", how="left", maintain_order="left")
        yield FlowBins(
            *key,
            *(tuple(own[name].round().cast(pl.Int64).to_list()) for name in ("goodput", "cwnd_segments", "srtt_ns")),
        )
