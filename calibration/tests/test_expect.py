"""What a plan says a measurement must find, by hand."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pytest

from ewan.calibration.exact import VirtualProbes
from ewan.calibration.expect import expectations
from ewan.calibration.probe import LiveProbes
from ewan.calibration.probing import MS, SECOND, Method, ProbePlan, plan_probes
from ewan.calibration.tests.plans import DROP_TAIL, asked, plan
from ewan.labs.base.codec import replace
from ewan.labs.compile import HostFacts, compile
from ewan.labs.link import Aggregate, BernoulliLoss, BitErrorLoss, Framing, NormalDelay, Psp, Queue
from ewan.labs.link.trace import TraceRows
from ewan.labs.plan import Link, Plan
from ewan.labs.spec import parse


def test_a_link_of_one_gigabit_and_50_ms() -> None:
    forward, backward = expectations(plan()).links
    assert (forward.key, forward.ends.source, forward.ends.sink) == ("core forward", "r1", "r2")
    assert (backward.ends.source_address, backward.ends.sink_address) == ("10.64.1.2", "10.64.1.1")
    # 100 + 38 bytes at 1 bit/ns.
    assert forward.delay_ns(100) == 50_000_000 + 138 * 8
    # 12.5 MB hold 8127 packets of 1538 bytes.
    assert forward.queue_packets(1500) == 8127
    assert forward.lossless


def test_the_smaller_of_two_queue_limits_counts() -> None:
    forward = expectations(plan(queue=Queue(100, 12_500_000, DROP_TAIL))).links[0]
    assert forward.queue_packets(1500) == 100


def test_small_packets_count_as_the_smallest_frame() -> None:
    forward = expectations(plan(rate_bps=8_000)).links[0]
    # 40 bytes count as 84: 84 ms at 1 byte/ms.
    assert forward.delay_ns(40) == 50_000_000 + 84_000_000


def test_ipv6_where_there_is_no_ipv4() -> None:
    old = plan()
    nodes = tuple(
        replace(node, interfaces=tuple(replace(i, addresses=i.addresses[1:]) for i in node.interfaces))
        for node in old.nodes
    )
    expected = expectations(replace(old, nodes=nodes))
    assert expected.links[0].ends.source_address == "fd00::5"
    # 1500 − 40 − 32 of 1538 bytes.
    assert expected.pairs[0].goodput_bps == pytest.approx(1e9 * 1428 / 1538)


def test_a_pair_over_an_asymmetric_link() -> None:
    """The way to the sink limits; where the way back has no room for one acknowledgement of two segments, TCP may."""
    old = plan(rate_bps=50_000_000)
    for back_bps, fair in ((5_000_000, True), (100_000, False)):
        back = replace(old.links[0].backward, rate_bps=back_bps)
        lab = replace(old, links=(replace(old.links[0], backward=back),))
        pair = expectations(lab).pairs[0]
        assert pair.goodput_bps == pytest.approx(50e6 * 1448 / 1538) and pair.goodput_fair == fair


def test_a_pair_over_a_gigabit() -> None:
    (pair,) = expectations(plan()).pairs
    # 1500 − 20 − 32 of 1538 bytes: the 941 Mbit/s of gigabit Ethernet.
    assert pair.goodput_bps == pytest.approx(1e9 * 1448 / 1538)
    assert pair.round_trip_ns(100) == 100_000_000 + 2 * 138 * 8
    assert pair.goodput_fair


@pytest.mark.parametrize(
    "change",
    [
        {"loss": BernoulliLoss(1000)},
        {"queue": Queue(100, None, DROP_TAIL)},
        {"delay": NormalDelay(50_000_000, 5_000_000)},
    ],
)
def test_tcp_is_not_promised_the_rate_where_it_cannot_have_it(change: dict[str, object]) -> None:
    assert not expectations(plan(**change)).pairs[0].goodput_fair


@pytest.mark.parametrize("packets, fair", [(5, False), (6, False), (8, True), (12, True)])
def test_a_path_of_a_few_packets_needs_a_queue_of_whole_ones(packets: int, fair: bool) -> None:
    # 100 ms at 600 kbit/s are 4.9 packets.
    pair = expectations(plan(rate_bps=600_000, queue=Queue(packets, None, DROP_TAIL))).pairs[0]
    assert pair.goodput_fair == fair


def test_corrupt_packets_are_lost_packets_but_not_their_copies() -> None:
    forward = expectations(
        plan(loss=BernoulliLoss(100_000_000), corrupt_ppb=200_000_000, duplicate_ppb=500_000_000)
    ).links[0]
    # 0.1 + 0.9 · 0.2 · (1 − 0.5)
    assert forward.loss.probability == pytest.approx(0.19)
    assert not forward.lossless
    # Of 15 that the link carries of 10 that come to it, 2 are damaged; 4 of 9 that arrive do so twice.
    assert forward.damaged == pytest.approx(2 / 15)
    assert forward.duplicates_of_arrived == pytest.approx(4 / 9)


def test_probes_fit_through_a_black_hole_and_what_does_not_is_not_sent() -> None:
    expected = expectations(plan(blackhole_bytes=1400))
    assert [link.mtu_bytes for link in expected.links] == [1400, 1400]
    probing = plan_probes(expected, "lab", LiveProbes())
    assert max(stream["packet_bytes"] for probe in asked(probing) for stream in probe["streams"]) == 1400
    assert "vanish in a black hole" in probing.skipped["left to right", "TCP goodput"]
    assert ("left to right", "base RTT") not in probing.skipped
    narrow = plan_probes(expectations(plan(blackhole_bytes=68)), "lab", LiveProbes())
    assert "vanish in a black hole" in narrow.skipped["left to right", "base RTT"]


def test_bit_errors_lose_fewer_probes_than_full_packets() -> None:
    forward = expectations(plan(loss=BitErrorLoss(10_000), corrupt_ppb=100_000_000)).links[0]
    small, full = (1 - 1e-5) ** (8 * 138), (1 - 1e-5) ** (8 * 1538)
    assert 1 - forward.loss.probability == pytest.approx(0.9 * small)
    assert forward.through(1500) == pytest.approx(0.9 * full)
    assert not forward.lossless


def test_a_burst_takes_no_time_and_a_policer_is_not_filled() -> None:
    forward = expectations(plan(burst_bytes=32_000)).links[0]
    assert forward.delay_ns(1500) == 50_000_000
    peak = expectations(plan(burst_bytes=32_000, peak_bps=10_000_000_000)).links[0]
    assert peak.delay_ns(1500) == pytest.approx(50_000_000 + 1230.4)
    policed = expectations(plan(police_bps=10_000_000, police_bytes=32_000))
    probing = plan_probes(policed, "lab", LiveProbes())
    assert probing.skipped["core forward", "rate"] == "its policer drops what would fill it"
    assert not policed.pairs[0].goodput_fair
    delays = next(probe for probe in asked(probing) if probe["kind"] == "delay")
    assert all(stream["interval_ns"] >= 138 * 8 * 100 for stream in delays["streams"])


def test_a_link_with_slots_has_no_single_delay() -> None:
    """A packet waits for the end of its slot, up to 10 ms besides the delay: probes wait for it, none is held to it."""
    slotted = expectations(plan(slot_ns=10_000_000))
    assert "slots of 10ms" in slotted.links[0].untold("delay") and not slotted.links[0].untold("loss")
    (steady, later) = (
        next(probe for probe in asked(plan_probes(each, "lab", VirtualProbes())) if probe["kind"] == "delay")
        for each in (expectations(plan()), slotted)
    )
    assert later["drain_ns"] == steady["drain_ns"] + 10_000_000


def test_displaced_packets_leave_the_median_of_a_constant_delay() -> None:
    displaced = {"displace_ppb": 10_000_000, "displace_packets": 3, "displace_within_ns": 50_000_000}
    few = expectations(plan(**displaced))
    assert few.links[0].untold("delay") == "" and not few.pairs[0].goodput_fair
    probing = plan_probes(few, "lab", LiveProbes())
    assert "a link on its path displaces packets" in probing.skipped["left to right", "base RTT"]
    assert "displaces packets" in probing.skipped["core forward", "queue limit"]
    most = expectations(plan(**displaced | {"displace_ppb": 200_000_000})).links[0]
    assert "displaces packets" in most.untold("delay")
    jitter = expectations(plan(**displaced, delay=NormalDelay(50_000_000, 5_000_000))).links[0]
    assert "displaces packets" in jitter.untold("delay")


def test_framing_of_ip_adds_nothing() -> None:
    forward = expectations(plan(framing=Framing(0, 0))).links[0]
    assert math.isclose(forward.delay_ns(1500), 50_000_000 + 12_000)


def psp(rate_bps: int, dither_ns: int) -> Psp:
    return Psp(
        rate_bps=rate_bps,
        overhead_bytes=24,
        minimum_bytes=84,
        limit_bytes=1_538_000,
        limit_packets=None,
        dither_ns=dither_ns,
        seed=1,
    )


def with_egress(old: Plan, egresses: dict[str, Psp]) -> Plan:
    nodes = tuple(
        replace(
            node,
            interfaces=tuple(replace(i, egress=egresses.get(node.name, i.egress)) for i in node.interfaces),
        )
        for node in old.nodes
    )
    return replace(old, nodes=nodes)


def test_hosts_of_the_virtual_clock_add_their_rate_and_a_dither() -> None:
    lab = with_egress(plan(), {"left": psp(10_000_000_000, 12_304), "right": psp(0, 1_000)})
    (pair,) = expectations(lab).pairs
    # 138 bytes at 1 bit/ns each way, and once at 10 bit/ns.
    assert pair.round_trip_ns(100) == 100_000_000 + 2 * 138 * 8 + 138 * 0.8
    assert (pair.source_exit.dither_ns, pair.sink_exit.dither_ns, pair.dither_ns) == (12_304, 1_000, 13_304)
    assert expectations(plan()).pairs[0].dither_ns == 0


def test_a_plain_access_link_that_is_the_bottleneck_counts_its_framing() -> None:
    old = with_egress(plan(), {"left": psp(100_000_000, 0)})
    there = replace(old.pairs[0].forward, bottleneck=0, bottleneck_bps=100_000_000)
    lab = replace(old, pairs=(replace(old.pairs[0], forward=there),))
    assert expectations(lab).pairs[0].goodput_bps == pytest.approx(100e6 * 1448 / 1538)


def test_a_probe_that_begins_at_a_host_has_the_dither_on_its_way() -> None:
    forward, backward = expectations(with_egress(plan(), {"r1": psp(0, 12_304)})).links
    assert (forward.dither_ns, backward.dither_ns) == (12_304, 0)
    assert forward.delay_ns(100) == backward.delay_ns(100) == 50_000_000 + 138 * 8


def test_a_token_bucket_lets_a_lone_packet_pass_at_once() -> None:
    old = plan()
    backends: tuple[Literal["user", "kernel", "tbf"], ...] = ("user", "kernel", "tbf")
    by_backend = {name: expectations(replace(old, links=(replace(old.links[0], backend=name),))) for name in backends}
    assert by_backend["kernel"].links[0].delay_ns(100) == by_backend["user"].links[0].delay_ns(100)
    assert by_backend["tbf"].links[0].delay_ns(100) == 50_000_000
    assert by_backend["tbf"].pairs[0].round_trip_ns(100) == 100_000_000


def test_netem_draws_losses_and_duplicates_whatever_the_other_draws() -> None:
    """Both together leave one packet, and a copy enters netem anew: sch_netem.c, netem_enqueue."""
    lossy = plan(loss=BernoulliLoss(100_000_000), duplicate_ppb=200_000_000, corrupt_ppb=20_000_000)
    lab = replace(lossy, links=tuple(replace(link, backend="kernel") for link in lossy.links))
    forward = expectations(lab).links[0]
    clean = expectations(replace(lab, links=tuple(_intact(link) for link in lab.links))).links[0]
    assert clean.loss.probability == pytest.approx(0.1 * 0.8)
    assert clean.duplicates_of_arrived == pytest.approx(0.2 * 0.9 * 0.9 / 0.92)
    assert clean.through(1500) == pytest.approx(0.9 + 0.2 * 0.1 + 0.2 * 0.9 * 0.9)
    # Alone is 0.9 · 0.8 + 0.1 · 0.2; of two copies, 0.2 · 0.9, one is lost and may be damaged, or both are damaged.
    nothing = 0.08 + 0.74 * 0.02 + 0.18 * 0.02 * (1 - 0.9 * 0.98)
    assert forward.loss.probability == pytest.approx(nothing)
    assert forward.duplicates_of_arrived == pytest.approx(0.2 * 0.9 * 0.9 * 0.98**2 / (1 - nothing))
    assert forward.damaged == pytest.approx(0.02)
    assert expectations(lab).pairs[0].answered(1500) == pytest.approx((1 - nothing) ** 2)


def _intact(link: Link) -> Link:
    return replace(
        link,
        forward=replace(link.forward, corrupt_ppb=0),
        backward=replace(link.backward, corrupt_ppb=0),
    )


def _instants(probing: ProbePlan, kind: str) -> dict[str, list[float]]:
    """When each stream of the first probe of a kind sends: streams begin spread over their intervals."""
    streams = next(probe["streams"] for probe in asked(probing) if probe["kind"] == kind)
    return {
        stream["name"]: [
            stream.get("start_ns", 0) + stream["interval_ns"] * (place / len(streams) + k) for k in range(50)
        ]
        for place, stream in enumerate(streams)
    }


@pytest.mark.parametrize("kind", ["delay", "loss"])
@pytest.mark.parametrize("method", [VirtualProbes(), LiveProbes()])
@pytest.mark.parametrize(
    "changes, busy_ns",
    [
        ({"aggregate": Aggregate(gap_ns=MS, packets=8, time_ns=0)}, MS + 1104),
        ({"aggregate": Aggregate(gap_ns=50 * MS, packets=1, time_ns=0)}, 50 * MS + 1104),
        ({"police_bps": 20_000, "police_bytes": 2_000}, 138 * 8e9 / 20_000),
        ({"rate_bps": 9_600}, 138 * 8e9 / 9_600),
    ],
)
def test_probes_leave_a_link_time_for_each(method: Method, changes: dict[str, Any], busy_ns: float, kind: str) -> None:
    """A lone packet takes the gap before a transmission too, and a policer lets the next one pass later."""
    probing = plan_probes(expectations(plan(loss=BernoulliLoss(10_000_000), **changes)), "t", method)
    for instants in _instants(probing, kind).values():
        assert min(b - a for a, b in pairwise(instants)) >= 2 * busy_ns


@pytest.mark.parametrize("method", [VirtualProbes(), LiveProbes()])
def test_probes_of_a_half_duplex_link_do_not_meet(method: Method) -> None:
    """Of five links in a row, with another rate back; the streams of a probe begin spread over one interval."""
    text = "topology: {parking-lot: {hops: 5}}\nwan: {rate: 200kbit/s, duplex: half, backward: {rate: 110kbit/s}}\n"
    lab = compile(parse(text, Path("t.lab.yaml")), HostFacts((0, 1), ()))
    found = _instants(plan_probes(expectations(lab), "t", method), "delay")
    for hop in range(1, 6):
        there, back = (found[f"hop{hop} {way}"] for way in ("forward", "backward"))
        assert min(abs(a - b) for a in there for b in back) >= 2 * 138 * 8e9 / 110_000 - 1


def test_probes_wait_for_the_longest_delay_of_a_trace_and_for_the_end_of_an_outage() -> None:
    late = TraceRows(period_ns=2 * SECOND, rows=((0, None, MS, None, None), (SECOND, None, 400 * MS, None, None)))
    out = TraceRows(period_ns=41 * SECOND, rows=((0, 10**9, None, None, None), (SECOND, 0, None, None, None)))
    for trace, waits_ns in ((late, 400 * MS), (out, 41 * SECOND)):
        probing = plan_probes(expectations(plan(trace=trace)), "t", VirtualProbes())
        drains = {probe["name"]: probe["drain_ns"] for probe in asked(probing)}
        assert drains["delay"] > waits_ns and drains["path MTU"] > 2 * waits_ns
