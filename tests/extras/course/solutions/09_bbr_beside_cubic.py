"""A good student of lab 9: reads the table of both scenarios, and draws a line through two points of the curve."""

from __future__ import annotations

import math

from tests.extras.course.desk import Desk, written

BUFFERS = (0.25, 0.5, 1, 2, 4, 8, 16)


def solve(desk: Desk) -> dict[str, str]:
    """The answers."""
    rate, rtt, crowd = desk.number("rate"), desk.number("rtt"), desk.number("crowd")
    _, beside, harm = (desk.run(command) for command in desk.commands)

    def of(words: str, buffer: float) -> float:
        return desk.read(beside, words, buffer=f"{buffer:g}BDP")

    def harmed(other: str, buffer: str) -> float:
        had = {
            each: desk.read(harm, "aggregate goodput of own", buffer=buffer, other=each) for each in ("alone", other)
        }
        return 1 - had[other] / had["alone"]

    shares = [of("share of bbr", buffer) for buffer in BUFFERS]
    last = max(place for place, share in enumerate(shares) if share >= 0.5)
    part = (shares[last] - 0.5) / (shares[last] - shares[last + 1])
    crossing = 2 ** (math.log2(BUFFERS[last]) + part)  # the buffers are a factor of two apart
    return {
        "flight": written(2 * rate * rtt / 8, "size"),
        "brim": written(17 * rtt, "time"),
        "even": written(1 / (1 + crowd), "share"),
        "shallow": written(shares[0], "share"),
        "crumbs": written(of("aggregate goodput of cubic", 0.25), "rate"),
        "losses": written(of("queue loss", 0.25), "share"),
        "signal": "it repeats them and keeps its rate",
        "why": "The queue drops packets of both. CUBIC takes each loss for congestion and halves again; BBR does not.",
        "deep": written(of("aggregate goodput of bbr", 16), "rate"),
        "crossover": f"{crossing:.2g}",
        "keeper": "CUBIC's" if shares[-1] < 0.5 else "BBR's",
        "cap": "What BBR has in flight is bounded; CUBIC fills the rest, so BBR's part falls as the buffer grows.",
        "harm_bbr": written(harmed("bbr", "0.5BDP"), "share"),
        "harm_cubic": written(harmed("cubic", "0.5BDP"), "share"),
        "harm_deep": written(harmed("bbr", "8BDP"), "share"),
        "deploy": "With deep buffers yes, with shallow ones no.",
    }
