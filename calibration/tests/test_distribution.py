"""Moments and distribution functions, by hand or against textbook values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ewan.calibration.distribution import delay_line, loss, netem_fate, ordered
from ewan.labs.link import (
    BernoulliLoss,
    BitErrorLoss,
    ConstantDelay,
    DelayTable,
    EveryNthLoss,
    GaussMarkovDelay,
    GilbertElliottLoss,
    LossPattern,
    Markov4Loss,
    NormalDelay,
    ParetoDelay,
    UniformDelay,
)

pytestmark = pytest.mark.slow

MS = 1_000_000


def test_constant() -> None:
    line = delay_line(ConstantDelay(5))
    assert (line.mean_ns, line.deviation_ns, line.constant) == (5, 0, True)
    assert (line.distribution(4), line.distribution(5)) == (0, 1)


def test_uniform() -> None:
    line = delay_line(UniformDelay(10 * MS, 3 * MS))
    assert line.mean_ns == pytest.approx(10 * MS, rel=1e-6)
    assert line.deviation_ns == pytest.approx(3 * MS / math.sqrt(3), rel=1e-4)
    assert line.distribution(7 * MS) == 0 and line.distribution(10 * MS) == pytest.approx(0.5)


def test_normal() -> None:
    line = delay_line(NormalDelay(100 * MS, 10 * MS))
    assert line.mean_ns == pytest.approx(100 * MS, rel=1e-5)
    assert line.deviation_ns == pytest.approx(10 * MS, rel=1e-3)
    assert line.distribution(110 * MS) == pytest.approx(0.841345, abs=1e-5)


def test_a_correlated_delay_is_normal_and_its_mean_wanders_more() -> None:
    line = delay_line(GaussMarkovDelay(900_000_000, 100 * MS, 10 * MS))
    normal = delay_line(NormalDelay(100 * MS, 10 * MS))
    assert (line.mean_ns, line.deviation_ns, line.distribution(110 * MS)) == (
        normal.mean_ns,
        normal.deviation_ns,
        normal.distribution(110 * MS),
    )
    assert normal.dispersion == 1 and normal.wander_ns(100) == pytest.approx(normal.deviation_ns / 10)
    assert line.dispersion == pytest.approx(19)
    assert line.wander_ns(1_900) == pytest.approx(line.deviation_ns / 10)
    assert line.wander_ns(5) == line.deviation_ns, "not more than one packet's"


def test_the_mean_of_correlated_delays_wanders_as_expected() -> None:
    rho, packets = 0.9, 1_000
    line = delay_line(GaussMarkovDelay(round(rho * 1e9), 100 * MS, 10 * MS), in_order=True)
    draws = np.random.default_rng(2).standard_normal((packets, 2_000))
    state, total = draws[0], np.zeros(2_000)
    for each in draws:
        state = rho * state + math.sqrt(1 - rho**2) * each
        total += 10 * MS * state / packets
    assert line.wander_ns(packets) == pytest.approx(total.std(), rel=0.05)


SPREAD: dict[str, type[UniformDelay | NormalDelay]] = {"uniform": UniformDelay, "normal": NormalDelay}

# As the description of `reorder` says it (labs/link/keys.py): by how many times the jitter the mean grows.
IN_ORDER = {
    "uniform": {1.0: 0.04, 0.3: 0.28, 0.1: 0.52, 0.01: 0.83},
    "normal": {1.0: 0.23, 0.3: 0.72, 0.1: 1.21, 0.01: 2.13},
}


@pytest.mark.parametrize(("kind", "interval"), [(kind, each) for kind, found in IN_ORDER.items() for each in found])
def test_in_order_the_mean_is_longer(kind: str, interval: float) -> None:
    line = delay_line(SPREAD[kind](100 * MS, 10 * MS))
    kept = ordered(line, interval * 10 * MS)
    assert (kept.mean_ns - line.mean_ns) / (10 * MS) == pytest.approx(IN_ORDER[kind][interval], abs=0.006)
    assert kept.deviation_ns < line.deviation_ns
    assert kept.distribution(line.most_ns) == 1


def test_in_order_is_the_running_maximum() -> None:
    draws = np.random.default_rng(1)
    interval, drawn = 3 * MS, 100 * MS + 10 * MS * draws.uniform(-1, 1, 200_000)
    sent = np.arange(len(drawn)) * interval
    delays = np.maximum.accumulate(drawn + sent) - sent
    kept = ordered(delay_line(UniformDelay(100 * MS, 10 * MS)), interval)
    assert kept.mean_ns == pytest.approx(delays.mean(), abs=0.05 * MS)
    assert kept.deviation_ns == pytest.approx(delays.std(), rel=0.02)
    for share in (0.1, 0.5, 0.9):
        assert kept.distribution(float(np.quantile(delays, share))) == pytest.approx(share, abs=0.01)


def test_probes_that_are_far_enough_apart_meet_what_is_drawn() -> None:
    for kind in ("uniform", "normal"):
        delay = SPREAD[kind](100 * MS, 10 * MS)
        assert delay_line(delay, in_order=True).mean_ns == pytest.approx(delay_line(delay).mean_ns, abs=100)
    # Of Pareto's tail a little reaches the next probe: 2.2 % of the jitter.
    pareto = ParetoDelay(100 * MS, 10 * MS)
    longer = delay_line(pareto, in_order=True).mean_ns - delay_line(pareto).mean_ns
    assert longer == pytest.approx(0.0223 * 10 * MS, rel=0.02)


def test_table() -> None:
    line = delay_line(DelayTable((3, 1, 2, 2)))
    assert (line.mean_ns, line.spread_ns) == (2, 2)
    assert line.deviation_ns == pytest.approx(math.sqrt(0.5))
    assert [line.distribution(ns) for ns in (0, 1, 2, 3)] == [0, 0.25, 0.75, 1]


def test_bernoulli_losses_are_independent() -> None:
    found = loss(BernoulliLoss(10_000_000), 138)
    assert (found.probability, found.dispersion) == (0.01, 1)


def test_a_chain_without_memory_is_bernoulli() -> None:
    # to_bad + to_good = 1: the next state does not depend on the present one.
    model = {"to_bad_ppb": 100_000_000, "to_good_ppb": 900_000_000, "loss_good_ppb": 0, "loss_bad_ppb": 1_000_000_000}
    found = loss(GilbertElliottLoss(**model), 138)
    assert found.probability == pytest.approx(0.1)
    assert found.dispersion == pytest.approx(1)


def test_bursts_make_counts_wander() -> None:
    model = {"to_bad_ppb": 10_000_000, "to_good_ppb": 90_000_000, "loss_good_ppb": 0, "loss_bad_ppb": 1_000_000_000}
    found = loss(GilbertElliottLoss(**model), 138)
    assert found.probability == pytest.approx(0.1)
    # (1 + λ) / (1 − λ) with λ = 1 − 0.01 − 0.09.
    assert found.dispersion == pytest.approx(1.9 / 0.1, rel=1e-6)


def test_copies_in_netem_take_steps_of_the_bursts() -> None:
    """Against netem_enqueue, step by step: a copy is drawn between two packets, and only where one was not lost."""
    model = GilbertElliottLoss(
        to_bad_ppb=100_000_000, to_good_ppb=300_000_000, loss_good_ppb=50_000_000, loss_bad_ppb=800_000_000
    )
    found = netem_fate(model, 0.5, 0.1)
    drawn = iter(np.random.default_rng(1).random(2_000_000).tolist())
    bad = False

    def event() -> bool:
        nonlocal bad
        lost: bool = next(drawn) < (0.8 if bad else 0.05)
        bad = bad != (next(drawn) < (0.3 if bad else 0.1))
        return lost

    nothing = twice = carried = 0
    packets = 200_000
    for _ in range(packets):
        copy, lost = next(drawn) < 0.5, event()
        came = [] if lost and not copy else [next(drawn) >= 0.1]
        if copy and not lost and not event():
            came.append(next(drawn) >= 0.1)
        nothing, twice, carried = nothing + (not any(came)), twice + (sum(came) == 2), carried + len(came)
    assert nothing / packets == pytest.approx(found.losses.probability, abs=0.006)
    assert (twice / packets, carried / packets) == pytest.approx((found.twice, found.carried), abs=0.006)


def test_four_states() -> None:
    # Only single losses: from 1 to 4 with 0.25 and back, so 0.2 of the packets are lost, never two in a row.
    model = {"p13_ppb": 0, "p31_ppb": 500_000_000, "p32_ppb": 0, "p23_ppb": 500_000_000, "p14_ppb": 250_000_000}
    found = loss(Markov4Loss(**model), 138)
    assert found.probability == pytest.approx(0.2)
    assert found.dispersion == pytest.approx((1 - 0.25) / (1 + 0.25))


def test_what_is_periodic_has_no_variance() -> None:
    every, pattern = loss(EveryNthLoss(50), 138), loss(LossPattern("0110"), 138)
    assert (every.probability, every.dispersion, every.slack_packets) == (0.02, 0, 1)
    assert (pattern.probability, pattern.dispersion, pattern.slack_packets) == (0.5, 0, 2)


def test_bit_errors_lose_by_length() -> None:
    assert loss(BitErrorLoss(100), 1538).probability == pytest.approx(1 - (1 - 1e-7) ** 12304)
    assert loss(BitErrorLoss(100), 138).dispersion == 1
