"""Estimators against hand cases, and paths of the virtual clock whose truth is known."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from calibration.advice import estimators, plan
from calibration.advice.estimators import Found, Packet, Train
from calibration.path import PathEnd
from calibration.uncertainty import Instrument, expanded
from ewan import main
from labs.record.characterisation import Characterisation, Estimate, from_json, to_json
from labs.units import NS_PER_MS

C, SIZE, OWN = 100e6, 1500, 120_000.0
"""A path of 100 Mbit/s on which packets of 1500 B take 120 µs."""
BASE = 20.0 * NS_PER_MS


def served(sent: list[float], others: list[float] = [], limit: int | None = None) -> tuple[Packet, ...]:  # noqa: B006
    """What arrives of packets sent at these times through one queue; `others` share it, `limit` packets may wait."""
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
    return [Train(packets, served([start + n * interval for n in range(packets)], others)) for start in starts]


RATE = Found(C, {})
BASE_DELAY = Found(BASE, {})


def test_packets_are_put_together_from_delays_and_spacings() -> None:
    found = estimators.packets_of({"delays_ns": [100, 150, 90], "spacings_ns": [30, 5]})
    assert [(packet.sent_ns, packet.arrived_ns) for packet in found] == [(-100, 0), (-120, 30), (-55, 35)]
    assert estimators.packets_of({"delays_ns": None, "spacings_ns": None}) == ()


def test_the_least_delay_is_no_less_than_its_interval_says() -> None:
    found = estimators.least([110.0, 100.0, 102.0, 500.0, 300.0], 2, None)
    assert found.value == 100
    # The interval's end is 19 × 2 away, but no further than the median is: 10.
    assert found.components["finite sample"] == pytest.approx(10 / 3**0.5)
    assert estimators.least([110.0], 2, None).value is None
    live = estimators.least([1e6, 1e6, 2e6], 2, Instrument(stack_ns=3e4))
    assert live.components["stack path"] == pytest.approx(2 * 3e4 / 3**0.5)


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
    assert estimators.buffer(packets, BASE_DELAY, Found(None, {}, "why"), SIZE, None).size.note == "why"


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
    found = estimators.loss(10, 10_000)
    assert found.value == 1_000_000
    # Wilson 1927 with z = 2 of 10 in 10 000: 0.0537 % to 0.1862 %.
    assert expanded(found.components) == pytest.approx(862_278, rel=1e-4)
    assert estimators.loss(0, 0).value is None


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.8])
def test_cross_traffic_is_what_the_queue_served_beside_the_train(share: float) -> None:
    others = [] if not share else [n * OWN / share + 7 for n in range(int(2100 * NS_PER_MS * share / OWN))]
    found = estimators.cross(trains(OWN / plan.CROSS_ABOVE, 40, others), SIZE, RATE, None)
    assert found.value is not None
    assert abs(found.value - share * C) <= expanded(found.components) < 0.05 * C


def test_an_uncertain_capacity_makes_cross_traffic_uncertain() -> None:
    exact = estimators.cross(trains(OWN / 1.5, 40), SIZE, RATE, None)
    vague = estimators.cross(trains(OWN / 1.5, 40), SIZE, Found(C, {"finite sample": 0.01 * C}), None)
    assert expanded(vague.components) > 0.02 * C > expanded(exact.components)
    lossy = [Train(80, train.packets) for train in trains(OWN / 1.5, 40)]
    assert "may be more" in estimators.cross(lossy, SIZE, RATE, None).note


def test_trains_lie_in_no_step_and_end_before_the_next() -> None:
    ends = PathEnd("a", "/run/netns/a", "10.0.0.1"), PathEnd("b", "/run/netns/b", "10.0.0.2")
    probe = plan.stretched("forward", ends, 1500, 2e6, 30_000, ())
    streams = probe["streams"]
    for one, two in itertools.pairwise(streams):
        assert one["start_ns"] + one["packets"] * one["interval_ns"] < two["start_ns"]
    assert streams[0]["packets"] == 20  # of its buffer, which no train may fill
    phases = {stream["start_ns"] % 6_000_000 for stream in streams}
    assert len(phases) == len(streams)


def test_others_send_from_the_beginning_to_the_end() -> None:
    ends = PathEnd("a", "/run/netns/a", "10.0.0.1"), PathEnd("b", "/run/netns/b", "10.0.0.2")
    load = plan.Load(*ends, rate_bps=12_000_000, packet_bytes=1500, words="a b 12Mbit/s")
    probe = plan.overload("forward", ends, 1500, 12e6, 1e9, (load,))
    own, others = probe["streams"]
    assert others["interval_ns"] == 1_000_000
    assert others["packets"] * others["interval_ns"] >= own["packets"] * own["interval_ns"]


def document() -> Characterisation:
    return from_json((Path(__file__).parent / "fixtures/characterisation.json").read_bytes())


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
        result = CliRunner().invoke(main, ["characterise", *words])
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
