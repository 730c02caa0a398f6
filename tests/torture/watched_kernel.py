"""Kernel links under load, in a virtual kernel that watches itself (KASAN, lockdep, UBSAN): it has nothing to report.

By hand only: this kernel takes ten minutes to build. Links of psp and netem, and of the token bucket, with random
rates, buffers, losses and delays; TCP and UDP at once; `tc` looks at them meanwhile.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
from functools import cache
from pathlib import Path
from unittest.mock import patch

from labs import host
from labs.compile import compile
from labs.runtime.program import Command, Program
from labs.runtime.tests.lab import BINARY
from labs.runtime.virtual import VirtualRuntime
from labs.spec import from_template
from tests.conftest import ROOT

TIER = "virtual"
QUICK = 0
LONG = 200

SECOND = 10**9
REPORT = re.compile(r"KASAN|UBSAN|BUG:|WARNING:|INFO: |possible |inconsistent lock|Call Trace|suspicious")

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


@cache
def kernel() -> Path:
    """The kernel that watches itself, built where it is not there."""
    built = subprocess.run([ROOT / "images/kernel/build.sh", "--debug"], stdout=subprocess.PIPE, text=True, check=True)
    return Path(built.stdout.splitlines()[-1])


def trial(seed: int, place: Path) -> None:
    random_ = random.Random(seed)
    words = {
        "rtt": f"{random_.choice([0, 1, 20, 300])}ms",
        "rate": random_.choice(["64kbit/s", "3Mbit/s", "1Gbit/s", "9999999999bit/s"]),
        "buffer": random_.choice(["1pkt", "20pkt", "5ms", "1BDP", "3000B"]),
        "loss": random_.choice(["0%", "1%", "30%"]),
        "emulator": random_.choice(["kernel", "kernel", "tbf"]),
        "ip": "4",
    }
    plan = compile(from_template("dumbbell", {"name": "watched", **words}), host.virtual_facts())
    right = next(node for node in plan.nodes if node.name == "right1")
    address = right.interfaces[0].addresses[0].split("/")[0]
    sizes = {"udp_bytes": random_.randint(0, 1472), "tcp_bytes": random_.randint(1, 20_000)}
    send = SEND.format(address=address, count=random_.randint(1, 400), **sizes)
    link = plan.links[0]
    commands = (
        Command("right1", ("python3", "-c", RECEIVE)),
        Command("left1", ("python3", "-c", send), SECOND // 10),
        *(Command(link.node, ("tc", "-s", "qdisc"), at * SECOND // 2) for at in range(1, 6)),
        Command("left1", ("dmesg",), 9 * SECOND),
    )
    with patch.dict(os.environ, {"EWAN_KERNEL": str(kernel())}):
        VirtualRuntime(BINARY).run(plan, Program(commands=commands, longest_ns=10 * SECOND), place / "run")
    log = (place / f"run/commands/{len(commands)}-left1.out").read_text()
    assert "Linux version" in log, f"no log of the kernel: {log[:200]!r}"
    found = [line for line in log.splitlines() if REPORT.search(line)]
    assert not found, f"{words}: {found[:5]}"
