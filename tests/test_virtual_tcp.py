"""TCP in the virtual clock is the kernel's own: every variant transfers over a long fat pipe, and flows that share a
bottleneck share it fairly, because hosts have a dither (without one, exact timing may favour one of them for ever)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from ewan.generator import scenario, traffic_request
from ewan.labs import host
from ewan.labs.base import codec
from ewan.labs.compile import compile
from ewan.labs.plan import Plan
from ewan.labs.runtime.program import Program
from ewan.labs.runtime.sweep import sweep
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime
from ewan.labs.spec import from_template, parse

pytestmark = pytest.mark.virtual

SECOND = 10**9
# All that Linux 6.12 has, and ours.
VARIANTS = ["bbr", "bic", "cdg", "cubic", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lp", "nv", "reno"]
VARIANTS += ["scalable", "vegas", "veno", "westwood", "yeah", "fast", "ghstcp", "ghstcp0", "hstcp"]
VARIANTS += ["bbr3", "prague"]
TRANSFER_BYTES = 20_000_000
GROUP = 5
TURN_NS = 60 * SECOND
SEEDS = range(1, 11)
FAIR_NS = 300 * SECOND
FAIREST = 0.98

Flows = list[dict[str, Any]]


def lab(**words: str) -> Plan:
    return compile(from_template("dumbbell", {"name": f"vt{os.getpid()}", **words}), host.virtual_facts())


def ran(plan: Plan, flows: list[traffic_request.BulkTransfer], directory: Path, stop: threading.Event) -> Flows:
    traffic = traffic_request.transfers(plan, flows, "virtual", sample_ns=SECOND // 20)
    program = Program(longest_ns=traffic.longest_ns, traffic=traffic)
    run = VirtualRuntime(BINARY).run(plan, program, directory, stop)
    flows_of: Flows = codec.data_of(traffic_request.completed(run.directory))
    return flows_of


@pytest.fixture(scope="module")
def transfers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """One flow of each variant over 1 Gbit/s × 100 ms, by its name."""
    place, plan = tmp_path_factory.mktemp("variants"), lab(rate="1Gbit/s", rtt="100ms")

    def job(variants: list[str]) -> Callable[[threading.Event], Flows]:
        # One after the other, each as if it were alone.
        flows = [
            traffic_request.BulkTransfer("left1", "right1", variant, start_ns=number * TURN_NS, bytes=TRANSFER_BYTES)
            for number, variant in enumerate(variants)
        ]
        return lambda stop: ran(plan, flows, place / variants[0], stop)

    groups = [VARIANTS[k : k + GROUP] for k in range(0, len(VARIANTS), GROUP)]
    found = sweep([job(group) for group in groups])
    return {flow["congestion"]: flow for group in found for flow in group}


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_transfers_and_its_window_is_in_the_record(
    transfers: dict[str, dict[str, Any]], variant: str
) -> None:
    flow = transfers[variant]
    assert flow["received_bytes"] == TRANSFER_BYTES
    # Connecting takes a round trip, and slow start from ten segments eleven more; the link alone takes 0.17 s.
    assert 0.7 * SECOND < flow["completion_ns"] < TURN_NS
    assert abs(flow["min_rtt_ns"] - 100_000_000) < 100_000
    windows = [sample["cwnd_segments"] for sample in flow["series"]]
    assert windows[0] == (4 if variant == "hybla" else 10), "RFC 6928; Hybla: RTT / 25 ms"
    assert len(windows) >= flow["completion_ns"] // (SECOND // 20) - 3
    assert max(windows) > 50


def test_the_variants_differ(transfers: dict[str, dict[str, Any]]) -> None:
    assert len({flow["completion_ns"] for flow in transfers.values()}) > len(VARIANTS) / 2


def jain(rates: list[float]) -> float:
    """Jain, Chiu, Hawe (1984): 1 when all are equal, 1/n when one has everything."""
    return sum(rates) ** 2 / (len(rates) * sum(rate**2 for rate in rates))


def test_a_host_whose_own_link_is_emulated_is_not_held_back(tmp_path: Path) -> None:
    """What is on its way over the host's own link is not in the host: TCP small queues must not count it."""
    words = {"name": f"vt{os.getpid()}", "rtt": "40ms", "rate": "20Mbit/s"}
    plan = compile(from_template("star", words), host.virtual_facts())
    size = 10_000_000
    (flow,) = ran(
        plan, [traffic_request.BulkTransfer("host1", "host2", "reno", bytes=size)], tmp_path, threading.Event()
    )
    # 1448 bytes of payload in frames that take 1538 bytes on the wire; connecting and slow start take ten round trips.
    least_ns = size * 8 * 1538 / 1448 / 20e6 * SECOND
    assert least_ns < flow["completion_ns"] < least_ns + 10 * 40_000_000


