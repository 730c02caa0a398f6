"""A link in the virtual kernel treats every packet as the model does in a process of its own: the same losses, drops,
marks, copies, turned bits, and departures to the nanosecond.

Packets of all sizes, bursts and pauses go through a link whose two ports are watched. What came in is then shown to the
model alone (`link-bench model`), and what that says must have come out.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import hypothesis
import orjson
import pytest
from hypothesis import given, strategies

from ewan.calibration.link_model import departures
from ewan.generator.traffic_request import addresses_of
from ewan.labs import host
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.compile import compile
from ewan.labs.plan import Plan
from ewan.labs.runtime.program import Command, Program
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime
from ewan.labs.spec import parse

pytestmark = pytest.mark.virtual

PACKETS = int(os.environ.get("PACKETS", "4000"))
EXAMPLES = int(os.environ.get("EXAMPLES", "4"))
"""Of settings that are drawn at random. By hand: `EXAMPLES=200 PACKETS=10000 pytest …`."""
HEAD_BYTES = 66
"""Ethernet, IPv4, TCP with 12 bytes of options."""
LONGEST_S = 20

# A packet's number is the first thing in it.
SEND = """
import random, socket, struct, sys, time
random.seed(int(sys.argv[2]))
flows = []
for port in range(6000, 6020):
    socket_ = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    socket_.setsockopt(socket.SOL_SOCKET, 32, 1 << 28)  # SO_SNDBUFFORCE
    socket_.bind(("", port))
    flows.append(socket_)
time.sleep(0.5)
for number in range({packets}):
    socket_ = flows[min(len(flows) - 1, int(random.expovariate(0.4)))]
    if random.random() < 0.2:
        socket_.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, random.choice((0, 1, 2, 2, 0xb8, 0x88)))
    socket_.sendto(struct.pack(">q", number) + bytes(random.choice((0, 500, 1400, 1464))), (sys.argv[1], 5000))
    if random.random() < 0.1:
        time.sleep(random.random() * 0.0018)
""".replace("{packets}", str(PACKETS))

# Pure ACKs of some flows among datagrams; the window, which follows the acknowledgement number, tells them apart. Their
# checksum is 0, so that nobody answers.
SEND_ACKS = """
import random, socket, struct, sys, time
random.seed(int(sys.argv[2]))
data = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
for each in (data, raw):
    each.setsockopt(socket.SOL_SOCKET, 32, 1 << 28)  # SO_SNDBUFFORCE
acknowledged = [2**32 - 10**6] * 20
options = [b"", bytes((1, 1, 8, 10)) + bytes(8), bytes((1, 1, 5, 10)) + bytes(8)]
time.sleep(0.5)
for number in range({packets}):
    if random.random() < 0.3:
        data.sendto(struct.pack(">q", number) + bytes(1400), (sys.argv[1], 5000))
    else:
        flow = min(len(acknowledged) - 1, int(random.expovariate(0.2)))
        acknowledged[flow] += random.choice((-1448, 0, 1448, 2896, 2896))
        extra = random.choices(options, (6, 6, 1))[0]
        flags = random.choices((0x10, 0x50, 0x18), (12, 1, 1))[0]
        ports, offset = (7000 + flow, 80), (20 + len(extra)) // 4 << 4
        header = struct.pack(">HHIIBBHHH", *ports, 1, acknowledged[flow] % 2**32, offset, flags, number, 0, 0)
        raw.sendto(header + extra, (sys.argv[1], 0))
    if random.random() < 0.1:
        time.sleep(random.random() * 0.003)
