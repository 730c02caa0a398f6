"""Links of the kernel's parts in the virtual clock, measured from outside: each packet's delay and spacing in ns."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import orjson
import pytest

from ewan.generator.traffic_request import addresses_of
from ewan.labs import host
from ewan.labs.compile import compile
from ewan.labs.plan import Plan
from ewan.labs.runtime.program import Command, Program
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime
from ewan.labs.spec import from_template

pytestmark = pytest.mark.virtual

SECOND = 10**9
FRAMED, ACCESS_BPS, DELAY_NS = 1538, 10_000_000_000, 50_000_000

RECEIVE = """
import json, socket, struct
socket_ = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
socket_.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
socket_.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)  # SO_RCVBUFFORCE
socket_.bind(("", 5000))
socket_.settimeout({wait})
arrived = []
try:
    while True:
        data, about, _, _ = socket_.recvmsg(2048, 64)
        seconds, ns = struct.unpack("qq", about[0][2])
        arrived.append([struct.unpack("q", data[:8])[0], seconds * 10**9 + ns])
except TimeoutError:
    print(json.dumps(arrived))
"""

SEND = """
import socket, struct, time
socket_ = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
socket_.setsockopt(socket.SOL_SOCKET, 32, 1 << 26)  # SO_SNDBUFFORCE
socket_.connect(("{address}", 5000))
time.sleep(0.2)
for _ in range({count}):
    socket_.send(struct.pack("q", time.time_ns()) + bytes(1464))
    if {gap}:
        time.sleep({gap})
"""


def lab(**settings: str) -> Plan:
    """A dumbbell with 50 ms each way; hosts send at 10 Gbit/s and have no dither unless told."""
    words = {
        "name": f"vl{os.getpid()}",
        "emulator": "kernel",
        "rtt": "100ms",
        "ip": "4",
        "dither": "0",
        "access": "10G",
        **settings,
    }
    return compile(from_template("dumbbell", words), host.virtual_facts())


def times(plan: Plan, place: Path, count: int, gap_s: float = 0, wait_s: float = 2) -> list[tuple[int, int]]:
    """When each full packet from left1 was sent and when it came to right1, in ns."""
    address = addresses_of(plan)["right1"]
    receive, send = RECEIVE.format(wait=wait_s), SEND.format(address=address, count=count, gap=gap_s)
    commands = (
        Command("right1", ("python3", "-c", receive)),
        Command("left1", ("python3", "-c", send)),
    )
    place.mkdir()
    run = VirtualRuntime(BINARY).run(plan, Program(commands=commands, longest_ns=600 * SECOND), place)
    assert run.ended.how == "completed"
    return [(sent, came) for sent, came in orjson.loads((place / "commands/1-right1.out").read_bytes())]


def service_ns(rate_bps: int) -> Fraction:
    return Fraction(FRAMED * 8 * SECOND, rate_bps)


@pytest.mark.parametrize(
    ("rate", "bps", "count"),
    [
        ("8kbit/s", 8_000, 6),
        ("100Mbit/s", 100_000_000, 300),
        ("1Gbit/s", 10**9, 300),
        ("9999999999bit/s", 9_999_999_999, 300),
        ("40Gbit/s", 40 * 10**9, 300),
        ("100Gbit/s", 100 * 10**9, 300),
    ],
)
def test_packets_leave_a_bottleneck_one_service_time_apart(tmp_path: Path, rate: str, bps: int, count: int) -> None:
    seen = times(lab(rate=rate, access="100G", buffer="400pkt"), tmp_path / "run", count, wait_s=3)
    assert len(seen) == count
    exact, first = service_ns(bps), seen[0][1]
    # Rounded up to the ns in which the last bit is out; the remainder is carried, so the error does not grow.
    off = [came - first - number * exact for number, (_, came) in enumerate(seen)]
    assert max(off) - min(off) < 1
    alone = DELAY_NS + exact + service_ns(100 * 10**9)
    assert 0 <= seen[0][1] - seen[0][0] - alone < 2, "one rounding at the host, one at the link"


@pytest.mark.parametrize(
    ("settings", "count", "gap_s", "lost"),
    [
        ({"rate": "100M"}, 200, 0, False),
        ({"rate": "100M"}, 200, 0.0001, False),
        ({"rate": "9999999999bit/s"}, 200, 0, False),
        ({"rate": "100M", "buffer": "20pkt"}, 200, 0, True),
        ({"rate": "7Mbit/s", "buffer": "9ms"}, 400, 0.001, True),
        ({"rate": "40Mbit/s", "buffer": "1BDP", "framing": "ip"}, 600, 0, True),
    ],
    ids=["a burst", "spaced", "a rate of odd bits", "packets", "a time", "a BDP"],
)
def test_a_link_of_the_kernel_and_our_own_treat_each_packet_alike(
    tmp_path: Path, settings: dict[str, str], count: int, gap_s: float, lost: bool
) -> None:
    """netem with psp, and our model: the same packets are lost, and each other one arrives at the same ns."""

    def since_first_sent(emulator: str) -> list[tuple[int, int]]:
        seen = times(lab(emulator=emulator, **settings), tmp_path / emulator, count, gap_s)
        return [(sent - seen[0][0], came - seen[0][0]) for sent, came in seen]

    kernel, own = since_first_sent("kernel"), since_first_sent("user")
    assert kernel == own
    assert (len(kernel) < count) == lost and len(kernel) > 5


@pytest.mark.parametrize("buffer", ["100pkt", "153800B", "154000B"])
def test_the_buffer_limits_what_waits_and_nothing_else(tmp_path: Path, buffer: str) -> None:
    plan = lab(rate="100M", buffer=buffer)
    seen = times(plan, tmp_path / "run", 600)
    # 100 wait, and as long as the burst lasts at 10 Gbit/s, one is served for each 100 that come.
    assert len(seen) == 100 + 6
    (forward, _) = orjson.loads((tmp_path / "run/links.json").read_bytes())["links"]
    assert (forward["dropped_queue"], forward["dropped_impair_or_limit"], forward["late_packets"]) == (494, 0, 0)
    assert forward["sent_bytes"] == 106 * FRAMED


def test_a_host_waits_a_seeded_time_below_its_dither(tmp_path: Path) -> None:
    first, again, other = (
        [came - sent for sent, came in times(lab(rate="100M", dither="auto", seed=seed), tmp_path / name, 500, 0.001)]
        for name, seed in (("first", "1"), ("again", "1"), ("other", "2"))
    )
    assert first == again != other
    dither = service_ns(100_000_000)
    added = [delay - DELAY_NS - dither - service_ns(ACCESS_BPS) for delay in first]
    assert min(added) >= 0 and max(added) < dither + 2
    # 500 uniform draws: the mean within 4 standard errors.
    assert abs(float(sum(added) / len(added) - dither / 2)) < 4 * float(dither) / (12 * 500) ** 0.5
    assert max(added) - min(added) > dither * 9 / 10


CONNECT = """
import socket
with socket.create_connection(("{address}", 5001)) as connection:
    connection.sendall(bytes(3_000_000))
