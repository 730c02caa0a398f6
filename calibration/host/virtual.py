"""Estimates the cost of a run of the virtual clock on this host: a few coefficients, their measurement, and the time
that follows from them.

In: a context that can run the virtual kernel, and seconds for it; or a `Demand` (labs/record/demand.py) and a cost.
Out: a `VirtualCost`; the wall time of a run with its standard uncertainty. A run is one process that computes without
ever waiting, so its wall time is its CPU time where it has a CPU to itself. CPU time is measured: neighbours disturb it
less. Each case of the measurement weighs one coefficient more than the others, and all are solved together.
"""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ewan.labs import host
from ewan.labs.base import codec
from ewan.labs.base.codec import Struct
from ewan.labs.context import Context
from ewan.labs.record.demand import Demand
from ewan.labs.runtime.base import BatchRuns
from ewan.labs.runtime.virtual import Cost

FLIGHT_BYTES = 1200
"""The bytes that the processor touches of a packet on its way: two `struct sk_buff`, the headers and their
surroundings."""
CACHE_BYTES = 2 << 20
"""The bytes of packets on their way at which half of the packets are in no cache."""
CACHE_FLOWS = 24
"""Connections with which the state of every other one is found in no cache."""
DEMAND_SHARE = 0.1
"""Standard uncertainty of a demand: of the library's scenarios two in three are closer
(docs/explanation/virtual-clock.md)."""
ROUNDS = 3
"""The rounds of the measurement, if there is time; the quickest run of each case counts."""
PACE = "packet_ns"
"""The case that tells how much neighbours slow the machine down: it takes a fifth of a second."""
DIRECT = 0.34
"""The part of the time of an entry that one by a jump takes: a program that does not sleep makes it."""
LEAST_SHARE, MOST_SHARE = 0.1, 0.5


class VirtualCost(Struct):
    """The coefficients of one host. `share`: the standard uncertainty of an estimate for a known demand."""

    boot_ns: int
    """The CPU time of the kernel's start and end."""
    entry_ns: int
    """To enter a program and come back: a system call, a page fault."""
    packet_ns: int
    """To receive a packet at a node, hand it on or take it, and what its sender did for that."""
    mixed_ns: int
    """More, where the packet before was of other hosts, or its connection's state is in no cache."""
    paced_ns: int
    """The timer of a packet that waits for a card."""
    flight_ns: int
    """More for a packet that was on its way for so long that no cache knows it."""
    outside_ns: int
    """Wall time of a run that its kernel takes no part in."""
    share: float


REFERENCE = VirtualCost(
    boot_ns=34_500_000,
    entry_ns=1_900,
    packet_ns=510,
    mixed_ns=170,
    paced_ns=600,
    flight_ns=290,
    outside_ns=10_000_000,
    share=0.15,
)
"""A virtual machine with two CPUs (AMD EPYC), as `measure` found it."""

_LAB = "lab: {{topology: {{dumbbell: {{pairs: {pairs}}}}}, rtt: {rtt}, wan: {{rate: {rate}, buffer: 1BDP}}{more}}}"
_QUIET = "sample: 0s\nseries: 0s\nwatch: 0s\nsteps:\n"
_ALL = 'from: "left[1-{pairs}]", to: "right[1-{pairs}]"'


def _text(step: str, rate: str, rtt: str = "2ms", pairs: int = 1, more: str = "") -> str:
    whole = _LAB.format(pairs=pairs, rtt=rtt, rate=rate, more=more)
    return f"{whole}\n{_QUIET}  - {{name: load, {_ALL.format(pairs=pairs)}, {step}}}\n"


CASES: Mapping[str, str] = {
    "boot_ns": _text("bulk: 1kB", "100Mbit/s"),
    "entry_ns": _text("udp: {size: 100B, interval: 100us, count: 6000}", "100Mbit/s"),
    "packet_ns": _text("congestion: reno, bulk: 60MB", "100Mbit/s"),
    "mixed_ns": _text("congestion: reno, bulk: 6MB", "100Mbit/s", "10ms", 10),
    "paced_ns": _text("congestion: reno, bulk: 6MB", "100Mbit/s", "10ms", 10, ", access: {rate: 11Mbit/s}"),
    "flight_ns": _text("congestion: reno, bulk: 200MB", "10Gbit/s", rtt="4ms"),
}
"""Scenarios of a single run, by the coefficient that each weighs most."""


@dataclass(frozen=True, slots=True)
class CaseCost:
    """A run of a case: what it was counted to be, and the CPU time that it took."""

    coefficient: str
    weights: Mapping[str, float]
    cpu_ns: int


def weights(demand: Demand) -> dict[str, float]:
    """The factor of each coefficient of a `VirtualCost` in a run."""
    flight = demand.flight_packets * FLIGHT_BYTES
    return {
        "boot_ns": 1,
        "entry_ns": demand.entries - (1 - DIRECT) * demand.direct_entries,
        "packet_ns": demand.packets,
        "mixed_ns": demand.mixed_packets + demand.packets * demand.flows / (demand.flows + CACHE_FLOWS),
        "paced_ns": demand.paced_packets,
        "flight_ns": demand.packets * flight / (flight + CACHE_BYTES),
    }


