"""Which probes are planned: bounded, below the link's rate where they must not disturb, above it where they must."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ewan.calibration.expect import expectations
from ewan.calibration.probe import LiveProbes
from ewan.calibration.probing import MS, SECOND, ProbePlan, plan_probes
from ewan.calibration.tests.plans import DROP_TAIL, asked, direction, plan
from ewan.labs.base.codec import replace
from ewan.labs.link import BernoulliLoss, ConstantDelay, Queue, UniformDelay
from ewan.labs.plan import Plan


def planned(lab: Plan) -> ProbePlan:
    return plan_probes(expectations(lab), lab.lab, LiveProbes())


def star(arms: int, **changes: Any) -> Plan:
    """The one link of `plan`, `arms` times over."""
    (link,) = plan().links
    both = direction(**changes)
    links = tuple(replace(link, name=f"arm{k}", forward=both, backward=both) for k in range(arms))
    return replace(plan(), links=links, pairs=())


def streams(probing: ProbePlan, kind: str) -> list[dict[str, Any]]:
    return [stream for each in asked(probing) if each["kind"] == kind for stream in each["streams"]]


def test_the_default_dumbbell_takes_less_than_fifteen_seconds() -> None:
    probing = planned(plan())
    assert [each["name"] for each in asked(probing)] == [
        "delay",
        "rtt",
        "path MTU",
        "rate 1",
        "rate 2",
        "tcp left to right",
    ]
    assert probing.duration_ns < 13 * SECOND


@pytest.mark.parametrize("rate_bps, seconds", [(1_000_000, 20), (100_000_000, 30), (1_000_000_000, 45)])
def test_a_star_of_a_hundred_stays_bounded(rate_bps: int, seconds: int) -> None:
    delay, queue = ConstantDelay(5_000_000), Queue(None, max(rate_bps // 800, 15_000), DROP_TAIL)
    probing = planned(star(100, rate_bps=rate_bps, delay=delay, queue=queue))
    assert len(streams(probing, "saturate")) == 200
    assert probing.duration_ns < seconds * SECOND
    # All delays at once, 20 000 packets a second together.
    (delays,) = [each for each in asked(probing) if each["kind"] == "delay"]
    assert sum(1e9 / stream["interval_ns"] for stream in delays["streams"]) <= 20_000


def test_one_direction_of_a_half_duplex_link_is_loaded_at_a_time() -> None:
    for half_duplex, loads in ((False, 1), (True, 2)):
        probing = planned(star(5, rate_bps=10_000_000, half_duplex=half_duplex))
        found = [each["streams"] for each in asked(probing) if each["kind"] == "saturate"]
        assert len(found) == loads
        for streams in found:
            names = [stream["name"].split()[0] for stream in streams]
            assert len(names) == (5 if half_duplex else 10) == len(set(names)) * (1 if half_duplex else 2)


def test_of_five_hundred_fast_links_some_are_saturated_and_the_others_named() -> None:
    probing = planned(star(500, delay=ConstantDelay(5_000_000), queue=Queue(None, 10**6, DROP_TAIL)))
    assert probing.duration_ns < 60 * SECOND
    measured = {stream["name"] for stream in streams(probing, "saturate")}
    named = {key for key, what in probing.skipped if what == "rate"}
    assert {name.split()[1] for name in measured} == {"forward", "backward"}
    assert len(measured) >= 200 and len(measured) + len(named) == 1000


@pytest.mark.parametrize("rate_bps", [8_000, 1_000_000, 1_000_000_000, 100_000_000_000, 10**12])
def test_delay_probes_do_not_queue_and_rate_probes_do(rate_bps: int) -> None:
    probing = planned(plan(rate_bps=rate_bps))
    for stream in streams(probing, "delay"):
        assert stream["interval_ns"] >= 4 * 138 * 8e9 / rate_bps
    for stream in streams(probing, "saturate"):
        offered = (stream["packet_bytes"] + 38) * 8e9 / stream["interval_ns"]
        assert offered >= 1.2 * rate_bps or stream["interval_ns"] == 1_000
        assert stream["packets"] <= 5_000_000
        assert stream["skip_ns"] < stream["interval_ns"] * stream["packets"]


def test_losses_before_the_queue_are_made_up_for() -> None:
    half = planned(plan(loss=BernoulliLoss(500_000_000)))
    stream = streams(half, "saturate")[0]
    assert 1538 * 8 / stream["interval_ns"] * 0.5 == pytest.approx(1.25, rel=0.01)
    assert len(streams(half, "loss")) == 2


def test_packets_do_not_wait_for_each_other_where_the_delay_varies() -> None:
    uniform = UniformDelay(50 * MS, 10 * MS)
    assert streams(planned(plan(delay=uniform)), "delay")[0]["interval_ns"] == 20 * MS
    assert streams(planned(plan(delay=uniform, reorder=True)), "delay")[0]["interval_ns"] == MS


def test_what_takes_too_long_is_said() -> None:
    probing = planned(plan(rate_bps=8_000))
    assert probing.skipped["core forward", "queue limit"].startswith("filling this queue takes")
    assert probing.skipped["left to right", "TCP goodput"] == "too slow for a transfer of a few seconds"


@pytest.mark.parametrize("rate_bps", [10_000_000, 1_000_000_000])
def test_a_transfer_is_judged_after_slow_start_and_its_losses(rate_bps: int) -> None:
    """100 ms and a queue as long: after the time that is not judged, the window that doubled has filled both."""
    queue = Queue(None, rate_bps // 80, DROP_TAIL)
    (transfer,) = (each for each in asked(planned(plan(rate_bps=rate_bps, queue=queue))) if each["kind"] == "tcp")
    filling = transfer["duration_ns"] - transfer["steady_ns"]
    doublings = math.log2(2 * 100 * MS / (1500 * 8e9 / rate_bps) / 10)
    assert (doublings + 6 * 2) * 100 * MS <= filling <= (doublings + 6 * 2 + 3) * 100 * MS
    assert transfer["steady_ns"] >= 10 * 100 * MS
