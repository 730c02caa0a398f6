"""Lab 7 as a good student does it: two laws by hand, goodputs and RTTs off the tables, exponents off two numbers."""

from __future__ import annotations

from math import log

from ewan.analysis.api import Results
from tests.extras.course.desk import Desk


def ratios(desk: Desk, results: Results, **where: str) -> tuple[float, float]:
    """Goodput of the near flow by that of the far one; RTT of the far one by that of the near one."""
    goodputs = [desk.read(results, f"steady goodput of {step}", **where) for step in ("near", "far")]
    rtts = [desk.read(results, f"rtt p50 of {step}", **where) for step in ("near", "far")]
    return goodputs[0] / goodputs[1], rtts[1] / rtts[0]


def solve(desk: Desk) -> dict[str, str | dict[str, str]]:
    """The answers to all questions."""
    pair, deep = (desk.run(command) for command in desk.commands)
    near = desk.number("near")
    waiting = 15 * 1538 * 8 / desk.number("rate")
    law = (4 * near + waiting) / (near + waiting)
    far = f"{4 * near * 1000:.0f}ms"
    reno, reno_rtts = ratios(desk, pair, far=far, congestion="reno")
    twice, twice_rtts = ratios(desk, pair, far=f"{2 * near * 1000:.0f}ms", congestion="reno")
    cubic, cubic_rtts = ratios(desk, pair, far=far, congestion="cubic")
    shared, shared_rtts = ratios(desk, deep, buffer="90pkt")
    return {
        "same_loss": f"{law:.3f}",
        "same_moments": f"{law**2:.3f}",
        "measured": f"{reno:.3f}",
        "exponent": f"{log(reno) / log(reno_rtts):.2f}",
        "between": "the flows lose at the same moments often, but not always",
        "twice": f"{log(twice) / log(twice_rtts):.2f}",
        "cubic_law": f"{law**0.25:.3f}",
        "cubic_measured": f"{cubic:.3f}",
        "cubic_exponent": f"{log(cubic) / log(cubic_rtts):.2f}",
        "clock": "its window grows with the time since the last loss, not with the number of round trips",
        "deep_rtts": f"{shared_rtts:.3f}",
        "deep": f"{shared:.3f}",
        "nearer": f"{desk.number('server') / desk.number('cache'):.3f}",
        "fair": "For: all pay the same. Against: the far flow holds more of the network. A fair queue would share.",
    }
