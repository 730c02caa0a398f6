"""Paths of a host: what is measured over a lab of namespaces, which is gone afterwards, and what follows from it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ewan.calibration.expect import expectations
from ewan.calibration.host import path_lab, paths
from ewan.calibration.host.buffers import Buffers, read_buffers
from ewan.calibration.host.path_lab import PORT, PORT_BPS, ROUTERS, SIZES, TIMES
from ewan.calibration.host.paths import PathMeasurements
from ewan.calibration.tests.plans import told
from ewan.labs.base import codec
from ewan.labs.base.codec import replace
from ewan.labs.compile import HostFacts
from ewan.labs.context import Context
from ewan.labs.link.egress import Bare, Tbf
from ewan.labs.plan import Plan
from ewan.labs.runtime.tests.lab import own_state, traces

LAB = f"paths{os.getpid()}"
BUFFERS = Buffers(212_992, 212_992, (4096, 131_072, 6_291_456), (4096, 16_384, 4_194_304), 1000, 10**9)


@pytest.fixture
def plan() -> Plan:
    return path_lab.lab("paths", HostFacts(cpus=(0, 1, 2), networks=()))


@pytest.fixture(scope="module")
def context() -> Iterator[Context]:
    with own_state("paths") as root:
        yield Context.of({"EWAN_STATE": str(root)})


@pytest.fixture(scope="module")
def measured(context: Context) -> PathMeasurements:
    found = paths.measure(context, "quick", lambda line: None)
    assert not traces(LAB, context.state), "the lab is gone"
    return found


@pytest.mark.untimed
def test_all_is_measured(measured: PathMeasurements) -> None:
    assert not measured.failed and not measured.not_measured
    assert [each.routers for each in measured.latency] == list(ROUTERS)
    assert [each.ip_bytes for each in measured.packet_rates] == list(SIZES)
    kinds = [(each.protocol, each.routers, each.offloads, each.port_bps) for each in measured.throughput]
    assert len(set(kinds)) == len(kinds) == 4 + 6
    assert all(each.goodput_bps > 0 for each in measured.throughput)
    assert codec.decode(PathMeasurements, codec.sorted_line(measured), "paths") == measured


@pytest.mark.untimed
def test_routers_take_time(measured: PathMeasurements) -> None:
    direct, far = measured.stack(0), measured.stack(2)
    assert direct is not None and far is not None
    # The quickest of hundreds: nothing disturbed them.
    assert 0 < direct.min_ns < far.min_ns
    for each in measured.latency:
        assert each.min_ns <= each.p50_ns <= (each.p99_ns or each.max_ns) <= each.max_ns
        assert 0 <= each.spread_ns <= each.max_ns - each.min_ns


@pytest.mark.untimed
def test_no_port_carries_more_than_headers_leave_of_it(measured: PathMeasurements) -> None:
    for protocol in paths.PROTOCOLS:
        found = measured.goodput(protocol, port_bps=PORT_BPS)
        assert found is not None and found.expected_bps is not None
        # What a stopped sender had queued comes within the window; of short ones a few per cent.
        assert found.goodput_bps <= 1.1 * found.expected_bps


@pytest.mark.untimed
def test_segments_left_to_the_card_carry_more_than_packets(measured: PathMeasurements) -> None:
    without, with_them = measured.goodput("tcp"), measured.goodput("tcp", offloads=True)
    assert without is not None and with_them is not None
    # A segment of 64 kB takes one way through the stack instead of 44: ten times as much on a quiet machine.
    assert with_them.goodput_bps > without.goodput_bps


@pytest.mark.untimed
def test_nothing_is_left_when_it_is_interrupted(context: Context) -> None:
    def interrupt(line: str) -> None:
        if "probe 2" in line:
            assert traces(LAB, context.state), "the lab is there now"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        paths.measure(context, "quick", interrupt)
    assert not traces(LAB, context.state)


def test_without_root_nothing_is_sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = paths.measure(Context.of({"EWAN_STATE": str(tmp_path)}), "quick", pytest.fail)
    assert found.not_measured == "needs root" and not found.latency and not found.throughput
    assert [each.found for each in paths.findings(found)] == ["not measured: needs root"]
    assert codec.decode(PathMeasurements, codec.sorted_line(found), "paths") == found


def test_the_lab_has_plain_ports_one_with_a_rate_and_two_of_a_large_mtu(plan: Plan) -> None:
    ports = {(node.name, port.name): port for node in plan.nodes for port in node.interfaces}
    rated = [key for key, port in ports.items() if not isinstance(port.egress, Bare)]
    assert [node for node, _ in rated] == ["c"]
    egress = ports[rated[0]].egress
    assert isinstance(egress, Tbf) and egress.rate_bps == PORT_BPS
    assert sorted(node for (node, _), port in ports.items() if port.mtu == 9000) == ["e", "r4"]
    assert (plan.host_cpus, plan.links, plan.spinners) == ((0, 1), (), ())


def test_probes_end_where_so_many_routers_lie_between(plan: Plan) -> None:
    found = {each["name"]: each for each in codec.data_of(path_lab.probes(plan, TIMES["quick"]))}
    ends = {name: found[f"latency {name}"]["streams"][0]["to"]["netns"].rsplit("-", 1)[1] for name in ROUTERS}
    assert ends == {0: "r1", 1: "r2", 2: "b"}
    assert found["packets 9000"]["streams"][0]["from"]["netns"].endswith("-e")
    addresses = {stream["to"]["address"] for each in found.values() for stream in each.get("streams", [])}
    known = {text.split("/")[0] for node in plan.nodes for port in node.interfaces for text in port.addresses}
    assert addresses < known


@pytest.mark.parametrize("budget, seconds", [("quick", 2.5), ("default", 10), ("full", 40)])
def test_probes_take_no_longer_than_is_said(plan: Plan, budget: Any, seconds: float) -> None:
    wanted = path_lab.probes(plan, TIMES[budget])
    wanted += [path_lab.transfer(plan, TIMES[budget], routers, True) for routers in (0, 1)]
    total = 0
    for each in codec.data_of(wanted):
        total += each.get("duration_ns", 0) + each.get("drain_ns", 0)
        # A sender that is too slow gets a quarter more time.
        total += sum(stream["interval_ns"] * stream["packets"] * 5 // 4 for stream in each.get("streams", []))
    assert total / 1e9 < seconds


def test_headers_leave_what_the_paper_found_of_a_gigabit_port(plan: Plan) -> None:
    """eWAN, table III: 957 Mbit/s by UDP and 941 Mbit/s by TCP."""
    assert round(paths.expected_udp_bps(PORT_BPS, 1500) / 1e6) == 957
    expected = {pair.source: pair.goodput_bps for pair in expectations(plan).pairs}
    assert round(expected["c"] / 1e6) == 941


def flood(name: str, packets: int, window_ns: int) -> dict[str, Any]:
    steady = {"packets": packets, "window_ns": window_ns}
    stream = {"name": name, "steady": steady, "sent_packets": packets + 9, "lost_packets": 4}
    return {"kind": "saturate", "name": name, "streams": [stream]}


def delays(name: str, values: list[int]) -> dict[str, Any]:
    return {"kind": "delay", "name": name, "streams": [{"name": name, "delays_ns": values}]}


def tcp(name: str, goodput_bps: float) -> dict[str, Any]:
    return {"kind": "tcp", "name": name, "goodput_bps": goodput_bps, "retransmitted_segments": 2}


@pytest.fixture
def evaluated(plan: Plan) -> PathMeasurements:
    results = [
        delays("latency 0", [1000 * k for k in range(1, 101)]),
        delays("latency 2", [1000 * k + 8000 for k in range(1, 100)]),
        flood("packets 64", 20_000, 100_000_000),
        flood("packets 1500", 10_000, 100_000_000),
        flood(f"udp {PORT}", 8_127, 100_000_000),
        {"kind": "failed", "name": "udp 1", "error": "bind 10.0.0.1: no"},
        {"kind": "saturate", "name": "udp 2", "streams": [{"name": "udp 2", "steady": None}]},
        tcp("tcp 0", 2e9),
        tcp("tcp 0 with offloads", 20e9),
        tcp(f"tcp {PORT}", 600e6),
    ]
    return paths.evaluate(plan, {each.name: each for each in told({"results": results}).results}, BUFFERS, 5)


def test_results_become_a_document(evaluated: PathMeasurements) -> None:
    direct, far = evaluated.stack(0), evaluated.stack(2)
    assert direct is not None and far is not None
    assert (direct.p50_ns, direct.p99_ns, direct.max_ns) == (50_000, 99_000, 100_000)
    # Ranks 16 and 85 of 100: the middle 68.27 %.
    assert direct.spread_ns == (85_000 - 16_000) / 2
    assert far.p99_ns is None and far.packets == 99
    assert paths.per_router_ns(evaluated) == (58_000 - 50_000) / 2
    assert [each.packets_per_second for each in evaluated.packet_rates] == [200_000, 100_000]
    udp = evaluated.goodput("udp", port_bps=PORT_BPS)
    assert udp is not None and udp.goodput_bps == 81_270 * 1472 * 8
    assert evaluated.failed == {"udp 1": "bind 10.0.0.1: no", "udp 2": "no packet came through"}


def test_a_port_that_is_not_filled_is_found_wanting(evaluated: PathMeasurements) -> None:
    found = {each.what: each for each in paths.findings(evaluated)}
    assert found["TCP through a port of 1Gbit/s"].verdict == "limited"
    assert found["UDP through a port of 1Gbit/s"].verdict == "good"
    assert "957.1Mbit/s" in found["UDP through a port of 1Gbit/s"].found
    assert found["path: udp 1"].meaning == "bind 10.0.0.1: no"
    assert "4us more a router" in found["latency of the stack"].found


def test_a_result_of_nothing_has_no_findings_of_it(evaluated: PathMeasurements) -> None:
    none = replace(evaluated, latency=(), packet_rates=(), throughput=(), failed={})
    assert not list(paths.findings(none))


def test_limits_of_buffers_are_read_where_there_are_any(tmp_path: Path) -> None:
    core, tcp = tmp_path / "proc/sys/net/core", tmp_path / "proc/sys/net/ipv4"
    for folder in (core, tcp):
        folder.mkdir(parents=True)
    (core / "rmem_max").write_text("212992\n")
    (core / "netdev_max_backlog").write_text("damaged\n")
    (tcp / "tcp_rmem").write_text("4096\t131072\t6291456\n")
    found = read_buffers(tmp_path)
    assert (found.rmem_max_bytes, found.wmem_max_bytes, found.netdev_max_backlog_packets) == (212_992, None, None)
    assert (found.tcp_rmem_bytes, found.tcp_wmem_bytes) == ((4096, 131_072, 6_291_456), ())
    assert found.free_memory_bytes > 0
