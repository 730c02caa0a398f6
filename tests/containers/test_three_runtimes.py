"""netns, containerlab and virtual agree: one description, measured in each by the same program.

Base RTT, rate and how long a TCP transfer takes; what is measured, how often, and how far two runtimes may differ is
that of tests/test_two_clocks.py: the tolerances of a live certificate.
"""

from __future__ import annotations

from itertools import combinations
from typing import Literal

import pytest

from ewan.calibration.expect import DIRECTIONS
from tests.container_engine.fixtures import EngineOfTests
from tests.test_two_clocks import (
    RATE_BPS,
    TRANSFER_BYTES,
    Measured,
    measured,
    nearly_completed_ns,
    rtt_tolerance_ns,
    the_pair,
)

pytestmark = pytest.mark.containers

LIVE: tuple[Literal["netns", "containerlab"], ...] = ("netns", "containerlab")


@pytest.fixture(scope="module")
def runtimes(engine: EngineOfTests) -> dict[str, Measured]:
    """One after the other: side by side they would take each other's CPU."""
    return {"virtual": measured("virtual", "netns")} | {runtime: measured("live", runtime) for runtime in LIVE}


def test_base_rtt(runtimes: dict[str, Measured]) -> None:
    for one, other in combinations(runtimes, 2):
        apart_ns = abs(runtimes[one].round_trip_ns - runtimes[other].round_trip_ns)
        assert apart_ns <= rtt_tolerance_ns(the_pair()), (one, other)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_rate(runtimes: dict[str, Measured], direction: str) -> None:
    rates = {name: each.rates[direction] for name, each in runtimes.items()}
    assert rates["virtual"].bps == pytest.approx(RATE_BPS, rel=1e-6)
    for name in LIVE:
        assert rates[name].tolerance_bps < 0.01 * RATE_BPS, "or it would say nothing"
    for one, other in combinations(rates, 2):
        most_bps = max(rates[name].tolerance_bps for name in (one, other) if name in LIVE)
        assert abs(rates[one].bps - rates[other].bps) <= most_bps, (one, other)


def test_completion_time(runtimes: dict[str, Measured]) -> None:
    least_ns, most_ns = nearly_completed_ns(runtimes["virtual"].completion_ns)
    for name, each in runtimes.items():
        assert each.transfer.received_bytes == TRANSFER_BYTES
        assert least_ns <= each.completion_ns <= most_ns, name
