"""Traces like those of LTE, 5G, Starlink and Wi-Fi links, drawn from a seed. Pure.

In: a seed and a length in ns. Out: rows of whole bit/s, ns and parts per billion; the same for the same seed. They are
models of a kind of link, not measurements: their parameters are the constants below.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from ewan.labs.base.units import KILO, MEGA, NS_PER_MS, NS_PER_SECOND
from ewan.labs.traces import TraceStep, TraceSteps

_KBIT, _MBIT = KILO, MEGA
_MS = NS_PER_MS
_PERCENT = 10**7
"""Parts per billion."""


def lte(seed: int, length_ns: int) -> TraceSteps:
    """Gauss-Markov in the logarithm of the rate: median 20 Mbit/s, deviation 0.8, from 0.5 to 100 Mbit/s.

    Every 20 to 100 ms, correlated over about 1 s. The delay goes with the scheduler's load, 30 to 70 ms.
    """
    draw = random.Random(seed)
    rows: list[TraceStep] = []
    at, level, load = 0, draw.gauss(0, 0.8), 0.0
    while at < length_ns:
        rate = round(20 * _MBIT * math.exp(level) / (10 * _KBIT)) * 10 * _KBIT
        delay = 40 * _MS + round(8 * load) * _MS
        rows.append(TraceStep(at, min(max(rate, 500 * _KBIT), 100 * _MBIT), min(max(delay, 30 * _MS), 70 * _MS)))
        step = draw.randint(20, 100)
        keep = math.exp(-step / 1000)
        level = keep * level + math.sqrt(1 - keep * keep) * draw.gauss(0, 0.8)
        load = keep * load + math.sqrt(1 - keep * keep) * draw.gauss(0, 1)
        at += step * _MS
    return TraceSteps(tuple(rows), length_ns)


def nr(seed: int, length_ns: int) -> TraceSteps:
    """5G at millimetre waves: spells of 1 to 8 s in line of sight, and of 0.2 to 2 s with something in the way.

    The median of the rate is 400 Mbit/s in the first and 30 Mbit/s in the others; it is from 10 to 600 Mbit/s.

    Within a spell it moves every 20 to 100 ms, with a deviation of 0.3 of its logarithm. The delay is not in the trace.
    """
    draw = random.Random(seed)
    rows: list[TraceStep] = []
    at, clear, end = 0, False, 0
    while at < length_ns:
        if at >= end:
            clear = not clear
            end = at + (draw.randint(1000, 8000) if clear else draw.randint(200, 2000)) * _MS
        rate = round((400 if clear else 30) * _MBIT * math.exp(draw.gauss(0, 0.3)) / (100 * _KBIT)) * 100 * _KBIT
        rows.append(TraceStep(at, min(max(rate, 10 * _MBIT), 600 * _MBIT)))
        at = min(at + draw.randint(20, 100) * _MS, max(end, at + _MS))
    return TraceSteps(tuple(rows), length_ns)


def starlink(seed: int, length_ns: int) -> TraceSteps:
    """Periods of 15 s, each with a base delay of 15 to 35 ms and a base rate of 50 to 250 Mbit/s.

    Each begins with an outage of 50 to 150 ms. Within it the rate moves by 15 % every 100 to 500 ms; now and then 0.5
    to 2 % are lost for one such step, else 0.01 %.
    """
    draw = random.Random(seed)
    rows: list[TraceStep] = []
    period = 15 * NS_PER_SECOND
    for begin in range(0, length_ns, period):
        base, delay = draw.randint(50, 250) * _MBIT, draw.randint(150, 350) * _MS // 10
        outage = draw.randint(50, 150) * _MS
        if begin:
            rows.append(TraceStep(begin, 0, delay, 0))
        at = begin + outage if begin else 0
        while at < min(begin + period, length_ns):
            rate = base * draw.randint(85, 115) // 100
            lost = draw.randint(5, 20) * _PERCENT // 10 if draw.random() < 0.03 else _PERCENT // 100
            rows.append(
                TraceStep(at, rate // (100 * _KBIT) * 100 * _KBIT, delay + draw.randint(0, 30) * _MS // 10, lost)
            )
            at += draw.randint(100, 500) * _MS
    return TraceSteps(tuple(rows), length_ns)


_MCS_KBIT = (6500, 13000, 19500, 26000, 39000, 52000, 58500, 65000, 78000)
"""IEEE 802.11ac, 20 MHz, one stream, long guard interval."""


def wifi(seed: int, length_ns: int) -> TraceSteps:
    """The rate goes among the steps of modulation and coding, of which 65 % are left for IP, every 50 to 200 ms.

    One step in eight is contention of 10 to 60 ms: a quarter to an eighth of the rate, 2 to 20 ms more delay, and 1 to
    5 % lost.
    """
    draw = random.Random(seed)
    rows: list[TraceStep] = []
    at, step = 0, 6
    while at < length_ns:
        rate = _MCS_KBIT[step] * 65 * _KBIT // 100
        if rows and draw.random() < 0.125:
            share, longer, lost = draw.randint(4, 8), draw.randint(2, 20), draw.randint(1, 5)
            rows.append(TraceStep(at, rate // share, (3 + longer) * _MS, lost * _PERCENT))
            at += draw.randint(10, 60) * _MS
        else:
            rows.append(TraceStep(at, rate, 3 * _MS, 0))
            at += draw.randint(50, 200) * _MS
        step = min(max(step + draw.choice((-1, 0, 0, 1)), 0), len(_MCS_KBIT) - 1)
    return TraceSteps(tuple(rows), length_ns)


KINDS: dict[str, Callable[[int, int], TraceSteps]] = {"lte": lte, "nr": nr, "starlink": starlink, "wifi": wifi}
