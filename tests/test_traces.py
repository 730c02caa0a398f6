"""A trace of mahimahi delivers what it says: at one opportunity a millisecond, 1504 bytes of IP each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ewan.generator.traffic_request import addresses_of
from ewan.labs import host
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from ewan.labs.compile import compile
from ewan.labs.runtime.program import Command, Program
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime
from ewan.labs.spec import parse
from tests.test_one_model import begin_ns, frames, watch

pytestmark = pytest.mark.virtual

PACKETS = 2000
PACKET_BYTES, OPPORTUNITY_BYTES = 1500, 1504
DELAY_NS = 10 * NS_PER_MS

# All at once, a while after the beginning of the trace.
SEND = """
import socket, sys, time
flow = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
flow.setsockopt(socket.SOL_SOCKET, 32, 1 << 28)  # SO_SNDBUFFORCE
time.sleep(0.5003)
for number in range({packets}):
    flow.sendto(bytes(1472), (sys.argv[1], 5000))
""".replace("{packets}", str(PACKETS))

LAB = f"""
name: tr{os.getpid()}
topology: dumbbell
ip: 4
dither: 0ms
access: {{rate: 10Gbit/s, buffer: 100MB}}
wan:
  forward: {{trace: {{file: 12mbit.mahimahi}}, delay: 10ms, buffer: 10MB}}
  backward: {{rate: 1Gbit/s, delay: 10ms}}
"""


def test_twelve_mbit_are_one_opportunity_a_millisecond(tmp_path: Path) -> None:
    (tmp_path / "12mbit.mahimahi").write_text("1\n")
    plan = compile(parse(LAB, tmp_path / "x.lab.yaml"), host.virtual_facts())
    link, place = plan.links[0], tmp_path / "run"
    address = addresses_of(plan)["right1"]
    commands = (
        Command(link.node, watch(link.port_a, "in")),
        Command(link.node, watch(link.port_b, "out")),
        Command("left1", ("python3", "-c", SEND, address)),
        Command("left1", ("date", "+%s%N")),
    )
    place.mkdir()
    run = VirtualRuntime(BINARY).run(plan, Program(commands=commands, longest_ns=60 * NS_PER_SECOND), place)
    assert run.ended.how == "completed", run.ended
    came, left = (frames(next((place / "commands").glob(f"{number}-*.out")).read_bytes()) for number in (1, 2))
    began = begin_ns(place)
    assert len(came) == len(left) == PACKETS
    # The first opportunity after the first packet's arrival; a packet has left when its last byte has.
    first = (came[0].at_ns - began) // NS_PER_MS + 1
    took = [-(-PACKET_BYTES * number // OPPORTUNITY_BYTES) for number in range(1, PACKETS + 1)]
    wanted = [began + (first - 1 + each) * NS_PER_MS + DELAY_NS for each in took]
    assert [frame.at_ns for frame in left] == wanted
    in_a_second = sum(frame.at_ns < left[0].at_ns + NS_PER_SECOND for frame in left) * PACKET_BYTES * 8
    assert abs(in_a_second - 12_032_000) <= PACKET_BYTES * 8
