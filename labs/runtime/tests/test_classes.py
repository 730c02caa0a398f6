"""Queues with classes in the virtual clock: each class's counters over time, and what they say of what was sent."""

from __future__ import annotations

import os
from pathlib import Path

import orjson
import pytest

from ewan.generator.traffic_request import addresses_of
from ewan.labs import host
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from ewan.labs.compile import compile
from ewan.labs.runtime.program import Command, Program
from ewan.labs.runtime.tests.lab import BINARY, table
from ewan.labs.runtime.virtual import VirtualRuntime
from ewan.labs.spec import parse

pytestmark = pytest.mark.virtual

SEND = """
import socket, sys, time
address, traffic_class, count, gap_us = sys.argv[1], *map(int, sys.argv[2:])
socket_ = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
socket_.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, traffic_class)
for _ in range(count):
    socket_.sendto(bytes(1434), (address, 5000))
    time.sleep(gap_us / 1e6)
"""
ECT1, EF = 1, 46 << 2
FAST, SLOW = 1000, 100
"""Packets of 1500 bytes on the wire: 1.2 ms at 10 Mbit/s. FAST come each 0.8 ms, SLOW each 8 ms."""


@pytest.mark.parametrize(
    ("queue", "traffic_class", "names"),
    [
        ("dualpi2", ECT1, ("l4s", "classic")),
        ("{priority: {classes: [{name: voice, dscp: [ef]}, {name: rest}]}}", EF, ("voice", "rest")),
    ],
)
def test_each_class_is_counted_on_its_own(
    tmp_path: Path, queue: str, traffic_class: int, names: tuple[str, str]
) -> None:
    text = f"""
name: cl{os.getpid()}
topology: dumbbell
ip: 4
dither: 0ms
wan: {{rate: 10Mbit/s, delay: 5ms, buffer: 1000pkt, queue: {queue}}}
"""
    plan = compile(parse(text, Path("classes.lab.yaml")), host.virtual_facts())
    address = addresses_of(plan)["right1"]
    send = ("python3", "-c", SEND, address)
    commands = (
        Command("left1", (*send, "0", str(FAST), "800")),
        Command("left1", (*send, str(traffic_class), str(SLOW), "8000")),
    )
    program = Program(None, commands, 60 * NS_PER_SECOND, watch_ns=10 * NS_PER_MS)
    VirtualRuntime(BINARY).run(plan, program, tmp_path / "run")
    told = table(tmp_path / "run", "classes")
    assert {(row["link"], row["direction"], row["class"]) for row in told} == {
        ("core", heading, name) for heading in ("forward", "backward") for name in names
    }
    ways = {name: [row for row in told if (row["direction"], row["class"]) == ("forward", name)] for name in names}
    first, second = (ways[name][-1] for name in names)
    assert first["served_packets"] + first["queue_packets"] + first["dropped_packets"] == SLOW
    assert second["served_packets"] + second["queue_packets"] + second["dropped_packets"] == FAST
    # Who goes first waits for the packet in service; the others for all that came before them.
    assert first["waited_ns"] <= SLOW * 1_200_000
    assert max(row["queue_packets"] for row in ways[names[1]]) > 50
    for rows_of in ways.values():
        for key in ("time_ns", "served_packets", "waited_ns", "dropped_packets", "marked_packets"):
            assert [row[key] for row in rows_of] == sorted(row[key] for row in rows_of)
    links = orjson.loads((tmp_path / "run/links.json").read_bytes())["links"]
    forward = next(link for link in links if link["direction"] == "forward")
    assert [each["served_packets"] for each in forward["classes"]] == [
        first["served_packets"],
        second["served_packets"],
    ]
