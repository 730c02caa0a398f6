"""Samples of one run that have a distribution, by whom they are of. Pure.

In: a run's tables. Out: values by label, in the unit of the entry (labs/record/series.py). An entry that names a column
needs nothing here; the others register themselves with `@computes("name")`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from ewan.analysis import media
from ewan.analysis.figures.windows import Floats
from ewan.analysis.network import BYTE_NS
from ewan.analysis.rundata import RunData
from ewan.labs.record.quantities import Selection
from ewan.labs.record.series import SAMPLES, Samples

Computation = Callable[[RunData], pl.Series]
COMPUTED: dict[str, Computation] = {}


def computes(name: str) -> Callable[[Computation], Computation]:
    """Registers a function as the computation of samples."""

    def register(function: Computation) -> Computation:
        assert name in SAMPLES and name not in COMPUTED, name
        COMPUTED[name] = function
        return function

    return register


def of_run(run: RunData, entry: Samples, selection: Selection | None = None, link: str = "") -> dict[str, Floats]:
    """Values by label, without those that a run does not have; those of all together have an empty label."""
    whose = entry.whose
    chosen = run.members(selection, whose == "command") if selection is not None and whose != "link" else [selection]
    several = selection is not None and selection.name is None
    found = {}
    for member in chosen:
        values = _values(run.of(member), entry, link)
        if values.len():
            found[str(member.name) if several and member is not None else ""] = values.cast(pl.Float64).to_numpy()
    return found


def _values(run: RunData, entry: Samples, link: str) -> pl.Series:
    if entry.name == "queueing delay":
        return _queueing(run, link)
    if not entry.column:
        return COMPUTED[entry.name](run).drop_nulls()
    table = run.of_commands(entry.table) if entry.whose == "command" else run.table(entry.table)
    if entry.without:
        table = table.filter(~pl.col(entry.without))
    if entry.whose == "command":
        own = table
    elif entry.table == "flows":
        own = run.load
    else:
        own = table.join(run.load.select("flow", "part").unique(), on=["flow", "part"], how="semi")
    return own[entry.column].drop_nulls()


@computes("completion time")
def _completion(run: RunData) -> pl.Series:
    return pl.Series(run.completion[0], dtype=pl.Int64)


@computes("response time")
def _responses(run: RunData) -> pl.Series:
    return pl.Series(run.responses, dtype=pl.Int64)


@computes("iteration time")
def _iterations(run: RunData) -> pl.Series:
    return pl.Series(run.iterations, dtype=pl.Int64)


@computes("start lateness")
def _lateness(run: RunData) -> pl.Series:
    return run.flows.select(pl.col("started_ns") - pl.col("scheduled_ns")).to_series()


@computes("udp delay")
def _udp_delay(run: RunData) -> pl.Series:
    return run.datagrams["delay_p50_ns"]


@computes("udp jitter")
def _udp_jitter(run: RunData) -> pl.Series:
    return run.datagrams["jitter_ns"]


@computes("frame delay")
def _frame_delay(run: RunData) -> pl.Series:
    return media.delays_ns(run.frames)


@computes("one-way delay")
def _one_way_delay(run: RunData) -> pl.Series:
    return pl.Series(dtype=pl.Int64) if run.wire is None else run.wire.delays["delay_ns"]


@computes("packet gap")
def _packet_gap(run: RunData) -> pl.Series:
    return pl.Series(dtype=pl.Int64) if run.wire is None else run.wire.gaps_ns


def _queueing(run: RunData, link: str) -> pl.Series:
    """The queueing delay of the bottleneck or of a link, at each sample while the flows were active."""
    at = run.bottleneck
    rows = run.table("links")
    if link:
        name, _, direction = link.partition(" ")
        rows = rows.filter((pl.col("link") == name) & (pl.col("direction") == (direction or "forward")))
    else:
        rows = rows.filter((pl.col("link") == at[0]) & (pl.col("direction") == at[1])) if at else rows.clear()
    busy = np.zeros(rows.height, dtype=bool)
    times = rows["time_ns"].to_numpy()
    for start, end in run.active:
        busy |= (times > start) & (times <= end)
    rows = rows.filter(pl.Series(busy), pl.col("rate_bps") > 0)
    return rows.select(pl.col("queue_bytes") * BYTE_NS / pl.col("rate_bps")).to_series()
