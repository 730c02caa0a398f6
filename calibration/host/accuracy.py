"""Measures the accuracy of one link of our own on this host: delay, rate, spacing, loss and queue, each against its
configured value.

In: a link that is up. Out: an `Accuracy`. The figures are those of the eWAN paper, section IV, on this host: configured
against measured delay (figure 4), and the spacing of bunches of packets (figures 5 and 6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ewan.analysis.bursts import largest_burst_bytes
from ewan.calibration.expectation import BYTE_NS, ENOUGH, framed_bytes
from ewan.calibration.host.links import ABOVE, ENDS_NS, MTU_BYTES, Bench
from ewan.calibration.judge import offered_bps
from ewan.calibration.statistic import wilson
from ewan.calibration.uncertainty import quantile, rectangular
from ewan.labs.base.codec import Struct
from ewan.labs.base.units import Rate, Size
from ewan.labs.link import ConstantDelay
from ewan.labs.record import COVERAGE_FACTOR
from ewan.labs.runtime.probe_documents import StreamResult

PROBE_BYTES = 100
DELAYS = ("100us", "500us", "1ms", "2ms", "5ms", "10ms", "20ms", "50ms")
RATES = ("1Mbit/s", "5Mbit/s", "20Mbit/s", "50Mbit/s", "100Mbit/s", "200Mbit/s", "500Mbit/s", "1Gbit/s")
SPACED_BPS = Rate.parse("100Mbit/s").bps
OPEN_BPS = Rate.parse("10Gbit/s").bps
"""So fast a link leaves the sender's bunches as they are."""
LOSS = "10%"
QUEUE = "250kB"
QUEUE_BPS = Rate.parse("50Mbit/s").bps
SHARES = (0.001, 0.01, *(k / 20 for k in range(1, 20)), 0.98, 0.99, 0.995, 0.999, 1.0)
"""Quantiles of distributions that are kept."""


class DelayPoint(Struct):
    """One-way delay through the link, of small packets far apart: configured, and quantiles of what was measured, less
    the packet's own time at the link's rate."""

    configured_ns: int
    packets: int
    p50_ns: float
    p99_ns: float
    p999_ns: float
    max_ns: float


class RatePoint(Struct):
    """The rate of a link that is offered more: the error as a share of the configured rate, and its uncertainty
    (k = 2); None where this host could not offer more."""

    configured_bps: int
    error_ratio: float | None
    uncertainty_ratio: float | None


class SpacingPoint(Struct):
    """Times between the arrivals of full packets, offered at `offered_bps` in bunches: quantiles, and the largest burst
    as the depth of the token bucket that the stream needs (RFC 2697)."""

    link_bps: int
    offered_bps: int
    packets: int
    even_ns: float
    """The spacing of an even pace."""
    quantiles_ns: tuple[tuple[float, float], ...]
    """(share, ns)."""
    largest_burst_packets: float


class LossPoint(Struct):
    """Random loss: how many of how many, the interval of the probability, and runs of losses against the model."""

    configured_ratio: float
    sent_packets: int
    lost_packets: int
    low_ratio: float
    high_ratio: float
    runs: tuple[tuple[int, int], ...]
    """(packets in a row, how often)."""
    chi_square: float
    """The chi-square value of the runs' lengths, against a geometric distribution."""
    degrees: int
    fits: bool
    """Within 99 % of the chi-square distribution."""


class QueuePoint(Struct):
    """The number of full packets in the fullest queue, computed from their waiting time."""

    configured_packets: int
    measured_packets: float


class Accuracy(Struct):
    """The accuracy of one link while nothing else uses it."""

    delays: tuple[DelayPoint, ...]
    rates: tuple[RatePoint, ...]
    spacings: tuple[SpacingPoint, ...]
    loss: LossPoint
    queue: QueuePoint


def measure(made: Bench, progress: Callable[[str], None] = lambda text: None) -> Accuracy:
    """About seven seconds."""
    progress("links: configured and measured delay")
    made.change(rate="100Mbit/s")
    delays = [_delay(made, text) for text in DELAYS]
    made.change(delay="2ms")
    progress("links: rates")
    rates = [_rate(made, Rate.parse(text).bps) for text in RATES]
    progress("links: spacing, loss, queue")
    spacings = [_spacing(made, bps) for bps in (OPEN_BPS, SPACED_BPS)]
    made.change(rate="1Gbit/s", loss=LOSS)
    loss = _loss(made)
    made.change(loss="0%")
    return Accuracy(tuple(delays), tuple(rates), tuple(spacings), loss, _queue(made))


