"""Estimators against hand cases, and paths of the virtual clock whose truth is known."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from click.testing import CliRunner

from ewan.calibration.path import PathEnd
from ewan.calibration.tests.plans import filled, told
from ewan.calibration.uncertainty import Instrument, expanded
from ewan.cli import main
from ewan.extras.characterise import estimators, measure, plan
from ewan.extras.characterise.estimators import Packet, PathEstimate, Train
from ewan.labs.base import codec
from ewan.labs.base.errors import UserError
from ewan.labs.base.units import NS_PER_MS
from ewan.labs.record.characterisation import Characterisation, Estimate, from_json, to_json
from ewan.labs.runtime.probe_documents import FailedResult, OfStreams, ProbeResult, StreamResult

C, SIZE, OWN = 100e6, 1500, 120_000.0
"""A path of 100 Mbit/s on which packets of 1500 B take 120 µs."""
BASE = 20.0 * NS_PER_MS


def served(sent: list[float], others: list[float] = [], limit: int | None = None) -> tuple[Packet, ...]:  # noqa: B006
    """The packets that arrive when packets are sent at these times through one queue; `others` share it, `limit`
    packets may wait."""
    free, found, ends = 0.0, [], list[float]()
    for at, ours in sorted([(at, True) for at in sent] + [(at, False) for at in others]):
        ends = [end for end in ends if end > at]
        if limit is not None and len(ends) > limit:
            continue
        free = max(free, at) + OWN
        ends.append(free)
        if ours:
            found.append(Packet(at, free - at + BASE - OWN))
    return tuple(found)


def trains(interval: float, packets: int, others: list[float] = [], count: int = 40) -> list[Train]:  # noqa: B006
    starts = [(k + (k * plan.GOLDEN) % 1 / 2) * 50 * NS_PER_MS for k in range(1, count + 1)]
    near = [[at for at in others if abs(at - start) < 25 * NS_PER_MS] for start in starts]
    return [
        Train(packets, served([start + n * interval for n in range(packets)], own))
        for start, own in zip(starts, near, strict=True)
    ]


RATE = PathEstimate(C, {})
BASE_DELAY = PathEstimate(BASE, {})


def test_packets_are_put_together_from_delays_and_spacings() -> None:
    found = estimators.packets_of(filled(StreamResult, {"delays_ns": [100, 150, 90], "spacings_ns": [30, 5]}))
    assert [(packet.sent_ns, packet.arrived_ns) for packet in found] == [(-100, 0), (-120, 30), (-55, 35)]
    assert estimators.packets_of(filled(StreamResult, {})) == ()


def test_the_least_delay_is_no_less_than_its_interval_says() -> None:
    found = estimators.least([110.0, 100.0, 102.0, 500.0, 300.0], 2, None)
    assert found.value == 100
    # The interval's end is 19 × 2 away, but no further than the median is: 10.
    assert found.components["finite sample"] == pytest.approx(10 / 3**0.5)
    assert estimators.least([110.0], 2, None).value is None
    live = estimators.least([1e6, 1e6, 2e6], 2, Instrument(stack_ns=3e4, wake_up_ns=8e4))
    assert live.components["stack path"] == pytest.approx(1e5 / 3**0.5)
    one_way = estimators.least([1e6, 1e6, 2e6], 1, Instrument(stack_ns=3e4, wake_up_ns=8e4))
    assert one_way.components["stack path"] == pytest.approx(3e4 / 3**0.5)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6])
def test_capacity_is_that_of_trains_which_nothing_stretched(share: float) -> None:
    others = [] if not share else [n * OWN / share + 7 for n in range(int(2100 * NS_PER_MS * share / OWN))]
    found = estimators.capacity(trains(1000.0, 32, others), SIZE, None)
    assert found.value is not None
    assert abs(found.value - C) <= expanded(found.components) < 1e-4 * C


def test_capacity_of_trains_that_lose_packets_or_never_arrive() -> None:
    short = [Train(32, train.packets[:12]) for train in trains(1000.0, 32)]
    found = estimators.capacity(short, SIZE, None)
    assert found.value == pytest.approx(C, rel=1e-6)
    assert "lost packets" in found.note
    assert estimators.capacity([Train(32, ())] * 40, SIZE, None).value is None


@pytest.mark.parametrize("limit", [5, 50, 160])
@pytest.mark.parametrize("jitter", [0.0, 0.9])
def test_the_buffer_is_within_its_uncertainty(limit: int, jitter: float) -> None:
    sent = [n * OWN / 2 for n in range(4000)]
    late = [n * OWN / 2 + jitter * OWN * ((n * plan.GOLDEN) % 1) for n in range(4000)]
    full = served(late, limit=limit)[1000:]
    moved = [dataclasses.replace(packet, delay_ns=packet.arrived_ns - at) for packet, at in matched(full, late, sent)]
    found = estimators.buffer(moved, BASE_DELAY, RATE, SIZE, None)
    assert found.size.value is not None and found.wait.value is not None
    assert abs(found.size.value - limit * SIZE) <= expanded(found.size.components) <= 2.5 * SIZE
    assert abs(found.wait.value - limit * OWN) <= expanded(found.wait.components)


def matched(packets: tuple[Packet, ...], late: list[float], sent: list[float]) -> list[tuple[Packet, float]]:
    """Each packet with when it was meant to be sent: the host held it back."""
    meant = dict(zip(late, sent, strict=True))
    return [(packet, meant[packet.sent_ns]) for packet in packets]


def test_a_wait_that_varies_is_told() -> None:
    packets = [Packet(n * OWN, BASE + (n % 100) * OWN) for n in range(400)]
    found = estimators.buffer(packets, BASE_DELAY, RATE, SIZE, None)
    assert "varies" in found.doubt
    assert estimators.buffer(packets, BASE_DELAY, PathEstimate(None, {}, "why"), SIZE, None).size.note == "why"


def test_a_wait_grows_until_the_buffer_is_full() -> None:
    sent = [n * OWN / 2 for n in range(1000)]
    assert estimators.growing(served(sent), OWN)
    assert not estimators.growing(served(sent, limit=40), OWN)


def test_a_load_that_gets_another_share_through_is_told() -> None:
    sent = [n * OWN / 2 for n in range(2000)]
    full = served(sent, limit=40)[500:]
    assert estimators.doubt(full, SIZE, 2 * C, C, 0.0) == ""
    assert estimators.doubt(full, SIZE, 2 * C, 1.1 * C, 0.0) == ""
    assert "got 100 Mbit/s through, not 150 Mbit/s" in estimators.doubt(full, SIZE, 2 * C, 1.5 * C, 0.0)
    assert estimators.doubt(full[:1], SIZE, 2 * C, C, 0.0) == ""


def test_packets_that_arrive_at_once_tell_no_capacity() -> None:
    at_once = Train(8, tuple(Packet(float(n), 100.0 - n) for n in range(8)))
    found = estimators.capacity([at_once] * 40, SIZE, None)
    assert found.value is None and "at once" in found.note


def test_loss_has_wilsons_interval() -> None:
    found = estimators.loss([(10, 10_000)])
    assert found.value == 1_000_000
    # Wilson 1927 with z = 2 of 10 in 10 000: 0.0537 % to 0.1862 %.
    assert expanded(found.components) == pytest.approx(862_278, rel=1e-4)
    assert estimators.loss([(0, 0)]).value is None


def test_bursts_of_losses_make_the_loss_less_certain() -> None:
    """Four of 40 batches of 500 packets have lost 100 each, instead of 10 in each: the same share, less certain."""
    even = estimators.loss([(10, 500)] * 40)
    bursts = estimators.loss([(100 * (k % 10 == 0), 500) for k in range(40)])
    assert even.value == bursts.value == 20_000_000
    assert expanded(even.components) == expanded(estimators.loss([(400, 20_000)]).components)
    assert expanded(bursts.components) > 5 * expanded(even.components)


def test_the_loss_of_bursts_is_within_its_uncertainty_as_often_as_u_says() -> None:
    """200 paths of Gilbert and Elliott's losses, 1.96 %: some 12 bursts of 20 in each measurement."""
    drawn, held = np.random.default_rng(5), 0
    for _ in range(200):
        lost = np.zeros(12_000, bool)
        at = int(drawn.geometric(0.001))
        while at < len(lost):
            lasting = int(drawn.geometric(0.05))
            lost[at : at + lasting] = True
            at += lasting + int(drawn.geometric(0.001))
        found = estimators.loss([(int(batch.sum()), len(batch)) for batch in np.split(lost, 40)])
        assert found.value is not None
        held += abs(found.value - 1e9 / 51) <= expanded(found.components)
    assert 0.94 * 200 <= held < 200


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_a_load_that_passes_a_burst_first_tells_the_capacity_itself(share: float) -> None:
    """20 packets pass at once, the others are served at the rate; trains saw nearly three times as much."""
    sent = [n * OWN / 5 for n in range(4000)]
    others = [n * OWN / share + 7 for n in range(int(4000 * share / 5))] if share else []
    late = served(sent[20:], others, limit=60)
    load = [*(Packet(at, BASE - OWN) for at in sent[:20]), *late]
    found = estimators.burst(load, SIZE, 5 * C, PathEstimate(2.5 * C, {}))
    assert found is not None and found.capacity.value is not None
    assert abs(found.capacity.value - C) <= expanded(found.capacity.components) + 1e-6 * C
    assert 12 <= found.packets <= 24 and "pass faster" in found.doubt
    assert estimators.burst(late, SIZE, 5 * C, RATE) is None, "trains say the same"
    assert (
        estimators.burst(served([n * OWN / 2 for n in range(900)], limit=60), SIZE, 2 * C, PathEstimate(1.1 * C, {}))
        is None
    )


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.8])
def test_cross_traffic_is_what_the_queue_served_beside_the_train(share: float) -> None:
    others = [] if not share else [n * OWN / share + 7 for n in range(int(2100 * NS_PER_MS * share / OWN))]
    found = estimators.cross(trains(OWN / plan.CROSS_ABOVE, 40, others), SIZE, BASE_DELAY, RATE, None)
    assert found.value is not None
    assert abs(found.value - share * C) <= expanded(found.components) < 0.05 * C


