"""Moments and distribution functions, by hand or against textbook values."""

from __future__ import annotations

import math

import pytest

from calibration.distribution import delay_line, loss

MS = 1_000_000


def test_constant() -> None:
    line = delay_line({"kind": "constant", "delay_ns": 5})
    assert (line.mean_ns, line.deviation_ns, line.constant) == (5, 0, True)
    assert (line.distribution(4), line.distribution(5)) == (0, 1)


def test_uniform() -> None:
    line = delay_line({"kind": "uniform", "delay_ns": 10 * MS, "jitter_ns": 3 * MS})
    assert line.mean_ns == pytest.approx(10 * MS, rel=1e-6)
    assert line.deviation_ns == pytest.approx(3 * MS / math.sqrt(3), rel=1e-4)
    assert line.distribution(7 * MS) == 0 and line.distribution(10 * MS) == pytest.approx(0.5)


def test_normal() -> None:
    line = delay_line({"kind": "normal", "delay_ns": 100 * MS, "jitter_ns": 10 * MS})
    assert line.mean_ns == pytest.approx(100 * MS, rel=1e-5)
    assert line.deviation_ns == pytest.approx(10 * MS, rel=1e-3)
    assert line.distribution(110 * MS) == pytest.approx(0.841345, abs=1e-5)


def test_table() -> None:
    line = delay_line({"kind": "table", "delays_ns": [3, 1, 2, 2]})
    assert (line.mean_ns, line.spread_ns) == (2, 2)
    assert line.deviation_ns == pytest.approx(math.sqrt(0.5))
    assert [line.distribution(ns) for ns in (0, 1, 2, 3)] == [0, 0.25, 0.75, 1]


def test_bernoulli_losses_are_independent() -> None:
    found = loss({"kind": "bernoulli", "loss_ppb": 10_000_000})
    assert (found.probability, found.dispersion) == (0.01, 1)


def test_a_chain_without_memory_is_bernoulli() -> None:
    # to_bad + to_good = 1: the next state does not depend on the present one.
    model = {"to_bad_ppb": 100_000_000, "to_good_ppb": 900_000_000, "loss_good_ppb": 0, "loss_bad_ppb": 1_000_000_000}
    found = loss({"kind": "gilbert_elliott", **model})
    assert found.probability == pytest.approx(0.1)
    assert found.dispersion == pytest.approx(1)


def test_bursts_make_counts_wander() -> None:
    model = {"to_bad_ppb": 10_000_000, "to_good_ppb": 90_000_000, "loss_good_ppb": 0, "loss_bad_ppb": 1_000_000_000}
    found = loss({"kind": "gilbert_elliott", **model})
    assert found.probability == pytest.approx(0.1)
    # (1 + λ) / (1 − λ) with λ = 1 − 0.01 − 0.09.
    assert found.dispersion == pytest.approx(1.9 / 0.1, rel=1e-6)


def test_four_states() -> None:
    # Only single losses: from 1 to 4 with 0.25 and back, so 0.2 of the packets are lost, never two in a row.
    model = {"p13_ppb": 0, "p31_ppb": 500_000_000, "p32_ppb": 0, "p23_ppb": 500_000_000, "p14_ppb": 250_000_000}
    found = loss({"kind": "markov4", **model})
    assert found.probability == pytest.approx(0.2)
    assert found.dispersion == pytest.approx((1 - 0.25) / (1 + 0.25))


def test_what_is_periodic_has_no_variance() -> None:
    every, pattern = loss({"kind": "every_nth", "n": 50}), loss({"kind": "pattern", "pattern": "0110"})
    assert (every.probability, every.dispersion, every.slack_packets) == (0.02, 0, 1)
    assert (pattern.probability, pattern.dispersion, pattern.slack_packets) == (0.5, 0, 2)
