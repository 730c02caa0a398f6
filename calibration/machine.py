"""Records the load of this machine while links were measured: it is the usual reason why a live lab fails.

In: /proc before and after the probes, and the spinners' answers. Out: values for the certificate (`MachineLoad`), and
in words what disturbed the links. Only `snapshot` reads anything.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ewan.calibration.spinner import HistogramClasses
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.units.shown import about
from ewan.labs.record import clock_source
from ewan.labs.record.bounds import LONGEST_GAP_NS, STEAL_SHARE
from ewan.labs.record.machine_load import CpuInterruptions, MachineRecord
from ewan.labs.runtime.spinner_stats import Gaps, SpinnerStats

NODE_BINARY = "ewan-node"
MOST_PROGRAMS = 3
PROGRAM_SHARE = 0.1
"""Share of one CPU from which on a program is reported."""
BUSY = "the machine was busy"
SLOW_CLOCKS = ("hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies")
"""Clock sources that no program reads by itself: a spinner looks at the time all the time."""
CHANGE = " → "
_KERNEL_THREADS = 2
"""The process id of the parent of all kernel threads, which are left out: they also move the lab's own packets."""


@dataclass(frozen=True, slots=True)
class Process:
    """CPU ticks since it began, with those of its children that have ended."""

    name: str
    parent: int
    ticks: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """At `time_ns` (monotonic): ticks of all CPUs, those stolen among them, processes by number and time of birth."""

    time_ns: int
    ticks: int
    stolen_ticks: int
    load_average: float
    processes: Mapping[tuple[int, int], Process]
    clock_source: str = "tsc"


@dataclass(frozen=True, slots=True)
class MachineLoad:
    """While the links were measured. `programs`: name and share of one CPU of those that are not the lab's, largest
    first. `taken`: of each spinner."""

    cpus: int
    load_average: float
    steal_ratio: float
    programs: tuple[tuple[str, float], ...]
    taken: tuple[CpuInterruptions, ...]
    clock_source: str = "tsc"
    """The kernel's time source; two words with an arrow if it changed meanwhile."""

    def words(self) -> list[str]:
        """The disturbances that may have affected the links, a phrase each; none if nothing was seen."""
        found = []
        if CHANGE in self.clock_source:
            found.append(f"the clock source changed, {self.clock_source}")
        elif self.clock_source in SLOW_CLOCKS:
            slow = "each look at the time takes a system call and a wait for a device"
            found.append(f"the clock source is {self.clock_source}: {slow} (ewan doctor)")
        for each in self.taken:
            if each.shared:
                found.append(f"CPU {each.cpu} serves the links of several labs or spinners")
            if each.longest_ns > LONGEST_GAP_NS:
                lost, longest = about(each.lost_ns, "time", 3), about(each.longest_ns, "time", 3)
                times = f"{each.count} times ({lost} in total, {longest} longest)"
                found.append(f"CPU {each.cpu}: the links' thread was interrupted {times}")
        if self.steal_ratio >= STEAL_SHARE:
            found.append(f"the hypervisor gave {self.steal_ratio:.0%} of the CPU time to others (steal)")
        large = [f"{name} ({share:.0%} of a CPU)" for name, share in self.programs if share >= PROGRAM_SHARE]
        if large:
            rest = f" and {len(large) - MOST_PROGRAMS} more" if len(large) > MOST_PROGRAMS else ""
            found.append(f"other programs ran: {', '.join(large[:MOST_PROGRAMS])}{rest}")
        return [*found, f"load {self.load_average:g} on {self.cpus} CPUs"] if found else []

    def recorded(self) -> MachineRecord:
        """As certificates have it."""
        return MachineRecord(
            clock_source=self.clock_source,
            cpus=self.cpus,
            disturbed=tuple(self.words()),
            load_average=self.load_average,
            programs=self.programs,
            steal_ratio=self.steal_ratio,
            taken=self.taken,
        )

    def cause(self) -> str:
        """The disturbance that may have affected all links, for the note of a row; empty if nothing was seen."""
        said = self.words()
        clock = [each for each in said if each.startswith("the clock source")]
        return clock[0] if clock else BUSY if said else ""


def snapshot(lab: str, proc: Path = Path("/proc")) -> Snapshot:
    """The machine now; without this process, kernel threads and the processes of `lab`."""
    texts = (proc / "stat").read_text(), (proc / "loadavg").read_text()
    return of_texts(*texts, dict(_processes(lab, proc)), clock_source(), time.monotonic_ns())