def test_an_uncertain_capacity_makes_cross_traffic_uncertain() -> None:
    exact = estimators.cross(trains(OWN / 1.5, 40), SIZE, BASE_DELAY, RATE, None)
    vague = estimators.cross(
        trains(OWN / 1.5, 40), SIZE, BASE_DELAY, PathEstimate(C, {"finite sample": 0.01 * C}), None
    )
    assert expanded(vague.components) > 0.02 * C > expanded(exact.components)
    lossy = [Train(80, train.packets) for train in trains(OWN / 1.5, 40)]
    assert "may be more" in estimators.cross(lossy, SIZE, BASE_DELAY, RATE, None).note


def test_trains_whose_sender_paused_are_left_out() -> None:
    good = trains(OWN / 1.5, 40)
    paused = [n * OWN / 1.5 + (10 * OWN if n >= 20 else 0) + k * 100 * NS_PER_MS for k in range(20) for n in range(40)]
    broken = [Train(40, served(paused[40 * k : 40 * k + 40])) for k in range(20)]
    found = estimators.cross([*good, *broken], SIZE, BASE_DELAY, RATE, None)
    assert found.value is not None and found.value <= expanded(found.components)
    assert found.note == "40 trains"
    assert estimators.cross(broken, SIZE, BASE_DELAY, RATE, None).value is None


