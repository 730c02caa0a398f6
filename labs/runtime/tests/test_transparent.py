"""A link is a cable: frames of every kind leave it with the bytes they had, both ways, whatever emulates it.

The routers at both ends of a link send and receive with raw sockets; the kernel keeps a received frame's outer VLAN tag
beside it, so the receiver puts it back (PACKET_AUXDATA).
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

import orjson
import pytest

from ewan.labs import host
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.compile import compile
from ewan.labs.plan import Plan
from ewan.labs.runtime.netns import NetnsRuntime
from ewan.labs.runtime.program import Command, Program
from ewan.labs.runtime.requests import StatsRequest
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime
from ewan.labs.spec import from_template

pytestmark = pytest.mark.virtual

MTU = 9000

EXCHANGE = """
import json, os, socket, struct, time
interface, expected = "{interface}", {expected}
frames = [bytes.fromhex(each) for each in json.load(open(os.environ["EWAN_OUT"] + "/../../frames-{side}.json"))]
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
raw.setsockopt(263, 8, 1)  # PACKET_AUXDATA
raw.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
raw.bind((interface, 0x0003))
time.sleep(0.5)
for frame in frames:
    raw.send(frame)
    time.sleep(0.001)
raw.settimeout(2)
came = []
try:
    while len(came) < expected:
        data, about, _, address = raw.recvmsg(1 << 16, 256)
        status, _, _, _, _, tci, tpid = struct.unpack("IIIHHHH", about[0][2])
        if status & 0x10:
            data = data[:12] + struct.pack(">HH", tpid if status & 0x40 else 0x8100, tci) + data[12:]
        if address[2] != 4 and data[6:11] == b"\\x02\\xee\\x77\\x00\\x00":  # not our own going out, and no one else's
            came.append(data.hex())
except TimeoutError:
    pass
