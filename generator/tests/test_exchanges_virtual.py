"""UDP, requests and messages where timing is exact: the virtual clock without dither. Their times follow from the
description of the link, to some microseconds of the hosts' access links; draws are repeatable."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from ewan.generator import traffic_request
from ewan.labs import host
from ewan.labs.base.codec import replace
from ewan.labs.compile import compile
from ewan.labs.plan import Plan
from ewan.labs.record.traffic import (
    BulkWork,
    ConstantLaw,
    Endpoint,
    ExponentialLaw,
    FlowRequest,
    GammaLaw,
    MessagesWork,
    NormalLaw,
    ParetoLaw,
    RequestsWork,
    SocketOptions,
    UdpWork,
    UniformLaw,
    WeibullLaw,
    Work,
    Writes,
)
from ewan.labs.runtime.program import Program
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime
from ewan.labs.spec import from_template

pytestmark = pytest.mark.virtual

MS = 10**6
ONE_WAY_NS = 10 * MS
# Of 10 Mbit/s. Ethernet on the wire: 38 bytes a frame besides the IP packet.
BYTE_NS = 800
ACCESS_NS = 100_000


@pytest.fixture(scope="module")
def plan() -> Plan:
    words = {"rate": "10Mbit/s", "rtt": "20ms", "buffer": "20pkt", "pairs": "2", "dither": "0"}
    return compile(from_template("dumbbell", {"name": f"vx{os.getpid()}", **words}), host.virtual_facts())


def end(plan: Plan, node: str) -> Endpoint:
    return traffic_request.end(plan.lab, node, traffic_request.addresses_of(plan)[node])


def flow(plan: Plan, work: Work, start_ns: int = 0, stop_ns: int | None = None) -> FlowRequest:
    source, sink = (None, None) if isinstance(work, MessagesWork) else (end(plan, "left1"), end(plan, "right1"))
    return FlowRequest(
        name=work.kind,
        from_=source,
        to=sink,
        socket=SocketOptions("reno"),
        work=work,
        start_ns=start_ns,
        stop_ns=stop_ns,
    )


def ran(plan: Plan, flows: list[FlowRequest], directory: Path) -> Path:
    """The directory of the traffic's results."""
    traffic = traffic_request.request(plan, flows, "virtual", 60_000 * MS, sample_ns=100 * MS, series_ns=100 * MS)
    program = Program(longest_ns=60_000 * MS, traffic=traffic)
    return VirtualRuntime(BINARY).run(plan, program, directory).directory / "traffic"


def records(traffic: Path) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = orjson.loads((traffic / "traffic.json").read_bytes())["flows"]
    assert all(record["error"] is None for record in result), result
    return result


def test_packets_leave_at_their_instants_and_all_wait_equally_long(plan: Plan, tmp_path: Path) -> None:
    cbr = UdpWork(1000, ConstantLaw(1000), ConstantLaw(2 * MS))
    traffic = ran(plan, [flow(plan, cbr)], tmp_path / "cbr")
    (record,) = records(traffic)
    assert (record["sent_packets"], record["lost_packets"], record["started_ns"]) == (1000, 0, 0)
    # 28 bytes of UDP and IP.
    expected = ONE_WAY_NS + (1000 + 28 + 38) * BYTE_NS
    assert expected <= record["delay_min_ns"] <= expected + ACCESS_NS
    assert record["delay_max_ns"] - record["delay_min_ns"] <= 1000, "exact but for rounding"
    assert record["jitter_ns"] < 1000
    assert abs(record["completion_ns"] - 999 * 2 * MS - record["delay_min_ns"]) <= 1000
    bins = pl.read_csv(traffic / "goodput.csv")["delivered_bytes"].to_list()
    assert sum(bins) == 1_000_000
    assert set(bins[1:-1]) == {50_000}, "fifty packets in each 100 ms"


def test_a_full_link_carries_its_rate_and_the_queue_its_limit(plan: Plan, tmp_path: Path) -> None:
    fast = UdpWork(None, ConstantLaw(1472), ConstantLaw(MS))
    (record,) = records(ran(plan, [flow(plan, fast, stop_ns=5_000 * MS)], tmp_path / "fast"))
    frame_ns = 1538 * BYTE_NS
    assert record["sent_packets"] == 5000
    assert record["received_packets"] + record["lost_packets"] == 5000
    # The link was busy from the first packet's arrival there to the last one's departure.
    busy_ns = record["ended_ns"] - ONE_WAY_NS
    assert record["received_packets"] == pytest.approx(busy_ns / frame_ns, abs=2)
    # Behind twenty others.
    assert record["delay_max_ns"] == pytest.approx(ONE_WAY_NS + 21 * frame_ns, abs=frame_ns + ACCESS_NS)


def test_a_response_comes_after_one_round_trip_and_over_a_new_connection_after_two(plan: Plan, tmp_path: Path) -> None:
    asks = RequestsWork(20, ConstantLaw(100), ConstantLaw(100), ConstantLaw(10 * MS))
    flows = [flow(plan, asks), flow(plan, replace(asks, new_connection=True), start_ns=5_000 * MS)]
    traffic = ran(plan, flows, tmp_path / "requests")
    session, fresh = records(traffic)
    assert session["started_ns"] == 0
    assert fresh["started_ns"] == 5_000 * MS
    rows = pl.read_csv(traffic / "exchanges.csv")
    assert rows.height == 40
    # Frames of 100 bytes and 52 of headers, both ways; the handshake's are of 60 and 52.
    data, handshake = 2 * (152 + 38) * BYTE_NS, (60 + 60 + 2 * 38) * BYTE_NS
    for number, least in ((0, 2 * ONE_WAY_NS + data), (1, 4 * ONE_WAY_NS + data + handshake)):
        took = rows.filter(pl.col("flow") == number)["duration_ns"].to_list()
        assert all(least - 5000 <= each <= least + 4 * ACCESS_NS for each in took), (least, took)
        starts = rows.filter(pl.col("flow") == number)["start_ns"].to_list()
        assert all(
            after - before - duration == 10 * MS
            for before, after, duration in zip(starts, starts[1:], took, strict=False)
        ), "a think time is exact"