def test_trains_lie_in_no_step_and_end_before_the_next() -> None:
    ends = PathEnd("a", "/run/netns/a", "10.0.0.1"), PathEnd("b", "/run/netns/b", "10.0.0.2")
    probe = plan.stretched("forward", ends, 1500, 2e6, 30_000, ())
    streams = codec.data_of(probe.streams)
    for one, two in itertools.pairwise(streams):
        assert one["start_ns"] + one["packets"] * one["interval_ns"] < two["start_ns"]
    assert streams[0]["packets"] == 20  # of its buffer, which no train may fill
    phases = {stream["start_ns"] % 6_000_000 for stream in streams}
    assert len(phases) == len(streams)


def test_others_send_from_the_beginning_to_the_end() -> None:
    ends = PathEnd("a", "/run/netns/a", "10.0.0.1"), PathEnd("b", "/run/netns/b", "10.0.0.2")
    load = plan.Load(*ends, rate_bps=12_000_000, packet_bytes=1500, words="a b 12Mbit/s")
    probe = plan.overload("forward", ends, 1500, 12e6, 1e9, (load,))
    own, others = codec.data_of(probe.streams)
    assert others["interval_ns"] == 1_000_000
    assert others["packets"] * others["interval_ns"] >= own["packets"] * own["interval_ns"]


