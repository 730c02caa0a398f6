"""Computes the uncertainty of a measured value, source by source, and the verdict that follows. Pure.

In: standard uncertainties by source (GUM, JCGM 100:2008, section 4), a value's error and its tolerance. Out: the
expanded uncertainty U with k = 2 (section 6), one of three verdicts (JCGM 106:2012, section 8), and how many samples it
would take to decide. Sources are added as independent ones. A known bias that is not corrected counts as a rectangular
distribution from 0 to the bias.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ewan.calibration.statistic import wilson
from ewan.labs.record import COVERAGE_FACTOR, Uncertainty

Source = Literal[
    "clock",
    "clocks of two machines",
    "stack path",
    "probe load",
    "CPU stolen",
    "waking",
    "finite sample",
    "capacity",
    "base delay",
    "resolution",
    "dither",
    "copies",
    "window edges",
    "damaged packets",
]
Components = Mapping[Source, float]
"""Standard uncertainties by source, in the unit of the value."""
OUTSIDE_OF_INTERVAL = 1 - math.erf(COVERAGE_FACTOR / math.sqrt(2))
"""4.55 %: how often a normal value is further than 2 standard deviations from its mean."""
MOST_SAMPLES = 1 << 30


@dataclass(frozen=True, slots=True)
class Instrument:
    """The uncertainty that the probes themselves add on the host where they run. `source`: the origin of these
    values."""

    stack_ns: float = 20_000.0
    """Up to so much longer a packet takes for the network stacks on both sides of a link."""
    clock_ppb: float = 50_000.0
    """Up to so much two clocks of the host differ in their pace: time stamps and releases."""
    instant_ns: float = 50_000.0
    """So far from the true one the first and the last instant of a window may be."""
    wake_up_ns: float = 40_000.0
    """Up to so much later a program that answers a probe runs."""
    stolen_ratio: float = 0.0
    """Share of the time in which the hypervisor gave the hosts' CPUs to others: so many probes came late."""
    source: str = "assumed: ewan measure host measures it"


@dataclass(frozen=True, slots=True)
class SampleCount:
    """The number of samples behind a value, and the way in which its components shrink with more of them: as the number
    to the power of −`exponent`. Components without an exponent stay."""

    count: float
    exponents: Mapping[Source, float]
    what: str = "packets"


def rectangular(half_width: float) -> float:
    """The standard uncertainty of a value that is anywhere within ± `half_width` (GUM, 4.3.7)."""
    return half_width / math.sqrt(3)


def expanded(components: Components) -> float:
    """U, of independent sources, with k = 2 (GUM, 5.1.2 and 6.2.1)."""
    return COVERAGE_FACTOR * math.hypot(*components.values())


def recorded(components: Components) -> Uncertainty:
    """As a certificate has it; sources that add nothing are left out."""
    return Uncertainty({source: value for source, value in components.items() if value}, expanded(components))


Decision = Literal["ok", "outside", "not decidable"]


def decide(error: float, below: float, above: float, uncertainty: float) -> Decision:
    """Decide whether a true error within `error` ± `uncertainty` is certainly inside −`below` … +`above`, certainly
    outside, or neither."""
    if -below <= error - uncertainty and error + uncertainty <= above:
        return "ok"
    return "outside" if error - uncertainty > above or error + uncertainty < -below else "not decidable"


def deciding(error: float, below: float, above: float, components: Components, samples: SampleCount) -> int | None:
    """The number of samples that would decide, if the error stayed the same; None if no number would."""
    room = min(abs(above - error), abs(error + below))

    def enough(count: float) -> bool:
        scale = samples.count / count
        shrunk = {source: u * scale ** samples.exponents.get(source, 0.0) for source, u in components.items()}
        return expanded(shrunk) <= room

    if not enough(MOST_SAMPLES):
        return None
    low, high = samples.count, float(MOST_SAMPLES)
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return math.ceil(high)


def quantile_ranks(count: int, share: float) -> tuple[int, int] | None:
    """Ranks, from 1, of the order statistics between which the quantile `share` of any distribution lies in at least
    95.45 % of all samples of `count` (David and Nagaraja, Order Statistics, section 7.1); None: there are too few."""
    tail = OUTSIDE_OF_INTERVAL / 2
    deviation = math.sqrt(count * share * (1 - share))
    first = max(0, math.floor(count * share - 8 * deviation) - 1)
    log = math.lgamma(count + 1) - math.lgamma(first + 1) - math.lgamma(count - first + 1)
    term = math.exp(log + first * math.log(share) + (count - first) * math.log1p(-share))
    low = high = None
    below, rank = 0.0, first  # of a binomial number of samples under the quantile: the probability of fewer than `rank`
    while high is None and rank <= count:
        if below <= tail:
            low = rank
        if 1 - below <= tail:
            high = rank
        below += term
        term *= (count - rank) / (rank + 1) * share / (1 - share)
        rank += 1
    return (low, high) if low and high else None


def enough_for(share: float) -> int:
    """The least number of samples of which a quantile has an interval on both sides."""
    extreme = max(share, 1 - share)
    return math.ceil(math.log(OUTSIDE_OF_INTERVAL / 2) / math.log(extreme))


def quantile_uncertainty(ordered: Sequence[float], share: float) -> float | None:
    """Standard uncertainty of a quantile by the finite sample only: its interval is 2k of them wide; None: there are
    too few samples. `ordered`: ascending."""
    ranks = quantile_ranks(len(ordered), share)
    if ranks is None:
        return None
    low, high = ranks
    return (ordered[high - 1] - ordered[low - 1]) / (2 * COVERAGE_FACTOR)


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest value with at least `share` of all at or below it (nearest rank)."""
    return ordered[max(math.ceil(len(ordered) * share - 1e-9), 1) - 1]


def shifted_quantile(ordered: Sequence[float], share: float, delayed: float) -> float:
    """Standard uncertainty of a quantile where a share `delayed` of all samples came late: without them it may have
    been as low as that of `share` − `delayed`."""
    return rectangular(quantile(ordered, share) - quantile(ordered, max(share - delayed, 0.0))) if delayed > 0 else 0.0


def ordered_of(counts: Sequence[tuple[int, int]], most: int = 2_000) -> list[float]:
    """Ascending samples of a histogram (upper end, count); of more than `most` evenly chosen ones, so many."""
    total = sum(count for _, count in counts)
    step = max(total / most, 1.0)
    values: list[float] = []
    seen = 0
    for upper, count in counts:
        seen += count
        while len(values) < math.floor(seen / step + 1e-9):
            values.append(float(upper))
    return values


def proportion(share: float, total: float, dispersion: float = 1.0) -> float:
    """Expanded uncertainty of a share of so many packets: the further end of its Wilson interval with k = 2. A count
    that is correlated is worth `dispersion` times less."""
    low, high = wilson(share * total / dispersion, total / dispersion, COVERAGE_FACTOR)
    return max(high - share, share - low)


def proportion_samples(share: float, most: float, dispersion: float = 1.0) -> int:
    """The number of packets after which a share is known to ± `most`."""
    low, high = 1.0, float(MOST_SAMPLES)
    while high > 1.001 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if proportion(share, middle, dispersion) <= most else (middle, high)
    return math.ceil(high)
