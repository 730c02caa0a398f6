"""Captures of several machines put together: order, clocks, bounds, counts. The streams are made as the machines do."""

from __future__ import annotations

import io
import random
import struct
from typing import Any

import pytest
from pcapng import FileScanner, blocks

from ewan.labs.capture.merge import Clock, Merger
from ewan.labs.capture.words import UNBOUNDED, Bounds

AHEAD = Clock(ahead_ns=5_000_000, uncertainty_ns=40_000)


def block(kind: int, body: bytes) -> bytes:
    body += b"\0" * (-len(body) % 4)
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size


def packet(time_ns: int, data: bytes = b"\x01" * 60, interface: int = 0) -> bytes:
    head = struct.pack("<5I", interface, time_ns >> 32, time_ns & 0xFFFFFFFF, len(data), len(data))
    return block(6, head + data + b"\0" * (-len(data) % 4) + struct.pack("<HHIHH", 2, 4, 1, 0, 0))


def mark(time_ns: int) -> bytes:
    return block(5, struct.pack("<III", 0, time_ns >> 32, time_ns & 0xFFFFFFFF))


def counts(interface: int, seen: int, dropped: int) -> bytes:
    options = struct.pack("<HHQ", 4, 8, seen) + struct.pack("<HHQ", 7, 8, dropped) + struct.pack("<HH", 0, 0)
    return block(5, struct.pack("<III", interface, 0, 0) + options)


HEAD = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) + block(1, struct.pack("<HHI", 1, 0, 96))


def merger(**bounds: Any) -> Merger:
    wanted = Bounds(**bounds)
    return Merger({"one": ["core:r1"], "two": ["core:r1", "left2:eth0"]}, {"two": AHEAD}, wanted)


def read(text: bytes) -> tuple[list[tuple[str, int]], list[Any], list[Any]]:
    """Packets as (interface, time), descriptions of interfaces, their statistics."""
    packets, interfaces, statistics = [], [], []
    for found in FileScanner(io.BytesIO(text)):
        match found:
            case blocks.InterfaceDescription():
                interfaces.append(found)
            case blocks.EnhancedPacket():
                machine = interfaces[found.interface_id].options["if_description"]
                packets.append((machine, (found.timestamp_high << 32) + found.timestamp_low))
            case blocks.InterfaceStatistics():
                statistics.append(found)
    return packets, interfaces, statistics


def test_packets_are_in_the_order_of_their_times_by_the_first_machines_clock() -> None:
    merging = merger()
    out = merging.take()
    merging.add("one", HEAD + packet(10_000_000) + packet(30_000_000) + mark(50_000_000))
    assert read(out + merging.take())[0] == [], "two may have an older one yet"
    merging.add("two", HEAD + packet(20_000_000 + AHEAD.ahead_ns, interface=1) + mark(25_000_000 + AHEAD.ahead_ns))
    out += merging.take()
    assert read(out)[0] == [("machine one", 10_000_000), ("machine two", 20_000_000)]
    assert merging.held_bytes("one") == len(packet(0)) and merging.held_bytes("two") == 0
    merging.finished("two")
    out += merging.take()
    assert read(out)[0][2:] == [("machine one", 30_000_000)], "two sends nothing more"


def test_the_file_says_whose_clock_stamped_and_what_is_not_known_of_it() -> None:
    merging = merger(snap_bytes=96)
    out = merging.take()
    for machine in ("one", "two"):
        merging.add(machine, HEAD + packet(7_000_000) + counts(0, 5, 2))
        merging.finished(machine)
    merging.compared("two", Clock(6_000_000, 50_000))
    out += merging.close({"two": Clock(-7_000_000, 60_000)})
    _, interfaces, statistics = read(out)
    assert [(each.options["if_name"], each.snaplen) for each in interfaces] == [
        ("core:r1", 96),
        ("core:r1", 96),
        ("left2:eth0", 96),
    ]
    said = [each.options.get_all("opt_comment")[0] for each in interfaces]
    assert said[0] == "machine one: stamped by its own clock, which is the file's"
    assert said[1] == (
        "machine two: its clock is 5ms ahead of the first machine's, known to ±40us: times are moved by that"
    )
    again, last = statistics[:2], statistics[2:]
    assert [each.interface_id for each in again] == [1, 2] and "6ms ahead" in again[0].options["opt_comment"]
    assert "at the end: its clock is 7ms behind" in last[1].options["opt_comment"]
    assert [(each.options["isb_ifrecv"], each.options["isb_osdrop"]) for each in last] == [(5, 2), (5, 2), (0, 0)]
    assert [each.options["isb_usrdeliv"] for each in last] == [1, 1, 0]
    assert [each.written for each in merging.counted] == [1, 1, 0]


def test_bounds_are_those_of_the_whole_file() -> None:
    merging = merger(packets=3)
    out = merging.take()
    for machine in ("one", "two"):
        merging.add(machine, HEAD + b"".join(packet(at) for at in range(10_000_000, 10_000_005)))
        merging.finished(machine)
    out += merging.close({})
    assert len(read(out)[0]) == 3 and merging.end == "packets"

    for most in range(1800, 3000, 97):
        merging = merger(most_bytes=most)
        out = merging.take()
        merging.add("one", HEAD + b"".join(packet(at) for at in range(40)) + counts(0, 40, 0))
        merging.finished("one")
        out += merging.take()
        merging.compared("two", AHEAD)
        merging.finished("two")
        out += merging.close({"two": AHEAD})
        assert len(out) <= most and merging.end == "full", most
        assert read(out)[0]
    with pytest.raises(ValueError, match="its own head"):
        merger(most_bytes=1000)


def test_any_cut_of_the_streams_gives_the_same_packets() -> None:
    chance = random.Random(18)
    streams = {}
    times: list[tuple[int, str]] = []
    for machine in ("one", "two"):
        at, text = 10_000_000_000, HEAD
        for _ in range(200):
            at += chance.randrange(1, 100_000)
            text += packet(at, bytes(chance.randrange(14, 90)), 0)
            times.append((at - (AHEAD.ahead_ns if machine == "two" else 0), f"machine {machine}"))
            if chance.random() < 0.2:
                text += mark(at)
        streams[machine] = text
    for _ in range(5):
        merging = merger(most_bytes=UNBOUNDED)
        out, left = merging.take(), dict(streams)
        while any(left.values()):
            machine = chance.choice([name for name, text in left.items() if text])
            size = chance.randrange(1, 3000)
            merging.add(machine, left[machine][:size])
            left[machine] = left[machine][size:]
            if not left[machine]:
                merging.finished(machine)
            out += merging.take()
        out += merging.close({})
        assert [(at, machine) for machine, at in read(out)[0]] == sorted(times)


@pytest.mark.parametrize("wrong", [b"Last login: today\n", struct.pack("<II", 6, 1 << 30) + bytes(8)])
def test_what_is_no_capture_is_said(wrong: bytes) -> None:
    with pytest.raises(ValueError, match=r"machine two: .* came where its packets should"):
        merger().add("two", wrong)