ENDS = PathEnd("a", "/run/netns/a", "10.0.0.1"), PathEnd("b", "/run/netns/b", "10.0.0.2")


@dataclasses.dataclass
class Simulated:
    """A path of one queue each way, as probes see it: it answers requests as `ewan-node probe` does."""

    limit: int = 60
    own_ns: float = OWN
    slowest_ns: float = 0.0
    """From one packet that is sent to the next, at least, of loads."""
    loads: int = 0
    largest: int = 1500
    dead: bool = False
    answers_within_ns: float = math.inf
    """Answers that take longer, of sizes that are sent fast, come after the probe's end."""
    lose: Callable[[int], bool] = lambda number: False
    """Returns whether the packet of this number in a train is lost."""

    def send(self, probes: Sequence[OfStreams]) -> Sequence[ProbeResult]:
        return told({"results": [self.result(probe) for probe in codec.data_of(probes)]}).results

    def result(self, probe: dict[str, Any]) -> dict[str, Any]:
        self.loads += probe["kind"] == "saturate"
        echo = probe["kind"] == "rtt"
        streams = [self.stream(each, echo) for each in probe["streams"]]
        return {"kind": probe["kind"], "name": probe["name"], "streams": streams}

    def stream(self, asked: dict[str, Any], echo: bool) -> dict[str, Any]:
        """The answer of one stream as if it were the only one: trains of one probe do not meet."""
        own = self.own_ns * asked["packet_bytes"] / SIZE
        free, arrivals = 0.0, list[tuple[float, float]]()
        for number in range(asked["packets"]):
            interval = max(asked["interval_ns"], self.slowest_ns if asked["packets"] > 1000 else 0.0)
            at = asked.get("start_ns", 0) + number * interval
            if self.dead or math.ceil((free - at) / own) > self.limit or asked["packet_bytes"] > self.largest:
                continue
            if not echo and self.lose(number):
                continue
            free = max(free, at) + own
            if echo and asked["interval_ns"] == plan.SIZES_GAP_NS and free - at > self.answers_within_ns:
                continue
            delay = free - at + (2 * BASE + own if echo else BASE)
            arrivals.append((at + delay, delay))
        lost = asked["packets"] - len(arrivals)
        return {
            "name": asked["name"],
            "sent_packets": asked["packets"],
            "received_packets": len(arrivals),
            "lost_packets": lost,
            "socket_drops_packets": 0,
            "delays_ns": [delay for _, delay in arrivals],
            "spacings_ns": [two - one for (one, _), (two, _) in itertools.pairwise(arrivals)],
        }


def asked(instrument: Instrument | None = None) -> measure.MeasurementRequest:
    return measure.MeasurementRequest(*ENDS, "", "live" if instrument else "virtual", "", instrument)


@pytest.mark.parametrize("instrument", [None, Instrument()])
def test_a_simulated_path_is_found_by_all_steps(instrument: Instrument | None) -> None:
    simulated = Simulated()
    found = measure.characterise(asked(instrument), simulated.send)
    assert simulated.loads == 2  # one of each way fills so short a buffer
    assert found.mtu_bytes == SIZE
    truths: list[tuple[Estimate, float]] = [(found.base_rtt, 2 * BASE + 2 * OWN * 100 / SIZE)]
    for way in found.ways().values():
        truths += [(way.capacity, C), (way.buffer, 60.0 * SIZE), (way.buffer_time, 60 * OWN), (way.loss, 0.0)]
        truths += [(way.cross, 0.0)]
        assert way.doubts == ()
    for estimate, truth in truths:
        assert estimate.value is not None
        assert abs(estimate.value - truth) <= estimate.expanded + 1e-6 * truth, estimate
    assert bool(found.instrument) == bool(instrument)
    assert from_json(to_json(found)) == found