def of_texts(
    stat: str,
    loadavg: str,
    processes: Mapping[tuple[int, int], Process],
    source: str,
    time_ns: int | None = None,
) -> Snapshot:
    """A machine of which these are the texts of /proc/stat and /proc/loadavg. Without a time it is that of its CPUs'
    ticks, of which each has SC_CLK_TCK a second: idle ones too."""
    first, *others = stat.splitlines()
    fields = [int(word) for word in first.split()[1:9]]
    cpus = sum(line.startswith("cpu") for line in others) or 1
    if time_ns is None:
        time_ns = sum(fields) * NS_PER_SECOND // (os.sysconf("SC_CLK_TCK") * cpus)
    return Snapshot(time_ns, sum(fields), fields[7], float(loadavg.split()[0]), processes, source)


def between(
    before: Snapshot,
    after: Snapshot,
    spinners: Sequence[tuple[SpinnerStats | None, SpinnerStats | None]],
    cpus: int | None = None,
) -> MachineLoad:
    """`spinners`: the answers of each to `stats`, before and after; `cpus`: of another machine than this one."""
    seconds = (after.time_ns - before.time_ns) / NS_PER_SECOND
    spent = {key: each.ticks - _past(before, key) for key, each in after.processes.items()}
    # When a child ends, all its CPU time is added to its parent (or the next ancestor that lives). What it had used
    # before the first snapshot is subtracted again.
    keys = {number: (number, born) for number, born in before.processes}
    for key in before.processes.keys() - after.processes.keys():
        above = keys.get(before.processes[key].parent)
        while above is not None and above not in after.processes:
            above = keys.get(before.processes[above].parent)
        if above is not None:
            spent[above] -= before.processes[key].ticks
    ticks: dict[str, int] = {}
    for key, count in spent.items():
        name = after.processes[key].name
        ticks[name] = ticks.get(name, 0) + max(count, 0)
    per_second = os.sysconf("SC_CLK_TCK") * seconds
    shares = sorted(((name, count / per_second) for name, count in ticks.items() if count), key=lambda each: -each[1])
    total = after.ticks - before.ticks
    return MachineLoad(
        cpus=cpus or os.cpu_count() or 1,
        load_average=after.load_average,
        steal_ratio=(after.stolen_ticks - before.stolen_ticks) / total if total > 0 else 0.0,
        programs=tuple((name, round(share, 3)) for name, share in shares[:10]),
        taken=tuple(_taken(old, new) for old, new in spinners if new is not None),
        clock_source=CHANGE.join(dict.fromkeys((before.clock_source, after.clock_source))),
    )


def _past(before: Snapshot, key: tuple[int, int]) -> int:
    past = before.processes.get(key)
    return 0 if past is None else past.ticks


def _taken(before: SpinnerStats | None, after: SpinnerStats) -> CpuInterruptions:
    """The time for which a spinner was without its CPU between two of its answers."""
    past, now = Gaps() if before is None else before.gaps, after.gaps
    lengths = HistogramClasses.between(past.classes, now.classes)
    longest_ns = lengths.percentile(100) or 0
    lost_ns = now.lost_ns - past.lost_ns
    return CpuInterruptions(lengths.count, after.cpu, longest_ns, lost_ns, after.shared)


def _processes(lab: str, proc: Path) -> Iterator[tuple[tuple[int, int], Process]]:
    for place in proc.iterdir():
        if not place.name.isdigit() or int(place.name) == os.getpid():
            continue
        # A process that ends while it is read is left out.
        with contextlib.suppress(OSError, ValueError, IndexError):
            key, process = process_of((place / "stat").read_text(errors="replace"))
            if process.parent == _KERNEL_THREADS or (process.name == NODE_BINARY and _of_lab(place, lab)):
                continue
            yield key, process


def process_of(text: str) -> tuple[tuple[int, int], Process]:
    """The process that a line of proc_pid_stat(5) describes, with its number and time of birth; ValueError or
    IndexError for any other line."""
    number, _, behind = text.partition("(")
    name, _, rest = behind.rpartition(")")
    fields = rest.split()  # from the third on: the state
    parent, ticks, born = int(fields[1]), sum(int(word) for word in fields[11:15]), int(fields[19])
    return (int(number), born), Process(name, parent, ticks)


def is_of_kernel(key: tuple[int, int], process: Process) -> bool:
    """Return whether the process is a kernel thread, or the parent of all processes."""
    return _KERNEL_THREADS in (key[0], process.parent)


def _of_lab(place: Path, lab: str) -> bool:
    """Return whether a process of the node binary belongs to this lab. A process in a container does not name its lab,
    so it counts. Processes of other users do not count."""
    if place.stat().st_uid not in (0, os.geteuid()):
        return False
    words = (place / "cmdline").read_bytes().decode(errors="replace").split("\0")
    states = [Path(after).name for word, after in itertools.pairwise(words) if word == "--state"]
    return lab in states or not states
