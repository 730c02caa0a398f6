"""Payload that receivers got over time: as it arrived, and as it was delivered in order. Pure.

In: the table `goodput` (labs/record/tables.py) and flows. Out: the series that is shown, and arrivals without copies.

TCP gives a program its bytes in order. When a loss is made good, all that had waited behind it is delivered at once:
more than the link carries in that time. Arrivals never are; but they count copies too."""

from __future__ import annotations

import polars as pl

STEADY_KINDS = ("bulk", "udp", "quic", "media", "program")
FLOW = ["flow", "part"]
ARRIVED, DELIVERED = "arrived", "delivered in order"


TELLS = pl.col("arrived_bytes").is_not_null().all() & (
    (pl.col("arrived_bytes").sum() > 0) | (pl.col("delivered_bytes").sum() == 0)
)
"""True where the rows of a flow record arrivals; delivered bytes without any arrival mean that none were counted."""
TOLD = TELLS.over(FLOW)
"""The same of a row's flow."""


def shown(goodput: pl.DataFrame) -> pl.DataFrame:
    """Add `bytes`, the payload per bin that a figure shows of each flow, and `series`, the name of the series: arrivals
    where they are recorded, else the bytes that were delivered in order."""
    told = pl.col("series") == ARRIVED
    return goodput.with_columns(series=pl.when(TOLD).then(pl.lit(ARRIVED)).otherwise(pl.lit(DELIVERED))).with_columns(
        bytes=pl.when(told).then("arrived_bytes").otherwise("delivered_bytes")
    )


def distinct(goodput: pl.LazyFrame, flows: pl.LazyFrame) -> pl.LazyFrame:
    """Add `distinct_bytes`, arrivals without copies, for flows whose arrivals are recorded.

    At any moment, arrived − delivered is the sum of the bytes that wait for missing segments and of the copies so far.
    The waiting bytes are never negative and copies never become fewer, so the least difference from the moment on is an
    upper bound of the copies; it is exact if nothing is missing at some later moment before the next copy. Nor were
    there more than the receiver reported in all: of a flow that is ended in a recovery, much waits and is no copy. In
    no bin is the result more than the bytes that arrived."""
    ahead = (pl.col("arrived_bytes").cum_sum() - pl.col("delivered_bytes").cum_sum()).over(FLOW)
    most = (pl.col("copied_segments") * pl.col("segment_bytes")).alias("most")
    copies = pl.min_horizontal(pl.col("ahead").cum_min(reverse=True).over(FLOW), "most")
    new = pl.col("copies").diff().fill_null(pl.col("copies")).over(FLOW)
    rows = goodput.filter(TOLD).sort(*FLOW, "time_ns")
    rows = rows.join(flows.select(*FLOW, most), on=FLOW, how="left", maintain_order="left")
    rows = rows.with_columns(ahead=ahead).with_columns(copies=copies)
    return rows.with_columns(distinct_bytes=pl.col("arrived_bytes") - new).drop("ahead", "copies", "most")
