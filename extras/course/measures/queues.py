"""Measures of what waits at a link. Pure."""

from __future__ import annotations

import polars as pl

from ewan.extras.course.measures.base import MeasuredRun, NoValueError, measure


@measure
def most_waiting(run: MeasuredRun, link: str = "core") -> float:
    """The most bytes that waited at a link in its forward direction, framing counted, at any look at its counters.

    Series of links are means of windows; a burst of a few milliseconds is seen only here.
    """
    there = run.table("links").filter(pl.col("link") == link, pl.col("direction") == "forward")
    found = there["queue_bytes"].max()
    if not isinstance(found, int):
        raise NoValueError(f"{link}: there is no such link, or its queue is not counted")
    return float(found)
