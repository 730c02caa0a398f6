"""Measures of congestion windows: slow start's rounds and end, the teeth of a sawtooth, when a series crosses a value.

In: the table `series` of one flow, each sample of it (a series of figures has no more samples than figures show). Out:
numbers in segments, seconds and ratios. Teeth are found only in the window: a fall by more than `FALL` ends one. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ewan.extras.course.measures.base import MeasuredRun, NoValueError, TimeSeries, measure
from ewan.labs.base.units import NS_PER_SECOND

FALL = 0.12
"""A window that falls by more than this share was cut: CUBIC takes 0.3 away, Reno 0.5, noise of samples less."""
NO_THRESHOLD = 2**31 - 1
"""Linux's slow-start threshold before the first loss or HyStart's end (TCP_INFINITE_SSTHRESH)."""
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SawtoothCycle:
    """From one cut to the next. Indices of samples: the window's peak before the cut, its least value after it, the
    peak at which it ends."""

    cut: int
    low: int
    end: int


def teeth(values: Sequence[float] | Floats) -> list[SawtoothCycle]:
    """The whole teeth of a window, in order: each begins with a cut and ends at the peak before the next one."""
    cuts: list[tuple[int, int]] = []
    peak, low, falling = 0, 0, False
    for index, each in enumerate(values):
        if falling and each > values[low]:
            cuts.append((peak, low))
            peak, falling = index, False
        elif falling:
            low = index if each < values[low] else low
        elif each >= values[peak]:
            peak = index
        elif each < (1 - FALL) * values[peak]:
            low, falling = index, True
    return [SawtoothCycle(cut, low, after) for (cut, low), (after, _) in pairwise(cuts)]


def _samples(run: MeasuredRun, column: str, step: str) -> TimeSeries:
    """Each sample of a column of the table `series`, as it is there but for its times: of the flow of a step, or of the
    only flow of the load."""
    flows = run.table("flows")
    flow = flows.filter(flows["step"] == step if step else flows["role"] == "load")["flow"].unique()
    if len(flow) != 1:
        raise NoValueError(f"{column}: is of one flow, and there are {len(flow)}: name a step that has one")
    samples = run.table("series")
    samples = samples.filter(samples["flow"] == flow[0])
    if samples["part"].n_unique() != 1:
        raise NoValueError(f"{column}: the flow has several connections, or none was sampled")
    return TimeSeries(samples["time_ns"].to_numpy() / NS_PER_SECOND, samples[column].to_numpy().astype(float))


def _window(run: MeasuredRun, step: str) -> TimeSeries:
    return _samples(run, "cwnd_segments", step)


def _windows(run: MeasuredRun, step: str, from_: float, to: float) -> tuple[TimeSeries, list[SawtoothCycle]]:
    """The window, and the teeth that lie between two times (s)."""
    found = _window(run, step)
    inside = [each for each in teeth(found.values) if from_ <= found.times[each.cut] and found.times[each.end] <= to]
    if not inside:
        raise NoValueError(f"cwnd: has no whole tooth between {from_:g} s and {to:g} s")
    return found, inside


@measure
def peak_window(run: MeasuredRun, from_: float = 0.0, to: float = float("inf"), step: str = "") -> float:
    """The window at which it is cut, in segments: mean over the whole teeth between two times (s)."""
    found, inside = _windows(run, step, from_, to)
    return float(np.mean([found.values[each.end] for each in inside]))


@measure
def decrease(run: MeasuredRun, from_: float = 0.0, to: float = float("inf"), step: str = "") -> float:
    """The window after a cut by that before it: mean over the whole teeth between two times (s)."""
    found, inside = _windows(run, step, from_, to)
    return float(np.mean([found.values[each.low] / found.values[each.cut] for each in inside]))


@measure
def tooth_length(run: MeasuredRun, from_: float = 0.0, to: float = float("inf"), step: str = "") -> float:
    """Seconds from cut to cut: mean over the whole teeth between two times (s)."""
    found, inside = _windows(run, step, from_, to)
    return float(np.mean([found.times[each.end] - found.times[each.cut] for each in inside]))


@measure
def growth(run: MeasuredRun, from_: float = 0.0, to: float = float("inf"), step: str = "") -> float:
    """Segments a second by which the window grows within a tooth: slope of least squares, mean over teeth."""
    found, inside = _windows(run, step, from_, to)
    slopes = []
    for each in inside:
        part = slice(each.low, each.end + 1)
        if each.end - each.low < 2:
            raise NoValueError("cwnd: a tooth has fewer than three samples")
        slopes.append(np.polyfit(found.times[part], found.values[part], 1)[0])
    return float(np.mean(slopes))


@measure
def growth_per_rtt(run: MeasuredRun, from_: float = 0.0, to: float = float("inf"), step: str = "") -> float:
    """Segments by which the window grows in a round trip within a tooth: the slope times its mean smoothed RTT."""
    found, inside = _windows(run, step, from_, to)
    rtts, grown = _samples(run, "srtt_ns", step), []
    for each in inside:
        part = slice(each.low, each.end + 1)
        slope = np.polyfit(found.times[part], found.values[part], 1)[0]
        during = (rtts.times >= found.times[each.low]) & (rtts.times <= found.times[each.end])
        grown.append(slope * float(rtts.values[during].mean()) / NS_PER_SECOND)
    return float(np.mean(grown))


@measure
def longest_window(run: MeasuredRun, from_: float = 0.0, to: float = float("inf"), step: str = "") -> float:
    """The window, in segments, at which most samples are between two times (s): where it stays longest."""
    found = _window(run, step)
    inside = found.values[(found.times >= from_) & (found.times <= to)]
    if not inside.size:
        raise NoValueError(f"cwnd: has no sample between {from_:g} s and {to:g} s")
    windows, counts = np.unique(inside, return_counts=True)
    return float(windows[counts.argmax()])


@measure
def window_after_cut(
    run: MeasuredRun, after: float, from_: float = 0.0, to: float = float("inf"), step: str = "", above: float = 0.0
) -> float:
    """The window so many seconds after it was cut, in segments: mean over the teeth that last so long and whose
    window was cut at more than `above` segments."""
    found, inside = _windows(run, step, from_, to)
    values = []
    for each in inside:
        at = int(np.searchsorted(found.times, found.times[each.low] + after, side="right")) - 1
        if at <= each.end and found.values[each.cut] > above:
            values.append(found.values[at])
    if not values:
        raise NoValueError(f"cwnd: no tooth between {from_:g} s and {to:g} s lasts {after:g} s")
    return float(np.mean(values))


@measure
def first_above(
    run: MeasuredRun, series: str, above: float, from_: float = 0.0, step: str = "", link: str = ""
) -> float:
    """When a series is above a value for the first time, in seconds from T0, from a time on."""
    found = _window(run, step) if series == "cwnd" else run.series(series, step=step, link=link)
    reached = found.times[(found.values > above) & (found.times >= from_)]
    if not reached.size:
        raise NoValueError(f"{series}: is never above {above:g}")
    return float(reached[0])


def _begin(run: MeasuredRun, step: str) -> tuple[TimeSeries, float]:
    """The window, and when the flow's connection was there: data begin to be sent then."""
    window, flows = _window(run, step), run.table("flows")
    connected = flows.filter(flows["step"] == step if step else flows["role"] == "load")["connected_ns"][0]
    if connected is None:
        raise NoValueError("cwnd: the flow has no connection")
    return window, float(connected) / NS_PER_SECOND


