"""Counters that external devices report of their links, beside the counters of our cards behind them. Pure.

In: the tables `device` and `links` of a run. Out: how far the two are apart, and our counters of devices' links."""

from __future__ import annotations

import polars as pl

LINK = ["link", "direction"]


def counted(links: pl.DataFrame, device: pl.DataFrame) -> pl.DataFrame:
    """The rows of `links` for links of devices that reported counters."""
    return links.join(device.select(LINK).unique(), on=LINK, how="semi", maintain_order="left").sort("time_ns")


def difference(links: pl.DataFrame, device: pl.DataFrame) -> float | None:
    """The relative difference between the bytes that the devices report and those that we counted; None: there is no
    device, or no bytes.

    A period counts where its middle lies between the first and the last look at the cards."""
    ours = counted(links, device).group_by(LINK).agg(
        begin=pl.col("time_ns").min(),
        end=pl.col("time_ns").max(),
        ours=pl.col("sent_bytes").max() - pl.col("sent_bytes").min(),
    )  # fmt: skip
    middle = pl.col("time_ns") - pl.col("interval_ns") // 2
    inside = device.join(ours, on=LINK).filter((middle > pl.col("begin")) & (middle <= pl.col("end")))
    theirs = inside.group_by(LINK).agg(theirs=pl.col("out_bytes").sum())
    both = ours.join(theirs, on=LINK, how="left").with_columns(pl.col("theirs").fill_null(0))
    total = float(both["ours"].sum())
    return float((both["ours"] - both["theirs"]).abs().sum()) / total if total else None
