"""What the virtual kernel is given: it follows the lab and what runs in it, is refused where it does not fit, and is
what a lab with full links was measured to touch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ewan.generator import traffic_request
from ewan.labs import host
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.compile import compile
from ewan.labs.plan import Plan
from ewan.labs.record.traffic import (
    BulkWork,
    ConstantLaw,
    Endpoint,
    FlowRequest,
    MessagesWork,
    ParetoLaw,
    RequestLaw,
    SocketOptions,
    TrafficRequest,
    UdpWork,
    UniformLaw,
    Work,
)
from ewan.labs.runtime import memory
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.probe_documents import ProbeRequest, ProbeStream, RttProbe, TcpProbe
from ewan.labs.runtime.program import Command, Program
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime
from ewan.labs.spec import from_template

TCP = BulkWork()
NOWHERE = Endpoint("", "")


def lab(**overrides: str) -> Plan:
    settings = {"name": f"me{os.getpid()}", "rtt": "100ms", "rate": "100M", "dither": "0", "ip": "4", **overrides}
    return compile(from_template("dumbbell", settings), host.virtual_facts())


def sends(*works: Work, commands: tuple[Command, ...] = (), mss_bytes: int | None = None) -> Program:
    socket = SocketOptions(mss_bytes=mss_bytes)
    flows = tuple(FlowRequest(name="x", work=work, socket=socket) for work in works)
    traffic = TrafficRequest(clock="virtual", cpus=(), seed=1, longest_ns=1, flows=flows)
    return Program(commands=commands, traffic=traffic)


def udp(size: RequestLaw, count: int | None = None) -> Work:
    return UdpWork(count, size, ConstantLaw(1))


def ranks(count: int) -> Work:
    return MessagesWork("barrier", 1, ConstantLaw(1), ConstantLaw(0), (NOWHERE,) * count)


def test_a_lab_larger_than_the_machine_is_refused_with_the_arithmetic(tmp_path: Path) -> None:
    big = lab(rate="20G", rtt="1s", pairs="5")
    wanted = memory.need(big)
    assert wanted.packets > 2 * 20e9 / 8 / 1538, "1 s of 20 Gbit/s, both ways"
    with pytest.raises(LabError) as refused:
        memory.refuse(
            big.lab,
            memory.Need(wanted.nodes, wanted.packets * 1000, wanted.packet_bytes),
            tmp_path,
            memory.available(tmp_path),
        )
    words = str(refused.value)
    assert f"{wanted.packets * 1000} packets on the links × {wanted.packet_bytes}B" in words
    assert "free" in words and "lower rate" in words


def test_memory_follows_the_lab() -> None:
    small, large = memory.need(lab()), memory.need(lab(rate="10G"))
    assert large.packets > 50 * small.packets
    assert small.bytes < 512 * memory.MIB < large.bytes


def test_memory_follows_the_flows() -> None:
    works = [*([TCP] * 3000), BulkWork(bidirectional=True), ranks(5)]
    none, many = memory.need(lab(), Program()), memory.need(lab(), sends(*works))
    assert (none.threads, many.threads) == (0, 6000 + 4 + 10)
    assert many.bytes - none.bytes > 3000 * 112 << 10, "what 1000 flows were seen to touch, thrice"


def test_858_ms_each_way_at_10_gbit_s_fit_in_16_gb() -> None:
    """GtrcNET-10's range, with 1 BDP of buffer."""
    longest = lab(rate="10G", rtt="1716ms", buffer="1BDP")
    assert 13e9 < memory.need(longest, sends(TCP, commands=(Command("left1", ("/bin/ping", "right1")),))).bytes < 16e9
    assert memory.need(longest, sends(TCP, commands=(Command("left1", ("iperf3",)),))).bytes > 25e9
    assert memory.need(longest) == memory.need(longest, Program(commands=(Command("left1", ("iperf3",)),)))


