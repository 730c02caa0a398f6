"""The virtual clock's verification: which probes, and verdicts to the nanosecond and to the packet."""

from __future__ import annotations

from typing import Any

import pytest

from ewan.calibration import exact
from ewan.calibration.compare import compare
from ewan.calibration.expect import expectations
from ewan.calibration.expectation import Expectations
from ewan.calibration.judge import ArrivedFlow
from ewan.calibration.probing import SECOND, ProbePlan, plan_probes
from ewan.calibration.tests.plans import DROP_TAIL, asked, delays, direction, filled, plan, told
from ewan.generator.traffic_request import FlowRecord
from ewan.labs.base.codec import replace
from ewan.labs.link import BernoulliLoss, ConstantDelay, Psp, Queue, Red
from ewan.labs.link.trace import TraceOpportunities, TraceRows
from ewan.labs.plan import Plan
from ewan.labs.record import Row
from ewan.labs.runtime.probe_documents import ProbeAnswer

CARD = Psp(rate_bps=0, overhead_bytes=24, minimum_bytes=84, limit_bytes=10**7, limit_packets=None, dither_ns=0, seed=1)


def virtual(backend: Any = "kernel", dither_ns: int = 0, **changes: Any) -> Plan:
    """The plan of a dumbbell without spinners, whose hosts have a dither."""
    lab = plan(**changes)
    links = tuple(replace(link, backend=backend) for link in lab.links)
    egress = replace(CARD, dither_ns=dither_ns)
    nodes = tuple(
        replace(node, interfaces=tuple(replace(interface, egress=egress) for interface in node.interfaces))
        if node.kind == "host"
        else node
        for node in lab.nodes
    )
    return replace(lab, links=links, nodes=nodes, spinners=())


def prepared(lab: Plan) -> tuple[Expectations, ProbePlan]:
    expected = expectations(lab)
    return expected, plan_probes(expected, lab.lab, exact.VirtualProbes())


def answered(probing: ProbePlan, lab: Plan, **changes: Any) -> ProbeAnswer:
    """What an exact link would say; `changes` to every stream of one kind: `delay={...}`, `saturate={...}`."""
    ways = dict(zip((link.key for link in expectations(lab).links), expectations(lab).links, strict=True))
    results = []
    for probe in asked(probing):
        result = {"kind": probe["kind"], "name": probe["name"], "elapsed_ns": 1, "clock_step_ns": 0}
        streams = []
        for wanted in probe["streams"]:
            way = ways.get(wanted["name"])
            base = 100_002_208 if way is None else round(way.delay_ns(wanted["packet_bytes"]))
            stream = {
                "name": wanted["name"],
                "packet_bytes": wanted["packet_bytes"],
                "sent_packets": wanted["packets"],
                "refused_packets": 0,
                "refused_why": None,
                "sending_ns": (wanted["packets"] - 1) * wanted["interval_ns"],
                "longest_sender_gap_ns": wanted.get("batch_packets", 1) * wanted["interval_ns"],
                "received_packets": wanted["packets"],
                "lost_packets": 0,
                "duplicated_packets": 0,
                "socket_drops_packets": 0,
                "delay": delays(base, 0),
                "steady": None,
            }
            if probe["kind"] == "saturate" and way is not None:
                own = round((wanted["packet_bytes"] + 38) * 8e9 / way.direction.rate_bps)
                waited = way.queue_packets(wanted["packet_bytes"]) * own - own // 3
                stream["delay"]["max_ns"] = base + waited
                steady = {"packets": 1000, "window_ns": 1000 * own, "fitted_window_ns": 1000.0 * own}
                stream["steady"] = {**steady, "delay": delays(base + waited, 0)}
            change = changes.get(probe["kind"], {})
            streams.append({**stream, **{key: make(stream) for key, make in change.items()}})
        results.append({**result, "streams": streams})
    return told({"results": results})


def flow(segments_a_ms: float = 81.274, window: int = 20_000) -> dict[str, Any]:
    """A bulk flow at 81.274 segments of 1448 bytes a ms: 941.48 Mbit/s."""
    ends = [k * 25_000_000 for k in range(61)]
    until = [int(k * 25 * segments_a_ms) for k in range(61)]
    series = [
        {"time_ns": end, "cwnd_segments": window, "delivered_segments": segments}
        for end, segments in zip(ends, until, strict=True)
    ]
    arrived = [(end, 1448 * (later - earlier)) for end, earlier, later in zip(ends[1:], until, until[1:], strict=False)]
    said = {
        "name": "left to right",
        "connected_ns": 0,
        "congestion": "reno",
        "retransmitted_segments": 0,
        "segment_bytes": 1448,
    }
    return {**said, "series": series, "arrived": arrived, "busy_ns": 200_000_000}


