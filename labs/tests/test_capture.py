"""Captures: from words to taps, filters, and a packet in a line."""

from __future__ import annotations

import io
import struct

import dpkt
import pytest

from ewan.labs import batch
from ewan.labs.capture import bpf, lines, points, reading, words
from ewan.labs.capture.points import PointError, Tap, taps
from ewan.labs.compile import HostFacts
from ewan.labs.compile import compile as compile_spec
from ewan.labs.plan import Plan
from ewan.labs.spec import from_template

MAC = b"\x02\0\0\0\0\1"
ADDRESSES = {"src": b"\x0a\0\0\1", "dst": b"\x0a\0\0\2"}


@pytest.fixture(scope="module")
def plan() -> Plan:
    return compile_spec(from_template("dumbbell", {"rtt": "20ms"}), HostFacts((0, 1), ()))


def test_a_node_is_all_of_its_interfaces_or_one(plan: Plan) -> None:
    assert taps(plan, "left1") == [Tap("left1:eth0", "left1", "eth0", "all")]
    assert [tap.name for tap in taps(plan, "r1")] == ["r1:eth0", "r1:eth1"]
    (core,) = [link for link in plan.links if link.name == "core"]
    assert taps(plan, "r1:core") == taps(plan, f"r1:{core.a.interface}")


def test_a_link_is_its_sides_or_what_goes_one_way(plan: Plan) -> None:
    (core,) = [link for link in plan.links if link.name == "core"]
    enters = Tap("core:r1", core.node, core.port_a, "entering")
    leaves = Tap("core:r2", "r2", core.b.interface, "leaving")
    assert taps(plan, "core:forward") == [enters, leaves]
    assert taps(plan, "core:r1") == [enters, Tap("core:r1", "r1", core.a.interface, "leaving")]
    assert {*taps(plan, "core")} == {*taps(plan, "core:forward"), *taps(plan, "core:backward")}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lef1", 'no node and no link lef1: write "left1"'),
        ("left1:", "nothing stands after the colon: write left1, or left1:INTERFACE"),
        ("left1:eth7", "left1 has no interface and no link eth7"),
        ("core:left1", "core has no side left1: write one of r1, r2, forward, backward, or core for both"),
    ],
)
def test_what_is_not_there_is_refused_in_a_line(plan: Plan, text: str, said: str) -> None:
    with pytest.raises(PointError) as refused:
        taps(plan, text)
    assert said in str(refused.value)


def test_a_plain_link_is_captured_at_its_ends(plan: Plan) -> None:
    plain = next(wire for wire in plan.wires if wire.link not in {link.name for link in plan.links})
    with pytest.raises(
        PointError, match=f"is a plain link, a wire: write one of its ends, {plain.a.node}:{plain.link}"
    ):
        taps(plan, plain.link)
    assert points.taps(plan, f"{plain.a.node}:{plain.link}")[0].node == plain.a.node


def test_a_filter_becomes_the_kernels_program() -> None:
    program = [tuple(map(int, each.split(" "))) for each in bpf.compiled("ip").split(",")]
    # Load the EtherType, compare it with IPv4's, keep or drop (pcap-filter(7), bpf(4)).
    assert program == [(40, 0, 0, 12), (21, 0, 1, 0x0800), (6, 0, 0, bpf.SNAP_BYTES), (6, 0, 0, 0)]
    assert bpf.compiled(" ") == ""


@pytest.mark.parametrize("text", ["tcp prt 80", "host nowhere.invalid", "port 99999", "ip\0", "portä"])
def test_a_bad_filter_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(bpf.FilterError) as refused:
        bpf.compiled(text)
    assert "\n" not in str(refused.value) and "pcap-filter(7)" in str(refused.value)


def test_a_capture_of_a_program_is_a_service_before_all_else(plan: Plan) -> None:
    command = batch.capture(plan, "core:forward tcp port 80")
    assert command.service and command.at_ns == 0 and command.argv[:2] == ("ewan-node", "capture")
    assert command.argv[-1] == words.FILE and "--filter" in command.argv
    other = batch.command(plan, "left1 at 1s: true", "--do", False)
    assert batch.after_captures([other])[0].at_ns == other.at_ns + batch.AHEAD_NS


def ethernet(payload: dpkt.Packet, kind: int = 0x0800) -> bytes:
    return bytes(dpkt.ethernet.Ethernet(src=MAC, dst=MAC, type=kind, data=payload))


def ip(protocol: int, payload: dpkt.Packet, **more: int) -> bytes:
    return ethernet(dpkt.ip.IP(**ADDRESSES, p=protocol, data=payload, len=20 + len(payload), **more))


def echo() -> bytes:
    return ip(1, dpkt.icmp.ICMP(type=8, data=dpkt.icmp.ICMP.Echo(id=7, seq=1, data=b"x" * 56)))


def tagged(frame: bytes, vlan: int) -> bytes:
    return frame[:12] + struct.pack("!HH", 0x8100, vlan) + frame[12:]


def test_packets_are_told_as_people_read_them() -> None:
    tcp = dpkt.tcp.TCP(sport=5001, dport=80, seq=9, flags=dpkt.tcp.TH_SYN, win=512)
    cases = {
        echo(): "10.0.0.1 > 10.0.0.2 icmp echo request, id 7, seq 1",
        tagged(echo(), 5): "vlan 5 10.0.0.1 > 10.0.0.2 icmp echo request, id 7, seq 1",
        ip(6, tcp, tos=2): "10.0.0.1.5001 > 10.0.0.2.80 tcp [S] seq 9, win 512, payload 0, ECT(0)",
        ip(17, dpkt.udp.UDP(sport=1, dport=2, ulen=108, data=b"x" * 100)): "10.0.0.1.1 > 10.0.0.2.2 udp payload 100",
        ip(6, tcp)[:40]: "10.0.0.1 > 10.0.0.2 protocol 6",
        ethernet(b"\xfe\xfe\x03\x83", 4)[:60]: "02:00:00:00:00:01 > 02:00:00:00:00:01 isis",
        ethernet(b"x" * 46, 0x88B5): "02:00:00:00:00:01 > 02:00:00:00:00:01 EtherType 0x88b5",
        b"\1\2": "frame of 98 bytes",
    }
    for frame, said in cases.items():
        assert lines.described(frame, 98) == (said if said.startswith("frame") else f"{said}, 98 bytes")


def test_any_bytes_are_a_line() -> None:
    for length in range(120):
        for frame in (echo()[:length], bytes(range(length)), tagged(echo(), 4095)[:length]):
            assert "\n" not in lines.line(frame, length, 1, "left1:eth0", "in")


def test_a_stream_that_is_cut_off_ends() -> None:
    assert list(reading.shown(io.BytesIO(b""))) == []
    assert list(reading.shown(io.BytesIO(bytes.fromhex("0a0d0d0a1c0000004d3c2b1a")))) == []
