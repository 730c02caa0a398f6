"""Links under load, in a virtual kernel that watches itself (KASAN, lockdep, UBSAN): it has nothing to report.

By hand only: this kernel takes ten minutes to build. Links of our model, of psp and netem, and of the token bucket,
with random rates, buffers, losses and delays; TCP and UDP at once, there and back. Meanwhile `tc` looks at them, rate
and delay change, and in the end they are removed with packets in them.

A watch that sleeps reports nothing either. So each kernel is first made to do wrong, and must report that; and each
trial looks whether lockdep, which ends at its first report and where it has no more room, still watches.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from unittest.mock import patch

from ewan.generator.traffic_request import addresses_of
from ewan.labs import host
from ewan.labs.base.source import DescriptionError
from ewan.labs.change import compile_change, wanted
from ewan.labs.compile import compile
from ewan.labs.link.direction import Heading
from ewan.labs.plan import Plan
from ewan.labs.record.events import Event, link_change
from ewan.labs.runtime.program import Command, Program
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime
from ewan.labs.spec import from_template
from tests.conftest import ROOT

TIER = "virtual"
QUICK = 0
LONG = 200

SECOND = 10**9
REPORT = re.compile(
    r"KASAN|UBSAN|BUG:|WARNING:|INFO: |possible |inconsistent lock|Call Trace|suspicious|corruption|Out of memory"
)

OF_THE_MODEL: tuple[dict[str, str], ...] = (
    {},
    {"queue": "codel"},
    {"queue": "fq-codel"},
    {"queue": "dualpi2", "ecn": "bleach"},
    {"queue": "{drr: {flows: 16}}", "corrupt": "10%", "duplicate": "10%"},
    {"jitter": "1ms", "reorder": "true", "displace": "{share: 10%, packets: 3}"},
    {"acks": "filter", "blackhole": "1000B"},
    {"burst": "20kB", "peak": "10Gbit/s"},
    {"slot": "1ms", "harq": "{errors: 20%, round: 2ms}"},
    {"duplex": "half"},
    {"duplex": "half", "queue": "codel", "aggregate": "{packets: 8, gap: 100us}"},
)
"""What a link of our model may be besides."""

FAULTS = {
    "SPINLOCKUP": r"WARNING: \S+ still has locks held!|BUG: scheduling while atomic",
    "ARRAY_BOUNDS": r"UBSAN: array-index-out-of-bounds",
    "READ_AFTER_FREE": r"BUG: KASAN: slab-use-after-free",
}
"""A fault that the kernel makes on request (Documentation/fault-injection/provoke-crashes.rst) → its report. The last
one ends lockdep."""

RECEIVE = """
import socket
with socket.create_server(("", 5000)) as server:
    connection, _ = server.accept()
    while connection.recv(1 << 16):
        pass
"""
SEND = """
import socket, time
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
with socket.create_connection(("{address}", 5000)) as tcp:
    tcp.settimeout(2)
    try:
        for number in range({count}):
            udp.sendto(bytes({udp_bytes}), ("{address}", 9))
            tcp.sendall(bytes({tcp_bytes}))
    except TimeoutError:
        pass
"""
PROVOKE = """
mkdir -p /tmp/debug && mount -t debugfs debug /tmp/debug || exit 1
for fault in {faults}; do (echo $fault >/tmp/debug/provoke-crash/DIRECT); done
"""


def reports(log: str) -> list[str]:
    """Lines of a kernel's log that report something."""
    return [line for line in log.splitlines() if REPORT.search(line)]


def asleep(log: str, lockdep: str) -> list[str]:
    """Why a kernel with this log, from its first line, and this /proc/lockdep_stats, would report nothing."""
    wanted = {
        "the log has lost its beginning": "Linux version" in log,
        "lockdep did not find the faults of its own test": re.search(r"Good, all +\d+ testcases passed!", log),
        "lockdep has ended": re.search(r"^ debug_locks: +1$", lockdep, re.MULTILINE),
    }
    return [why for why, there in wanted.items() if not there]


def draw(random_: random.Random) -> tuple[dict[str, str], Plan]:
    """Words of a description that is not refused (a slow link holds no packet in 5 ms), and its plan."""
    while True:
        words = {
            "rtt": f"{random_.choice([0, 1, 20, 300])}ms",
            "rate": random_.choice(["64kbit/s", "3Mbit/s", "1Gbit/s", "9999999999bit/s"]),
            "buffer": random_.choice(["1pkt", "20pkt", "5ms", "1BDP", "3000B"]),
            "loss": random_.choice(["0%", "1%", "30%"]),
            "emulator": random_.choice(["kernel", "tbf", "user", "user"]),
            "ip": "4",
        }
        words |= random_.choice(OF_THE_MODEL) if words["emulator"] == "user" else {}
        try:
            return words, compile(from_template("dumbbell", {"name": "watched", **words}), host.virtual_facts())
        except DescriptionError:
            continue