""".replace("{packets}", str(PACKETS))

LINKS = {
    "drop-tail by packets": "buffer: 20pkt",
    "drop-tail by bytes": "buffer: 20kB",
    "losses at random": "loss: 5%, corrupt: 1%, duplicate: 1%",
    "bit errors": "loss: {bit-errors: 10ppm}, framing: ip",
    "losses in bursts": "loss: {gilbert-elliott: {to_bad: 2%, to_good: 30%, loss_bad: 80%, loss_good: 0.1%}}",
    "losses of four states": "loss: {markov: {p13: 2%, p31: 20%, p32: 20%, p23: 30%, p14: 1%}}",
    "every seventh": "loss: {every: 7}",
    "a pattern": 'loss: {pattern: "00010011"}',
    "uniform delay, reordered": "jitter: 3ms, distribution: uniform, reorder: true",
    "normal delay, in order": "jitter: 1ms",
    "correlated delay": "jitter: 2ms, correlation: 90%",
    "displaced packets": "displace: {share: 5%, packets: 3, within: 5ms}, buffer: 25pkt",
    "displaced packets, reordered": "displace: {share: 10%, packets: 20, within: 40ms}, jitter: 2ms, reorder: true",
    "pareto delay, reordered": "jitter: 1ms, distribution: pareto, reorder: true",
    "a middlebox": "ecn: bleach, blackhole: 1450B, duplicate: 1%, queue: {red: {ecn: true}}, buffer: 60kB",
    "a burst": "burst: 20kB, buffer: 40kB",
    "a burst at a peak rate": "burst: 20kB, peak: 33333333bit/s, buffer: 40kB",
    "a policer": "police: {rate: 9999999bit/s, burst: 20kB}, duplicate: 1%, corrupt: 1%",
    "aggregates": "aggregate: {packets: 8, time: 3ms, gap: 300us}, buffer: 60pkt",
    "slots": "slot: 1ms, buffer: 40kB",
    "HARQ": "harq: {errors: 20%, round: 3ms}",
    "HARQ, reordered": "harq: {errors: 20%, round: 3ms}, reorder: true, jitter: 1ms",
    "RED": "queue: {red: {ecn: true}}, buffer: 60kB",
    "CoDel": "queue: {codel: {target: 1ms, interval: 10ms, ecn: true}}, buffer: 1000pkt",
    "PIE": "queue: {pie: {target: 2ms, ecn: true}}, buffer: 200pkt",
    "step": "queue: {step: {at: 10pkt}}, buffer: 40pkt",
    "FQ-CoDel": "queue: {fq-codel: {target: 1ms, interval: 10ms, flows: 16}}, buffer: 60pkt",
    "DRR": "queue: {drr: {flows: 64, quantum: 300B}}, buffer: 40kB",
    "SFQ": "queue: {sfq: {flows: 8, perturb: 100ms}}, buffer: 40pkt",
    "DualPI2": "queue: {dualpi2: {target: 2ms, step: 500us}}, buffer: 60pkt",
    "priority": "queue: {priority: {classes: [{name: voice, dscp: [ef], buffer: 5pkt}, {name: rest}]}}, buffer: 30pkt",
    "weighted": "queue: {weighted: {classes: [{name: a, dscp: [ef, af41], weight: 3}, {name: b}]}}, buffer: 30pkt",
}

LOSSES = ("loss: 2%", "loss: {every: 11}", "loss: {gilbert-elliott: {to_bad: 1%, to_good: 20%}}", "duplicate: 3%")
DELAYS = (
    "displace: {share: 3%, packets: 2}",
    "displace: {share: 20%, packets: 7, within: 3ms}, jitter: 1ms",
    "jitter: 2ms",
    "jitter: 3ms, correlation: 99%",
    "jitter: 4ms, reorder: true",
    "jitter: 3ms, distribution: pareto",
    "jitter: 3ms, distribution: uniform",
)
MEDIA = {
    "drop-tail": "buffer: 30pkt",
    "CoDel": "queue: {codel: {target: 1ms, interval: 10ms}}, buffer: 1000pkt",
    "aggregates": "aggregate: {packets: 8, time: 3ms, gap: 300us}, buffer: 60pkt",
    "losses and jitter": "loss: 2%, jitter: 3ms, buffer: 60kB",
}
"""Of links whose directions share a medium."""
RADIOS = (
    "aggregate: {packets: 4, gap: 200us}",
    "slot: 500us",
    "harq: {errors: 10%, round: 2ms, rounds: 2}",
    "slot: 1ms, aggregate: {packets: 64, time: 2ms, gap: 100us}, harq: {errors: 30%, round: 4ms}",
)
QUEUES = [words for name, words in LINKS.items() if "queue:" in words]
BUFFERS = ("buffer: 25pkt", "buffer: 60kB", "buffer: 20ms")


@strategies.composite
def any_settings(draw: strategies.DrawFn) -> str:
    """A loss, a delay, a radio link and a queue together, each of them or not."""
    queue = draw(strategies.sampled_from([*QUEUES, *BUFFERS]))
    more = [draw(strategies.sampled_from(["", *each])) for each in (LOSSES, DELAYS, RADIOS)]
    return ", ".join(words for words in (*more, queue, draw(strategies.sampled_from(["", "framing: ip"]))) if words)


TRACES = {
    "rows of rate, delay and loss": """time,rate,delay,loss
