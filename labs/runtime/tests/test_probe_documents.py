"""The requests and answers of probes: the same golden files as in emulator/traffic/src/probe/results_tests.rs."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from ewan.labs.base import codec, documents
from ewan.labs.record.traffic import Endpoint
from ewan.labs.runtime.probe_documents import (
    DelayProbe,
    LossProbe,
    ProbeAnswer,
    ProbeRequest,
    ProbeResult,
    ProbeStream,
    RttProbe,
    SaturateProbe,
    TcpProbe,
)

GOLDEN = Path(__file__).resolve().parents[3] / "tests/golden"
A, B = Endpoint("/run/netns/a", "192.0.2.1"), Endpoint("/run/netns/b", "192.0.2.2")
SECOND, MS = 10**9, 10**6


def request() -> ProbeRequest:
    """With everything that may be asked for."""
    plain = ProbeStream("s", A, B, 100, MS, 40)
    raw = codec.replace(plain, raw=True, start_ns=MS)
    filling = codec.replace(plain, skip_ns=MS, batch_packets=4, raw=False)
    shared = codec.replace(filling, name="t", shares_with="s")
    return ProbeRequest(
        (0, 1),
        (
            DelayProbe("delay", (raw,), MS),
            DelayProbe("deaf", (plain,), MS),
            LossProbe("loss", (plain,), MS),
            RttProbe("rtt", (raw,), MS),
            SaturateProbe("rate", (filling, shared), MS, series_ns=10 * MS),
            TcpProbe("tcp", A, B, "reno", 4 * MS, 2 * MS, SECOND, sample_ns=MS),
        ),
        "virtual",
    )


def test_the_request_is_that_of_the_golden_file() -> None:
    assert codec.document(request(), fields_sorted=False) == (GOLDEN / "probe.request.json").read_bytes()
    assert documents.read(ProbeRequest, GOLDEN / "probe.request.json") == request()


def test_the_golden_answer_is_read_and_nothing_of_it_is_lost() -> None:
    answer = documents.read(ProbeAnswer, GOLDEN / "probe.answer.json")
    assert {type(each) for each in answer.results} == set(get_args(ProbeResult))
    data = documents.json_of((GOLDEN / "probe.answer.json").read_bytes(), "answer")
    assert codec.data_of(answer) == data
