"""Switched access networks in the verification: what the port to the router must show, who fills it, what is said of a
switch that forwards in user space."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ewan.calibration import lans
from ewan.calibration.compare import compare
from ewan.calibration.exact import VirtualProbes
from ewan.calibration.expect import expectations
from ewan.calibration.expectation import Expectations, HostExit, LinkExpectation
from ewan.calibration.probe import LiveProbes
from ewan.calibration.probing import Method, ProbePlan, plan_probes
from ewan.calibration.tests.plans import asked, told
from ewan.labs.compile import HostFacts, compile
from ewan.labs.host import virtual_facts
from ewan.labs.link import Framing
from ewan.labs.link.delay import nominal_ns
from ewan.labs.plan import Plan
from ewan.labs.record import Row
from ewan.labs.runtime.probe_documents import SaturateProbe
from ewan.labs.spec import parse

LIVE, VIRTUAL = HostFacts((0, 1), ()), virtual_facts()
KERNEL = HostFacts((0, 1), (), datapath="system")
EQUAL = "topology: {dumbbell: {pairs: 3}}\nrtt: 20ms\naccess: {rate: 100Mbit/s, buffer: 50pkt, switch: ovs}\n"
SLOW = EQUAL.replace("switch: ovs", "switch: {ovs: {rate: 10Mbit/s}}")
FAST = EQUAL.replace("switch: ovs", "switch: {ovs: {rate: 1Gbit/s}}")
WIRE = Framing(38, 84)


def plan(text: str, host: HostFacts = LIVE) -> Plan:
    return compile(parse(text, Path("t.lab.yaml")), host)


def port(text: str, host: HostFacts = LIVE) -> LinkExpectation:
    return next(link for link in expectations(plan(text, host)).links if link.link == "sw-r1")


def test_the_port_is_a_link_from_a_host_to_the_router() -> None:
    found = port(SLOW)
    assert (found.key, found.ends.source, found.ends.sink) == ("sw-r1 forward", "left1", "r1")
    assert found.direction.rate_bps == 10_000_000
    assert found.queue_packets(1500) == 50
    assert found.delay_ns(100) == 0, "a token bucket lets a lone packet pass"
    assert found.direction.framing.overhead_bytes == 38


def test_in_the_virtual_clock_card_and_port_take_their_time() -> None:
    found = port(SLOW, VIRTUAL)
    assert found.queue_packets(1500) == found.queue_packets(100) == 50
    assert found.delay_ns(100) == 138 * 8e9 / 100e6 + 138 * 8e9 / 10e6
    (pair, *_) = expectations(plan(SLOW, VIRTUAL)).pairs
    core = 2 * 138 * 8e9 / 1e9
    assert pair.round_trip_ns(100) == pytest.approx(20e6 + core + 4 * 138 * 8e9 / 100e6 + 4 * 138 * 8e9 / 10e6)


def test_as_many_hosts_fill_the_port_as_it_takes() -> None:
    senders, above = port(SLOW).together(2.0)
    assert ([each.source for each in senders], above) == (["left1"], 2.0)
    senders, above = port(EQUAL).together(2.0)
    assert ([each.source for each in senders], above) == (["left1", "left2", "left3"], 2.0)
    senders, above = port(FAST).together(1.25)
    assert len(senders) == 3 and above == pytest.approx(3 * 0.095)


def streams(probing: ProbePlan, link: str) -> list[dict[str, Any]]:
    found = [stream for probe in asked(probing) if probe["kind"] == "saturate" for stream in probe["streams"]]
    return [stream for stream in found if stream["name"].startswith(link)]


@pytest.mark.parametrize("method", [LiveProbes(), VirtualProbes()])
def test_together_they_offer_more_than_the_port_takes_and_each_no_more_than_its_card(method: Method) -> None:
    host = VIRTUAL if isinstance(method, VirtualProbes) else LIVE
    found = streams(plan_probes(expectations(plan(EQUAL, host)), "t", method), "sw-r1")
    offered = [1538 * 8e9 / stream["interval_ns"] for stream in found]
    assert len({stream["from"]["address"] for stream in found}) == len(found) > 1
    assert [stream.get("shares_with") for stream in found] == [None, *["sw-r1 forward"] * (len(found) - 1)]
    assert sum(offered) > 1.25 * 100e6
    assert max(offered) < 0.96 * 100e6


def test_hosts_too_slow_for_the_port_leave_its_queue_unmeasured() -> None:
    live = plan_probes(expectations(plan(FAST)), "t", LiveProbes()).skipped
    assert "cards of its senders" in live["sw-r1 forward", "queue limit"]
    skipped = plan_probes(expectations(plan(FAST, VIRTUAL)), "t", VirtualProbes()).skipped
    assert ("sw-r1 forward", "rate") in skipped and ("sw-r1 forward", "queue limit") in skipped


def test_a_pair_is_bounded_by_the_port_and_hosts_of_one_switch_are_not() -> None:
    (pair, *_) = expectations(plan(SLOW)).pairs
    assert pair.goodput_bps == pytest.approx(10e6 * 1448 / 1538)
    near = plan(
        "topology: {graph: {hosts: [a, b], routers: [r], links: [{between: [a, r]}, {between: [b, r]}]}}\nrtt: 0ms\n"
        "access: {rate: 100Mbit/s, switch: {ovs: {rate: 10Mbit/s}}}\n"
    )
    assert expectations(near).pairs[0].goodput_bps == pytest.approx(100e6 * 1448 / 1538)


def test_an_emulated_access_link_is_measured_at_the_router_behind_the_switch() -> None:
    text = "topology: {dumbbell: {pairs: 2}}\nrtt: [10ms, 30ms]\naccess: {rate: 100Mbit/s, switch: ovs}\n"
    for host, after in ((LIVE, ()), (VIRTUAL, (HostExit(100_000_000, WIRE),))):
        found = expectations(plan(text, host))
        there, back = (link for link in found.links if link.link == "access-left2")
        assert (there.ends.source, there.ends.sink) == ("left2", "r1") == (back.ends.sink, back.ends.source)
        assert there.after == after and back.after == ()
        assert found.pairs[1].links == ("access-left2", "core")
        directions = found.pairs[1].directions
        assert sum(nominal_ns(way.delay) for way in directions) == 30_000_000


def stream(sent: int, arrived: int, window_ns: float, wait_ns: float = 0.0) -> dict[str, Any]:
    steady = {"packets": arrived, "fitted_window_ns": window_ns, "busy_packets": arrived, "busy_window_ns": window_ns}
    return {
        **{"packet_bytes": 1500, "sent_packets": sent, "received_packets": arrived, "refused_packets": 0},
        **{"socket_drops_packets": 0, "sending_ns": window_ns, "longest_sender_gap_ns": 0, "refused_why": None},
        "delay": {"min_ns": 0, "max_ns": wait_ns, "p50_ns": wait_ns},
        "steady": {**steady, "window_ns": window_ns, "delay": {"p50_ns": wait_ns, "p90_ns": wait_ns}},
    }


def rate(text: str, found: list[dict[str, Any]], host: HostFacts = LIVE) -> Row:
    """The row of the port's rate where its senders' packets fared so."""
    expected = Expectations((port(text, host),), ())
    names = [f"sw-r1 forward sender {number}" if number > 1 else "sw-r1 forward" for number in range(1, len(found) + 1)]
    named = [{**each, "name": name, "steady": None} for each, name in zip(found, names, strict=True)]
    arrived = sum(each["steady"]["packets"] for each in found)
    busy = sum(each["steady"]["busy_packets"] for each in found)
    named[0]["steady"] = found[0]["steady"] | {"packets": arrived, "busy_packets": busy}
    result = {"kind": "saturate", "clock_step_ns": 0, "streams": named}
    probing = ProbePlan([SaturateProbe("rate", (), 0)])
    return next(row for row in compare(expected, probing, told({"results": [result]}), {}) if row.quantity == "rate")


SECOND = 1e9
FULL = round(100e6 / (1538 * 8))
"""Packets in a second of the port that is as fast as its hosts."""


def test_what_came_through_from_all_senders_is_the_ports_rate() -> None:
    good = rate(EQUAL, [stream(FULL * 3 // 4, FULL // 3, SECOND), stream(FULL * 3 // 4, FULL - FULL // 3, SECOND)])
    assert good.verdict == "ok" and good.measured == pytest.approx(100e6, rel=0.001)


def test_a_switch_in_user_space_that_loses_what_its_port_would_take_is_named() -> None:
    few = rate(EQUAL, [stream(FULL, FULL // 4, SECOND), stream(FULL, FULL // 4, SECOND)])
    assert few.verdict == "outside" and lans.USER_SPACE in few.note
    # Far below the port's rate, and yet most is lost; whatever pauses the sender made.
    weak = rate(FAST, [stream(FULL, FULL // 3, SECOND)])
    assert weak.verdict == "outside" and lans.USER_SPACE in weak.note
    # Near the port's rate pauses are an excuse as far as its queue of 50 packets does not last: 0.6 ms.
    for gap_ns, verdict in ((0.6e6, "outside"), (1.0e6, "outside"), (20e6, "not measured")):
        paused = stream(8 * FULL, 3 * FULL, SECOND) | {"longest_sender_gap_ns": gap_ns}
        paused["steady"] |= {"busy_packets": 0}
        assert rate(FAST, [paused]).verdict == verdict, gap_ns
    fine = rate(FAST, [stream(FULL, FULL, SECOND)])
    assert fine.verdict == "not measured" and "above this host's reach" in fine.note


def test_the_kernels_datapath_has_no_such_excuse() -> None:
    assert port(SLOW).wakeups == 1 and port(SLOW, KERNEL).wakeups == 0
    assert port(SLOW, KERNEL).cause == ""
    assert [pair.wakeups for pair in expectations(plan(SLOW)).pairs] == [4, 4, 4]
    assert [pair.wakeups for pair in expectations(plan(SLOW, VIRTUAL)).pairs] == [0, 0, 0]


TRUNK = """
topology: {graph: {hosts: [a, b], switches: [s1, s2], routers: [r], links: [
    {between: [a, s1]}, {between: [b, s2]}, {between: [s1, s2], rate: RATE}, {between: [s2, r], rate: 5Mbit/s}]}}
rtt: 0ms
access: {rate: 100Mbit/s}
"""


def test_a_port_is_not_filled_through_another_that_would_fill_too() -> None:
    for trunk, senders in (("6Mbit/s", ["b"]), ("100Mbit/s", ["a", "b"])):
        (found,) = expectations(plan(TRUNK.replace("RATE", trunk), VIRTUAL)).links
        assert (found.link, [each.source for each in found.senders]) == ("s2-r", senders)


@pytest.mark.parametrize("kind", ["delay", "loss"])
def test_small_packets_of_all_hosts_together_are_no_more_than_the_port_carries(kind: str) -> None:
    text = SLOW.replace("pairs: 3", "pairs: 16").replace("access: {", "access: {delay: 1ms, loss: 1%, ")
    probing = plan_probes(
        expectations(plan(text.replace("rate: 10Mbit/s", "rate: 1Mbit/s"), VIRTUAL)), "t", VirtualProbes()
    )
    (probe,) = (each for each in asked(probing) if each["kind"] == kind)
    own = [138 * 8e9 / 1e6 / each["interval_ns"] for each in probe["streams"] if each["name"].startswith("access-left")]
    assert len(own) == 32 and sum(own) < 1