def cpu_ns(cost: VirtualCost, demand: Demand) -> int:
    """CPU time of a run. What programs compute is slower by as much as what the kernel does for a packet."""
    return round(weighed_ns(cost, weights(demand)) + demand.program_ns * cost.packet_ns / REFERENCE.packet_ns)


def weighed_ns(cost: VirtualCost, often: Mapping[str, float]) -> float:
    """The coefficients so many times."""
    return float(sum(getattr(cost, name) * times for name, times in often.items()))


def wall_ns(cost: VirtualCost, demand: Demand) -> tuple[int, int]:
    """Wall time of a run on a CPU of its own, and its standard uncertainty."""
    estimate = cpu_ns(cost, demand) + cost.outside_ns
    return estimate, round(estimate * math.hypot(cost.share, DEMAND_SHARE))


def solve(runs: Sequence[CaseCost]) -> dict[str, int]:
    """The coefficients with which all runs take what they took; none is below 0 (Gauss-Seidel: each run determines the
    coefficient that it weighs most)."""
    found = {run.coefficient: 0.0 for run in runs}
    for _ in range(200):
        for run in runs:
            rest = sum(found.get(name, 0.0) * often for name, often in run.weights.items() if name != run.coefficient)
            found[run.coefficient] = max((run.cpu_ns - rest) / run.weights[run.coefficient], 0.0)
    return {name: round(value) for name, value in found.items()}


def measure(context: Context, budget_s: float, progress: Callable[[str], None] = lambda text: None) -> VirtualCost:
    """Runs the cases, each once and again for as long as there is time, three times at most.

    A neighbour slows runs down: the case of `PACE` before and after each one says by how much. Raises LabError where
    the virtual kernel cannot run.
    """
    runtime = context.virtual(tell=progress)
    runtime.kernel()
    begun = time.monotonic()
    paces: list[CaseCost] = []
    taken: list[tuple[str, CaseCost, int]] = []
    outside_ns: list[int] = []
    with tempfile.TemporaryDirectory(prefix="ewan-cost-") as scratch:

        def run(name: str) -> CaseCost:
            progress(f"virtual clock: {name.removesuffix('_ns')}")
            weighed, cost = weigh(runtime, name, Path(scratch) / f"{len(paces)}-{name}")
            outside_ns.append(max(cost.wall_ns - cost.cpu_ns, 0))
            return weighed

        paces.append(run(PACE))
        for turn in range(ROUNDS):
            if turn and (time.monotonic() - begun) * (turn + 1) / turn > budget_s:
                break
            for name in CASES:
                if name != PACE:
                    taken.append((name, run(name), len(paces)))
                    paces.append(run(PACE))
    quickest = min(paces, key=lambda each: each.cpu_ns)
    best: dict[str, CaseCost] = {PACE: quickest}
    spreads = []
    for name, each, after in taken:
        slower = (paces[after - 1].cpu_ns + paces[after].cpu_ns) / 2 / quickest.cpu_ns
        spreads.append(slower - 1)
        fair = replace(each, cpu_ns=round(each.cpu_ns / slower))
        if name not in best or fair.cpu_ns < best[name].cpu_ns:
            best[name] = fair
    share = min(max(statistics.median(spreads), LEAST_SHARE), MOST_SHARE)
    return VirtualCost(**solve(list(best.values())), outside_ns=min(outside_ns), share=share)


def weigh(runtime: BatchRuns, name: str, place: Path) -> tuple[CaseCost, Cost]:
    """Runs one case; KeyboardInterrupt where it was ended early."""
    from ewan.generator import scenario as scenarios  # most commands know the cost and never measure it

    scenario = scenarios.parse(CASES[name], Path(f"{name.replace('_', '-')}.scenario.yaml"))
    ((_, plan, schedule),) = scenario.runs().scheduled(host.virtual_facts(), "virtual")
    result = runtime.run(plan, schedule.program, place)
    if result.interrupted:
        raise KeyboardInterrupt
    cost = result.cost
    expected = schedule.demand()
    # What was counted meanwhile is better known than what was expected.
    scale = cost.packets / expected.packets if expected.packets else 1.0
    seen = Demand(
        packets=cost.packets,
        mixed_packets=round(expected.mixed_packets * scale),
        paced_packets=round(expected.paced_packets * scale),
        flight_packets=expected.flight_packets,
        flows=expected.flows,
        entries=cost.entries,
    )
    return CaseCost(name, weights(seen), cost.cpu_ns), cost


def scaled(reference: VirtualCost, boot_cpu_ns: int, entries: int) -> VirtualCost:
    """Another host's cost, by what the smallest run took here; not as well known as a measured one."""
    pace = boot_cpu_ns / (reference.boot_ns + entries * reference.entry_ns)
    values = codec.data_of(reference)
    times = {name: round(value * pace) for name, value in values.items() if name.endswith("_ns")}
    return VirtualCost(**{**values, **times, "share": max(reference.share, 0.25)})


def cost_of_this_host(context: Context) -> VirtualCost:
    """The reference, scaled by the quicker one of two of the smallest runs, which take a tenth of a second."""
    with tempfile.TemporaryDirectory(prefix="ewan-cost-") as scratch:
        runtime = context.virtual()
        took = [weigh(runtime, "boot_ns", Path(scratch) / str(turn))[1] for turn in range(2)]
    best = min(took, key=lambda cost: cost.cpu_ns)
    return scaled(REFERENCE, best.cpu_ns, best.entries)