def test_a_large_buffer_takes_longer_loads_and_one_that_never_fills_has_no_value() -> None:
    large = Simulated(limit=500, own_ns=10 * OWN)
    found = measure.characterise(asked(), large.send)
    assert large.loads == 6  # 0.3 s, 1.2 s and 4.8 s each way
    assert found.forward.buffer.value == pytest.approx(500 * SIZE, abs=1.2 * SIZE)
    endless = Simulated(limit=1_000_000, own_ns=10 * OWN)
    found = measure.characterise(asked(), endless.send)
    assert found.forward.buffer.value is None
    assert found.forward.buffer.note == "not filled by 2 × the capacity for 12 s"
    assert endless.loads == 8
    slow = Simulated(slowest_ns=OWN)  # of a host
    note = measure.characterise(asked(), slow.send).forward.buffer.note
    assert note == "not filled: of a load of 2 × the capacity 0.0% were lost"


def test_a_path_that_answers_nothing_is_refused() -> None:
    with pytest.raises(UserError, match="no packet of any size from a was answered by b"):
        measure.characterise(asked(), Simulated(dead=True).send)
    failed = [FailedResult("path MTU", 1, "no such namespace")]
    with pytest.raises(UserError, match="probe path MTU: no such namespace"):
        measure.characterise(asked(), lambda probes: failed * len(probes))
    assert measure.characterise(asked(), Simulated(largest=1400).send).mtu_bytes == 1400


def test_a_path_of_seconds_a_packet_is_found_too() -> None:
    """At 9600 bit/s, no packet that is sent fast comes back before the probe ends."""
    slow = Simulated(own_ns=1.25e9, answers_within_ns=1e8)
    found = measure.characterise(asked(), slow.send)
    assert found.forward.capacity.value == pytest.approx(9_600, rel=1e-3)
    truth = 2 * BASE + 2 * 1.25e9 * 100 / SIZE
    assert found.base_rtt.value == pytest.approx(truth, abs=1), "round trips are so far apart that they never wait"


def test_what_loses_half_of_the_packets_is_no_path_that_loses_all() -> None:
    few = Simulated(lose=lambda number: number % 4 == 1)
    assert measure.characterise(asked(), few.send).forward.capacity.value == pytest.approx(C, rel=0.01)
    with pytest.raises(
        UserError, match="nothing is known about the path's forward way: 0 of 16 trains arrived: too few"
    ):
        measure.characterise(asked(), Simulated(lose=lambda number: number % 4 > 1).send)


def test_where_a_third_is_lost_trains_tell_nothing_of_others() -> None:
    found = measure.characterise(asked(), Simulated(lose=lambda number: number % 3 == 2).send)
    assert found.forward.cross.value is None and "33% are lost" in found.forward.cross.note
    assert found.forward.loss.value == pytest.approx(1e9 / 3, rel=0.01)
    assert found.forward.buffer.value == pytest.approx(60 * SIZE, abs=found.forward.buffer.expanded)
    half = measure.characterise(asked(), Simulated(lose=lambda number: number > 3 and number % 2 == 1).send)
    assert half.forward.buffer.value is None and "not filled" in half.forward.buffer.note


def document() -> Characterisation:
    return from_json((Path(__file__).resolve().parent / "fixtures/characterisation.json").read_bytes())


def test_a_document_is_read_back() -> None:
    found = document()
    assert from_json(to_json(found)) == found
    assert found.forward.capacity.value == pytest.approx(97_529_258, rel=1e-6)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": "ewan-certificate/2"}, "format is 'ewan-certificate/2'"),
        ({"mtu_bytes": "big"}, "mtu_bytes"),
        ({"more": 1}, "more"),
        ({"base_rtt": {"value": -1, "unit": "ns", "uncertainty": None}}, "base_rtt.value"),
        ({"base_rtt": {"value": 1, "unit": "s", "uncertainty": None}}, "base_rtt.unit"),
    ],
)
def test_another_document_is_refused_in_one_line(change: dict[str, Any], says: str) -> None:
    raw = orjson.loads(to_json(document())) | change
    with pytest.raises(ValueError, match=says) as error:
        from_json(orjson.dumps(raw))
    assert "\n" not in str(error.value)


