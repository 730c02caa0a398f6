"""The request for traffic: its bytes are read back as the same, and ewan-node reads the same file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from ewan.labs.base import codec
from ewan.labs.record.traffic import (
    ArrivalsWork,
    BulkWork,
    ConstantLaw,
    Endpoint,
    ExponentialLaw,
    FlowRequest,
    GammaLaw,
    Half,
    MediaWork,
    MessagesWork,
    NormalLaw,
    ParetoLaw,
    RequestsWork,
    SocketOptions,
    TrafficRequest,
    UdpWork,
    UniformLaw,
    Work,
    Writes,
)

GOLDEN = Path(__file__).resolve().parents[2] / "tests/golden/traffic.json"
"""emulator/traffic/src/flows/request.rs reads it too."""
A, B = Endpoint("/run/netns/ewan-x-a", "10.0.0.1"), Endpoint("/run/netns/ewan-x-b", "10.0.0.2")
TCP = SocketOptions("reno", send_buffer_bytes=4_000_000, window_bytes=65536, mss_bytes=1448, ecn=True, class_=2)

CUBIC = SocketOptions("cubic")


def flow(name: str, work: Work, socket: SocketOptions = CUBIC, **more: Any) -> FlowRequest:
    return FlowRequest(name, work, socket, 5, 500, A, B, **more)


REQUEST = TrafficRequest(
    clock="virtual",
    cpus=(0, 1),
    seed=7,
    longest_ns=1_000,
    sample_ns=100_000,
    series_ns=200_000,
    told=(0,),
    elsewhere=(3,),
    flows=(
        flow("bulk", BulkWork(1000, bidirectional=True), TCP, step=0, after=()),
        flow(
            "half",
            BulkWork(writes=Writes(ConstantLaw(3), ConstantLaw(2000))),
            number=1,
            half=Half("sink", 61000, 9, -5),
            sample_ns=0,
            step=1,
            after=(0, 3),
        ),
        flow("files", ArrivalsWork(9, ExponentialLaw(1e6), ParetoLaw(1e5, 1.3, 1e9)), step=1),
        flow("asks", RequestsWork(None, UniformLaw(1, 3), ConstantLaw(2), NormalLaw(50, 20), True), step=1),
        flow("packets", UdpWork(3, ConstantLaw(100), GammaLaw(2e6, 0.5), transit_ns=9), SocketOptions(dscp=46)),
        flow("call", MediaWork("gcc", 300_000, 150_000, 2_500_000, 30, 1200, transit_ns=9), SocketOptions()),
        FlowRequest("ranks", MessagesWork("barrier", 2, ConstantLaw(1), ConstantLaw(0), (A, B)), SocketOptions("bic")),
    ),
)


def test_the_golden_request_is_written_and_read_back() -> None:
    text = codec.document(REQUEST)
    assert text == GOLDEN.read_bytes()
    assert codec.decode(TrafficRequest, text, "traffic") == REQUEST


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (("flows", 0, "more"), 1, r"traffic\.flows\[0\] has an unknown key 'more'"),
        (("flows", 0, "work", "kind"), "bulky", r"traffic\.flows\[0\]\.work\.kind is 'bulky'"),
        (("flows", 2, "work", "interval_ns", "law"), "zipf", r"interval_ns\.law is 'zipf'"),
        (("flows", 0, "socket", "class_"), 1, r"socket has an unknown key 'class_'"),
        (("format",), "ewan-traffic/2", r"format is 'ewan-traffic/2', this version reads 'ewan-traffic/1'"),
    ],
)
def test_a_wrong_request_is_refused_by_its_place(place: tuple[Any, ...], value: Any, says: str) -> None:
    data: Any = orjson.loads(GOLDEN.read_bytes())
    within = data
    for step in place[:-1]:
        within = within[step]
    within[place[-1]] = value
    with pytest.raises(ValueError, match=says):
        codec.from_data(TrafficRequest, data, "traffic")