def _delay(made: Bench, text: str) -> DelayPoint:
    delay = made.change(delay=text).delay
    assert isinstance(delay, ConstantDelay)
    configured = delay.delay_ns
    (stream,), _ = made.send(PROBE_BYTES, 200_000, raw=True, extra_ns=configured)
    own = framed_bytes(made.framing, PROBE_BYTES) * BYTE_NS / made.rate_bps
    values = sorted(delay - own for delay in stream.delays_ns or ())
    p50, p99, p999 = (quantile(values, share) for share in (0.5, 0.99, 0.999))
    return DelayPoint(configured, len(values), p50, p99, p999, values[-1])


def _rate(made: Bench, rate_bps: int) -> RatePoint:
    made.set_rate(rate_bps)
    framed = framed_bytes(made.framing, MTU_BYTES)
    (stream,), _ = made.send(MTU_BYTES, framed * BYTE_NS / rate_bps / ABOVE)
    error, known = rate_error(stream, framed, rate_bps)
    return RatePoint(rate_bps, error, known)


def rate_error(stream: StreamResult, framed: int, rate_bps: float) -> tuple[float | None, float | None]:
    """The error of a rate as a share of it, and its uncertainty with k = 2; None where too little was offered."""
    steady = stream.steady
    offered = offered_bps(stream, framed)
    if offered < ENOUGH * rate_bps or steady is None or steady.packets < 8:
        return None, None
    window = steady.fitted_window_ns
    measured = steady.packets * framed * BYTE_NS / window
    return measured / rate_bps - 1, COVERAGE_FACTOR * math.hypot(ENDS_NS / window, rectangular(1.0) / steady.packets)


def _spacing(made: Bench, link_bps: int) -> SpacingPoint:
    """Offered a little more than `SPACED_BPS`, in the sender's own bunches."""
    made.set_rate(link_bps)
    framed = framed_bytes(made.framing, MTU_BYTES)
    offered = min(link_bps, SPACED_BPS) * 1.05
    (stream,), _ = made.send(MTU_BYTES, framed * BYTE_NS / offered, raw=True)
    gaps = stream.spacings_ns or ()
    # Without the first tenth, in which the queue fills.
    gaps = gaps[len(gaps) // 10 :]
    times = [0]
    for gap in gaps:
        times.append(times[-1] + max(gap, 0))
    ordered = sorted(float(gap) for gap in gaps)
    rate = SPACED_BPS if link_bps == SPACED_BPS else round(offered)
    burst = largest_burst_bytes(times, [framed] * len(times), rate) / framed
    shares = tuple((share, quantile(ordered, share)) for share in SHARES)
    return SpacingPoint(link_bps, round(offered), len(gaps), framed * BYTE_NS / rate, shares, burst)


def _loss(made: Bench) -> LossPoint:
    (stream,), _ = made.send(PROBE_BYTES, 20_000)
    sent, lost = stream.sent_packets, stream.lost_packets - stream.socket_drops_packets
    configured = float(LOSS.rstrip("%")) / 100
    low, high = wilson(lost, sent, COVERAGE_FACTOR)
    runs = stream.loss_runs
    chi, degrees = run_lengths_chi_square(runs, configured)
    return LossPoint(configured, sent, lost, low, high, runs, chi, degrees, chi <= chi_square_limit(degrees))


def run_lengths_chi_square(runs: Sequence[tuple[int, int]], probability: float) -> tuple[float, int]:
    """Pearson's statistic of the lengths of runs of losses against a geometric distribution, which independent losses
    of this probability have, and its degrees of freedom. Lengths of which fewer than five are expected count together.
    """
    total = sum(count for _, count in runs)
    longest = max((length for length, _ in runs), default=1)
    observed, expected = [], []
    left = float(total)
    for length in range(1, longest + 1):
        share = total * probability ** (length - 1) * (1 - probability)
        if left - share < 5:
            break
        observed.append(sum(count for found, count in runs if found == length))
        expected.append(share)
        left -= share
    observed.append(total - sum(observed))
    expected.append(max(left, 1e-9))
    if total == 0 or len(observed) < 2:
        return 0.0, 0
    return sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True)), len(observed) - 1


def chi_square_limit(degrees: int) -> float:
    """The value that a chi-square variable exceeds in one case of a hundred (Wilson and Hilferty 1931); 0 without
    degrees."""
    if degrees == 0:
        return 0.0
    z = 2.3263
    return float(degrees * (1 - 2 / (9 * degrees) + z * math.sqrt(2 / (9 * degrees))) ** 3)


def _queue(made: Bench) -> QueuePoint:
    made.change(buffer=QUEUE)
    made.set_rate(QUEUE_BPS)
    framed = framed_bytes(made.framing, MTU_BYTES)
    own = framed * BYTE_NS / QUEUE_BPS
    (stream,), _ = made.send(MTU_BYTES, own / 2)
    assert stream.steady is not None and stream.delay is not None
    waited = stream.steady.delay.p50_ns - stream.delay.min_ns
    return QueuePoint(Size.parse(QUEUE).bytes // framed, waited / own)