NOWHERE = Endpoint("", "")
PROBED = ProbeRequest((), (TcpProbe("tcp", NOWHERE, NOWHERE, "reno", 1, 1, 1),), "virtual")


def test_packets_whose_payload_is_kept_count_with_it() -> None:
    jumbo = lab(mtu="9000", rate="1G")
    shared, kept = memory.need(jumbo, sends(TCP)), memory.need(jumbo, sends(TCP, udp(ConstantLaw(8972))))
    assert (shared.packets, shared.packet_bytes) == (kept.packets, 3072) and kept.packet_bytes == 16384 + 1024
    assert memory.need(jumbo, Program(probe=PROBED)).packet_bytes == 16384 + 1024
    assert memory.need(jumbo, sends(udp(ParetoLaw(9e9, 1.1)))).packets == shared.packets
    small = memory.need(jumbo, sends(udp(UniformLaw(50, 150))))
    assert small.packets > 50 * shared.packets and small.packet_bytes == 2048
    segments = memory.need(jumbo, sends(TCP, mss_bytes=536))
    assert segments.packets > 15 * shared.packets and segments.packet_bytes == 3072


def test_no_more_packets_are_counted_than_are_sent() -> None:
    """1000 sources of 1 Gbit/s on a link of 1 Tbit/s fit where each sends little."""
    fast = lab(rate="1T", rtt="20ms", buffer="1BDP")
    volumes = [BulkWork(1_428_000)] * 1000
    all_of_it = memory.need(fast, sends(*volumes))
    assert all_of_it.packets == 1000 * (1000 + 7) < memory.need(fast, sends(TCP)).packets
    assert memory.need(fast, sends(*volumes, BulkWork(1_428_000, True))).packets == 1002 * 1007
    counted = udp(ConstantLaw(1000), 5)
    streams = tuple(ProbeStream("s", NOWHERE, NOWHERE, 100, 1, packets) for packets in (3, 4))
    probe = ProbeRequest((), (RttProbe("rtt", streams, 1),), "virtual")
    assert memory.need(fast, sends(counted)).packets == 5 and memory.need(fast, Program(probe=probe)).packets == 14
    endless = [
        sends(*volumes, TCP),
        sends(udp(ConstantLaw(1472))),
        Program(probe=PROBED),
    ]
    endless += [Program(probe=probe, commands=(Command("left1", ("sh",)),)), sends(ranks(1))]
    assert all(memory.need(fast, each).packets > 3_000_000 for each in endless)


@pytest.mark.virtual
def test_full_links_take_what_is_said(tmp_path: Path) -> None:
    """Both directions of 1 Gbit/s × 200 ms fill their buffers: 100 000 packets on the links."""
    plan = lab(rate="1G", rtt="400ms", buffer="1BDP", dither="auto")
    addresses = traffic_request.addresses_of(plan)
    source, sink = (traffic_request.end(plan.lab, name, addresses[name]) for name in ("left1", "right1"))

    def program(window_bytes: int | None = None) -> Program:
        socket = SocketOptions("scalable", window_bytes=window_bytes)
        both = BulkWork(bidirectional=True)
        flow = FlowRequest(name="both", stop_ns=8 * NS_PER_SECOND, from_=source, to=sink, socket=socket, work=both)
        longest_ns = 9 * NS_PER_SECOND
        return Program(traffic=traffic_request.request(plan, [flow], "virtual", longest_ns), longest_ns=longest_ns)

    def touched(window_bytes: int | None = None) -> int:
        place = tmp_path / str(window_bytes)
        return VirtualRuntime(BINARY).run(plan, program(window_bytes), place).cost.touched_bytes

    wanted = memory.need(plan, program())
    assert wanted.packets > 100_000
    on_links = touched() - touched(window_bytes=10_000)
    assert 0.7 < on_links / (wanted.packets * wanted.packet_bytes) < 1


def test_free_room_is_told_of_a_directory_that_is_not_there_yet(tmp_path: Path) -> None:
    assert memory.available(tmp_path / "results" / "x") == memory.available(tmp_path) > 0