@measure
def window_in_round(run: MeasuredRun, number: int, rtt: float, step: str = "") -> float:
    """The window in the middle of a round trip of slow start, in segments; the first has number 1. `rtt`: of the empty
    path, in seconds."""
    found, begin = _begin(run, step)
    before = found.values[found.times <= begin + (number - 0.5) * rtt]
    if not before.size:
        raise NoValueError(f"cwnd: has no sample in round {number}")
    return float(before[-1])


def _exit(run: MeasuredRun, step: str) -> tuple[TimeSeries, int]:
    """The window, and the first sample after slow start's end."""
    threshold, found = _samples(run, "ssthresh_segments", step), _window(run, step)
    ended = np.flatnonzero(threshold.values < NO_THRESHOLD)
    if not ended.size:
        raise NoValueError("ssthresh: slow start does not end")
    return found, int(np.searchsorted(found.times, threshold.times[ended[0]]))


@measure
def slow_start_end(run: MeasuredRun, step: str = "") -> float:
    """When slow start ends, in seconds from T0: the first sample with a threshold."""
    found, at = _exit(run, step)
    return float(found.times[at])


@measure
def slow_start_peak(run: MeasuredRun, step: str = "") -> float:
    """The largest window of slow start, in segments: until the first sample with a threshold, that one included."""
    found, at = _exit(run, step)
    return float(found.values[: at + 1].max())


@measure
def threshold(run: MeasuredRun, step: str = "") -> float:
    """The slow-start threshold when slow start has ended, in segments."""
    found = _samples(run, "ssthresh_segments", step)
    ended = found.values[found.values < NO_THRESHOLD]
    if not ended.size:
        raise NoValueError("ssthresh: slow start does not end")
    return float(ended[0])


@measure
def acknowledged(run: MeasuredRun, from_: float = 0.0, to: float = float("inf"), step: str = "") -> float:
    """Segments that were delivered from cut to cut: mean over the whole teeth between two times (s)."""
    _, inside = _windows(run, step, from_, to)
    delivered = _samples(run, "delivered_segments", step).values
    return float(np.mean([delivered[each.end] - delivered[each.cut] for each in inside]))