def judged(lab: Plan, **changes: Any) -> dict[str, Row]:
    """The rows of the forward direction and of the pair, by quantity."""
    expected, probing = prepared(lab)
    bulk = {**flow(), **changes.pop("bulk", {})}
    flows = [ArrivedFlow(filled(FlowRecord, bulk), bulk["arrived"], bulk["busy_ns"], 0) for _ in probing.flows]
    rows = compare(expected, probing, answered(probing, lab, **changes), {}, exact.TOLERANCES, flows=flows)
    return {row.quantity: row for row in rows if row.direction != "backward"}


def off(key: str, ns: int) -> Any:
    return lambda stream: {**stream["delay"], key: stream["delay"][key] + ns}


def test_an_exact_link_passes_and_says_that_it_is_exact() -> None:
    rows = judged(virtual())
    assert {name: row.verdict for name, row in rows.items()} == dict.fromkeys(
        (
            "delay p50",
            "delay p99",
            "delay min",
            "delay max",
            "rate",
            "loss",
            "queue limit",
            "base RTT",
            "path MTU",
            "TCP goodput",
        ),
        "ok",
    )
    assert [(rows[name].error, rows[name].tolerance) for name in ("delay p50", "delay max", "queue limit")] == [
        (0, 0)
    ] * 3


@pytest.mark.parametrize("key", ["min_ns", "p50_ns", "p99_ns", "max_ns"])
@pytest.mark.parametrize("ns", [-1, 1])
def test_one_nanosecond_is_outside(key: str, ns: int) -> None:
    rows = judged(virtual(), delay={"delay": off(key, ns)})
    assert rows[f"delay {key.removesuffix('_ns')}"].verdict == "outside"