def test_two_hosts_of_a_star_fill_the_link_to_a_third(tmp_path: Path) -> None:
    """The star of docs/how-to/experiments/simulators.md, where ns-2 and ns-3 fill the link too. Held back, both have
    7.8 Mbit/s."""
    words = {"name": f"vt{os.getpid()}", "rtt": "20ms", "rate": "20Mbit/s", "buffer": "2BDP"}
    plan = compile(from_template("star", words), host.virtual_facts())
    size = 5_000_000
    flows = [traffic_request.BulkTransfer(sender, "host3", "reno", bytes=size) for sender in ("host1", "host2")]
    ends = [flow["completion_ns"] for flow in ran(plan, flows, tmp_path, threading.Event())]
    least_ns = 2 * size * 8 * 1538 / 1448 / 20e6 * SECOND
    assert least_ns < max(ends) < 1.1 * least_ns


SWITCHED = """
topology:
  graph:
    hosts: [a, b]
    switches: [s1, s2, s3]
    routers: [r]
    links:
      - {between: [a, s1]}
      - {between: [s1, s2], rate: 20Mbit/s, buffer: 50pkt}
      - {between: [s2, s3], rate: 25Mbit/s}
      - {between: [b, s3]}
      - {between: [s3, r]}
access: {rate: 100Mbit/s}
rtt: 0ms
"""


def test_a_queue_of_a_switch_fills_and_drops_as_a_routers_does(tmp_path: Path) -> None:
    """What waits in a switch is not in the sending host either, though no IP layer has had it since."""
    plan = compile(parse(SWITCHED, tmp_path / "switched.lab.yaml"), host.virtual_facts())
    duration_ns = 2 * SECOND
    (flow,) = ran(
        plan, [traffic_request.BulkTransfer("a", "b", "reno", duration_ns=duration_ns)], tmp_path, threading.Event()
    )
    packet_ns = 1538 * 8 / 20e6 * SECOND
    longest_ns = max(sample["srtt_ns"] for sample in flow["series"])
    assert 40 * packet_ns < longest_ns < 60 * packet_ns, "of 50 packets, and those that are sent"
    assert flow["retransmitted_segments"] > 0
    assert 0.97 * 20e6 * 1448 / 1538 < flow["goodput_bps"] < 20e6 * 1448 / 1538


def test_two_reno_flows_share_a_bottleneck_fairly_on_ten_seeds_of_ten(tmp_path: Path) -> None:
    def job(seed: int) -> Callable[[threading.Event], Flows]:
        plan = lab(rate="10Mbit/s", rtt="20ms", pairs="2", seed=str(seed))
        flows = [traffic_request.BulkTransfer(f"left{n}", f"right{n}", "reno", duration_ns=FAIR_NS) for n in (1, 2)]
        return lambda stop: ran(plan, flows, tmp_path / f"{seed}", stop)

    fairness = {}
    for seed, flows in zip(SEEDS, sweep([job(seed) for seed in SEEDS]), strict=True):
        rates = [flow["goodput_bps"] for flow in flows]
        assert 8.8e6 < sum(rates) < 9.42e6, "the bottleneck is used"
        fairness[seed] = jain(rates)
    assert min(fairness.values()) >= FAIREST, fairness
    assert len(set(fairness.values())) == len(SEEDS), "each seed is a run of its own"


ECN = """
title: two flows of one host, one of them with ECN
lab: {topology: dumbbell, rtt: 20ms, ip: FAMILY, wan: {rate: 20Mbit/s, buffer: 2000pkt, queue: {codel: {ecn: true}}}}
steps:
  - {name: marked, from: left1, to: right1, bulk: 4MB, congestion: reno, ecn: true}
  - {name: plain, from: left1, to: right1, bulk: 4MB, congestion: reno}
"""


@pytest.mark.parametrize("family", ["4", "6"])
def test_a_queue_marks_the_flow_that_asks_for_ecn_and_drops_of_the_other(tmp_path: Path, family: str) -> None:
    file = tmp_path / "ecn.scenario.yaml"
    file.write_text(ECN.replace("FAMILY", family))
    (run,) = scenario.load(file).runs()
    plan = compile(run.spec, host.virtual_facts())
    ended = VirtualRuntime(BINARY).run(plan, run.schedule(plan, "virtual").program, tmp_path / "run")
    flows = orjson.loads((ended.directory / "traffic" / "traffic.json").read_bytes())["flows"]
    assert [flow["error"] for flow in flows] == [None, None]
    marked, plain = (flow["retransmitted_segments"] for flow in flows)
    assert marked == 0 < plain