0s,20Mbit/s,10ms,0%
7.000001ms,0,,
19ms,3.333333Mbit/s,2ms,3%
40.5ms,90Mbit/s,25ms,
61234567ns,8Mbit/s,1ms,0%
80ms,,,
""",
    "rows of delay and buffer": "time,delay,buffer\n0s,10ms,60kB\n11ms,3ms,9kB\n23ms,,30kB\n30000001ns,17ms,\n50ms,,\n",
    "opportunities": "1\n1\n2\n3\n3\n3\n3\n8\n9\n20\n",
}
"""Files of traces, which repeat many times while SEND sends."""


class Seen(NamedTuple):
    """A frame at a port: when, its length without the Ethernet header, its number, its zero bytes."""

    at_ns: int
    ip_bytes: int
    traffic_class: int
    number: str
    zeros: int
    head: str
    """As hexadecimal digits: what the link knows of it; empty of a frame that left."""
    backward: bool = False


def lab(settings: str, emulator: str = "user", folder: Path = Path()) -> Plan:
    """`settings` of the link; 20 Mbit/s and 10 ms unless a trace is among them."""
    text = f"""
name: om{os.getpid()}
topology: dumbbell
ip: 4
dither: 0ms
emulator: {emulator}
access: {{rate: 10Gbit/s, buffer: 100MB}}
wan: {{rate: 20Mbit/s, delay: 10ms}}
links: {{core: {{{settings}}}}}
"""
    return compile(parse(text, folder / "one-model.lab.yaml"), host.virtual_facts())


def seen(plan: Plan, place: Path, seed: int = 1, send: str = SEND) -> tuple[list[Seen], list[Seen]]:
    """What came into the link, and what went out of it."""
    address = addresses_of(plan)["right1"]
    link = plan.links[0]
    commands = (
        Command(link.node, watch(link.port_a, "in")),
        Command(link.node, watch(link.port_b, "out")),
        Command("left1", ("python3", "-c", send, address, str(seed))),
        Command("left1", ("date", "+%s%N")),
    )
    captured = captures(plan, place, commands)
    return frames(captured[0]), frames(captured[1])


def captures(plan: Plan, place: Path, commands: tuple[Command, ...]) -> list[bytes]:
    """What each command wrote."""
    place.mkdir()
    run = VirtualRuntime(BINARY).run(plan, Program(commands=commands, longest_ns=600 * NS_PER_SECOND), place)
    assert run.ended.how == "completed", run.ended
    numbers = range(1, len(commands) + 1)
    return [next((place / "commands").glob(f"{number}-*.out")).read_bytes() for number in numbers]


def watch(port: str, way: str, longest_s: int = LONGEST_S, buffer_kib: int = 65536) -> tuple[str, ...]:
    """Frames of IPv4 that come in or go out at a port, whole, with times in ns; as long as SEND may take."""
    words = ("-i", port, "-Q", way, "-w", "-", "--time-stamp-precision=nano", "-B", f"{buffer_kib}", "ip")
    return ("timeout", f"{longest_s}", "tcpdump", "-Z", "root", *words)


def frames(captured: bytes) -> list[Seen]:
    """Of a file of tcpdump's (pcap, little-endian, ns), whose Ethernet header is left out."""
    found, offset = [], 24
    while offset < len(captured):
        seconds, ns, length, _ = struct.unpack_from("<4I", captured, offset)
        frame = captured[offset + 16 : offset + 16 + length]
        number, rest = frame[42:50].hex(), frame[50:]
        at_ns, zeros = seconds * NS_PER_SECOND + ns, rest.count(0)
        found.append(Seen(at_ns, len(frame) - 14, frame[15], number, zeros, frame[:HEAD_BYTES].hex()))
        offset += 16 + length
    return found


def begin_ns(place: Path) -> int:
    """T0, when traces begin, on the clock of the frames: from a command that tells the time at which it was started."""
    date = orjson.loads((place / "commands.json").read_bytes())["commands"][3]
    return int((place / "commands" / "4-left1.out").read_text()) - int(date["started_ns"])


@pytest.mark.parametrize("settings", LINKS.values(), ids=LINKS)
def test_every_packet_is_treated_as_the_model_treats_it(tmp_path: Path, settings: str) -> None:
    left = treated_alike(lab(settings), tmp_path / "run")
    # The case is not an empty one.
    assert len(left) != PACKETS or left != sorted(left) or "jitter" in settings


