"""The virtual clock is exact: packets leave a bottleneck one serialisation time apart, and are delayed by what the
description says, to the nanosecond, at every rate, through the kernel's links and through our own."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

import pytest

from ewan.calibration.expect import expectations
from ewan.calibration.expectation import ProbeEnds
from ewan.generator.traffic_request import end
from ewan.labs import host
from ewan.labs.base import codec
from ewan.labs.compile import compile
from ewan.labs.plan import Plan
from ewan.labs.runtime.probe_documents import ProbeRequest
from ewan.labs.runtime.program import Program
from ewan.labs.runtime.sweep import sweep
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime
from ewan.labs.spec import from_template

pytestmark = pytest.mark.virtual

DELAY_NS = 50_000_000
FRAMED_BYTES, LONE_BYTES = 1538, 138
RATES = {
    "8kbit/s": 8_000,
    "1Mbit/s": 1_000_000,
    "100Mbit/s": 100_000_000,
    "1Gbit/s": 1_000_000_000,
    "10Gbit/s": 10_000_000_000,
    "100Gbit/s": 100_000_000_000,
    "1Tbit/s": 10**12,
}
PACKETS = 60
MS = 1_000_000

Case = tuple[str, str]
"""A back end and a rate."""
CASES: list[Case] = [(backend, rate) for backend in ("kernel", "user") for rate in RATES]
TBF: Case = ("tbf", "1Gbit/s")
DITHERED: Case = ("kernel dithered", "100Mbit/s")

Answer = dict[str, dict[str, Any]]
"""The streams by name."""


def service_ns(framed_bytes: int, rate: str) -> Fraction:
    return Fraction(framed_bytes * 8 * 10**9, RATES[rate])


def lab(case: Case) -> Plan:
    backend, _, dithered = case[0].partition(" ")
    words = {"name": f"ve{os.getpid()}", "rtt": "100ms", "rate": case[1], "buffer": "100pkt", "emulator": backend}
    dither = {} if dithered else {"dither": "0"}
    return compile(from_template("dumbbell", {**words, **dither}), host.virtual_facts())


def stream(plan: Plan, ends: ProbeEnds, packet_bytes: int, interval_ns: int) -> dict[str, Any]:
    return {
        "name": f"{packet_bytes}",
        "from": end(plan.lab, ends.source, ends.source_address).data,
        "to": end(plan.lab, ends.sink, ends.sink_address).data,
        "packet_bytes": packet_bytes,
        "interval_ns": interval_ns,
        "packets": PACKETS,
        "raw": True,
    }


def request(plan: Plan, rate: str) -> dict[str, Any]:
    """Lone packets, then four times what the link carries; both between its own ends. Round trips between hosts."""
    expected = expectations(plan)
    ends, pair = expected.links[0].ends, expected.pairs[0].ends
    alone = stream(plan, ends, 100, max(MS, ceil(4 * service_ns(LONE_BYTES, rate))))
    packed = stream(plan, ends, 1500, int(service_ns(FRAMED_BYTES, rate) / 4))
    there_and_back = stream(plan, pair, 100, 300 * MS + ceil(4 * service_ns(LONE_BYTES, rate)))
    drain_ns = 100 * MS + ceil(PACKETS * service_ns(FRAMED_BYTES, rate))
    probes = [
        {"kind": "delay", "name": "alone", "drain_ns": drain_ns, "streams": [alone]},
        {"kind": "saturate", "name": "packed", "drain_ns": drain_ns, "streams": [packed]},
        {"kind": "rtt", "name": "round trip", "drain_ns": drain_ns, "streams": [there_and_back]},
    ]
    return {"clock": "virtual", "cpus": [0], "probes": probes}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[Case, Answer]:
    place = tmp_path_factory.mktemp("exact")

    def job(case: Case) -> Callable[[threading.Event], Answer]:
        def run(stop: threading.Event) -> Answer:
            directory: Path = place / "-".join(case).replace("/", "").replace(" ", "-")
            directory.mkdir()
            plan = lab(case)
            result = VirtualRuntime(BINARY).run(
                plan, Program(codec.from_data(ProbeRequest, request(plan, case[1]), "probe")), directory, stop
            )
            document = result.document("probe.json")
            assert document is not None
            return {result["name"]: result["streams"][0] for result in document["results"]}

        return run

    cases = [*CASES, TBF, DITHERED]
    return dict(zip(cases, sweep([job(case) for case in cases]), strict=True))


def departures_ns(answer: Answer, rate: str) -> list[int]:
    """When each of the packed packets came out of the link, since the first was sent; without the delay."""
    packed = answer["packed"]
    assert packed["received_packets"] == PACKETS == packed["sent_packets"]
    interval = int(service_ns(FRAMED_BYTES, rate) / 4)
    return [k * interval + delay - DELAY_NS for k, delay in enumerate(packed["delays_ns"])]


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_a_lone_packet_takes_the_delay_and_its_serialisation(answers: dict[Case, Answer], case: Case) -> None:
    exact = DELAY_NS + ceil(service_ns(LONE_BYTES, case[1]))
    assert set(answers[case]["alone"]["delays_ns"]) == {exact}


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_packets_leave_one_serialisation_time_apart(answers: dict[Case, Answer], case: Case) -> None:
    own = service_ns(FRAMED_BYTES, case[1])
    # Rounded up to whole ns each, and the fraction carried: no packet is 1 ns off, however many went before.
    assert departures_ns(answers[case], case[1]) == [ceil((k + 1) * own) for k in range(PACKETS)]


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_a_round_trip_is_two_ways_and_nothing_else(answers: dict[Case, Answer], case: Case) -> None:
    round_trips = set(answers[case]["round trip"]["delays_ns"])
    assert len(round_trips) == 1, "every one takes as long as every other"
    (found,) = round_trips
    ways = expectations(lab(case)).pairs[0].round_trip_ns(100)
    assert 0 <= found - ways < 4, "each of four serialisations is rounded up"


def test_a_dither_moves_packets_of_hosts_and_stays_below_a_packet_time(answers: dict[Case, Answer]) -> None:
    expected = expectations(lab(DITHERED)).pairs[0]
    base, most = expected.round_trip_ns(100), expected.dither_ns
    assert most == 2 * service_ns(FRAMED_BYTES, "100Mbit/s")
    added = [delay - base for delay in answers[DITHERED]["round trip"]["delays_ns"]]
    assert all(0 <= ns < most for ns in added) and len(set(added)) > PACKETS / 2
    # Of the sum of two uniforms: a mean of half, and both halves are there.
    assert 0.3 * most < sum(added) / PACKETS < 0.7 * most
    # Routers have none: the link itself stays exact.
    assert set(answers[DITHERED]["alone"]["delays_ns"]) == {DELAY_NS + ceil(service_ns(LONE_BYTES, "100Mbit/s"))}


def test_a_token_bucket_beside_it_lets_bursts_pass(answers: dict[Case, Answer]) -> None:
    own = service_ns(FRAMED_BYTES, "1Gbit/s")
    bucket, link = departures_ns(answers[TBF], "1Gbit/s"), departures_ns(answers["kernel", "1Gbit/s"], "1Gbit/s")
    gaps = [after - before for before, after in pairwise(bucket)]
    assert min(gaps) <= own / 4 < own - 1 < min(after - before for before, after in pairwise(link))