print(json.dumps(came))
"""


def checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ipv4(payload: bytes, protocol: int = 17, fragment: int = 0, to: bytes = b"\xc6\x33\x64\x02") -> bytes:
    head = struct.pack(
        ">BBHHHBBH4s4s", 0x45, 2, 20 + len(payload), 7, fragment, 64, protocol, 0, b"\xc6\x33\x64\x01", to
    )
    return head[:10] + struct.pack(">H", checksum(head)) + head[12:] + payload


def ipv6(payload: bytes, following: int = 17) -> bytes:
    return struct.pack(">IHBB", 0x60200000, len(payload), following, 64) + bytes(range(32)) + payload


def udp(length: int) -> bytes:
    """With a checksum that is wrong: whoever completes it changes the frame."""
    return struct.pack(">HHHH", 1000, 2000, length, 0x1234) + bytes(n * 7 % 256 for n in range(length - 8))


def frames(side: int) -> dict[str, bytes]:
    source = b"\x02\xee\x77\x00\x00" + bytes([side])
    one, four, six = b"\x02\xee\x77\x01\x00\x09", b"\x08\x00", b"\x86\xdd"
    customer, service = b"\x81\x00\xb0\x05", b"\x88\xa8\x00\x07"
    labels = b"\x88\x47\x00\x01\x0e\x40\x00\x02\x0f\x40"

    def to(destination: bytes, rest: bytes) -> bytes:
        return destination + source + rest

    packet = ipv4(udp(300))
    return {
        "IPv4": to(one, four + packet),
        "IPv4 of 9000 bytes": to(one, four + ipv4(udp(MTU - 20))),
        "IPv6 of 9000 bytes": to(one, six + ipv6(udp(MTU - 40))),
        "ARP": to(b"\xff" * 6, b"\x08\x06" + bytes(range(46))),
        "VLAN": to(one, customer + four + packet),
        "VLAN, IPv6": to(one, customer + six + ipv6(udp(200))),
        "VLAN, 9000 bytes of IP": to(one, customer + four + ipv4(udp(MTU - 20))),
        "priority tag": to(one, b"\x81\x00\x60\x00" + four + packet),
        "service tag": to(one, service + four + packet),
        "QinQ": to(one, service + customer + four + packet),
        "QinQ, 9000 bytes with a tag": to(one, service + customer + four + ipv4(udp(MTU - 20 - 8))),
        "QinQ of two customer tags": to(one, customer + b"\x81\x00\x00\x06" + four + packet),
        "QinQ of 0x9100": to(one, b"\x91\x00\x00\x08" + customer + four + packet),
        "three tags": to(one, service + customer + customer + four + packet),
        "MPLS": to(one, labels + packet),
        "MPLS, 9000 bytes with labels": to(one, labels + ipv4(udp(MTU - 20 - 8))),
        "MPLS multicast": to(b"\x01\x00\x5e\x80\x00\x01", b"\x88\x48" + labels[2:] + packet),
        "MPLS, Ethernet inside": to(one, labels + b"\x45\x00\x00\x40" + bytes(range(100))),
        "VLAN, MPLS": to(one, customer + labels + packet),
        "IPv4 multicast": to(b"\x01\x00\x5e\x01\x02\x03", four + ipv4(udp(100), to=b"\xe0\x01\x02\x03")),
        "IPv6 multicast": to(b"\x33\x33\x00\x01\x02\x03", six + ipv6(udp(100))),
        "VLAN multicast": to(b"\x01\x00\x5e\x01\x02\x03", customer + four + ipv4(udp(100), to=b"\xe0\x01\x02\x03")),
        "first fragment": to(one, four + ipv4(udp(1480), fragment=0x2000)),
        "fragment in between": to(one, four + ipv4(bytes(1480), fragment=0x2000 | 185)),
        "last fragment": to(one, four + ipv4(bytes(range(77)), fragment=370)),
        "VLAN fragment": to(one, customer + four + ipv4(udp(1480), fragment=0x2000)),
        "IPv6 fragment": to(one, six + ipv6(b"\x11\x00\x00\x09\x00\x00\x00\x07" + udp(600), following=44)),
        "spanning tree": to(b"\x01\x80\xc2\x00\x00\x00", b"\x00\x26\x42\x42\x03" + bytes(range(43))),
        "pause": to(b"\x01\x80\xc2\x00\x00\x01", b"\x88\x08\x00\x01\x00\x07" + bytes(42)),
        "LLDP": to(b"\x01\x80\xc2\x00\x00\x0e", b"\x88\xcc" + bytes(range(46))),
        "experimental": to(one, b"\x88\xb5" + bytes(range(256)) * 4),
        "one byte": to(one, b"\x88\xb5\x42"),
        "cut-off IPv4": to(one, four + packet[:11]),
        "9000 bytes": to(one, b"\x88\xb5" + bytes(n * 11 % 256 for n in range(MTU))),
        "VLAN, 9000 bytes": to(one, customer + b"\x88\xb5" + bytes(n * 13 % 256 for n in range(MTU))),
    }


def lab(emulator: str, virtual: bool) -> Plan:
    words = {"name": f"tp{os.getpid()}", "rtt": "10ms", "mtu": str(MTU), "emulator": emulator, "buffer": "1MB"}
    return compile(from_template("dumbbell", words), host.virtual_facts() if virtual else host.facts())


def exchange(plan: Plan, place: Path) -> tuple[Program, list[dict[str, bytes]]]:
    """Both ends of the link `core` send their frames to each other; commands 1 and 2."""
    link, sent = plan.links[0], [frames(0), frames(1)]
    place.mkdir()
    for side in 0, 1:  # too long for a command line
        (place / f"frames-{side}.json").write_bytes(orjson.dumps([frame.hex() for frame in sent[side].values()]))
    commands = tuple(
        Command(
            end.node,
            (
                "python3",
                "-c",
                EXCHANGE.format(interface=end.interface, side=side, expected=len(sent[1 - side])),
            ),
        )
        for side, end in enumerate((link.a, link.b))
    )
    return Program(commands=commands, longest_ns=60 * NS_PER_SECOND), sent


def check(plan: Plan, place: Path, sent: list[dict[str, bytes]]) -> None:
    for number, (node, other) in enumerate(((plan.links[0].a.node, 1), (plan.links[0].b.node, 0)), 1):
        came = [bytes.fromhex(each) for each in orjson.loads((place / f"commands/{number}-{node}.out").read_bytes())]
        changed = {name: frame.hex() for name, frame in sent[other].items() if frame not in came}
        assert changed == {}, "frames that did not arrive as they were sent"
        assert came == list(sent[other].values()), "nothing else, and in order"


@pytest.mark.parametrize("emulator", ["kernel", "user"])
def test_in_the_virtual_clock(tmp_path: Path, emulator: str) -> None:
    plan = lab(emulator, virtual=True)
    program, sent = exchange(plan, tmp_path / "run")
    run = VirtualRuntime(BINARY).run(plan, program, tmp_path / "run")
    assert run.ended.how == "completed"
    check(plan, tmp_path / "run", sent)


@pytest.mark.live
def test_live(tmp_path: Path) -> None:
    plan = lab("user", virtual=False)
    program, sent = exchange(plan, tmp_path / "run")
    state = Path(f"/run/ewan-test-transparent-{os.getpid()}")
    runtime = NetnsRuntime(BINARY, state)
    try:
        runtime.up(plan)
        runtime.batch(plan.lab, program, tmp_path / "run")
        check(plan, tmp_path / "run", sent)
        stats = runtime.control(plan.lab, "core", StatsRequest()).links["core"]
        refused = [(port.refused, port.too_long, port.checksums_completed) for port in stats.ports]
        assert refused == [(0, 0, 0), (0, 0, 0)]
    finally:
        runtime.down(plan.lab)
