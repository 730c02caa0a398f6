"""netns, containerlab and virtual agree: one description, measured in each by the same program.

Base RTT, rate and how long a TCP transfer takes; what is measured, how often, and how far two runtimes may differ is
that of tests/test_two_clocks.py: the tolerances of a live certificate.
"""

from __future__ import annotations

from itertools import combinations

import pytest

from calibration.expect import DIRECTIONS
from labs.runtime.containerlab import ContainerlabRuntime
from labs.runtime.netns import NetnsRuntime
from labs.runtime.tests.lab import own_state
from tests.container_engine.fixtures import Containers
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

LIVE: dict[str, type[NetnsRuntime]] = {"netns": NetnsRuntime, "containerlab": ContainerlabRuntime}


@pytest.fixture(scope="module")
def runtimes(engine: Containers, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Measured]:
    """One after the other: side by side they would take each other's CPU."""
    place = tmp_path_factory.mktemp("runtimes")
    with own_state("three") as state:
        found = {name: measured("live", place / name, state, runtime) for name, runtime in LIVE.items()}
        return found | {"virtual": measured("virtual", place / "virtual", state)}


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
    least_ns, most_ns = nearly_completed_ns(runtimes["virtual"].transfer["completion_ns"])
    for name, each in runtimes.items():
        assert each.transfer["received_bytes"] == TRANSFER_BYTES
        assert least_ns <= each.transfer["completion_ns"] <= most_ns, name