def called(*words: str, folder: Path) -> tuple[int, str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = CliRunner().invoke(main, ["measure", "path", *words])
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["dumbbell", "--runtime", "virtual", "--path", "left1", "right7"], 'no such host, write "right1"'),
        (["dumbbell", "--runtime", "virtual", "--path", "left1", "left1"], "write two different ends"),
        (["dumbbell", "--runtime", "virtual", "--path", "left1", "r1"], "no such host"),
        (["--runtime", "virtual", "--path", "left1", "right1"], "write its TOPOLOGY"),
        (["dumbell", "--runtime", "virtual", "--path", "left1", "right1"], "unknown topology"),
        (
            ["dumbbell", "--runtime", "virtual", "--path", "left1", "right1", "--cross", "left1", "right1", "20"],
            'write a rate as "20Mbit/s"',
        ),
        (["--runtime", "netns", "--path", "left1", "right1", "--rtt", "4ms"], "write --runtime virtual too"),
        (["--runtime", "netns", "--path", "a", "b", "--cross", "a", "b", "1M"], "--cross is for the virtual clock"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_line(words: list[str], says: str, tmp_path: Path) -> None:
    status, output = called(*words, folder=tmp_path)
    assert status == 2
    assert says in output
    assert output.count("\n") == 1
    assert not list(tmp_path.rglob("*.json"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--path", "left1", "right1"], "write a node of a lab that is up, or NETNS@ADDRESS"),
        (["nolab", "--path", "left1", "right1"], "no lab named nolab is up"),
        (["--path", "ewan-no-such@10.0.0.1", "b@10.0.0.2"], "there is no network namespace ewan-no-such"),
        (["--path", "@10.0.0.1", "@x"], "'x' is no IP address"),
    ],
)
def test_paths_that_are_not_there_are_refused(
    words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setenv("EWAN_STATE", str(tmp_path / "state"))
    status, output = called(*words, "--runtime", "netns", folder=tmp_path)
    assert status == 2
    assert says in output
    assert output.count("\n") == 1


def within(estimate: Estimate, most: float) -> None:
    """The truth is inside U, and U is worth something."""
    assert estimate.value is not None and estimate.truth is not None
    assert abs(estimate.value - estimate.truth) <= estimate.expanded <= most


@pytest.mark.virtual
@pytest.mark.parametrize("cross", ["", "20Mbit/s"])
def test_a_path_of_known_truth_is_found(cross: str, tmp_path: Path) -> None:
    lab = ["--rtt", "40ms", "--rate", "100M", "--buffer", "0.5BDP", "--loss", "0.1%", "--pairs", "2"]
    load = ["--cross", "left2", "right2", cross] if cross else []
    more = ["--path", "left1", "right1", "--runtime", "virtual", "-o", "path.json"]
    status, output = called("dumbbell", *lab, *load, *more, folder=tmp_path)
    assert status == 0, output
    found = from_json((tmp_path / "path.json").read_bytes())
    assert found.mtu_bytes == 1500
    within(found.base_rtt, 0.01 * 40 * NS_PER_MS)
    for way in found.ways().values():
        within(way.capacity, 1e5)
        within(way.buffer, 3000)
        within(way.buffer_time, 0.3 * NS_PER_MS)
        within(way.loss, 800_000)
        within(way.cross, 1e6)
    assert found.forward.capacity.truth == pytest.approx(100e6 * 1500 / 1538)
    assert found.forward.cross.truth == (20e6 if cross else 0)
    assert found.backward.cross.truth == 0
    assert not found.forward.doubts and not found.backward.doubts
    assert found.load == ((f"left2 right2 {cross}",) if cross else ())


@pytest.mark.virtual
def test_the_capacity_behind_a_bucket_is_its_rate(tmp_path: Path) -> None:
    description = "topology: dumbbell\nip: 4\nrtt: 20ms\nwan: {rate: 50Mbit/s, buffer: 100pkt, burst: 30kB}\n"
    (tmp_path / "bucket.lab.yaml").write_text(description)
    words = ["bucket.lab.yaml", "--path", "left1", "right1", "--runtime", "virtual", "-o", "path.json"]
    status, output = called(*words, folder=tmp_path)
    assert status == 0, output
    found = from_json((tmp_path / "path.json").read_bytes())
    for way in found.ways().values():
        within(way.capacity, 1e5)
        within(way.buffer, 3000)
        within(way.cross, 1e6)
        assert "bursts of about 3" in way.doubts[0]
