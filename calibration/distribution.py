"""The average effect of a link's delay line and loss model on packets: pure, from the plan's own types.

In: `delay` and `loss` of a direction (labs/link). Out: mean, deviation, bounds and the distribution
function of a delay; probability and correlation of losses.
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import assert_never

from ewan.labs.base.units import BITS_PER_BYTE, PPB
from ewan.labs.link import (
    NO_HARQ,
    BernoulliLoss,
    BitErrorLoss,
    ConstantDelay,
    Delay,
    DelayTable,
    EveryNthLoss,
    GaussMarkovDelay,
    GilbertElliottLoss,
    Harq,
    Loss,
    LossPattern,
    Markov4Loss,
    NoLoss,
    NormalDelay,
    ParetoDelay,
    UniformDelay,
)


@dataclass(frozen=True, slots=True)
class DelayLine:
    """`spread_ns`: packets sent this far apart (nearly) never wait for an earlier one that was drawn longer. Delays are
    from `least_ns` to `most_ns`. `dispersion`: variance of a mean of many against that of independent delays; so many
    packets tell as much as one of those."""

    mean_ns: float
    deviation_ns: float
    spread_ns: float
    distribution: Callable[[float], float]
    least_ns: float
    most_ns: float
    dispersion: float = 1.0

    def wander_ns(self, packets: int) -> float:
        """The deviation of the mean of so many packets, at most."""
        return self.deviation_ns * math.sqrt(min(self.dispersion / packets, 1.0))

    @property
    def constant(self) -> bool:
        """Every packet has the same delay."""
        return self.deviation_ns == 0


def delay_line(delay: Delay, in_order: bool = False, harq: Harq = NO_HARQ) -> DelayLine:
    """`in_order`: what probes meet where no packet overtakes, sent `spread_ns` apart."""
    line = _repeated(_drawn(delay), harq)
    line = ordered(line, line.spread_ns) if in_order else line
    return replace(line, dispersion=_dispersion(delay))


def _dispersion(delay: Delay) -> float:
    """(1 + ρ) / (1 − ρ) of a first-order autoregressive process; for each of its quantiles it is less."""
    rho = delay.correlation_ppb / PPB if isinstance(delay, GaussMarkovDelay) else 0.0
    return (1 + rho) / (1 - rho)


def ordered(line: DelayLine, interval_ns: float) -> DelayLine:
    """The delay of packets sent so far apart, none of which leaves before one that was sent earlier.

    A packet with the draw D₀ leaves with the last of those before it: its delay is max(D₀, D₁ − Δ, D₂ − 2Δ, …).
    The draws are independent, so its distribution function is the product of F(x + kΔ) over k ≥ 0.
    """
    if interval_ns >= line.most_ns - line.least_ns:
        return line

    def distribution(ns: float) -> float:
        earlier = math.ceil(max(line.most_ns - ns, 0.0) / interval_ns)
        return math.prod(line.distribution(ns + k * interval_ns) for k in range(earlier + 1))

    return _numeric(distribution, line.least_ns, line.most_ns, line.spread_ns, steps=4_000)


def _drawn(delay: Delay) -> DelayLine:
    match delay:
        case DelayTable(delays_ns):
            return _table(sorted(delays_ns))
        case ConstantDelay(centre) | UniformDelay(centre, 0) | NormalDelay(centre, 0) | ParetoDelay(centre, 0):
            base = float(centre)
            return DelayLine(base, 0.0, 0.0, lambda ns: float(ns >= base), base, base)
        case UniformDelay(centre, jitter):
            low, high = max(float(centre - jitter), 0.0), float(centre + jitter)
            return _numeric(lambda ns: (ns - low) / (high - low), low, high, high - low)
        case GaussMarkovDelay(_, centre, jitter):
            return _drawn(NormalDelay(centre, jitter))
        case NormalDelay(centre, jitter):
            # Between −4 and 4 deviations; what is below 0 becomes 0.
            normal = NormalDist(centre, jitter)
            return _numeric(normal.cdf, 0.0, float(centre + 4 * jitter), 6.0 * jitter)
        case ParetoDelay(centre, jitter):
            return _pareto(float(centre), float(jitter))
        case _:
            assert_never(delay)


def _repeated(line: DelayLine, harq: Harq) -> DelayLine:
    """Behind it so many whole rounds as are needed, each with the same probability."""
    if harq == NO_HARQ:
        return line
    error = harq.error_ppb / PPB
    shares = [*(error**rounds * (1 - error) for rounds in range(harq.rounds)), error**harq.rounds]
    later = [rounds * harq.round_ns for rounds in range(harq.rounds + 1)]
    mean = math.fsum(share * each for share, each in zip(shares, later, strict=True))
    variance = math.fsum(share * (each - mean) ** 2 for share, each in zip(shares, later, strict=True))
    return DelayLine(
        line.mean_ns + mean,
        math.hypot(line.deviation_ns, math.sqrt(variance)),
        line.spread_ns + later[-1],
        lambda ns: math.fsum(s * line.distribution(ns - each) for s, each in zip(shares, later, strict=True)),
        line.least_ns,
        line.most_ns + later[-1],
    )


def _pareto(centre: float, jitter: float) -> DelayLine:
    """Shape 3 and scale m: deviation m·√3/2, so m = 2·jitter/√3; the tail is what exceeds m."""
    scale = 2 * jitter / math.sqrt(3)
    start = centre - jitter

    def distribution(ns: float) -> float:
        excess = ns - start
        return 0.0 if excess <= 0 else 1 - (scale / (scale + excess)) ** 3

    return _numeric(distribution, start, centre + 10 * jitter, 4 * jitter)


def _numeric(
    distribution: Callable[[float], float], low: float, high: float, spread: float, steps: int = 20_000
) -> DelayLine:
    """Cut at `low` (and at 0) and `high`; moments from the distribution function: E X = low + ∫ (1 − F)."""
    low = max(low, 0.0)

    def cut(ns: float) -> float:
        return 0.0 if ns < low else 1.0 if ns >= high else min(max(distribution(ns), 0.0), 1.0)

    width = (high - low) / steps
    above = [1 - cut(low + (k + 0.5) * width) for k in range(steps)]
    mean = low + width * math.fsum(above)
    square = low**2 + 2 * width * math.fsum((low + (k + 0.5) * width) * rest for k, rest in enumerate(above))
    return DelayLine(mean, math.sqrt(max(square - mean**2, 0.0)), spread, cut, low, high)


def _table(delays: Sequence[int]) -> DelayLine:
    mean = math.fsum(delays) / len(delays)
    variance = math.fsum((delay - mean) ** 2 for delay in delays) / len(delays)
    steps = lambda ns: bisect.bisect_right(delays, ns) / len(delays)  # noqa: E731
    return DelayLine(mean, math.sqrt(variance), float(delays[-1] - delays[0]), steps, delays[0], delays[-1])


@dataclass(frozen=True, slots=True)
class LossStatistics:
    """`dispersion`: variance of the number lost against that of independent losses (1 for Bernoulli; bursts
    more). 0 for a deterministic model, whose count is off by at most `slack_packets`."""

    probability: float
    dispersion: float = 1.0
    slack_packets: int = 0


def loss(model: Loss, counted_bytes: int) -> LossStatistics:
    """The average effect of a loss model on packets that count `counted_bytes` on the link."""
    match model:
        case NoLoss():
            return LossStatistics(0.0)
        case BernoulliLoss(loss_ppb):
            return LossStatistics(loss_ppb / PPB)
        case BitErrorLoss(bit_ppb):
            return LossStatistics(1 - (1 - bit_ppb / PPB) ** (BITS_PER_BYTE * counted_bytes))
        case EveryNthLoss(n):
            return LossStatistics(1 / n, 0.0, 1)
        case LossPattern(pattern):
            return LossStatistics(pattern.count("1") / len(pattern), 0.0, pattern.count("1"))
        case GilbertElliottLoss() | Markov4Loss():
            return _markov(*_chain(model))
        case _:
            assert_never(model)


Matrix = list[list[float]]
RandomLoss = NoLoss | BernoulliLoss | GilbertElliottLoss | Markov4Loss
"""Losses that netem has too."""


def _chain(model: RandomLoss) -> tuple[Matrix, list[float]]:
    """The Markov chain that drives a loss, a step a packet, and the probability of a loss in each of its states."""
    match model:
        case NoLoss():
            return [[1.0]], [0.0]
        case BernoulliLoss(loss_ppb):
            return [[1.0]], [loss_ppb / PPB]
        case GilbertElliottLoss():
            bad, good = model.to_bad_ppb / PPB, model.to_good_ppb / PPB
            return [[1 - bad, bad], [good, 1 - good]], [model.loss_good_ppb / PPB, model.loss_bad_ppb / PPB]
        case Markov4Loss():
            chain = (model.p13_ppb, model.p31_ppb, model.p32_ppb, model.p23_ppb, model.p14_ppb)
            p13, p31, p32, p23, p14 = (ppb / PPB for ppb in chain)
            matrix = [
                [1 - p13 - p14, 0.0, p13, p14],
                [0.0, 1 - p23, p23, 0.0],
                [p31, p32, 1 - p31 - p32, 0.0],
                [1.0, 0.0, 0.0, 0.0],
            ]
            return matrix, [0, 0, 1, 1]
        case _:
            assert_never(model)


@dataclass(frozen=True, slots=True)
class Fate:
    """Shares of packets that a link loses, copies and damages, without its queue. `losses` counts the packets of which
    nothing intact arrives, `twice` is the share that arrives twice. `carried` is the number of packets that the link
    carries for each one that is sent, `damaged` the share of these that is damaged."""

    losses: LossStatistics
    twice: float
    carried: float
    damaged: float


def own_fate(lost: LossStatistics, duplicate: float, corrupt: float) -> Fate:
    """The fate of packets on a link of our own: those that are not lost may be sent twice, and the copy of a damaged
    packet is intact."""
    kept = 1 - lost.probability
    damaged = kept * corrupt * (1 - duplicate)
    if damaged > 0:
        lost = LossStatistics(lost.probability + damaged, max(lost.dispersion, 1.0), lost.slack_packets)
    return Fate(lost, kept * duplicate * (1 - corrupt), kept * (1 + duplicate), corrupt / (1 + duplicate))


@functools.cache
def netem_fate(model: RandomLoss, duplicate: float, corrupt: float) -> Fate:
    """On a link of netem (net/sched/sch_netem.c, netem_enqueue), which draws a loss whether or not it draws a
    duplicate: both together leave one packet. A copy enters netem anew, where it may be lost and damaged."""
    matrix, lost = _chain(model)
    states = range(len(lost))
    kept = [1 - each for each in lost]
    copy_kept = [math.fsum(matrix[i][j] * kept[j] for j in states) for i in states]
    copied = [duplicate * each for each in kept]
    # From a packet to the next one: a step, or two where the copy is drawn in between.
    steps = [
        [
            (1 - copied[i]) * matrix[i][j] + copied[i] * math.fsum(matrix[i][k] * matrix[k][j] for k in states)
            for j in states
        ]
        for i in states
    ]
    share = _stationary(steps)
    nothing = [
        (1 - duplicate) * lost[i]
        + ((1 - duplicate) * kept[i] + duplicate * lost[i]) * corrupt
        + copied[i] * corrupt * (1 - copy_kept[i] * (1 - corrupt))
        for i in states
    ]
    copies = math.fsum(share[i] * copied[i] * copy_kept[i] for i in states)
    first = math.fsum(share[i] * (kept[i] + duplicate * lost[i]) for i in states)
    return Fate(_markov(steps, nothing), copies * (1 - corrupt) ** 2, first + copies, corrupt)


def _step(row: list[float], matrix: Matrix) -> list[float]:
    size = range(len(matrix))
    return [math.fsum(row[i] * matrix[i][j] for i in size) for j in size]


def _stationary(matrix: Matrix) -> list[float]:
    """The shares of the states of a Markov chain that starts in its first one."""
    state = [1.0] + [0.0] * (len(matrix) - 1)
    # Twice: a chain of period 2 has no limit, its average has.
    for _ in range(200_000):
        following = _step(state, matrix)
        following = [(a + b) / 2 for a, b in zip(state, following, strict=True)]
        moved = max(abs(a - b) for a, b in zip(state, following, strict=True))
        state = following
        if moved < 1e-15:
            break
    return state


def _markov(matrix: Matrix, lost: list[float]) -> LossStatistics:
    """Losses driven by a hidden Markov chain that starts in its first state.

    Dispersion = 1 + 2 Σ_k cov(h_0, h_k) / (p (1 − p)) with h the loss probability of the state (the asymptotic
    variance of a function of a Markov chain).
    """
    state = _stationary(matrix)
    probability = math.fsum(share * p for share, p in zip(state, lost, strict=True))
    if not 0 < probability < 1:
        return LossStatistics(probability)
    covariance = 0.0
    weighted = [share * (p - probability) for share, p in zip(state, lost, strict=True)]
    for _ in range(200_000):
        weighted = _step(weighted, matrix)
        covariance += math.fsum(w * p for w, p in zip(weighted, lost, strict=True))
        if max(abs(w) for w in weighted) < 1e-15:
            break
    dispersion = 1 + 2 * covariance / (probability * (1 - probability))
    return LossStatistics(probability, max(dispersion, 1e-6))
