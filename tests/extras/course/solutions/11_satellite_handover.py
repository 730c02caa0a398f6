"""A good student of lab 11: reads ping's answers, and the goodput of each half second."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ewan.analysis.api import Results
from tests.extras.course.desk import Desk, written

WINDOW_S = 0.5
Floats = NDArray[np.float64]


def solve(desk: Desk) -> dict[str, str]:
    """The answers."""
    names = ("rate_before", "delay_before", "rate_after", "delay_after", "handover", "outage")
    rate_before, delay_before, rate_after, delay_after, handover, outage = (desk.number(name) for name in names)
    echo, passes = (desk.run(command) for command in desk.commands)
    (answers,) = echo.directory.glob("runs/001/commands/*-left1.out")
    longest_ms = max(float(each) for each in re.findall(r"time=([\d.]+) ms", answers.read_text()))
    back, payload, rtt = handover + outage, rate_after * 1448 / 1538, 2 * delay_after

    def recovered(congestion: str) -> str:
        times, rates = windows(passes, congestion, "pass.csv")
        return written(float(times[(times >= back) & (rates >= 0.9 * payload)][0]) - back, "time")

    def missing(trace: str, since: float) -> str:
        times, rates = windows(passes, "reno", trace)
        inside = (times >= since) & (times <= since + 10)
        return written(float((payload - rates[inside]).sum()) * WINDOW_S / 8, "size")

    return {
        "before": written(2 * delay_before, "time"),
        "after": written(rtt, "time"),
        "growth": f"{rate_after * delay_after / rate_before / delay_before:.4g}",
        "longest": written(longest_ms / 1000, "time"),
        "together": "at the same time",
        "lost": "they waited in the buffer",
        "alarm": f"{desk.read(passes, 'timeouts', congestion='reno', trace='pass.csv'):g}",
        "needless": "No: as much was lost without the outage. Old acknowledgements that come after all show it.",
        "climb": written(1448 * 8 / rtt**2, "rate"),
        "reno": recovered("reno"),
        "bbr": recovered("bbr"),
        "price": missing("pass.csv", back),
        "seamless": missing("seamless.csv", handover),
        "blame": "The larger path: most is missing without the outage too.",
        "design": "Hold packets back and tell senders; keep the rates of earlier passes.",
    }


def windows(results: Results, congestion: str, trace: str) -> tuple[Floats, Floats]:
    """What arrived for a download in each half second, in bit/s, and the middles of these."""
    frame = results.table("goodput")
    frame = frame.filter(pl.col("congestion") == congestion, pl.col("trace") == trace)
    times = frame["time_ns"].to_numpy() / 1e9 - frame["bin_ns"].to_numpy() / 2e9
    number = np.floor(times / WINDOW_S).astype(int)
    bits = np.bincount(number, frame["arrived_bytes"].to_numpy() * 8).astype(np.float64)
    middles = (np.arange(len(bits)) + 0.5) * WINDOW_S
    return middles.astype(np.float64), bits / WINDOW_S
