"""Series over time, in windows that a picture has room for. Pure.

In: the tables of a run. Out: numbers per window. What is drawn are these windows; the tables keep every sample.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ewan.analysis.arrivals import STEADY_KINDS
from ewan.analysis.figures.request import FigureError
from ewan.analysis.flows import jain
from ewan.analysis.network import BYTE_NS
from ewan.labs.base.units import NS_PER_MS, Duration

MOST_WINDOWS = 160
MOST_OF_A_LENGTH = 1 << 22
"""Windows where their length is given: a day of 20 ms."""
MOST_SAMPLES = 600
"""Samples of a line: a figure shows no more."""

Flow = tuple[int, int]
Floats = NDArray[np.float64]


class WindowValues(NamedTuple):
    """Moments in ns (the middle of each window, or of each sample), and values; those of words are their places among
    `words`."""

    times: Floats
    values: Floats
    words: tuple[str, ...] = ()

    def among(self, words: tuple[str, ...]) -> WindowValues:
        """The same with places among other words, all of its own among them."""
        places = np.array([words.index(word) for word in self.words], dtype=np.float64)
        known = ~np.isnan(self.values)
        values = np.full(self.values.shape, np.nan)
        values[known] = places[self.values[known].astype(np.int64)] if self.words else self.values[known]
        return WindowValues(self.times, values, words)


def window_ns(end_ns: int, bin_ns: int, most: int = MOST_WINDOWS) -> int:
    """A round number of bins, so that the whole time takes at most `most` windows."""
    steps = (step * int(10**power) for power in itertools.count() for step in (1, 2, 5))
    return next(step for step in steps if step * bin_ns * most >= end_ns) * bin_ns


def goodput_grid(
    goodput: pl.DataFrame, most: int = MOST_WINDOWS, length: int | None = None
) -> tuple[int, pl.DataFrame]:
    """Payload bytes per window, flow and part; and how long a window is. `goodput`: the table with the series `bytes`
    that is counted (analysis.arrivals). The window's number is in `window`."""
    end_ns, bin_ns = (int(most_of) for most_of in goodput.select(pl.col("time_ns", "bin_ns").max()).row(0))
    if length is None:
        length = window_ns(end_ns, max(bin_ns, NS_PER_MS), most)
    elif end_ns // length > MOST_OF_A_LENGTH:
        raise FigureError(f"goodput goes until {Duration(end_ns)}: too long for windows of {Duration(length)}")
    # The middle of a bin tells its window: bins may end exactly where a window does.
    window = (pl.col("time_ns") - pl.col("bin_ns") // 2) // length
    return length, goodput.group_by("flow", "part", window.alias("window")).agg(pl.col("bytes").sum())


def rate(grid: pl.DataFrame, length: int, windows: int) -> WindowValues:
    """bit/s of all rows together; nothing was received in windows without rows."""
    size: Floats = np.zeros(windows)
    sums = grid.group_by("window").agg(pl.col("bytes").sum())
    index = sums["window"].to_numpy()
    inside = (index >= 0) & (index < windows)
    size[index[inside]] = sums["bytes"].to_numpy()[inside]
    times: Floats = (np.arange(windows, dtype=np.float64) + 0.5) * length
    return WindowValues(times, np.asarray(size * BYTE_NS / length, dtype=np.float64))


def whole(line: WindowValues, length: int, start: int, end: int) -> WindowValues:
    """Only windows that lie in the time: at its ends a window is not full, and would show a false fall."""
    inside = (line.times - length / 2 >= start) & (line.times + length / 2 <= end)
    return WindowValues(line.times[inside], line.values[inside])


def lived(flows: pl.DataFrame) -> pl.DataFrame:
    """The flows that started and ended: one that failed before it started has no start, and may have an end."""
    return flows.filter(pl.col("started_ns").is_not_null() & pl.col("ended_ns").is_not_null())


def ends(load: pl.DataFrame) -> list[tuple[Flow, int, int]]:
    """The first and the last started of the flows that last, with start and end; one, or none, where there are less."""
    known = lived(load).filter(pl.col("kind").is_in(STEADY_KINDS)).sort("scheduled_ns", "flow", "part")
    rows = known.select("flow", "part", "started_ns", "ended_ns").rows()
    chosen = [rows[0], rows[-1]] if len(rows) > 1 else rows
    return [((flow, part), start, end) for flow, part, start, end in chosen]


def fairness(load: pl.DataFrame, goodput: pl.DataFrame, most: int = 100, length: int | None = None) -> WindowValues:
    """Jain's index of the load flows that were active throughout a window, where there were two or more.

    At most so many windows, or windows of a length.
    """
    own = goodput.join(load.select("flow", "part").unique(), on=["flow", "part"], how="semi")
    if own.is_empty():
        return WindowValues(np.array([]), np.array([]))
    length, grid = goodput_grid(own, most, length)
    lives = lived(load).select("flow", "part", "started_ns", "ended_ns")
    moments, values = [], []
    received = {(flow, part, window): size for flow, part, window, size in grid.iter_rows()}
    rows = lives.rows()
    for window in range(int(own.select(pl.col("time_ns").max()).item()) // length):
        start, end = window * length, (window + 1) * length
        there = [(flow, part) for flow, part, begun, done in rows if begun <= start and done >= end]
        if len(there) > 1:
            moments.append(start + length / 2)
            values.append(jain([float(received.get((flow, part, window), 0)) for flow, part in there]))
    return WindowValues(np.array(moments), np.array(values))


def samples(rows: pl.DataFrame, value: str, most: int = MOST_SAMPLES) -> WindowValues:
    """A series, with gaps where there is no value; of more than `most` samples every k-th one."""
    kept = rows.sort("time_ns").gather_every(max(1, -(-rows.height // most)))
    if rows.schema[value] == pl.String:
        words = sorted(set(kept[value].drop_nulls()))
        found = [math.nan if word is None else words.index(word) for word in kept[value]]
        return WindowValues(kept["time_ns"].to_numpy().astype(np.float64), np.array(found, np.float64), tuple(words))
    values = kept[value].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return WindowValues(kept["time_ns"].to_numpy().astype(np.float64), values)


def queueing(rows: pl.DataFrame, most: int = MOST_WINDOWS) -> tuple[WindowValues, Floats, Floats]:
    """The queueing delay (ns) of one direction of a link: its mean and its largest value per window; and the packets
    dropped."""
    end, count = int(rows.select(pl.col("time_ns").max()).item()), rows.height
    length = window_ns(end, max(end // max(count, 1), 1), most)
    # During an outage the delay of the queue is unknown.
    delay = pl.when(pl.col("rate_bps") > 0).then(pl.col("queue_bytes") * BYTE_NS / pl.col("rate_bps"))
    grid = (
        rows.sort("time_ns")
        .with_columns(
            delay=delay,
            drops=pl.col("dropped_packets").diff().fill_null(pl.col("dropped_packets")),
            window=(pl.col("time_ns") - 1) // length,
        )
        .group_by("window", maintain_order=True)
        .agg(mean=pl.col("delay").mean(), most=pl.col("delay").max(), drops=pl.col("drops").sum())
    )
    times = (grid["window"].to_numpy() + 0.5) * length
    return (
        WindowValues(times, grid["mean"].to_numpy()),
        grid["most"].to_numpy(),
        grid["drops"].to_numpy().astype(np.float64),
    )