"""
ACCEPT = """
import socket
with socket.create_server(("", 5001)) as server, server.accept()[0] as connection:
    received = 0
    while piece := connection.recv(1 << 20):
        received += len(piece)
    print(received)
"""


def test_what_a_sender_left_to_its_hardware_to_cut_is_cut_before_the_link(tmp_path: Path) -> None:
    plan = lab(emulator="user")
    address = addresses_of(plan)["right1"]
    more = "ethtool -K $port tso on gso on && ip link set $port gso_max_segs 64 || exit"
    large = f"for port in $(ls /sys/class/net | grep eth); do {more}; done"
    # The host's own card would cut them.
    bare = f"{large}; tc qdisc replace dev eth0 root pfifo limit 1000"
    commands = (
        Command("left1", ("sh", "-c", bare)),
        Command("r1", ("sh", "-c", large)),
        Command("right1", ("python3", "-c", ACCEPT)),
        Command("left1", ("python3", "-c", CONNECT.format(address=address)), SECOND),
    )
    run = VirtualRuntime(BINARY).run(plan, Program(commands=commands, longest_ns=60 * SECOND), tmp_path / "run")
    assert run.ended.how == "completed"
    assert (tmp_path / "run/commands/3-right1.out").read_text().strip() == "3000000"
    (forward, _) = orjson.loads((tmp_path / "run/links.json").read_bytes())["links"]
    # 1448 bytes of payload a packet, and some packets without.
    assert 3_000_000 / 1448 < forward["in_packets"] < 2100
    assert forward["in_bytes"] <= FRAMED * forward["in_packets"]