@given(any_settings(), strategies.integers(2, 1000))
@hypothesis.settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
def test_whatever_is_set_together(settings: str, seed: int) -> None:
    with TemporaryDirectory() as place:
        treated_alike(lab(settings), Path(place) / "run", seed)


@pytest.mark.parametrize("queue", ["buffer: 300pkt", "queue: {codel: {target: 1ms, interval: 10ms}}, buffer: 300pkt"])
def test_the_same_acks_are_filtered(tmp_path: Path, queue: str) -> None:
    kept = treated_alike(lab(queue), tmp_path / "kept", send=SEND_ACKS)
    left = treated_alike(lab(f"acks: filter, {queue}"), tmp_path / "run", send=SEND_ACKS)
    assert len(left) < 0.9 * len(kept)


@pytest.mark.parametrize("settings", MEDIA.values(), ids=MEDIA)
def test_directions_that_share_a_medium_take_the_same_turns(tmp_path: Path, settings: str) -> None:
    plan = lab(f"duplex: half, {settings}")
    link, addresses, place = plan.links[0], addresses_of(plan), tmp_path / "run"
    sides = ((link.port_a, link.port_b, "left1", "right1"), (link.port_b, link.port_a, "right1", "left1"))
    commands = []
    for number, (entry, exit_, source, sink) in enumerate(sides):
        send = ("python3", "-c", SEND, addresses[sink], str(number))
        commands += [Command(link.node, watch(*port, buffer_kib=16384)) for port in ((entry, "in"), (exit_, "out"))]
        commands += [Command(source, send, at_ns=number * 1_234_567)]
    captured = captures(plan, place, tuple(commands))
    arrived = [each._replace(backward=way == 1) for way in (0, 1) for each in frames(captured[3 * way])]
    arrived.sort(key=lambda each: each.at_ns)
    assert len(arrived) >= 2 * PACKETS
    wanted = departures(link.forward, arrived, backward=link.backward)
    for backward in (False, True):
        mine = [each for each in wanted if arrived[each.packet].backward == backward]
        left = frames(captured[3 * backward + 1])
        assert [(each.number, each.at_ns) for each in left] == [
            (arrived[each.packet].number, each.due_ns) for each in mine
        ]
        assert len(left) < PACKETS


@pytest.mark.parametrize("trace", TRACES.values(), ids=TRACES)
def test_a_trace_is_followed_as_the_model_follows_it(tmp_path: Path, trace: str) -> None:
    (tmp_path / "t").write_text(trace)
    buffer = "" if "buffer" in trace else ", buffer: 60kB"
    left = treated_alike(lab(f"trace: {{file: t}}{buffer}", folder=tmp_path), tmp_path / "run")
    assert len(left) < PACKETS, "some are lost or find the queue full"


def treated_alike(plan: Plan, place: Path, seed: int = 1, send: str = SEND) -> list[Seen]:
    """What left, once each packet was seen to be treated as the model treats it."""
    assert plan.links[0].backend == "ewan"
    arrived, left = seen(plan, place, seed, send)
    assert len(arrived) == PACKETS
    wanted = departures(plan.links[0].forward, arrived, begin_ns(place))
    assert len(left) == len(wanted)
    for found, each in zip(left, wanted, strict=True):
        came = arrived[each.packet]
        assert found.at_ns == each.due_ns
        if each.corrupt is None:
            mark = 3 if each.mark_ce else 0
            traffic_class = came.traffic_class & (0xFC if each.bleach else 0xFF)
            assert found._replace(head="") == Seen(
                each.due_ns, came.ip_bytes, traffic_class | mark, came.number, came.zeros, ""
            )
    return left


@pytest.mark.parametrize("settings", [LINKS["drop-tail by packets"], LINKS["drop-tail by bytes"]])
def test_the_kernels_parts_send_and_drop_the_same_packets_at_the_same_times(tmp_path: Path, settings: str) -> None:
    """netem, psp and the queue: the delay line is in front there, so with a constant delay all comes out alike."""
    plan = lab(settings, "kernel")
    assert plan.links[0].backend == "kernel"
    arrived, left = seen(plan, tmp_path / "run")
    wanted = departures(plan.links[0].forward, arrived)
    assert PACKETS > len(wanted) == len(left)
    for found, each in zip(left, wanted, strict=True):
        assert (found.number, found.at_ns) == (arrived[each.packet].number, each.due_ns)
