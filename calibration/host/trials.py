"""Tries what this host's kernel permits, because files do not say it, or say it wrongly.

In: programs of this host, and the node binary for a lab of the virtual clock. Out: what worked. Each trial is made in a
network namespace without a name, or in a directory of its own, and nothing is left of it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ewan.calibration.host.finding import Finding
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.units.shown import about
from ewan.labs.compile import HostFacts, compile
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import Program
from ewan.labs.runtime.virtual import VirtualRuntime
from ewan.labs.runtime.wall import Walls
from ewan.labs.spec import parse

LONGEST_S = 20
LANDLOCK_OF_SIGNALS = 6
"""The first version that bounds signals (Linux 6.12)."""
_PACKETS = "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW).setsockopt(263, 10, 2)"
"""A packet socket with TPACKET_V3, which links read from (SOL_PACKET, PACKET_VERSION; packet(7))."""
STEPS = {
    "veth": "ip link add ewan0 type veth peer name ewan1",
    "tbf": "tc qdisc add dev ewan0 root tbf rate 8mbit burst 10k limit 10k",
    "IPv6": "ip -6 address add fd00::1/64 dev ewan0",
    "packet sockets": '"$python" -I -c "$packets"',
}
"""By what a live lab needs: a command that does it, in a namespace of its own."""
LAB = "topology: dumbbell\nrtt: 2ms\nwan: {rate: 100Mbit/s}\n"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@dataclass(frozen=True, slots=True)
class LiveTrial:
    """The result of the trials for live labs: `worked` has words of `STEPS`. `why`: the reason in one line if nothing
    was tried."""

    worked: frozenset[str] = frozenset()
    why: str = ""


def live(root: bool, run: Run = subprocess.run) -> LiveTrial:
    """As root in a network namespace; as another user in a user namespace too, which shows what root could do."""
    lacking = [name for name in ("unshare", "ip", "tc") if not shutil.which(name)]
    if lacking:
        return LiveTrial(why=f"not tried: {lacking[0]} is missing")
    script = "\n".join(f"{command} >/dev/null 2>&1 && echo '{name}'" for name, command in STEPS.items())
    words = [
        "unshare",
        *([] if root else ["--user", "--map-root-user"]),
        "--net",
        "sh",
        "-c",
        f"echo begun\n{script}\n:",
    ]
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "python": sys.executable, "packets": _PACKETS}
    try:
        tried = run(words, env=environment, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    except subprocess.TimeoutExpired:
        return LiveTrial(why="a trial did not end")
    said = tried.stdout.splitlines()
    if "begun" not in said:
        reason = (tried.stderr.strip().splitlines() or ["no reason given"])[-1]
        return LiveTrial(why=f"no network namespace can be made ({reason})")
    return LiveTrial(frozenset(said) & frozenset(STEPS))


def live_finding(tried: LiveTrial, root: bool, sudo: bool) -> Finding:
    """The finding on whether live labs can be made here, in one row."""
    what = "live labs"
    if tried.why:
        if root:
            return Finding(what, tried.why, "limited", "none: as root, on this kernel or in this container")
        return Finding(
            what, tried.why, "limited", "seen when a lab comes up, under sudo" if sudo else "none without root"
        )
    lacking = [name for name in STEPS if name not in tried.worked and name != "IPv6"]
    if "veth" in lacking or "packet sockets" in lacking:
        return Finding(what, f"the kernel lacks {', '.join(lacking)}", "limited", "none on this kernel")
    if not root and not sudo:
        return Finding(what, "the kernel allows them", "limited", "none: root or sudo is what lacks")
    who = "as root" if root else "under sudo"
    if lacking:
        return Finding(
            what, f"tried, without {', '.join(lacking)}", "limited", f"{who}; access links cannot be limited"
        )
    return Finding(what, "a pair of interfaces, a queue, packet sockets: tried", "good", f"they can be made {who}")


def simulated(binary: Path, kernel: Path) -> Finding:
    """A lab of two hosts in simulated time."""
    what = "simulated time"
    plan = compile(parse(LAB, Path("doctor.lab.yaml")), HostFacts((0,), (), "virtual"))
    begun = time.monotonic_ns()
    with tempfile.TemporaryDirectory(prefix="ewan-doctor-") as scratch:
        try:
            VirtualRuntime(binary, kernel).run(plan, Program(longest_ns=NS_PER_SECOND), Path(scratch) / "run")
        except LabError as error:
            return Finding(what, "a lab does not run", "limited", f"none here: {error}")
    took = about(time.monotonic_ns() - begun, "time", 2)
    return Finding(what, f"a lab ran, in {took}", "good", "labs in simulated time, as anybody")


def walled(told: Walls, user: str) -> Finding:
    """The wall around programs in simulated time, in one row; `told`: what `ewan-node walls` found."""
    what, version, namespaces = "wall", told.landlock, told.namespaces
    if not version and namespaces is not True:
        found = f"no Landlock, no namespaces ({namespaces})"
        return Finding(what, found, "limited", "no simulated time, or EWAN_WALL=off: steps may do all that you may")
    if not version:
        return Finding(what, "namespaces, no Landlock", "good", "steps reach what is shown to them, by one wall of two")
    if namespaces is not True:
        signals = "" if version >= LANDLOCK_OF_SIGNALS else "; they can signal your processes"
        meaning = f"steps write and read nothing else; /dev/shm has no bound for them{signals}"
        return Finding(what, f"Landlock {version}, no namespaces ({namespaces})", "limited", meaning)
    if not told.processes:
        return Finding(what, f"Landlock {version}, namespaces", "good", f"as {user}, processes have no bound")
    return Finding(what, f"Landlock {version}, namespaces", "good", "steps reach only what is shown to them")
