"""Frames of interactive video as a viewer gets them: freezes, and an opinion of the pictures. Pure.

In: the times at which frames were captured and shown (labs/record/columns.py, table frames), in ns; rates and losses.
Out: how often and how long the picture froze, and a score from 1 to 5.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

from ewan.labs.base.units import NS_PER_MS
from ewan.labs.record.traffic import LEAST_PAUSE_NS

_LAST_FRAMES = 30
"""The number of frames whose mean duration is usual."""
_TIMES_USUAL, _BEYOND_USUAL_NS = 3, 150 * NS_PER_MS


class Freezes(NamedTuple):
    """The number of freezes, and their time together (ns)."""

    number: int
    total_ns: int


def freezes(shown_ns: Iterable[int], until_ns: int) -> Freezes:
    """The freezes of a flow, as freezeCount and totalFreezesDuration of W3C's "Identifiers for WebRTC's Statistics API"
    define them.

    A frame lasts from when it is shown until the next one is; it freezes where that is at least three times the mean of
    the last 30 frames, and 150 ms more than this mean. The last frame lasts until `until_ns`, which the definition does
    not say.
    """
    durations: deque[int] = deque(maxlen=_LAST_FRAMES)
    count = total = 0
    last = None
    for at_ns in (*sorted(shown_ns), until_ns):
        if last is not None and at_ns >= last:
            lasted = at_ns - last
            usual = sum(durations) / len(durations) if durations else lasted
            if lasted >= max(_TIMES_USUAL * usual, usual + _BEYOND_USUAL_NS):
                count, total = count + 1, total + lasted
            durations.append(lasted)
        last = at_ns
    return Freezes(count, total)


def watched(frames: pl.DataFrame) -> list[tuple[Freezes, int]]:
    """The freezes of a flow, and how long (ns) its source was captured, for each part from one pause to the next."""
    parts = frames.sort("captured_ns").with_columns(
        part=(pl.col("captured_ns").diff().fill_null(0) >= LEAST_PAUSE_NS).cum_sum()
    )
    found = []
    for _, own in parts.group_by("part", maintain_order=True):
        captured = own["captured_ns"]
        first, last = captured[0], captured[-1]
        found.append((freezes(own["shown_ns"].drop_nulls().to_list(), last), last - first))
    return found


def delays_ns(frames: pl.DataFrame) -> pl.Series:
    """The time from the capture of each frame to its last packet, null for those that did not come whole."""
    return frames.select(pl.col("completed_ns") - pl.col("captured_ns")).to_series()


_V = (5.517, 1.29e-2, 3.459, 178.53, 1.02, 1.15, 3.55e-4, 0.114, 513.77, 0.736, -6.451, 13.684)
"""v1 to v12 of ITU-T G.1070, appendix I: H.264 in VGA on a screen of 9.2 inches."""
_MOST_FRAMES = 30.0
"""The model holds up to so many frames a second."""


def picture_score(rate_kbps: float, frames_per_second: float, loss: float) -> float:
    """The video quality V_q of ITU-T G.1070 (06/2018), clause 11.2: what viewers would think of the pictures, from 1 to
    5. `loss`: the share of packets that were lost."""
    if rate_kbps <= 0 or frames_per_second <= 0:
        return 1.0
    v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12 = _V
    frames = min(max(frames_per_second, 1.0), _MOST_FRAMES)
    best_frames = min(max(v1 + v2 * rate_kbps, 1.0), _MOST_FRAMES)
    best = v3 - v3 / (1 + math.pow(rate_kbps / v4, v5))
    spread = v6 + v7 * rate_kbps
    coding = best * math.exp(-((math.log(frames) - math.log(best_frames)) ** 2) / (2 * spread**2))
    robust = v10 + v11 * math.exp(-frames / v8) + v12 * math.exp(-rate_kbps / v9)
    return 1 + coding * math.exp(-100 * loss / robust)