def test_a_ping_pong_takes_its_computing_and_a_round_trip(plan: Plan, tmp_path: Path) -> None:
    ranks = tuple(end(plan, node) for node in ("left1", "right1", "left2", "right2"))
    flows = [
        flow(plan, MessagesWork("ping-pong", 10, ConstantLaw(100), ConstantLaw(5 * MS), ranks)),
        flow(plan, MessagesWork("barrier", 10, ConstantLaw(1), ConstantLaw(5 * MS), ranks), start_ns=5_000 * MS),
    ]
    traffic = ran(plan, flows, tmp_path / "messages")
    assert [record["part"] for record in records(traffic)] == [0, 1, 2, 3] * 2
    rows = pl.read_csv(traffic / "exchanges.csv")
    first = rows.filter((pl.col("flow") == 0) & pl.col("part").is_in([0, 2]) & (pl.col("number") > 0))
    least = 5 * MS + 2 * ONE_WAY_NS + 2 * (152 + 38) * BYTE_NS
    # Two pairs share the link: one message may wait for another, with its acknowledgement.
    waits = 2 * (152 + 52 + 2 * 38) * BYTE_NS
    took = first["duration_ns"].to_list()
    # Its partner computes while the message is on its way.
    assert all(least - 5000 <= each <= least + waits + 4 * ACCESS_NS for each in took), (least, took)
    barrier = rows.filter(pl.col("flow") == 1)
    for _, iteration in barrier.group_by("number"):
        last = max(iteration["start_ns"]) + 5 * MS
        ends = iteration["start_ns"] + iteration["duration_ns"]
        assert all(ended >= last for ended in ends), "each waits for the last"
    assert barrier.filter(pl.col("number") > 1)["duration_ns"].is_between(10 * MS, 20 * MS).all()


def test_what_is_drawn_is_drawn_again(plan: Plan, tmp_path: Path) -> None:
    udp = UdpWork(
        count=None,
        size_bytes=ExponentialLaw(400, most=1472),
        interval_ns=GammaLaw(2 * MS, shape=0.5),
        on_ns=ParetoLaw(200 * MS, shape=1.5),
        off_ns=WeibullLaw(100 * MS, shape=0.7),
    )
    asks = RequestsWork(
        count=None,
        request_bytes=UniformLaw(100, 300),
        response_bytes=ParetoLaw(20_000, shape=1.3, most=1e6),
        think_ns=NormalLaw(50 * MS, deviation=20 * MS),
    )
    works: tuple[Work, ...] = (udp, asks)
    flows = [flow(plan, work, stop_ns=5_000 * MS) for work in works]
    both = [ran(plan, flows, tmp_path / run) for run in ("one", "two")]
    for name in ("traffic.json", "goodput.csv", "exchanges.csv", "series.csv"):
        one, two = ((traffic / name).read_bytes() for traffic in both)
        assert one == two, name
    packets, session = records(both[0])
    assert packets["sent_packets"] > 500
    assert packets["jitter_ns"] > 1000
    assert session["received_bytes"] > 50_000


def test_an_application_limits_its_flow(plan: Plan, tmp_path: Path) -> None:
    second = 10**9
    paced = Writes(ConstantLaw(1448), ConstantLaw(10 * MS))  # 1.1584 Mbit/s
    chunks = Writes(ConstantLaw(100_000), ConstantLaw(2 * second))
    periods = Writes(ConstantLaw(14_480), ConstantLaw(100 * MS), ConstantLaw(second), ConstantLaw(second))
    flows = [
        flow(plan, BulkWork(writes=paced), stop_ns=4 * second),
        flow(plan, BulkWork(250_000, writes=chunks)),
        flow(plan, BulkWork(writes=periods), stop_ns=4 * second),
    ]
    request = traffic_request.request(plan, flows, "virtual", longest_ns=10 * second, series_ns=500 * MS)
    place = tmp_path / "limited"
    VirtualRuntime(BINARY).run(plan, Program(traffic=request, longest_ns=10 * second), place)
    records = {
        record["flow"]: record for record in orjson.loads((place / "traffic/traffic.json").read_bytes())["flows"]
    }
    goodput = pl.read_csv(place / "traffic/goodput.csv")
    bins = {
        number: dict(each.select("time_ns", "delivered_bytes").iter_rows())
        for (number,), each in goodput.group_by("flow")
    }
    # Bins of half a second; in the first one the connection is made.
    assert list(bins[0].values())[1:] == [50 * 1448] * 7
    assert list(bins[1].values()) == [100_000, 0, 0, 0, 100_000, 0, 0, 0, 50_000]
    assert 2 * 2 * second < records[1]["completion_ns"] < 2 * 2 * second + 500 * MS
    assert list(bins[2].values()) == [5 * 14_480, 5 * 14_480, 0, 0] * 2
