"""Lab 5 as a good student does it: the law by hand, goodputs off the tables, the slope off two points."""

from __future__ import annotations

from math import log, sqrt

import polars as pl

from tests.extras.course.desk import Desk, written

SEGMENT = 8 * 1448
"""Bits of payload in a packet of 1500 bytes."""


def solve(desk: Desk) -> dict[str, str]:
    """The answers to all questions."""
    sawtooth, periodic, random, better = (desk.run(command) for command in desk.commands)
    every, rtt = desk.number("every"), desk.number("rtt")
    late = pl.col("time_ns").is_between(8 * 10**9, 14 * 10**9)
    windows = sawtooth.table("series").filter(late)["cwnd_segments"].to_list()
    goodputs = {each: desk.read(periodic, "steady goodput", every=each) for each in (400, 6400)}
    rates = {loss: desk.read(random, "steady goodput", loss=loss) for loss in ("0.25%", "16%")}
    law_at_16 = SEGMENT / desk.read(random, "mean rtt", loss="16%") * 1.2247 / 0.4
    grown = desk.read(better, "steady goodput", mtu=desk.values["large"]) / desk.read(
        better, "steady goodput", mtu=1500, rate="1Gbit/s"
    )
    window = 10**9 * 1448 / 1538 * rtt / SEGMENT
    losses = (window / 1.2247) ** 2
    return {
        "peak": f"{round(sqrt(8 / 3 * every), 1)}packets",
        "seen": f"{max(windows)} packets",
        "begin": "slow start",
        "predicted": written(SEGMENT / rtt * 1.2247 * sqrt(every), "rate", 4),
        "measured": written(desk.read(sawtooth, "steady goodput", run=1), "rate", 4),
        "shortfall": "the window grows in every round trip, also in the one in which the loss is repaired",
        "slope": f"{-log(goodputs[6400] / goodputs[400]) / log(6400 / 400):.3f}",
        "constant": f"{goodputs[6400] * desk.read(periodic, 'mean rtt', every=6400) / SEGMENT / 80:.3f}",
        "delayed": "it counts the segments that an ACK acknowledges, not the ACKs",
        "chance": f"{rates['0.25%'] / goodputs[400]:.3f}",
        "broken": written(rates["16%"] / law_at_16, "share", 3),
        "timeouts": "the retransmission timer runs out",
        "faster": "the same",
        "packets": f"{(desk.number('large') - 52) / 1448:.3f}",
        "jumbo": f"{grown:.3f}",
        "full": f"{losses:.3g}",
        "wait": written(losses * 1538 * 8 / 10**9, "time", 3),
        "meaning": "The law has the window and the RTT alone: losses limit Reno before the link does.",
    }
