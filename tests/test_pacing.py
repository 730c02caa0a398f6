"""Sources are paced: a hundred flows of one host, another one at 8 kbit/s, what a host sends to one destination, and a
token bucket; in the virtual clock, where it can be told to the packet."""

from __future__ import annotations

import os
from typing import Any

import orjson
import pytest

from ewan.generator import scenario
from ewan.labs import host
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime

pytestmark = pytest.mark.virtual

TCP_S = 2
IP_BYTES = 500
FLOWS = 100
SLOWEST_BPS = 200_000
STEP_BPS = 10_000

BURST_BYTES = 30_000
TBF_BPS = 10_000_000
TBF_PACKETS = 100
WIRE_BYTES = IP_BYTES + 38
TCP_BPS = {"psp": 20_000_000, "tbf": 20_000_000, "fq": 20_000_000, "to": 5_000_000}
SHARE_OF_WIRE = 1448 / 1538
"""Payload of a full segment, of what it takes on the wire."""


def udp(name: str, host: int, at: str, pacing: str, packets: int, ip_bytes: int, interval: str) -> str:
    work = f"{{count: {packets}, size: {ip_bytes - 28}B, interval: {interval}}}"
    return f"  - {{name: {name}, from: left{host}, to: right{host}, at: {at}, pacing: {pacing}, udp: {work}}}\n"


def tcp(name: str, source: str, sink: str, pacing: str = "", more: str = "") -> str:
    said = f"pacing: {pacing}, " if pacing else ""
    return f"  - {{name: {name}, from: {source}, to: {sink}, {said}at: 2500ms, for: {TCP_S}s, {more}bulk: }}\n"


def text() -> str:
    lab = f"""
name: vp{os.getpid() % 10000}
lab:
  topology: {{dumbbell: {{pairs: 6}}}}
  rtt: 10ms
  wan: {{rate: 1Gbit/s, buffer: 1BDP}}
  hosts:
    left4: {{pacing: {{tbf: {TCP_BPS["tbf"]}bit/s, burst: 10kB}}}}
    left5: {{pacing: [{{psp: {TCP_BPS["to"]}bit/s, to: right5}}, {{fq: {TCP_BPS["fq"]}bit/s}}]}}
series: 100ms
steps:
"""
    rates = [f"{{psp: {SLOWEST_BPS + n * STEP_BPS}bit/s, framing: ip}}" for n in range(FLOWS)]
    # At times of their own, so that none waits for another one's first packet.
    steps = [udp(f"flow{n}", 1, f"{n}ms", rate, 80, IP_BYTES, "1ms") for n, rate in enumerate(rates)]
    bucket = f"{{tbf: {TBF_BPS}bit/s, burst: {BURST_BYTES}B}}"
    steps += [
        udp("slow", 1, "150ms", "{psp: 8kbit/s, framing: ip}", 20, 100, "10ms"),
        udp("burst", 2, "200ms", bucket, TBF_PACKETS, IP_BYTES, "10us"),
        tcp("psp", "left3", "right3", f"{{psp: {TCP_BPS['psp']}bit/s}}", "streams: 4, "),
        tcp("tbf", "left4", "right4"),
        tcp("to", "left5", "right5"),
        tcp("fq", "left5", "right6"),
        "  - {name: free, from: left4, to: right6, at: 5s, pacing: none, bulk: 5MB}\n",
    ]
    return lab + "".join(steps)


Records = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    """What the traffic generator tells of each flow, by the names of steps."""
    place = tmp_path_factory.mktemp("pacing")
    made = scenario.parse(text(), place / "x.scenario.yaml").runs().scheduled(host.virtual_facts(), "virtual")
    ((_, plan, schedule),) = made
    result = VirtualRuntime(BINARY).run(plan, schedule.program, place / "run")
    flows = orjson.loads((result.directory / "traffic/traffic.json").read_bytes())["flows"]
    found: Records = {}
    for described, record in zip(schedule.document.flows, flows, strict=True):
        assert record["error"] is None, (described, record)
        found.setdefault(described.step, []).append(record)
    return found


def sent_bps(record: dict[str, Any], ip_bytes: int) -> float:
    """From the first packet's arrival to the last one's."""
    assert record["lost_packets"] == 0
    span_ns = record["completion_ns"] - record["delay_min_ns"]
    return float((record["received_packets"] - 1) * ip_bytes * 8 * 10**9 / span_ns)


def test_a_hundred_flows_of_one_host_each_have_their_rate(records: Records) -> None:
    for number in range(FLOWS):
        (record,) = records[f"flow{number}"]
        assert sent_bps(record, IP_BYTES) == pytest.approx(SLOWEST_BPS + number * STEP_BPS, rel=1e-4)


def test_eight_kilobits_a_second(records: Records) -> None:
    (record,) = records["slow"]
    assert record["received_packets"] == 20
    assert sent_bps(record, 100) == pytest.approx(8_000, rel=1e-4)


def test_a_token_bucket_passes_its_burst_at_once_and_then_its_rate(records: Records) -> None:
    """The last of n packets that come together passes when the rate has given what the burst did not."""
    (record,) = records["burst"]
    expected_ns = (TBF_PACKETS * WIRE_BYTES - BURST_BYTES) * 8 * 10**9 / TBF_BPS
    assert record["completion_ns"] - record["delay_min_ns"] == pytest.approx(expected_ns, rel=0.01)


def goodput_bps(records: list[dict[str, Any]]) -> float:
    """Of all connections together, while the step lasted."""
    return float(sum(record["received_bytes"] for record in records) * 8 / TCP_S)


def test_connections_together_keep_to_the_rate_of_their_flow(records: Records) -> None:
    assert len(records["psp"]) == 4
    assert goodput_bps(records["psp"]) == pytest.approx(TCP_BPS["psp"] * SHARE_OF_WIRE, rel=0.02)


@pytest.mark.parametrize("step", ["tbf", "fq", "to"])
def test_what_a_host_sends_keeps_to_what_the_lab_says_of_it(records: Records, step: str) -> None:
    assert goodput_bps(records[step]) == pytest.approx(TCP_BPS[step] * SHARE_OF_WIRE, rel=0.02)


def test_a_flow_that_is_not_paced_passes_its_host_s_pacing_by(records: Records) -> None:
    """5 MB would take 2 s at the rate of the host."""
    (record,) = records["free"]
    assert record["completion_ns"] < 0.5e9
