"""Entries of `capture:` become commands in nodes, and their files become rows of packets."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from ewan.experiments.engine import reservation
from ewan.generator.commands import RunCommand
from ewan.generator.readers import captures, headers
from ewan.generator.scenario import DescriptionError
from ewan.generator.scenario.captures import most_bytes
from ewan.generator.tests.scenarios import only
from ewan.labs.base.units import NS_PER_SECOND

STEPS = "steps: [{name: load, from: left1, to: right1, for: 1s, bulk: }]\n"
T0_UNIX_NS = 1_700_000_000 * NS_PER_SECOND


def argv(text: str) -> list[tuple[str, list[str]]]:
    return [(each.node, list(each.argv)) for each in only(STEPS + text).program.commands]


def test_a_capture_is_a_service_of_each_node_before_anything_is_sent() -> None:
    schedule = only(STEPS + "capture: [{node: 'left[1-2]', snap: 128B}, {node: right1, most: 1MB}]")
    commands = schedule.program.commands
    assert [(each.node, each.at_ns, each.service) for each in commands] == [
        (node, 0, True) for node in ("left1", "left2", "right1")
    ]
    assert commands[0].argv[:2] == ("ewan-node", "capture")
    words = [dict(zip(each.argv[2:-1:2], each.argv[3:-1:2], strict=True)) for each in commands]
    assert [(each["--snap-bytes"], each["--most-bytes"]) for each in words] == [
        ("128", "64000000"),
        ("128", "64000000"),
        ("96", "1000000"),
    ]
    assert schedule.program.traffic is not None
    assert schedule.program.traffic.flows[0].start_ns == schedule.document.begin_ns == 100_000_000
    assert {each.part for each in schedule.document.commands} == {"capture"}


def test_a_capture_of_a_part_of_the_run_listens_shortly_before_it_and_counts_from_the_schedule_s_begin() -> None:
    schedule = only(STEPS + "capture: [{node: left1, at: 500ms, for: 200ms}, {node: right1, for: 300ms}]")
    begin_ns = schedule.document.begin_ns
    late, early = schedule.program.commands
    assert (late.at_ns, early.at_ns) == (begin_ns + 400_000_000, 0)
    whens = [dict(zip(each.argv[2:-1:2], each.argv[3:-1:2], strict=True)) for each in (late, early)]
    assert [(each["--from-ns"], each["--until-ns"]) for each in whens] == [
        (str(begin_ns + 500_000_000), str(begin_ns + 700_000_000)),
        ("0", str(begin_ns + 300_000_000)),
    ]
    (open_end,) = only(STEPS + "capture: [{node: left1, at: 500ms}]").program.commands
    assert "--from-ns" in open_end.argv and "--until-ns" not in open_end.argv


def test_a_router_is_captured_at_all_of_its_interfaces_or_at_one_link() -> None:
    ((_, everywhere),) = argv("capture: [{node: r1}]")
    ((_, alone),) = argv("capture: [{node: r1, link: core}]")
    assert everywhere.count("--interface") == 6, "five hosts and the other router"
    assert alone.count("--interface") == 1
    assert set(alone) < set(everywhere)


def test_a_link_is_captured_at_both_sides_by_one_service() -> None:
    ((node, words),) = argv("capture: [{point: core, snap: 128B, most: 1MB, at: 100ms}]")
    taps = json.loads(words[words.index("--taps") + 1])
    assert [(each["name"], each["packets"]) for each in taps] == [
        ("core:r1", "entering"), ("core:r1", "leaving"), ("core:r2", "entering"), ("core:r2", "leaving")
    ]  # fmt: skip
    assert node == "core" and words[words.index("--snap-bytes") + 1] == "128"
    assert words[words.index("--most-bytes") + 1] == "1000000" and "--from-ns" in words
    ((_, forward),) = argv("capture: [{point: 'core:forward'}]")
    assert len(json.loads(forward[forward.index("--taps") + 1])) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[{point: cor}]", "is no place"),
        ("[{point: core, node: r1}]", "capture[0].node"),
        ("[{point: core, link: core}]", "leave one of them out"),
        ("[{}]", 'says nowhere: write "node: left1"'),
        ("[{point: core}, {point: 'core:r1'}]", "once more"),
        ("[{node: left9}]", "capture[0].node"),
        ("[{node: left1, link: cor}]", "core"),
        ("[{node: left1, link: core}]", "is not at left1"),
        ("[{node: left1}, {node: left1}]", "once more"),
        ("[{node: left1, snap: 10B}]", "write 64B to"),
        ("[{node: left1, most: 2GB}]", "write 64kB to 1GB"),
        ("[{node: left1, snap: 96}]", "96kB"),
        ("[{link: core}]", "node"),
        ("[{node: left1, at: 20}]", "20ms"),
        ("[{node: left1, at: 1 hour}]", "at"),
        ("[{node: left1, at: 500s}]", "when all is over"),
        ("[{node: left1, for: 0s}]", "no time at all"),
        ("[{node: left1, from: 1s}]", "from"),
    ],
)
def test_what_cannot_be_captured_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(DescriptionError, match=said.replace("[", r"\[").replace("]", r"\]")) as raised:
        only(f"{STEPS}capture: {text}")
    assert "\n" not in str(raised.value)


def test_the_disk_must_hold_what_captures_may_write() -> None:
    with_capture = only(STEPS + "capture: [{node: left1, most: 10MB}, {node: right1, most: 20MB}]").program
    assert most_bytes(with_capture) == 60_000_000
    assert most_bytes(only(STEPS).program) == 0
    assert {program for _, program in reservation.programs(with_capture)} == {"ewan-node"}


def ipv4(protocol: int, transport: bytes, identification: int = 7, fragment: int = 0) -> bytes:
    total = 20 + len(transport)
    head = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 3, total, identification, fragment, 64, protocol, 0, b"\x0a\0\0\1", b"\x0a\0\0\2"
    )
    return head + transport


def ethernet(kind: int, payload: bytes, tags: bytes = b"") -> bytes:
    return bytes(12) + tags + struct.pack("!H", kind) + payload


TCP = struct.pack("!HHIIBBHHH", 1000, 2000, 0xFFFF_FFFE, 5, 8 << 4, 0x18, 0, 0, 0) + bytes(12) + b"payload"
UDP = struct.pack("!HHHH", 53, 5353, 8 + 100, 0)


def row(frame: bytes) -> dict[str, Any]:
    return {name: values[0] for name, values in headers.columns([frame]).items()}


def test_fields_are_read_behind_options_tags_and_ipv6() -> None:
    expected = {"source": "10.0.0.1", "source_port": 1000, "destination": "10.0.0.2", "destination_port": 2000}
    expected |= {"protocol": "tcp", "ip_id": 7, "ecn": 3, "tcp_seq": 0xFFFF_FFFE, "tcp_ack": 5, "tcp_flags": 0x18}
    expected |= {"payload_bytes": 7, "payload_digest": None}
    assert row(ethernet(0x0800, ipv4(6, TCP))) == expected
    assert row(ethernet(0x0800, ipv4(6, TCP), struct.pack("!HHHH", 0x88A8, 1, 0x8100, 2))) == expected
    six = struct.pack("!IHBB", 6 << 28, len(UDP) + 100, 17, 64) + bytes(15) + b"\1" + bytes(15) + b"\2" + UDP
    found = row(ethernet(0x86DD, six))
    assert (found["source"], found["destination"], found["protocol"]) == ("::1", "::2", "udp")
    assert (found["source_port"], found["payload_bytes"], found["ip_id"], found["tcp_seq"]) == (53, 100, None, None)


def datagram(payload: bytes, checksum: int = 0, behind: bytes = b"") -> bytes:
    return ethernet(0x0800, ipv4(17, struct.pack("!HHHH", 53, 5353, 8 + len(payload), checksum) + payload)) + behind


def test_a_digest_tells_payloads_apart_that_begin_differently() -> None:
    def digest(frame: bytes) -> Any:
        return row(frame)["payload_digest"]

    numbered = [struct.pack("!QQ", run, number) + bytes(84) for run in (1, 2) for number in range(3)]
    assert len({digest(datagram(each)) for each in numbered}) == 6
    # What changes on the way: the checksum may be filled in later, short frames are padded.
    assert digest(datagram(b"seven by", 1)) == digest(datagram(b"seven by", 2, bytes(range(10))))
    assert digest(datagram(b"seven by")) != digest(datagram(b"seven bx"))
    echo = ethernet(0x0800, ipv4(1, struct.pack("!BBHHH", 8, 0, 0, 5, 1)))
    assert digest(echo) != digest(echo[:-1] + b"\2")
    # 16 bytes are enough, and all of them are needed.
    whole = datagram(numbered[0])
    assert digest(whole[: 14 + 20 + 8 + 16]) == digest(whole)
    assert digest(whole[: 14 + 20 + 8 + 15]) is None and digest(datagram(b"")) is None


def test_what_is_not_there_is_null() -> None:
    cut = row(ethernet(0x0800, ipv4(6, TCP))[: 14 + 20 + 19])
    assert (cut["source"], cut["protocol"], cut["source_port"], cut["tcp_seq"]) == ("10.0.0.1", "tcp", None, None)
    later = row(ethernet(0x0800, ipv4(17, UDP, fragment=100)))
    assert (later["protocol"], later["source_port"]) == ("udp", None)
    assert set(row(ethernet(0x0806, bytes(28))).values()) == {None}
    assert row(ethernet(0x0800, ipv4(89, b"")))["protocol"] == "89"
    assert len(headers.columns([])["source"]) == 0


def block(kind: int, body: bytes) -> bytes:
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size


def option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


END = bytes(4)
SECTION = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
INTERFACE = block(1, struct.pack("<HHI", 1, 0, 96) + option(2, b"eth0") + option(9, b"\x09") + END)


def packet(time_ns: int, frame: bytes, flags: int) -> bytes:
    kept = frame[:96] + bytes(-len(frame[:96]) % 4)
    head = struct.pack("<IIIII", 0, time_ns >> 32, time_ns & 0xFFFF_FFFF, len(frame[:96]), len(frame))
    return block(6, head + kept + option(2, struct.pack("<I", flags)) + END)


def statistics(seen: int, dropped: int, written: int) -> bytes:
    counts = zip((4, 7, 8), (seen, dropped, written), strict=True)
    return block(5, bytes(12) + b"".join(option(code, struct.pack("<Q", count)) for code, count in counts) + END)


def read(place: Path, content: bytes) -> captures.CaptureRows:
    (place / "commands/1-left1").mkdir(parents=True)
    (place / "commands/1-left1" / captures.FILE).write_bytes(content)
    entry = RunCommand((), 0, None, "left1", files="commands/1-left1")
    return captures.read(entry, place, T0_UNIX_NS)


PACKETS = packet(T0_UNIX_NS + 123_456_789, ethernet(0x0800, ipv4(6, TCP)), 2) + packet(
    T0_UNIX_NS + 123_456_790, ethernet(0x0806, bytes(28)), 13
)


def test_packets_become_rows_with_times_from_t0(tmp_path: Path) -> None:
    caught = read(tmp_path, SECTION + INTERFACE + PACKETS + statistics(2, 0, 2))
    assert caught.problem is None
    own = caught.packets.select("node", "interface", "direction", "time_ns", "protocol", "size_bytes").rows()
    assert own == [
        ("left1", "eth0", "out", 123_456_789, "tcp", 14 + 20 + len(TCP)),
        ("left1", "eth0", "in", 123_456_790, None, 42),
    ]


def test_what_is_missing_is_said_and_the_rest_is_kept(tmp_path: Path) -> None:
    bounded = read(tmp_path / "bounded", SECTION + INTERFACE + PACKETS + statistics(10, 3, 2))
    assert bounded.packets.height == 2
    assert bounded.problem is not None
    assert "3 of 10 packets at eth0 came faster" in bounded.problem and "5 of 10 packets" in bounded.problem
    killed = read(tmp_path / "killed", SECTION + INTERFACE + PACKETS)
    assert (killed.packets.height, killed.problem) == (2, "has no end: the capture was killed")
    cut = read(tmp_path / "cut", SECTION + INTERFACE + PACKETS[:-10])
    assert cut.packets.height == 1 and str(cut.problem).startswith("is cut short after 1 packets")
    none = read(tmp_path / "none", b"no capture at all")
    assert none.packets.is_empty() and none.problem is not None
