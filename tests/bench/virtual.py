"""The performance of the virtual clock, each value beside a reference in the same run: ns-3, one flow, one run alone.

In: the virtual kernel, the node binary, ns-3 from the distribution's packages. Out: measurements, and tables of them
for `bench.py`. Packets are those that crossed the bottleneck, both ways. Wall time is that of the whole command, with
boot, lab and power-off; of ns-3 that of the simulation alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ewan.calibration.certify import BatchLab, verify_lab
from ewan.generator import traffic_request
from ewan.labs import host
from ewan.labs.base.units import GIGA, MEGA, NS_PER_SECOND
from ewan.labs.compile import compile
from ewan.labs.context import Context
from ewan.labs.plan import Plan
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import Command, Program
from ewan.labs.runtime.sweep import sweep
from ewan.labs.spec import from_template, parse

NS3_SOURCE = Path(__file__).resolve().parent / "ns3/dumbbell.cc"
NS3_MODULES = ("applications", "internet", "point-to-point", "network", "core")
RTT_NS = NS_PER_SECOND // 10
# What may be in front of one flow over 1 Gbit/s and 20 ms, as the wide-area link's settings.
MODELS = {
    "loss, each 60,000th": "loss: {every: 60000}",
    "loss, Gilbert-Elliott": "loss: {gilbert-elliott: {to_bad: 10ppm, to_good: 50%}}",
    "normal delay, in order": "jitter: 10us",
    "Pareto delay, in order": "jitter: 10us, distribution: pareto",
    "RED": "queue: red",
    "CoDel": "queue: codel",
    "PIE": "queue: pie",
    "FQ-CoDel": "queue: fq-codel",
    "DRR": "queue: drr",
    "DualPI2": "queue: dualpi2",
}
EMULATORS = ("user", "kernel", "tbf")
RATES = ("8kbit/s", "1Mbit/s", "100Mbit/s", "1Gbit/s", "10Gbit/s", "100Gbit/s")


@dataclass(frozen=True, slots=True)
class BulkCase:
    """Bulk flows over a dumbbell with a buffer of one BDP; up to eleven pairs of hosts share the flows.

    `wan`: more settings of the link.
    """

    rate: str
    duration_ns: int
    flows: int = 1
    congestion: str = "cubic"
    pairs: int = 1
    rtt: str = "100ms"
    wan: str = ""
    emulator: str = "auto"


class VirtualBench:
    """Runs cases in a scratch directory, says what it is at."""

    def __init__(self, context: Context, quick: bool, say: Callable[[str], None], scratch: Path) -> None:
        self._quick, self._say, self._scratch = quick, say, scratch
        self._runtime = context.virtual(tell=say)
        self._runs = 0

    def run(self, case: BulkCase, stop: threading.Event | None = None) -> dict[str, float]:
        """A case on its dumbbell; what comes back is what `timed` says."""
        plan = dumbbell(case)
        flows = [
            traffic_request.BulkTransfer(
                f"left{n % case.pairs + 1}", f"right{n % case.pairs + 1}", case.congestion, 0, None, case.duration_ns
            )
            for n in range(case.flows)
        ]
        return self.timed(plan, program_of(plan, flows, case.duration_ns), case.duration_ns, stop)

    def timed(
        self, plan: Plan, program: Program, duration_ns: int, stop: threading.Event | None = None
    ) -> dict[str, float]:
        """Packets out of all links, and seconds: of the flows, of the virtual clock and of wall time."""
        self._runs += 1
        begun = time.perf_counter()
        finished = self._runtime.run(plan, program, self._scratch / str(self._runs), stop)
        wall_s = time.perf_counter() - begun
        counted = finished.document("links.json")
        assert counted is not None
        return {
            "packets": sum(way.get("out_packets", way.get("sent_packets")) for way in counted["links"]),
            "flows_s": duration_ns / NS_PER_SECOND,
            "virtual_s": finished.ended.virtual_ns / NS_PER_SECOND,
            "wall_s": wall_s,
        }

    def seconds(self, full: float, quick: float) -> int:
        """How long something lasts (ns); both are in seconds, `quick` for a quick bench."""
        return round((quick if self._quick else full) * NS_PER_SECOND)

    def against_ns3(self) -> list[dict[str, Any]]:
        """One CUBIC flow over the same dumbbell in both simulators, one after the other."""
        binary = self.ns3()
        rows = []
        # Equally long, so that both are at the same phase of the flow: the one at 1 Gbit/s has then lost packets.
        for rate, rate_bps, full, quick in (("100Mbit/s", 100 * MEGA, 20, 5), ("1Gbit/s", GIGA, 2, 1.5)):
            duration_ns = self.seconds(full, quick)
            self._say(f"ns-3, {rate}")
            command = [str(binary), str(rate_bps), str(RTT_NS), str(duration_ns / NS_PER_SECOND)]
            reference = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            self._say(f"one flow, {rate}")
            rows.append({"rate": rate, "ns3": reference, "virtual": self.run(BulkCase(rate, duration_ns))})
        return rows

    def ns3(self) -> Path:
        """The reference, compiled."""
        binary = self._scratch / "dumbbell"
        modules = [f"ns3-{module}" for module in NS3_MODULES]
        ask = ["pkg-config", "--cflags", "--libs", *modules]
        try:
            flags = subprocess.run(ask, check=True, capture_output=True, text=True).stdout.split()
            build = ["g++", "-O2", "-std=c++17", "-o", str(binary), str(NS3_SOURCE), *flags]
            subprocess.run(build, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError):
            needed = "apt install libns3-dev libgsl-dev g++ pkg-config"
            raise LabError(f"ns-3, the reference of `bench virtual`, is not there (Debian: {needed})") from None
        return binary

    def long_flows(self) -> dict[str, dict[str, dict[str, float]]]:
        """One flow, by rate and by what emulates the link."""
        found: dict[str, dict[str, dict[str, float]]] = {}
        for rate, full, quick in (("1Gbit/s", 20, 5), ("10Gbit/s", 12, 3)):
            for emulator in EMULATORS:
                self._say(f"one flow, {rate}, {emulator}")
                case = BulkCase(rate, self.seconds(full, quick), emulator=emulator)
                found.setdefault(rate, {})[emulator] = self.run(case)
        return found

    def models(self) -> dict[str, dict[str, float]]:
        """One flow over a link with each model, and over a plain one before each: packets a second of wall time."""
        found = {}
        for name, settings in MODELS.items():
            self._say(name)
            duration_ns = self.seconds(10, 2)
            plain, with_model = (
                self.run(BulkCase("1Gbit/s", duration_ns, rtt="20ms", wan=each)) for each in ("", settings)
            )
            found[name] = {
                "plain": plain["packets"] / plain["wall_s"],
                "model": with_model["packets"] / with_model["wall_s"],
            }
        return found

    def programs(self) -> dict[str, dict[str, float]]:
        """Programs that enter user space for what they send and receive, over 1 Gbit/s and 20 ms."""
        seconds = self.seconds(5, 2) // NS_PER_SECOND
        plan = dumbbell(BulkCase("1Gbit/s", 0, rtt="20ms"))
        server, client = ("iperf3", "-s", "-1"), ("iperf3", "-c", "right1", "-t", str(seconds))
        commands = {
            "iperf3, TCP": (Command("right1", server), Command("left1", client, NS_PER_SECOND // 10)),
            "ping -f": (Command("left1", ("ping", "-f", "-q", "-c", str(10_000 * seconds), "right1")),),
        }
        found = {}
        for name, them in commands.items():
            self._say(name)
            program = Program(commands=them, longest_ns=600 * NS_PER_SECOND)
            found[name] = self.timed(plan, program, seconds * NS_PER_SECOND)
        return found

    def many_flows(self) -> dict[str, dict[str, float]]:
        """110 flows and one on the same lab, long; and with one second of flows, which is mostly their start."""
        found = {}
        for name, flows in (("one", 1), ("many", 110)):
            for part, duration_ns in (("start", NS_PER_SECOND), ("long", self.seconds(20, 5))):
                self._say(f"{flows} flows, {part}")
                found[f"{name}_{part}"] = self.run(BulkCase("1Gbit/s", duration_ns, flows, "bic", pairs=11))
        return found

    def boot(self) -> dict[str, float]:
        """Wall time (s) of a run in which one segment crosses: boot, lab, packets and power-off."""
        self._say("boot")
        plan = dumbbell(BulkCase("1Gbit/s", 0))
        program = program_of(plan, [traffic_request.BulkTransfer("left1", "right1", bytes=1)])
        walls = []
        for number in range(5):
            begun = time.perf_counter()
            self._runtime.run(plan, program, self._scratch / f"boot{number}")
            walls.append(time.perf_counter() - begun)
        return {"best_s": min(walls), "worst_s": max(walls)}

    def all_cores(self) -> dict[str, float]:
        """Independent runs one after the other, and side by side."""
        cpus = len(os.sched_getaffinity(0))
        case = BulkCase("100Mbit/s", self.seconds(60, 10))
        walls = []
        for workers in (1, cpus):
            self._say(f"{2 * cpus} runs, {workers} at a time")
            begun = time.perf_counter()
            sweep([lambda stop: self.run(case, stop)] * (2 * cpus), workers)
            walls.append(time.perf_counter() - begun)
        return {"runs": 2 * cpus, "cpus": cpus, "one_at_a_time_s": walls[0], "all_cores_s": walls[1]}

    def exactness(self) -> list[dict[str, Any]]:
        """What a verification without dither finds: the largest errors over both directions."""
        rows = []
        for emulator in EMULATORS:
            for rate in RATES[2:4] if emulator == "tbf" else RATES:
                self._say(f"exactness: {emulator}, {rate}")
                settings = {"rate": rate, "rtt": "20ms", "buffer": "100pkt", "dither": "0", "emulator": emulator}
                plan = compile(from_template("dumbbell", {**settings, "name": "bench"}), host.virtual_facts())
                self._runs += 1
                certificate = verify_lab(plan, BatchLab(self._runtime, self._scratch / str(self._runs)))
                row: dict[str, Any] = {"link": emulator, "of": rate}
                for quantity in ("delay max", "rate", "queue limit"):
                    errors = [abs(r.error) for r in certificate.rows if r.quantity == quantity and r.error is not None]
                    row[quantity] = max(errors, default=None)
                rows.append(row)
        return rows


def program_of(plan: Plan, flows: list[traffic_request.BulkTransfer], expected_ns: int = 0) -> Program:
    """What a lab of the virtual clock executes to carry these flows."""
    traffic = traffic_request.transfers(plan, flows, "virtual")
    return Program(longest_ns=traffic.longest_ns, expected_ns=expected_ns, traffic=traffic)


def dumbbell(case: BulkCase) -> Plan:
    """The plan of a case."""
    text = f"""
