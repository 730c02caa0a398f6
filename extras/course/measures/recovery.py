"""Measures of what an interruption costs: when a flow has its rate again, what it did not carry until then, how long
nothing came.

In: the series `goodput` in windows, or the series of packets' times. Out: seconds and bytes. Pure.
"""

from __future__ import annotations

import numpy as np

from ewan.extras.course.measures.base import MeasuredRun, NoValueError, measure
from ewan.labs.base.units import BITS_PER_BYTE

WINDOW_S = 0.5
"""Long enough for a mean over some round trips, short enough for a recovery of a second."""


@measure
def recovery(run: MeasuredRun, level: float, since: float, step: str = "") -> float:
    """Return the time after `since` (s) at which the goodput is at least `level` (bit/s) for the first time, in windows
    of half a second that count with their middle."""
    found = run.series("goodput", step=step, window=WINDOW_S)
    there = found.times[(found.times >= since) & (found.values >= level)]
    if not there.size:
        raise NoValueError(f"the goodput is never {level:g} bit/s after {since:g} s")
    return float(there[0] - since)


@measure
def shortfall(run: MeasuredRun, level: float, since: float, to: float, step: str = "") -> float:
    """The bytes that a flow delivered less between two times (s) than it would have at `level` (bit/s) all the time."""
    found = run.series("goodput", step=step, window=WINDOW_S)
    inside = (found.times >= since) & (found.times <= to)
    if not inside.any():
        raise NoValueError(f"there is no goodput between {since:g} s and {to:g} s")
    return float(np.sum(level - found.values[inside]) * WINDOW_S / BITS_PER_BYTE)
