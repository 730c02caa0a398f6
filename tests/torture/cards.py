"""SIGKILL at a random moment of up or down of a lab with cards of the host: one `ewan down` gives each back as it was.

Veths stand for cards, in a namespace that stands for the host; two of them are the ends of a link, and into a third a
machine may be plugged.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from ewan.labs.runtime.tests.bench import Bench, bench
from ewan.labs.runtime.tests.lab import traces

TIER = "untimed"
QUICK = 2
LONG = 100
LONGEST_S = 2.0
DESCRIPTION = """
topology: dumbbell
name: {lab}
nodes: {{left1: {{interface: c1}}, r1: {{interface: c2}}}}
external: {{at: r2, interface: c3}}
"""
CARDS = ("c1", "c2", "c3")


def trial(seed: int, place: Path) -> None:
    random_ = random.Random(seed)
    lab, state = f"tc{os.getpid()}s{seed}", place / "state"
    description = place / "cards.lab.yaml"
    description.write_text(DESCRIPTION.format(lab=lab))
    with bench(f"{lab}-host", state) as host:
        host.cable("c1", "c2")
        host.cable("c3", "c4")
        _configure(host, random_)
        before = [host.card(name) for name in CARDS]
        what = random_.choice(("up", "down"))
        if what == "down":
            assert _ewan(host, "up", str(description)).wait() == 0
        process = _ewan(host, *(("up", str(description)) if what == "up" else ("down", lab)))
        time.sleep(random_.uniform(0, LONGEST_S))
        process.send_signal(signal.SIGKILL)
        process.wait()
        down = host.run(sys.executable, "-m", "ewan", "down", "--all", environment={"EWAN_RUNTIME": "netns"})
        assert down.returncode == 0, down.stderr
        assert [host.card(name) for name in CARDS] == before, what
        assert traces(lab, state) == [], what


def _configure(host: Bench, random_: random.Random) -> None:
    """What somebody may have set at cards: some of it. All are up or none: one without a carrier gets its link-local
    address when it happens to have one."""
    up = random_.random() < 0.7
    host.ip(f"link set c4 {'up' if up else 'down'}")
    for number, name in enumerate(CARDS, 1):
        if up:
            host.ip(f"link set {name} up")
            host.ip(f"route add 198.51.{number}.0/24 dev {name} metric {random_.randrange(1, 99)}")
        host.ip(f"address add 192.0.{number}.1/24 dev {name}")
        host.ip(f"address add 2001:db8:{number}::1/64 dev {name} nodad")
        host.ip(f"link set {name} mtu {random_.choice((1300, 1500, 9000))} txqueuelen {random_.randrange(1, 2000)}")
        host.ip(f"link set {name} promisc {random_.choice(('on', 'off'))}")
        for offload in ("tso", "gso", "gro", "tx"):
            host.out("ethtool", "-K", name, offload, random_.choice(("on", "off")))


def _ewan(host: Bench, *words: str) -> subprocess.Popen[bytes]:
    """Begun in the host's namespace."""
    command = ["nsenter", f"--net=/run/netns/{host.name}", "--", sys.executable, "-m", "ewan", *words]
    environment = {**os.environ, "EWAN_STATE": str(host.state), "EWAN_RUNTIME": "netns"}
    return subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
