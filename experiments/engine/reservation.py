"""The first stage: the needs of the runs are checked on this machine before anything is made.

In: the runs' plans, programs and schedules, one after the other. Out: the number of runs at once; LabError with one
line for the first thing that is missing: congestion controls, programs, CPUs, memory, disk."""

from __future__ import annotations

import collections
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ewan.experiments.engine.experiment import Experiment, Job
from ewan.experiments.engine.stop_rule import point_of
from ewan.generator import congestion, external
from ewan.generator.scenario import captures
from ewan.labs.base.units.shown import about
from ewan.labs.link.trace import beyond
from ewan.labs.plan import Spinner
from ewan.labs.runtime import cpu, kernel, memory, memory_homes, multi_machine, wall
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.multi_machine import MultiMachineRuntime
from ewan.labs.runtime.program import KernelModule, Program
from ewan.labs.runtime.services import OURSELVES
from ewan.labs.runtime.spinners import check_cpus
from ewan.labs.runtime.virtual import check_path

# What programs find as their PATH in both clocks (emulator/batch/src).
SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PACKAGES = {
    "ITGLog": "d-itg",
    "ping": "iputils-ping",
    "ip": "iproute2",
    "tc": "iproute2",
    "ss": "iproute2",
    "mpirun": "openmpi-bin",
    "netperf": "netperf",
    "flent": "flent",
    "tcpdump": "tcpdump",
}
# A line of each table as CSV, and its share of the Parquet file, in bytes: rounded up from what real runs left.
SERIES_BYTES = 130
GOODPUT_BYTES = 45
LINK_BYTES = 100
_GENERATES = "the scenario's generator is"
# What a run leaves beside rows of tables: the files of a small one (measured: 100 KiB of a dumbbell with one flow), and
# what each node, link, flow and command adds to them.
RUN_BYTES, PART_BYTES = 256 << 10, 4 << 10
# What runs that are at work have beside that: the virtual kernel's root, tables as CSV.
WORK_BYTES = 64 << 20


@dataclass(slots=True)
class RunNeeds:
    """The needs of runs of a machine, added up run by run, so that no run is kept in memory; `over`: its machines."""

    over: MultiMachineRuntime | None = None
    runs: int = 0
    congestion: dict[str, set[str]] = field(default_factory=dict)
    """Congestion controls, by the name of the virtual kernel that is to have them; empty: the default one, or live."""
    modules: dict[str, KernelModule] = field(default_factory=dict)
    """Modules of the virtual kernel or of this machine's, each once, by source and parameters."""
    sources: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """The files of modules and of programs that set windows; see `Program.sources`."""
    programs: dict[str, str] = field(default_factory=dict)
    """Programs, each with what needs it."""
    files: set[str] = field(default_factory=set)
    """Files and folders that programs of the virtual clock read."""
    records_bytes: int = 0
    """About what all runs write."""
    spinners: dict[tuple[str, tuple[Spinner, ...]], None] = field(default_factory=dict)
    """The spinners of each live lab, by its name."""
    shorter: dict[str, None] = field(default_factory=dict)
    """Traces that are shorter than a run, with their state after their end."""
    elsewhere: multi_machine.MachineNeeds = field(default_factory=multi_machine.MachineNeeds)
    """The needs of the machines of `over`."""
    largest: tuple[str, memory.Need] | None = None
    """The virtual lab that needs most memory: its name, and its need."""

    def add(self, job: Job, virtual: bool, times: int = 1) -> None:
        """One run, or so many that need the same."""
        self.runs += times
        if self.over is not None:
            where = self.over.where(job.plan)
            external.check_between(job.schedule, where.machine_of)
            self.elsewhere.add(job.program, where)
            for machine, program in external.between(job.schedule, where.machine_of):
                self.elsewhere.programs.setdefault(machine, {}).setdefault(program, _GENERATES)
        else:
            name = "" if job.plan.kernel is None else job.plan.kernel.name
            self.congestion.setdefault(name, set()).update(congestions(job))
            for node, program in programs(job.program):
                self.programs.setdefault(program, f"node {node} is to run")
            for module in job.program.modules or ():
                self.modules.setdefault(module.key, module)
            self.sources |= job.program.sources
        for program in external.programs(job.schedule) if self.over is None else external.readers(job.schedule):
            self.programs.setdefault(program, _GENERATES)
        self.records_bytes += times * leaves(job)
        self.shorter |= dict.fromkeys(shorter_traces(job))
        if not virtual:
            if self.over is None:  # other machines' CPUs are asked for when a lab is made
                self.spinners.setdefault((job.plan.lab, job.plan.spinners))
            return
        self.files.update(job.program.needs)
        wanted = memory.need(job.plan, job.program)
        if self.largest is None or wanted.bytes > self.largest[1].bytes:
            self.largest = (job.plan.lab, wanted)


def needs(jobs: Iterable[Job], virtual: bool, over: MultiMachineRuntime | None = None) -> RunNeeds:
    """The needs of all jobs."""
    result = RunNeeds(over)
    for job in jobs:
        result.add(job, virtual)
    return result


def of_stored(experiment: Experiment, over: MultiMachineRuntime | None = None) -> RunNeeds:
    """The needs of an experiment's stored runs; a run that is not written yet needs the same as others of its point."""
    result = RunNeeds(over)
    unwritten = collections.Counter(point_of(entry.parameters) for entry in experiment.runs if not entry.written)
    for entry in experiment.runs:
        if entry.written:
            times = 1 + unwritten.pop(point_of(entry.parameters), 0)
            result.add(experiment.job(entry), experiment.virtual, times)
    return result


