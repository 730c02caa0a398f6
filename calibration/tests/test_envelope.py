"""The envelope: what was measured holds at its points, goes on between and beyond them, and decides with its margin."""

from __future__ import annotations

import itertools

import pytest

from ewan.calibration import envelope
from ewan.calibration.envelope import Frontier, LinkDemand, LoadLateness, NoEnvelopeError
from ewan.calibration.host import refusal
from ewan.calibration.tests.plans import plan

LATE = LoadLateness(0.9, 10_000, True, 5_000, 40_000, 80_000, 200_000, 0, 0)


def frontier(packet_bytes: int, links: int, packets_per_s: float, backend: str = "user") -> Frontier:
    return Frontier(backend, packet_bytes, links, packets_per_s, "rate", 0.0, (LATE,))


HOST = (
    frontier(64, 1, 400_000),
    frontier(1500, 1, 200_000),
    frontier(64, 4, 350_000),
    frontier(1500, 4, 160_000),
)


@pytest.mark.parametrize("point", HOST)
def test_what_was_measured_holds_at_its_point(point: Frontier) -> None:
    assert envelope.carried(HOST, "user", point.packet_bytes, point.links) == pytest.approx(point.packets_per_s)


def test_more_bytes_and_more_links_are_never_cheaper() -> None:
    sizes, counts = (40, 64, 300, 1500, 9000), (1, 2, 3, 4, 8, 100)
    for links in counts:
        costs = [1 / envelope.carried(HOST, "user", size, links) for size in sizes]
        assert costs == sorted(costs)
    for size in sizes:
        costs = [1 / envelope.carried(HOST, "user", size, links) for links in counts]
        assert costs == sorted(costs)


def test_between_two_sizes_the_time_of_a_packet_is_linear() -> None:
    middle = envelope.carried(HOST, "user", 782, 1)
    assert 1 / middle == pytest.approx((1 / 400_000 + 1 / 200_000) / 2, rel=0.001)


@pytest.mark.parametrize("share, inside", [(0.5, True), (0.89, True), (0.93, False), (3.0, False)])
def test_a_demand_is_inside_when_the_host_carries_a_tenth_more(share: float, inside: bool) -> None:
    rate = round(200_000 * share * 1538 * 8)
    found = envelope.predict(HOST, LinkDemand(rate))
    assert found.inside is inside and found.share == pytest.approx(share * 1.1, rel=0.01)
    assert f"{200_000 * share:,.0f} packets/s of 1500 bytes" in found.why and "200,000" in found.why
    assert found.delay_error_p50_ns == 5_000


def test_the_fastest_rate_is_on_the_frontier() -> None:
    for size, links in itertools.product((64, 700, 1500), (1, 3, 9)):
        fastest = envelope.fastest(HOST, LinkDemand(1, 0, size, links))
        assert envelope.predict(HOST, LinkDemand(fastest, 0, size, links)).inside
        assert not envelope.predict(HOST, LinkDemand(round(fastest * 1.01), 0, size, links)).inside


def test_what_does_not_fit_into_memory_is_outside() -> None:
    found = envelope.predict(HOST, LinkDemand(10**9, 10 * 10**9), memory_bytes=10**9)
    assert not found.inside and "1.25GB would be in flight, and 1GB of memory are free" in found.why


def test_auto_takes_the_back_end_that_carries_most() -> None:
    both = (*HOST, frontier(1500, 1, 300_000, "kernel"), frontier(64, 1, 310_000, "kernel"))
    assert envelope.best_first(both, 1500, 1) == ["kernel", "user"]
    assert envelope.best_first(both, 64, 1) == ["user", "kernel"]
    assert envelope.predict(both, LinkDemand(10**9)).backend == "kernel"
    assert envelope.predict(both, LinkDemand(10**9, backend="user")).backend == "user"


def test_without_a_measurement_nothing_is_said() -> None:
    with pytest.raises(NoEnvelopeError, match="ewan measure host"):
        envelope.predict((), LinkDemand(10**9))
    with pytest.raises(NoEnvelopeError, match="tbf"):
        envelope.predict(HOST, LinkDemand(10**9, backend="tbf"))


def test_a_run_asks_for_what_its_loaded_links_may_carry() -> None:
    """Of the test plan's 1 Gbit/s link: one direction loaded, or both."""
    lab = plan()
    (one,) = refusal.demands(lab, {("core", "forward"): 10**9})
    assert (one.rate_bps, one.links, one.packet_bytes, one.backend) == (10**9, 1, 1500, "user")
    (both,) = refusal.demands(lab, {("core", "forward"): 10**9, ("core", "backward"): 5 * 10**8})
    assert (both.rate_bps, both.links) == (75 * 10**7, 2)
    assert refusal.demands(lab, {}) == []
    slow = (frontier(1500, 1, 40_000), frontier(1500, 4, 40_000))
    assert "81,274 packets/s of 1500 bytes are asked for, 1 link carries 40,000 here" in refusal.refusal(slow, one)
    assert refusal.refusal(HOST, one) == ""
    assert refusal.refusal((), one) == ""


@pytest.mark.parametrize(
    "packets_per_s, late, choice",
    [
        (300_000, LATE, "kernel"),
        (210_000, LATE, "user"),
        (300_000, LoadLateness(0.9, 1, False, 1, 90_000, 1, 1, 0, 0), "user"),
    ],
)
def test_auto_takes_the_kernels_links_where_they_carry_more_and_are_no_later(
    packets_per_s: float, late: LoadLateness, choice: str
) -> None:
    theirs = Frontier("kernel", 1500, 1, packets_per_s, "rate", 0.0, (late,))
    assert envelope.preferred((*HOST, theirs)) == choice
    assert envelope.preferred(HOST) == "user"
