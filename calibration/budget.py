"""Uncertainty budgets of the live clock: which sources make a measured value uncertain, and by how much. Pure.

In: a probe's result, what the link counted itself, and what the instrument adds (`Instrument`). Out: standard
uncertainties by source in the value's unit, and how they shrink with more samples. In the virtual clock every instant
is exact: its budgets are empty.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ewan.calibration.expectation import BYTE_NS
from ewan.calibration.spinner import LinkFacts
from ewan.calibration.uncertainty import (
    Components,
    Instrument,
    SampleCount,
    Source,
    ordered_of,
    quantile_uncertainty,
    rectangular,
    shifted_quantile,
)
from ewan.labs.base.units import PPB

BY_ROOT: Mapping[Source, float] = {"finite sample": 0.5}
"""Values drawn independently: their mean, and their quantiles."""
BY_LENGTH: Mapping[Source, float] = {"stack path": 1.0, "finite sample": 1.0, "probe load": 1.0}
"""A rate over a window: what is wrong at its two ends matters less the longer it is."""


def delay_quantile(
    delays_ns: Sequence[float], share: float, instrument: Instrument | None, clock_step_ns: int = 0, clocks_ns: int = 0
) -> tuple[Components, SampleCount] | None:
    """The uncertainty of a quantile of one-way delays, and its sample count; None if there are too few packets.
    `delays_ns`: ascending.

    `clocks_ns`: read off the clocks of two machines, whose difference is known to ± so much; 0: off one clock. The path
    through the network stacks is a bias that is not corrected.
    """
    if instrument is None:
        return {}, SampleCount(len(delays_ns), BY_ROOT)
    sample = quantile_uncertainty(delays_ns, share)
    if sample is None:
        return None
    components: Components = {
        "clock": math.hypot(
            rectangular(instrument.clock_ppb / PPB * delays_ns[0]), rectangular(float(abs(clock_step_ns)))
        ),
        "clocks of two machines": rectangular(float(clocks_ns)),
        "stack path": rectangular(instrument.stack_ns),
        "CPU stolen": shifted_quantile(delays_ns, share, instrument.stolen_ratio),
        "finite sample": sample,
    }
    return components, SampleCount(len(delays_ns), BY_ROOT)


def delay_least(least_ns: float, instrument: Instrument | None, clocks_ns: int = 0) -> Components:
    """The sources that make the least of many one-way delays uncertain; `clocks_ns` is that of `delay_quantile`."""
    if instrument is None:
        return {}
    return {
        "clock": rectangular(instrument.clock_ppb / PPB * least_ns),
        "clocks of two machines": rectangular(float(clocks_ns)),
        "stack path": rectangular(instrument.stack_ns),
    }


def delay_mean(
    mean_ns: float, deviation_of_mean_ns: float, packets: float, instrument: Instrument | None, clocks_ns: int = 0
) -> tuple[Components, SampleCount]:
    """The uncertainty of the mean of delays that vary, one-way or of a round trip, and its sample count. `packets` is
    the number of independent packets; `clocks_ns` is as for a quantile."""
    samples = SampleCount(packets, BY_ROOT)
    if instrument is None:
        return {"finite sample": deviation_of_mean_ns}, samples
    components: Components = {
        "clock": rectangular(instrument.clock_ppb / PPB * mean_ns),
        "clocks of two machines": rectangular(float(clocks_ns)),
        "stack path": rectangular(instrument.stack_ns),
        "finite sample": deviation_of_mean_ns,
    }
    return components, samples


def release(facts: LinkFacts, share: float) -> tuple[Components, SampleCount] | None:
    """The uncertainty of a quantile of the link's own release errors, which the link counts in classes; None if there
    are too few packets.

    A CPU that was taken from the link made its packets late: that is their error, and no uncertainty of it.
    """
    if facts.release is None:
        return {}, SampleCount(1, BY_ROOT)
    ordered = ordered_of(facts.release.counts)
    sample = quantile_uncertainty(ordered, share)
    if sample is None:
        return None
    value = float(facts.release.percentile(round(100 * share)) or 0)
    count = facts.release.count
    components: Components = {
        # One class of the histogram is 1/16 of its values wide, all of them count as its upper end.
        "clock": rectangular(value / 16),
        "finite sample": sample * math.sqrt(len(ordered) / count),
    }
    return components, SampleCount(count, BY_ROOT)


def rate(
    measured_bps: float,
    window_ns: float,
    packets: float,
    *,
    ends_ns: float,
    others: float,
    instrument: Instrument | None,
) -> tuple[Components, SampleCount]:
    """The uncertainty of a rate that was counted over a window. `ends_ns`: how much later than the others its first or
    last packet may have come, beside the stacks'; `others`: the share of what else was on the link."""
    samples = SampleCount(packets, BY_LENGTH)
    if instrument is None:
        return {}, samples
    components: Components = {
        "clock": measured_bps * rectangular(instrument.clock_ppb / PPB),
        "stack path": measured_bps * math.sqrt(2) * rectangular(instrument.instant_ns) / window_ns,
        "probe load": measured_bps * (rectangular(ends_ns) / window_ns + rectangular(others)),
        "finite sample": measured_bps * rectangular(1.0) / packets,
    }
    return components, samples


def queue(
    rate_bps: float,
    packet_bytes: float,
    other_bytes: int,
    instrument: Instrument | None,
    packets: int,
    clocks_ns: int = 0,
) -> tuple[Components, SampleCount]:
    """The uncertainty of what a full queue held, as computed from the time that packets waited.

    `clocks_ns`: how far the difference of two machines' clocks may have been wrong otherwise for those that waited than
    for those that did not.
    """
    samples = SampleCount(packets, BY_ROOT)
    if instrument is None:
        return {}, samples
    components: Components = {
        "stack path": rectangular(instrument.stack_ns) * rate_bps / BYTE_NS,
        "clocks of two machines": rectangular(float(clocks_ns)) * rate_bps / BYTE_NS,
        # A sender's burst finds the queue a packet less than full.
        "probe load": rectangular(packet_bytes) + rectangular(float(other_bytes)),
    }
    return components, samples


def round_trip(
    delays_ns: Sequence[float], stacks: int, instrument: Instrument | None
) -> tuple[Components, SampleCount] | None:
    """The uncertainty of the median of round trips through `stacks` pairs of network stacks, which a program answers;
    None if there are too few packets.
    """
    budget = delay_quantile(delays_ns, 0.5, instrument)
    if budget is None or instrument is None:
        return budget
    components, samples = budget
    own = math.hypot(rectangular(stacks * instrument.stack_ns), rectangular(instrument.wake_up_ns))
    return {**components, "stack path": own}, samples


def goodput(
    measured_bps: float, window_ns: int, segment_bytes: int, instrument: Instrument | None
) -> tuple[Components, SampleCount]:
    """The uncertainty of the payload rate that TCP delivered over a window; one acknowledgement covers two segments."""
    one = segment_bytes * BYTE_NS / window_ns
    samples = SampleCount(measured_bps / one if one else 1.0, BY_LENGTH, "segments")
    if instrument is None:
        return {}, samples
    components: Components = {
        "clock": measured_bps * rectangular(instrument.clock_ppb / PPB),
        "stack path": measured_bps * math.sqrt(2) * rectangular(instrument.instant_ns) / window_ns,
        "finite sample": math.sqrt(2) * rectangular(2 * one),
    }
    return components, samples
