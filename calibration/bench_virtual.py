"""The figures of the virtual clock, each beside a reference in the same run: ns-3, one flow, one run at a time.

In: the virtual kernel, the node binary, ns-3 from the distribution's packages. Out: figures; `bench.py` prints and
keeps them. Packets are those that crossed the bottleneck, both ways; wall time is that of the whole run, boot
included, but for ns-3, whose set-up is left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator import bulk
from labs import host
from labs.compile import compile
from labs.plan import Plan
from labs.runtime.base import LabError
from labs.runtime.program import Program
from labs.runtime.sweep import sweep
from labs.runtime.virtual import Run, VirtualRuntime
from labs.spec import from_template
from labs.units import NS_PER_SECOND

NS3_SOURCE = Path(__file__).parent / "ns3/dumbbell.cc"
NS3_MODULES = ("applications", "internet", "point-to-point", "network", "core")
RTT_NS = NS_PER_SECOND // 10


@dataclass(frozen=True, slots=True)
class Case:
    """Bulk flows over a dumbbell of RTT 100 ms and a buffer of one BDP."""

    rate: str
    rate_bps: int
    duration_ns: int
    flows: int = 1
    congestion: str = "cubic"


def plan_of(case: Case, pairs: int = 1) -> Plan:
    settings = {"rate": case.rate, "rtt": "100ms", "buffer": "1BDP", "pairs": str(pairs), "name": "bench"}
    return compile(from_template("dumbbell", settings), host.virtual_facts())


def run(runtime: VirtualRuntime, case: Case, directory: Path) -> dict[str, float]:
    """One case: packets over the bottleneck, virtual and wall seconds, bytes received."""
    pairs = min(case.flows, 11)
    plan = plan_of(case, pairs)
    flows = [
        bulk.Flow(f"left{n % pairs + 1}", f"right{n % pairs + 1}", case.congestion, duration_ns=case.duration_ns)
        for n in range(case.flows)
    ]
    program = Program(probe=bulk.request(plan, flows, "virtual"), expected_ns=case.duration_ns)
    begun = time.perf_counter()
    finished = runtime.run(plan, program, directory)
    wall_s = time.perf_counter() - begun
    answer = finished.document("probe.json")
    assert answer is not None
    received = sum(flow["received_bytes"] for flow in bulk.flows_of(answer))
    return {
        "packets": crossed(finished),
        "received_bytes": received,
        "virtual_s": finished.ended["virtual_ns"] / NS_PER_SECOND,
        "wall_s": wall_s,
    }


def crossed(finished: Run) -> int:
    """Packets that the bottleneck carried, both ways."""
    counted = finished.document("links.json")
    assert counted is not None
    return sum(way["sent_packets"] for way in counted["links"])


def against_ns3(runtime: VirtualRuntime, quick: bool, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """The same dumbbell, one CUBIC flow, in both simulators, one after the other."""
    rows = []
    cases = [(Case("100Mbit/s", 10**8, 20 * NS_PER_SECOND), 5.0 if quick else 20.0)]
    cases += [(Case("1Gbit/s", 10**9, 20 * NS_PER_SECOND), 0.8 if quick else 2.0)]
    with tempfile.TemporaryDirectory() as scratch:
        binary = ns3(Path(scratch))
        for case, ns3_s in cases:
            say(f"ns-3 {case.rate}")
            command = [str(binary), str(case.rate_bps), str(RTT_NS), str(ns3_s)]
            reference = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            say(f"virtual {case.rate}")
            rows.append(
                {"rate": case.rate, "ns3": reference, "virtual": run(runtime, case, Path(scratch) / case.rate[:3])}
            )
    return rows


def ns3(directory: Path) -> Path:
    """The reference, compiled."""
    binary = directory / "dumbbell"
    modules = [f"ns3-{module}" for module in NS3_MODULES]
    try:
        flags = subprocess.run(
            ["pkg-config", "--cflags", "--libs", *modules], check=True, capture_output=True, text=True
        ).stdout.split()
        build = ["g++", "-O2", "-std=c++17", "-o", str(binary), str(NS3_SOURCE), *flags]
        subprocess.run(build, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        needed = "apt install libns3-dev libgsl-dev g++ pkg-config"
        raise LabError(f"ns-3, the reference of `bench virtual`, is not there (Debian: {needed})") from None
    return binary


def ten_gigabit(runtime: VirtualRuntime, quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """10 Gbit/s × 100 ms; and what 110 flows cost beside one, per packet."""
    with tempfile.TemporaryDirectory() as scratch:
        seconds = 3 if quick else 12
        say("virtual 10 Gbit/s")
        long = run(runtime, Case("10Gbit/s", 10**10, seconds * NS_PER_SECOND), Path(scratch) / "long")
        short = Case("1Gbit/s", 10**9, (3 if quick else 10) * NS_PER_SECOND, congestion="bic")
        say("one flow")
        one = run(runtime, short, Path(scratch) / "one")
        say("110 flows")
        many = run(runtime, Case(short.rate, short.rate_bps, short.duration_ns, 110, "bic"), Path(scratch) / "many")
    return {"long": long, "one_flow": one, "flows_110": many}


def boot(runtime: VirtualRuntime) -> dict[str, float]:
    """Wall time from the command to the end of a lab in which one packet crosses: boot, lab, packet, power off."""
    plan = plan_of(Case("1Gbit/s", 10**9, 0))
    program = Program(probe=bulk.request(plan, [bulk.Flow("left1", "right1", bytes=1)], "virtual"))
    best = float("inf")
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(3):
            begun = time.perf_counter()
            runtime.run(plan, program, Path(scratch) / str(number))
            best = min(best, time.perf_counter() - begun)
    return {"best_s": best}


def all_cores(runtime: VirtualRuntime, quick: bool) -> dict[str, float]:
    """Independent runs one after the other, and side by side."""
    cpus = len(os.sched_getaffinity(0))
    case = Case("100Mbit/s", 10**8, (10 if quick else 60) * NS_PER_SECOND)
    walls = []
    with tempfile.TemporaryDirectory() as scratch:
        for workers in (1, cpus):
            places = [Path(scratch) / f"{workers}-{n}" for n in range(2 * cpus)]
            jobs = [lambda stop, place=place: run(runtime, case, place) for place in places]
            begun = time.perf_counter()
            sweep(jobs, workers)
            walls.append(time.perf_counter() - begun)
    return {"runs": 2 * cpus, "cpus": cpus, "one_at_a_time_s": walls[0], "all_cores_s": walls[1]}
