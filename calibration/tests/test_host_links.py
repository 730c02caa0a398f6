"""Links of this host, measured live: a frontier is found, and what is far beyond it is not carried."""

from __future__ import annotations

import os

import pytest

from ewan.calibration.envelope import LinkDemand
from ewan.calibration.host import links
from ewan.labs.context import Context

pytestmark = pytest.mark.live
CONTEXT = Context.of(os.environ)
SMALL = links.LinkBudget(sizes=(1500,), links=(2,), loads=(0.5,), others=True)


def test_a_frontier_is_found_and_other_back_ends_are_there_or_said_why_not() -> None:
    runtime = CONTEXT.live("netns")
    frontiers, absent = links.measure(runtime, SMALL)
    own = [each for each in frontiers if each.backend == "user"]
    assert [(each.packet_bytes, each.links) for each in own] == [(1500, 2)]
    # A machine that other programs fill carries little; this much any does.
    assert own[0].packets_per_s > 500 and abs(own[0].rate_error_ratio) < 0.01
    (load,) = own[0].loads
    assert load.own and load.packets > 0 and 0 < load.error_p50_ns <= load.error_p99_ns <= load.error_max_ns
    assert {each.backend for each in frontiers} | set(absent) == {"user", "kernel", "tbf"}
    assert not [name for name in runtime.names() if name.startswith("envelope")]


def test_what_is_far_beyond_any_host_is_not_carried() -> None:
    runtime = CONTEXT.live("netns")
    assert not links.carries(runtime, LinkDemand(40 * 10**9, 0, 64, 2, backend="user"), 2)
    assert links.carries(runtime, LinkDemand(1_000_000, 0, 1500, 2, backend="user"), 2)
    assert not [name for name in runtime.names() if name.startswith("envelope")]