def check(wanted: RunNeeds, virtual: bool, directory: Path, executes: bool = True) -> int:
    """The number of runs that may be at work at once, at least one; LabError for the first missing need. Where this
    machine `executes` no run, only the room for their results is checked."""
    if not executes:
        disk(wanted, directory)
        return len(cpu.free())
    added = {name for each in wanted.modules.values() for name in each.controls}
    for name, controls in wanted.congestion.items():
        controls = controls if virtual else controls - added  # this machine's kernel has those only during the runs
        congestion.refuse(controls, virtual, added, kernel.congestion_of(name) if name else None)
    tools(wanted)
    machines(wanted)
    disk(wanted, directory)
    if not virtual:
        for lab, spinners in wanted.spinners:
            check_cpus(lab, spinners)
        return 1
    check_path(directory / "runs/000")
    memory_homes.found()
    wall.check(sorted(wanted.files))
    return workers(wanted)


def congestions(job: Job) -> set[str]:
    """The congestion controls that a run's flows ask for, whichever generator makes them."""
    names = {flow.congestion for flow in job.schedule.flows}
    if job.program.traffic is not None:
        names |= {flow.socket.congestion for flow in job.program.traffic.flows}
    return {name for name in names if name}


def tools(wanted: RunNeeds) -> None:
    """LabError for the first program that is not on this machine, with its package."""
    for program, why in wanted.programs.items():
        if program != OURSELVES and shutil.which(program, path=SEARCHED) is None:
            raise LabError(f"{program}, which {why}, is not on this machine: {_remedy(program)}")


def _remedy(program: str) -> str:
    package = PACKAGES.get(Path(program).name)
    otherwise = f"install the package {package}" if package else "install it, or write its whole path"
    return external.remedies().get(program, otherwise)


def machines(wanted: RunNeeds) -> None:
    """The same of the machines over which labs stretch, and of their kernels' congestion controls."""
    if wanted.over is None:
        return
    asked = wanted.elsewhere
    found = multi_machine.first(wanted.over.lacking(asked, SEARCHED), asked.machines)
    if found is None:
        return
    name, lacks = found
    if lacks.programs:
        program = lacks.programs[0]
        why = asked.programs[name][program]
        raise LabError(f"{program}, which {why}, is not on machine {name}: there, {_remedy(program)}")
    listed, known = ", ".join(lacks.congestion), ", ".join(lacks.known)
    raise LabError(f"congestion control {listed}: the kernel of machine {name} has {known}: load its module there")


def programs(program: Program) -> Iterator[tuple[str, str]]:
    """Nodes and the programs that they run."""
    for step in program.prepare:
        yield step.node, step.argv[0]
    for command in program.commands:
        yield command.node, command.argv[0]


def disk(wanted: RunNeeds, directory: Path) -> None:
    """LabError where the records have no room."""
    needed, free = WORK_BYTES + wanted.records_bytes, memory.available(directory)
    if needed > free:
        raise LabError(
            f"about {about(needed, 'size', 2)} of records would be written, and {about(free, 'size', 2)} are free in "
            f"{directory.absolute().parent}: make room there, or look less often (sample, series, watch)"
        )


def leaves(job: Job) -> int:
    """About how many bytes a run writes."""
    lasts_ns = job.program.expected_ns or job.program.longest_ns
    parts = len(job.plan.nodes) + len(job.plan.links) + len(job.schedule.flows) + len(job.program.commands)
    total = RUN_BYTES + PART_BYTES * parts + captures.most_bytes(job.program)
    if job.program.controller is not None:
        total += 2 * sum(map(len, (job.program.controller.files or {}).values()))
    if job.program.watch_ns:
        total += 2 * len(job.plan.links) * LINK_BYTES * (lasts_ns // job.program.watch_ns)
    if job.program.disturbances is not None:
        total += 2 * len(job.plan.links) * LINK_BYTES * (lasts_ns // job.program.disturbances.every_ns)
    traffic = job.program.traffic
    if traffic is not None:
        counted = ((traffic.sample_ns, SERIES_BYTES), (traffic.series_ns, GOODPUT_BYTES))
        for flow in traffic.flows:
            span_ns = max(min(flow.stop_ns or lasts_ns, lasts_ns) - flow.start_ns, 0)
            total += sum(line_bytes * (span_ns // every_ns) for every_ns, line_bytes in counted if every_ns)
    return total


def shorter_traces(job: Job) -> Iterator[str]:
    """A line for each direction whose trace is shorter than the run, with its continuation."""
    lasts_ns = job.program.expected_ns or job.program.longest_ns
    for link in job.plan.links:
        for name, way in (("forward", link.forward), ("backward", link.backward)):
            if said := beyond(way.trace, lasts_ns):
                yield f"{link.name} {name}: {said}"


def workers(wanted: RunNeeds) -> int:
    """As many virtual kernels as CPUs without spinning links, or as memory holds; LabError where it holds none."""
    most = min(len(cpu.free()), max(wanted.runs, 1))
    if wanted.largest is None:
        return most
    lab, largest = wanted.largest
    home = memory_homes.found(largest.bytes)
    memory.refuse(lab, largest, *home)
    free = memory.free_memory_bytes()
    if home.free_bytes is not None:
        free = min(free, home.free_bytes)
    return max(min(most, free // largest.bytes), 1)