name: bench
topology: {{dumbbell: {{pairs: {case.pairs}}}}}
rtt: {case.rtt}
wan: {{rate: {case.rate}, buffer: 1BDP, {case.wan}}}
emulator: {case.emulator}
"""
    return compile(parse(text, Path("bench.lab.yaml")), host.virtual_facts())


def measure(context: Context, quick: bool, say: Callable[[str], None]) -> dict[str, Any]:
    """All measurements, by part; `say` is told what is measured."""
    with tempfile.TemporaryDirectory(prefix="ewan-bench-") as scratch:
        bench = VirtualBench(context, quick, say, Path(scratch))
        return {
            "exactness": bench.exactness(),
            "ns3": bench.against_ns3(),
            "long_flows": bench.long_flows(),
            "models": bench.models(),
            "programs": bench.programs(),
            "flows": bench.many_flows(),
            "boot": bench.boot(),
            "sweep": bench.all_cores(),
        }


Sheet = tuple[str, list[str], list[list[str]]]


def tables(found: dict[str, Any]) -> list[Sheet]:
    """Title, columns, rows."""
    return [exactness_table(found["exactness"]), speed_table(found), models_table(found["models"]), *cost_tables(found)]


def exactness_table(rows: list[dict[str, Any]]) -> Sheet:
    """The largest errors, a row a link and rate."""
    drawn = []
    for row in rows:
        units = (("delay max", "{:.0f} ns"), ("rate", "{:.3g} bit/s"), ("queue limit", "{:.0f} B"))
        drawn.append([row["link"], row["of"], *("" if row[k] is None else form.format(row[k]) for k, form in units)])
    columns = ["link", "of", "delay, any packet", "rate", "queue limit"]
    return "Virtual clock: largest errors, no dither", columns, drawn


def speed_table(found: dict[str, Any]) -> Sheet:
    """Virtual time, wall time and packets, beside ns-3."""
    rows = []
    for each in found["ns3"]:
        reference, ours = each["ns3"], each["virtual"]
        pace = reference["packets"] / reference["wall_s"]
        rows.append([f"ns-3, {each['rate']}", *speed(reference), ""])
        rows.append([f"virtual, {each['rate']}", *speed(ours), f"{ours['packets'] / ours['wall_s'] / pace:.0f}"])
    for rate, by_emulator in found["long_flows"].items():
        rows += [[f"virtual, {rate}, longer, {name}", *speed(each), ""] for name, each in by_emulator.items()]
    rows += [[f"virtual, {name}, 20 ms", *speed(each), ""] for name, each in found["programs"].items()]
    columns = ["one CUBIC flow, RTT 100 ms", "virtual", "wall", "wall / virtual", "packets", "packets/s", "× ns-3"]
    return "Virtual clock: speed", columns, rows


def models_table(found: dict[str, dict[str, float]]) -> Sheet:
    """Packets a second over a link with a model, beside a plain link."""
    rows = [
        [name, f"{each['plain']:,.0f}", f"{each['model']:,.0f}", f"{each['model'] / each['plain']:.2f}"]
        for name, each in found.items()
    ]
    columns = ["one CUBIC flow, 1 Gbit/s, RTT 20 ms", "plain: packets/s", "with it: packets/s", "ratio"]
    return "Virtual clock: what a link's models cost", columns, rows


def speed(found: dict[str, float]) -> list[str]:
    """Cells of one run: virtual and wall time, their ratio, packets, packets per second of wall time."""
    virtual_s, wall_s, packets = found["virtual_s"], found["wall_s"], found["packets"]
    return [
        f"{virtual_s:.1f} s",
        f"{wall_s:.1f} s",
        f"{wall_s / virtual_s:.2f}",
        f"{packets:,}",
        f"{packets / wall_s:,.0f}",
    ]


def cost_tables(found: dict[str, Any]) -> list[Sheet]:
    """What a packet costs beside many flows, what a start costs, and what all cores gain."""
    flows, boot, runs = found["flows"], found["boot"], found["sweep"]
    per_packet = {}
    for name in ("one", "many"):
        start, long = flows[f"{name}_start"], flows[f"{name}_long"]
        per_packet[name] = (long["wall_s"] - start["wall_s"]) / (long["packets"] - start["packets"]) * NS_PER_SECOND
    ratio = per_packet["many"] / per_packet["one"]
    whole = flows["many_long"]["wall_s"] / flows["one_long"]["wall_s"]
    gain = runs["one_at_a_time_s"] / runs["all_cores_s"]
    return [
        (
            "Virtual clock: 110 BIC flows beside one, 1 Gbit/s, 11 pairs of hosts",
            ["a packet of one", "of 110", "ratio", "whole run, start included: ratio"],
            [[f"{per_packet['one']:.0f} ns", f"{per_packet['many']:.0f} ns", f"{ratio:.2f}", f"{whole:.2f}"]],
        ),
        (
            "Virtual clock: start, and all cores",
            [
                "boot, lab, one transfer, end",
                f"{runs['runs']} runs, one at a time",
                f"on {runs['cpus']} cores",
                "ratio",
            ],
            [
                [
                    f"{boot['best_s']:.2f} to {boot['worst_s']:.2f} s",
                    f"{runs['one_at_a_time_s']:.1f} s",
                    f"{runs['all_cores_s']:.1f} s",
                    f"{gain:.2f}",
                ]
            ],
        ),
    ]
