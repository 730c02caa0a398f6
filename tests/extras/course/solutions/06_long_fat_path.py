"""Lab 6 as a good student does it: a pipe by hand, buffers in proportion to one run, the router's by looking."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, log2

import polars as pl

from ewan.analysis.api import Results
from tests.extras.course.desk import Desk, written


def solve(desk: Desk) -> dict[str, str | Mapping[str, str]]:
    """The answers to all questions."""
    rate, rtt, small = desk.number("rate"), desk.number("rtt"), desk.number("small")
    carried = rate * 1448 / 1538
    pipe = carried * rtt / 8
    stock, buffers, wide, _, paced = (desk.run(command) for command in desk.commands)
    as_they_come = desk.read(stock, "steady goodput", sender="4MiB", receiver="6MiB")
    sender_tuned = desk.read(stock, "steady goodput", sender="64MiB")
    received = desk.read(buffers, "steady goodput", receive_buffer=desk.values["small"])
    sent = desk.read(buffers, "steady goodput", send_buffer=desk.values["small"])
    seen = desk.read(buffers, "mean rtt", receive_buffer=desk.values["small"])
    least_receive, least_send = (small * 0.95 * carried / goodput for goodput in (received, sent))
    ends = {"receive_buffer": f"{least_receive * 1.05 / 1e6:.2f}MB", "send_buffer": f"{least_send * 1.05 / 1e6:.2f}MB"}
    options = " ".join(f"--set {name}={value}" for name, value in ends.items())
    tuned = desk.run(f"ewan run tuning.scenario.yaml --runtime virtual {options}")
    return {
        "pipe": written(pipe, "size"),
        "classic": written(65535 * 8 / rtt, "rate"),
        "stock": written(as_they_come, "rate", 4),
        "narrow": "the sender",
        "share": written(sender_tuned / carried, "share", 4),
        "offered": written(received * seen / 8, "size", 4),
        "least_receive": written(least_receive, "size", 3),
        "least_send": written(least_send, "size", 3),
        "more": "its kernel counts what it keeps beside the payload, until the ACK has come",
        "standing": written(desk.read(wide, "rtt p50", run=1), "time", 4),
        "surplus": "it waits at the router and makes the RTT longer",
        "filled": written(rtt * ceil(log2(pipe / 1448 / 10)), "time"),
        "burst": written(waited(wide), "size", 3),
        "tuned": {**ends, "router_buffer": f"{waited(tuned) * 1.1 / 1e6:.2f}MB"},
        "paced": f"{desk.read(paced, 'steady goodput', run=2) / desk.read(paced, 'steady goodput', run=1):.4g}",
        "why": "Slow start sends two packets for each that leaves; pacing spaces them; the mean of many needs √n.",
    }


def waited(results: Results) -> float:
    """The most bytes in the queue of the bottleneck, of the table of links."""
    core = results.table("links").filter(pl.col("link") == "core", pl.col("direction") == "forward")
    return float(core["queue_bytes"].to_numpy().max())