MOVED = TraceRows(
    period_ns=SECOND, rows=((0, 10**9, 20_000_000, None, None), (SECOND // 2, 10**8, 80_000_000, None, None))
)


OUTAGE = TraceRows(period_ns=SECOND, rows=((0, 0, None, None, None), (SECOND // 2, 10**9, None, None, None)))


@pytest.mark.parametrize(
    "changes, least_ns, greatest_ns",
    [
        ({"trace": MOVED}, 20_001_104, 80_011_040),
        ({"slot_ns": 500_000}, 50_001_104, 50_501_104),
        ({"trace": OUTAGE}, 50_001_104, 50_001_104 + SECOND),
        ({"trace": TraceOpportunities(opportunities=((1_000, 1),), period_ns=2_000)}, 50_000_000, 50_003_104),
    ],
)
def test_the_least_delay_of_a_direction_that_a_trace_or_slots_move_lies_where_they_allow_it(
    changes: dict[str, Any], least_ns: int, greatest_ns: int
) -> None:
    lab = virtual(**changes)

    def verdict(min_ns: float) -> str:
        return judged(lab, delay={"delay": lambda stream: {**stream["delay"], "min_ns": min_ns}})["delay min"].verdict

    cases = (least_ns - 1, least_ns, greatest_ns, greatest_ns + 1)
    assert [verdict(each) for each in cases] == ["outside", "ok", "ok", "outside"]


def test_where_packets_are_displaced_the_least_delay_is_shown() -> None:
    lab = virtual(displace_ppb=10**9, displace_packets=3, displace_within_ns=50_000_000)
    row = judged(lab, delay={"delay": off("min_ns", 50_000_000)})["delay min"]
    assert row.verdict == "shown"


def test_a_policer_that_does_not_limit_the_goodput_widens_nothing() -> None:
    """Only that of the way there lowers what is expected, and adds what its bucket lets pass."""
    slow = direction(police_bps=10_000_000, police_bytes=10**6)
    (link,) = virtual().links
    links = {
        "there": replace(link, forward=slow),
        "back": replace(link, backward=slow),
        "none": link,
    }
    found = {name: expectations(replace(virtual(), links=(each,))).pairs[0] for name, each in links.items()}
    assert found["there"].goodput_bps == pytest.approx(found["none"].goodput_bps / 100)
    assert (found["there"].bucket_bytes, found["there"].bucket_ns) == (10**6, 8 * 10**8)
    assert (found["back"].bucket_bytes, found["back"].goodput_bps) == (0, found["none"].goodput_bps)


def test_where_a_packet_takes_a_fraction_it_is_rounded_up() -> None:
    lab = virtual(rate_bps=7_000_000_000)  # 138 bytes in 157.7 ns
    verdicts = [judged(lab, delay={"delay": off("p50_ns", ns)})["delay p50"].verdict for ns in (-1, 0, 1)]
    assert verdicts == ["outside", "ok", "outside"]


@pytest.mark.parametrize("ns, verdict", [(0, "ok"), (2_000, "ok"), (2_001, "outside"), (-1, "outside")])
def test_a_round_trip_may_be_longer_by_the_dither_of_both_hosts(ns: int, verdict: str) -> None:
    row = judged(virtual(dither_ns=1_000), rtt={"delay": off("p50_ns", ns)})["base RTT"]
    assert row.verdict == verdict and "a dither below 2000 ns" in row.note
    assert row.uncertainty is not None and 2_000 <= row.uncertainty.expanded < 2_400, "U covers the dither"


def test_a_rate_one_in_a_million_off_is_outside() -> None:
    def slower(stream: dict[str, Any]) -> dict[str, Any]:
        steady = stream["steady"]
        return {**steady, "fitted_window_ns": steady["fitted_window_ns"] * (1 + 1e-6)}

    row = judged(virtual(), saturate={"steady": slower})["rate"]
    assert row.verdict == "outside"
    assert row.tolerance is not None and row.tolerance < 1e9 * 2e-7


@pytest.mark.parametrize("off_by, verdict", [(0, "ok"), (1e-6, "outside")])
def test_a_rate_counts_what_was_damaged_on_the_link(off_by: float, verdict: str) -> None:
    def damaged(stream: dict[str, Any]) -> dict[str, Any]:
        window = round(1000 * 12_304 * (1 + off_by))
        # No pace can be fitted to what is missing at random.
        return {**stream["steady"], "packets": 990, "services": 1000, "window_ns": window, "fitted_window_ns": 12e6}

    row = judged(virtual(corrupt_ppb=10_000_000), saturate={"steady": damaged})["rate"]
    assert row.verdict == verdict and row.tolerance is not None and row.tolerance < 1e9 * 2e-7


def test_a_rate_by_a_pace_that_varies_knows_what_was_damaged_by_its_share_alone() -> None:
    def damaged(stream: dict[str, Any]) -> dict[str, Any]:
        return {**stream["steady"], "packets": 980, "services": 0}

    lab = virtual("tbf", corrupt_ppb=20_000_000)
    row = judged(lab, saturate={"steady": damaged})["rate"]
    assert row.verdict == "ok" and row.measured == pytest.approx(1e9)
    assert row.uncertainty is not None and row.uncertainty.components["damaged packets"] == pytest.approx(
        1e9 * (0.02 / 980) ** 0.5
    )


def test_no_row_of_the_virtual_clock_advises_about_its_host() -> None:
    def slower(stream: dict[str, Any]) -> dict[str, Any]:
        return {**stream["steady"], "packets": 900}

    row = judged(virtual(), saturate={"steady": slower, "socket_drops_packets": lambda _: 100})["rate"]
    assert row.note == "the probe's own receive buffer had no room for 100 packets"


def test_too_small_an_offer_is_no_matter_of_the_host() -> None:
    rows = judged(virtual(), saturate={"sending_ns": lambda stream: 10 * stream["sending_ns"]})
    assert (rows["rate"].verdict, rows["rate"].note) == ("not measured", "its senders offered 400 Mbit/s")


@pytest.mark.parametrize("lost, verdict", [(0.2, "outside"), (0.9, "not measured")])
def test_no_answer_where_most_are_lost_on_purpose_is_no_fault(lost: float, verdict: str) -> None:
    lab = virtual(loss=BernoulliLoss(round(lost * 1e9)))
    row = judged(lab, rtt={"delay": lambda _: None, "received_packets": lambda _: 0})["base RTT"]
    assert row.verdict == verdict and row.note.startswith("no answer to 20 packets")


@pytest.mark.parametrize("packets", [-1, 1])
def test_a_queue_one_packet_off_is_outside(packets: int) -> None:
    assert judged(virtual(), saturate={"delay": off("max_ns", packets * 12_304)})["queue limit"].verdict == "outside"


@pytest.mark.parametrize(
    "pace, window, verdict", [(80.5, 20_000, "outside"), (81.5, 20_000, "outside"), (40, 100, "shown")]
)
def test_goodput_of_a_window_that_filled_the_pipe(pace: float, window: int, verdict: str) -> None:
    assert judged(virtual(), bulk=flow(pace, window))["TCP goodput"].verdict == verdict


def test_goodput_counts_what_arrives_and_not_what_is_acknowledged() -> None:
    """After acknowledgements that were lost or waited one tells of much at once."""
    transfer = flow()
    for sample in transfer["series"][15:]:
        sample["delivered_segments"] += 90
    assert judged(virtual(), bulk=transfer)["TCP goodput"].verdict == "ok"


@pytest.mark.parametrize(("more", "burst_bytes", "verdict"), [(2, 0, "ok"), (40, 0, "outside"), (40, 60_000, "ok")])
def test_the_edges_of_a_window_and_a_burst_are_in_the_uncertainty(more: int, burst_bytes: int, verdict: str) -> None:
    transfer = flow()
    end_ns, size = transfer["arrived"][20]
    transfer["arrived"][20] = end_ns, size + more * 1448
    row = judged(virtual(burst_bytes=burst_bytes), bulk=transfer)["TCP goodput"]
    assert row.verdict == verdict and row.error is not None and row.error > 0
    assert row.uncertainty is not None and (row.uncertainty.expanded >= row.error) == (verdict == "ok")


def test_a_transfer_that_failed_says_why() -> None:
    row = judged(virtual(), bulk={"error": "connect: no"})["TCP goodput"]
    assert (row.verdict, row.note) == ("not measured", "connect: no")


def test_a_token_bucket_gets_what_a_token_bucket_needs() -> None:
    lab = virtual("tbf")
    assert judged(lab, saturate={"delay": off("max_ns", -12_304)})["queue limit"].verdict == "ok"
    assert judged(lab)["delay p50"].configured == 50_000_000


def packets_of(probing: ProbePlan) -> int:
    return sum(stream["packets"] for probe in asked(probing) for stream in probe.get("streams", ()))


@pytest.mark.parametrize("rate_bps", [8_000, 1_000_000, 10_000_000_000, 100_000_000_000, 10**12])
def test_what_it_takes_is_bounded_in_packets(rate_bps: int) -> None:
    queue = Queue(None, max(rate_bps // 80, 4_000), DROP_TAIL)
    _, probing = prepared(virtual(rate_bps=rate_bps, queue=queue))
    assert packets_of(probing) < 300_000
    full = ("core forward", "queue limit") not in probing.skipped
    assert full == (rate_bps <= 10_000_000_000)


def test_a_queue_is_filled_by_bursts_that_it_can_hold() -> None:
    for packets in (1, 5, 50, 10_000):
        _, probing = prepared(virtual(queue=Queue(packets, None, DROP_TAIL)))
        streams = [probe["streams"][0] for probe in asked(probing) if probe["kind"] == "saturate"]
        assert len(streams) == 2
        for stream in streams:
            assert stream["batch_packets"] <= max(1, packets // 8)
            assert 12_304 / stream["interval_ns"] >= exact.ABOVE
            # Three of four stay: enough to fill it, and to see that it stays full.
            assert stream["packets"] * (1 - 1 / exact.ABOVE) > packets


def test_a_star_of_five_hundred_is_measured_in_part_and_says_so() -> None:
    (link,) = virtual().links
    both = direction(delay=ConstantDelay(5_000_000), queue=Queue(1_000, None, DROP_TAIL))
    links = tuple(replace(link, name=f"arm{k}", forward=both, backward=both) for k in range(500))
    _, probing = prepared(replace(virtual(), links=links, pairs=()))
    assert packets_of(probing) < 2_500_000
    assert any(what == "queue limit" and "packets" in why for (_, what), why in probing.skipped.items())
    assert all(probe["drain_ns"] < SECOND for probe in asked(probing))


def test_tcp_that_never_connects_was_not_measured() -> None:
    """As where all packets are damaged: it has neither segments nor samples."""
    silent: dict[str, Any] = {
        "connected_ns": None,
        "started_ns": 0,
        "ended_ns": 3 * SECOND,
        "segment_bytes": None,
        "series": [],
    }
    row = judged(virtual(), bulk={**silent, "error": None})["TCP goodput"]
    assert row.verdict == "not measured" and "not answered within 3 s" in row.note


def test_after_an_overload_the_average_of_red_falls_before_tcp_begins() -> None:
    """Below the kernel's rate limiters it falls with arrivals alone: by a 512th each, from 50 packets to 10 kB."""
    queue = Queue(None, 50 * 1538, Red(ecn=False, max_bytes=40_000, max_p_ppb=10**8, min_bytes=10_000, weight_log2=9))
    for backend, packets in (("tbf", 1044), ("user", None)):
        _, probing = prepared(virtual(backend, queue=queue))
        kinds = [probe["name"] for probe in asked(probing)]
        settling = [stream for probe in asked(probing) if probe["name"] == "settle" for stream in probe["streams"]]
        assert [stream["packets"] for stream in settling] == ([packets] * 2 if packets else [])
        assert not packets or kinds[-1] == "settle"