def changes(plan: Plan, random_: random.Random) -> tuple[Event, ...]:
    """Other rates and delays, each way, while packets are in the link. A larger delay could need a larger store."""
    link, events = plan.links[0], []
    for number in range(random_.randint(0, 6)):
        now = link.forward.rate_bps
        words = {"rate": f"{random_.randint(max(8000, now // 4), now)}bit/s"}
        headings: list[Heading] = [random_.choice(["forward", "backward"])]
        if link.forward.half_duplex and random_.random() < 0.5:
            words, headings = {"duplex": random_.choice(["half", "full"])}, ["forward", "backward"]
        for heading in headings:
            change = compile_change(plan, link, heading, wanted(words))
            events.append(link_change(SECOND // 5 + number * SECOND // 10, link.name, heading, change))
    return tuple(events)


def run(
    kernel: Path, plan: Plan, commands: Sequence[Command], place: Path, events: tuple[Event, ...] = ()
) -> list[str]:
    """What the commands wrote; last, what the kernel wrote to its console, its end included."""
    program = Program(commands=tuple(commands), longest_ns=10 * SECOND, events=events)
    with patch.dict(os.environ, {"EWAN_KERNEL": str(kernel)}):
        VirtualRuntime(BINARY).run(plan, program, place)
    outputs = [place / f"commands/{number}-{command.node}.out" for number, command in enumerate(commands, 1)]
    return [path.read_text() for path in (*outputs, place / "console.log")]


def log(node: str, at_ns: int) -> tuple[Command, Command]:
    """The kernel's log, and how lockdep is."""
    return Command(node, ("dmesg",), at_ns), Command(node, ("cat", "/proc/lockdep_stats"), at_ns)


def check_watches(kernel: Path) -> None:
    """AssertionError where the kernel does not report what it was made to do wrong, or `reports` does not see it."""
    plan = compile(
        from_template("dumbbell", {"name": "watched", "emulator": "kernel", "ip": "4"}), host.virtual_facts()
    )
    for fault, report in FAULTS.items():
        provoke = Command("left1", ("sh", "-c", PROVOKE.format(faults=fault)), SECOND)
        with tempfile.TemporaryDirectory(prefix="ewan-watched-") as place:
            _, text, _, _ = run(kernel, plan, (provoke, *log("left1", 2 * SECOND)), Path(place) / "run")
        found = reports(text)
        assert any(re.search(report, line) for line in found), f"{kernel} does not report {fault}: {found}"


@cache
def kernel() -> Path:
    """The kernel that watches itself, built where it is not there; it was seen to watch."""
    built = subprocess.run([ROOT / "images/kernel/build.sh", "--debug"], stdout=subprocess.PIPE, text=True, check=True)
    path = Path(built.stdout.splitlines()[-1])
    check_watches(path)
    return path


def trial(seed: int, place: Path) -> None:
    random_ = random.Random(seed)
    words, plan = draw(random_)
    address = addresses_of(plan)["right1"]
    sizes = {"udp_bytes": random_.randint(0, 1472), "tcp_bytes": random_.randint(1, 20_000)}
    send = SEND.format(address=address, count=random_.randint(1, 400), **sizes)
    link, remove = plan.links[0], ("tc", "qdisc", "del", "dev")
    end_ns = random_.randint(SECOND, 8 * SECOND)  # after all changes
    commands = (
        Command("right1", ("python3", "-c", RECEIVE)),
        Command("left1", ("python3", "-c", send), SECOND // 10),
        Command("right1", ("ping", "-q", "-i", "0.01", "-w", "5", addresses_of(plan)["left1"]), SECOND // 10),
        *(Command(link.node, ("tc", "-s", "qdisc"), at * SECOND // 2) for at in range(1, 6)),
        *(Command(link.node, (*remove, port, "root"), end_ns) for port in (link.port_a, link.port_b)),
        *log("left1", 9 * SECOND),
    )
    *_, text, lockdep, console = run(kernel(), plan, commands, place / "run", changes(plan, random_))
    why = asleep(text, lockdep)
    assert not why, f"{why}: {text[:200]!r}"
    found = reports(text + console)
    assert not found, f"{words}: {found[:5]}"
