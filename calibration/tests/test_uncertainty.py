"""Uncertainty: over many simulated measurements of a known truth, U holds it as often as k = 2 says; verdicts follow
from it, and the number of samples that would decide does decide."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from ewan.calibration import budget
from ewan.calibration.uncertainty import (
    Instrument,
    SampleCount,
    decide,
    deciding,
    enough_for,
    expanded,
    ordered_of,
    proportion,
    proportion_samples,
    quantile,
    quantile_ranks,
)
from ewan.labs.base.units import PPB

MEASUREMENTS = 1_000
CLEAN = Instrument(stack_ns=0, clock_ppb=0, instant_ns=0)
"""Only the finite sample is uncertain."""


def covered(measure: Callable[[random.Random], tuple[float, float]], truth: float) -> float:
    """How often a measured value ± U holds the truth."""
    source = random.Random(1)
    found = [measure(source) for _ in range(MEASUREMENTS)]
    return sum(abs(value - truth) <= uncertainty for value, uncertainty in found) / MEASUREMENTS


def late_by(source: random.Random, packets: int, mean_ns: float = 5_000) -> list[float]:
    """Delays of 50 ms with an exponential lateness, ascending."""
    return sorted(50e6 + source.expovariate(1 / mean_ns) for _ in range(packets))


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_the_uncertainty_of_a_quantile_covers_as_k_2_says(share: float) -> None:
    def measure(source: random.Random) -> tuple[float, float]:
        delays = late_by(source, 1_000)
        known = budget.delay_quantile(delays, share, CLEAN)
        assert known is not None
        return quantile(delays, share), expanded(known[0])

    assert 0.93 <= covered(measure, 50e6 - 5_000 * math.log(1 - share)) <= 0.97


def test_the_uncertainty_of_a_mean_covers_as_k_2_says() -> None:
    def measure(source: random.Random) -> tuple[float, float]:
        delays = [source.gauss(50e6, 1e6) for _ in range(200)]
        return sum(delays) / 200, expanded(budget.delay_mean(50e6, 1e6 / math.sqrt(200), 200, CLEAN)[0])

    assert 0.93 <= covered(measure, 50e6) <= 0.97


@pytest.mark.parametrize("probability", [0.01, 0.1])
def test_the_uncertainty_of_a_loss_covers_as_k_2_says(probability: float) -> None:
    def measure(source: random.Random) -> tuple[float, float]:
        lost = sum(source.random() < probability for _ in range(2_000))
        return lost / 2_000, proportion(lost / 2_000, 2_000)

    assert 0.93 <= covered(measure, probability) <= 0.97


def test_all_sources_together_cover_as_k_2_says() -> None:
    """A delay whose stacks, clock and sample are uncertain by what is assumed of them, about as much each. Where one
    rectangular source is much larger than the others, k = 2 covers more (GUM, G.6.4)."""
    instrument = Instrument(stack_ns=5_000, clock_ppb=100_000, instant_ns=0)

    def measure(source: random.Random) -> tuple[float, float]:
        pace = 1 + source.uniform(-1, 1) * instrument.clock_ppb / PPB
        # The path through the stacks is anywhere within what is assumed, to either side of it.
        stacks = source.uniform(-1, 1) * instrument.stack_ns
        delays = [each * pace + stacks for each in late_by(source, 300, 50_000)]
        known = budget.delay_quantile(delays, 0.5, instrument)
        assert known is not None
        return quantile(delays, 0.5), expanded(known[0])

    assert 0.93 <= covered(measure, 50e6 + 50_000 * math.log(2)) <= 0.97


def test_a_delay_between_two_machines_is_as_uncertain_as_their_clocks() -> None:
    """A comparison of the clocks that is wrong by up to 60 µs: beside it, nothing else matters here."""
    delays = late_by(random.Random(1), 1_000)
    for known in (
        budget.delay_quantile(delays, 0.5, CLEAN, clocks_ns=60_000),
        budget.delay_mean(50e6, 100.0, 200, CLEAN, 60_000),
    ):
        assert known is not None
        parts, samples = known
        assert parts["clocks of two machines"] == pytest.approx(60_000 / math.sqrt(3))
        assert expanded(parts) == pytest.approx(2 * 60_000 / math.sqrt(3), rel=0.01)
        # More packets do not help.
        assert "clocks of two machines" not in samples.exponents
    # At 1 Gbit/s, 60 µs are 7.5 kB.
    parts, _ = budget.queue(1e9, 0, 0, CLEAN, 1, 60_000)
    assert parts["clocks of two machines"] == pytest.approx(7_500 / math.sqrt(3))


def test_a_rate_over_a_window_covers_as_k_2_says() -> None:
    instrument = Instrument(stack_ns=0, clock_ppb=50_000, instant_ns=50_000)
    window, packets = 0.8e9, 66_000

    def measure(source: random.Random) -> tuple[float, float]:
        ends = sum(source.uniform(-1, 1) for _ in range(2)) * instrument.instant_ns
        pace = 1 + source.uniform(-1, 1) * instrument.clock_ppb / PPB
        measured = 1e9 * pace * window / (window + ends) + source.uniform(-1, 1) * 1e9 / packets
        known, _ = budget.rate(measured, window, packets, ends_ns=0, others=0, instrument=instrument)
        return measured, expanded(known)

    assert 0.93 <= covered(measure, 1e9) <= 0.97


@pytest.mark.parametrize(
    "error, uncertainty, verdict",
    [(50, 20, "ok"), (-50, 50, "ok"), (90, 20, "not decidable"), (110, 20, "not decidable"), (121, 20, "outside")],
)
def test_a_verdict_takes_the_uncertainty_into_account(error: float, uncertainty: float, verdict: str) -> None:
    assert decide(error, 100, 100, uncertainty) == verdict
    assert decide(-error, 100, 100, uncertainty) == verdict


def test_as_many_samples_as_it_says_do_decide() -> None:
    parts = {"stack path": 5.0, "finite sample": 30.0}
    needs = deciding(80, 100, 100, parts, SampleCount(100, budget.BY_ROOT))  # type: ignore[arg-type]
    assert needs is not None and needs > 100
    for count, verdict in ((needs, "ok"), (needs * 0.9, "not decidable")):
        shrunk = {**parts, "finite sample": 30.0 * math.sqrt(100 / count)}
        assert decide(80, 100, 100, expanded(shrunk)) == verdict  # type: ignore[arg-type]


def test_no_number_of_samples_decides_what_the_instrument_cannot() -> None:
    parts = {"stack path": 50.0, "finite sample": 1.0}
    assert deciding(80, 100, 100, parts, SampleCount(100, budget.BY_ROOT)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("share, least", [(0.5, 6), (0.99, 377), (0.999, 3_782)])
def test_no_quantile_of_too_few(share: float, least: int) -> None:
    """The largest of n lies above the quantile with probability 1 − shareⁿ."""
    assert enough_for(share) == least
    assert quantile_ranks(least - 1, share) is None
    assert quantile_ranks(least, share) is not None


def test_ranks_are_those_of_the_binomial_distribution() -> None:
    """Of 100 values the 40th and the 61st hold the median in 96.5 % of all samples (David and Nagaraja, 7.1)."""
    assert quantile_ranks(100, 0.5) == (40, 61)


def test_a_histogram_gives_samples_in_the_order_of_its_classes() -> None:
    assert ordered_of([(10, 3), (20, 1)]) == [10, 10, 10, 20]
    many = ordered_of([(10, 90_000), (20, 10_000)], most=1_000)
    assert len(many) == 1_000 and many.count(20) == 100


def test_a_probability_needs_as_many_packets_as_its_interval_says() -> None:
    count = proportion_samples(0.001, 0.0005)
    assert proportion(0.001, count) <= 0.0005 < proportion(0.001, count * 0.99)
