"""A run's program over several machines: each does its part in step with the others, and the results become one run's.

In: connections, a lab's record, a program. Out: a directory with the files that one process would have left there
(emulator/batch/src), and `clocks.json`: how far the machines' clocks were apart, and how far that may be wrong. Each
machine's node binary (`ewan-node batch --joint`, emulator/batch/src/joint.rs) makes ready, gets T0 by its own clock,
and sends a sign of life twice a second; it ends when all have done their part. A machine that is silent is lost: the
run ends, and the results of the others are kept."""

from __future__ import annotations

import queue
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from ewan.extras.machines import deployment, joint_results, programs, tunnels
from ewan.extras.machines.answers import JointRunAnswer, JointRunOrder, Nothing, RunStart, StepEnded
from ewan.extras.machines.joint_probes import Offset
from ewan.extras.machines.joint_results import Clocks, LostMachine
from ewan.extras.machines.programs import PART, NodePlaces, ProgramSplit
from ewan.extras.machines.queries import ASK_S, SHARES, WORK_S, all_of, done, said
from ewan.extras.machines.records import ClusterLabRecord
from ewan.extras.machines.results import CompletedProgram
from ewan.extras.machines.route_recovery import RouteRecovery
from ewan.extras.machines.routes import ClusterRoutes
from ewan.labs.base import codec, writing
from ewan.labs.base.interrupt import deferred
from ewan.labs.base.units import NS_PER_MS, NS_PER_SECOND
from ewan.labs.plan import Plan
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import Program

if TYPE_CHECKING:
    from ewan.extras.machines.ssh import ConnectedMachine, Fleet, RemoteProcess

CONVERGES_S = 300.0
"""As the node binary has it for a lab of one machine."""
POLL_S = 0.1
LOST_S = 5.0
"""A machine without a message for so long is lost; each sends a sign of life twice a second."""
ENDS_S = 90.0
"""From the word to end to the end: commands are given a second, traffic writes its records."""
LEAST_LEAD_NS = 100 * NS_PER_MS
STEP_LEAD_NS = 50 * NS_PER_MS
FLOW_LEAD_NS = NS_PER_MS // 2
"""The delay of actions that follow a step of several machines, and of each flow that does, so that all machines know of
the end."""
FOLDER = "run"
"""In the state directory of a machine's share, which goes with it."""
_MAKE = """
set -e
rm -rf -- "$1"
mkdir -p -- "$1"
cd -- "$1"
shift
[ $# = 0 ] || mkdir -p -- "$@"
cat >program.json
"""

THE_END = JointRunOrder(end=Nothing())


@dataclass(frozen=True, slots=True)
class JointRuns:
    """Programs of one lab that is up; its routes are looked at where a protocol finds them."""

    routes: ClusterRoutes

    @property
    def fleet(self) -> Fleet:
        """Connections to its machines."""
        return self.routes.fleet

    @property
    def record(self) -> ClusterLabRecord:
        """The record of the machines and the lab."""
        return self.routes.record

    @property
    def plan(self) -> Plan:
        """The plan of the whole lab."""
        return self.routes.plan

    @property
    def where(self) -> NodePlaces:
        """The lab's nodes on its machines."""
        return NodePlaces(self.plan, self.record.machine_of, self.record.stretched, self.record.host_cpus)

    def run(self, program: Program, directory: Path) -> None:
        """Run the program; Ctrl-C ends it early. LabError when a machine failed or was lost; the results of the others
        are kept."""
        where = self.where
        where.check(program)
        self._check_events(program)
        writing.write(directory / "program.json", program.to_json())
        if self.plan.routing != "static":
            routing = self.routes.settle(CONVERGES_S)
            writing.write(directory / "routing.json", orjson.dumps(codec.data_of(routing), option=orjson.OPT_INDENT_2))
            if not routing.converged:
                raise LabError(f"{routing.protocol} did not find all routes in {CONVERGES_S:g} s")
        before = deployment.offsets(self.fleet, self.record)
        ahead_ns = {machine: offset.ns for machine, offset in before.items()}
        split = programs.split(program, where, secrets.randbits(32), ahead_ns)
        with self._folders(program, split) as trip_ns, deferred() as check:
            course = _Course(self, program, split, ahead_ns, trip_ns, check)
            try:
                course.follow()
            finally:
                course.close()
            lost = course.lost
            there = [machine for machine in split.parts if lost is None or machine != lost.machine]
            after = before if lost is not None else self._offsets(before)
            with self._fetched(there, directory) as places:
                clocks = Clocks(self.record.machines[0].name, before, after)
                found = joint_results.MachineResults(places, clocks, lost, course.followed.recovered_ns)
                joint_results.merge(program, split, where, self.record.first_spinner, found, directory)
        if lost is not None:
            raise LabError(lost.words)
        if course.failures:
            raise LabError(course.failures[0])

    def _check_events(self, program: Program) -> None:
        """LabError for a delay that is shorter than the tunnel's own."""
        links = {link.name: link for link in self.plan.links}
        for event in program.events:
            if event.down is None:
                ways = self.record.stretched, self.record.tunnels
                tunnels.check_change(links[event.link], event.direction, event.change, *ways)

    def _offsets(self, before: Mapping[str, Offset]) -> Mapping[str, Offset]:
        """The clocks now; as they were where that cannot be asked any more."""
        try:
            return deployment.offsets(self.fleet, self.record)
        except LabError:
            return before

    def folder(self) -> str:
        """The folder of results, the same on all machines: programs give each other names of files there."""
        return str(SHARES / self.plan.lab / FOLDER)

    @contextmanager
    def _folders(self, program: Program, split: ProgramSplit) -> Iterator[int]:
        """Each machine has its program and directories for all commands' files; gives the longest time that took."""
        files = [f"commands/{number}-{each.node}" for number, each in enumerate(program.commands, 1)]

        def make(remote: ConnectedMachine) -> int:
            begun = time.monotonic_ns()
            words = ["sh", "-c", _MAKE, "sh", self.folder(), *files]
            done(remote.name, remote.run(words, split.parts[remote.name].program.to_json(), longest_s=WORK_S))
            return time.monotonic_ns() - begun

        def remove(remote: ConnectedMachine) -> None:
            remote.run(["rm", "-rf", "--", self.folder()], longest_s=ASK_S)

        try:
            yield max(all_of(self.fleet, make, list(split.parts)).values())
        finally:
            self.fleet.each(remove, list(split.parts))

    @contextmanager
    def _fetched(self, machines: list[str], directory: Path) -> Iterator[dict[str, Path]]:
        """The results of each of these machines, copied here; a machine that is lost meanwhile is left out."""
        place = directory / ".machines"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()

        def fetch(remote: ConnectedMachine) -> Path:
            packed = place / f"{remote.name}.tar"
            remote.save(["tar", "-C", self.folder(), "-cf", "-", "."], packed)
            joint_results.unpack(packed, place / remote.name)
            packed.unlink()
            return place / remote.name

        try:
            found = self.fleet.each(fetch, machines)
            yield {name: path for name, path in found.items() if not isinstance(path, LabError)}
        finally:
            shutil.rmtree(place, ignore_errors=True)


@dataclass(slots=True)
class _Course:
    """One run, from the start of the machines' programs to their end. `check` raises when the user asked to end."""

    of: JointRuns
    program: Program
    split: ProgramSplit
    ahead_ns: Mapping[str, int]
    trip_ns: int
    check: Callable[[], None]
    lost: LostMachine | None = None
    failures: list[str] = field(default_factory=list)
    followed: RouteRecovery = field(init=False)
    _processes: dict[str, RemoteProcess] = field(default_factory=dict)
    _came: queue.SimpleQueue[tuple[str, bytes | CompletedProgram | LabError]] = field(default_factory=queue.SimpleQueue)
    _ready: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Machine → its lead, its CLOCK_REALTIME, and our clock when these came."""
    _begin_ns: int | None = None
    """T0, by our clock."""
    _heard: dict[str, tuple[float, int]] = field(default_factory=dict)
    """Machine → when it was last heard of, by our clock, and by its own in ns after T0."""
    _over: set[str] = field(default_factory=set)
    _ending: dict[str, float] = field(default_factory=dict)
    """Machine → the time when it was asked to end, or announced its end."""
    _steps: dict[int, dict[str, int]] = field(default_factory=dict)
    _interrupted: bool = False

    def __post_init__(self) -> None:
        self.followed = RouteRecovery(self.of.routes, self.program, self.split, self.of.where)

    def follow(self) -> None:
        """Follows the run until all machines' programs have ended."""
        names = list(self.split.parts)
        with ThreadPoolExecutor(len(names) + 1, "ewan-run") as pool:
            try:
                for name, process in all_of(self.of.fleet, self._start, names).items():
                    self._processes[name] = process
                    pool.submit(self._read, name, process)
                while self._processes:
                    self._look()
                    if self._begin_ns is not None:
                        self.followed.look(pool, self._begin_ns)
            finally:
                self.close()
        if self._interrupted and self._begin_ns is None:
            raise KeyboardInterrupt

    def close(self) -> None:
        """Ends the programs that still run, so that the pool's threads end too."""
        for process in list(self._processes.values()):
            with suppress(LabError):
                process.close()

    def _start(self, remote: ConnectedMachine) -> RemoteProcess:
        state, folder = str(SHARES / self.of.plan.lab), self.of.folder()
        command = [self.of.record.binary[remote.name], "batch", "--joint", "--state", state]
        return remote.start([*command, "--program", f"{folder}/program.json", "--out", folder])

    def _read(self, name: str, process: RemoteProcess) -> None:
        try:
            while line := process.readline():
                self._came.put((name, line))
            self._came.put((name, process.wait(ASK_S)))
        except LabError as error:
            self._came.put((name, error))

    def _look(self) -> None:
        """Takes the next message, or looks for silent machines."""
        try:
            name, came = self._came.get(timeout=POLL_S)
        except queue.Empty:
            pass
        else:
            if name in self._processes:
                self._take(name, came)
        try:
            self.check()
        except (KeyboardInterrupt, SystemExit):
            self._interrupted = True
            self._end(JointRunOrder(interrupt=Nothing()) if self._begin_ns is not None else None)
        now = time.monotonic()
        for name in list(self._processes):
            if name in self._ending:
                if now - self._ending[name] > ENDS_S:
                    self._lose(name)
            elif self._begin_ns is not None and now - self._heard[name][0] > LOST_S:
                self._lose(name)

    def _take(self, name: str, came: bytes | CompletedProgram | LabError) -> None:
        if isinstance(came, LabError):
            self._lose(name, str(came))
        elif isinstance(came, CompletedProgram):
            del self._processes[name]
            if came.returncode != 0:
                self.failures.append(f"machine {name}: {came.said}")
                self._end(THE_END if self._begin_ns is not None else None)
        else:
            self._answer(name, came)

    def _answer(self, name: str, line: bytes) -> None:
        told = said(JointRunAnswer, name, line)
        if told.ready is not None:
            self._ready[name] = told.ready.lead_ns, told.ready.real_ns, time.monotonic_ns()
            if len(self._ready) == len(self.split.parts):
                self._begin()
            return
        self._heard[name] = time.monotonic(), told.at_ns
        if told.step is not None:
            self._step_ended(name, told.step.step, told.step.at_ns)
        elif told.carriers is not None:
            self.followed.moved(name, told.carriers.made)
        elif told.over is not None:
            self._over.add(name)
            if self._over >= self._processes.keys():
                self._end(THE_END)
        elif told.ending is not None:
            self._ending.setdefault(name, time.monotonic())

    def _begin(self) -> None:
        """Sets T0 so much later than now that all machines know it in time."""
        lead_ns = max(lead for lead, *_ in self._ready.values()) + LEAST_LEAD_NS + 3 * self.trip_ns
        now = time.monotonic_ns()
        # Of the first machine's clock; each was read a bit before it came here.
        shown = [real + now - then - self.ahead_ns.get(name, 0) for name, (_, real, then) in self._ready.items()]
        at_ns = max(shown) + lead_ns
        self._begin_ns = now + lead_ns
        for name, process in self._processes.items():
            self._heard[name] = time.monotonic() + lead_ns / NS_PER_SECOND, 0
            self._tell(process, JointRunOrder(begin=RunStart(at_ns + self.ahead_ns.get(name, 0))))

    def _step_ended(self, name: str, part: int, at_ns: int) -> None:
        """Records that a machine's part of a step ended; with the last one, all machines that wait for the step get its
        end."""
        step = part - PART
        if step not in self.split.steps or self._begin_ns is None:
            return
        carry, wait = self.split.steps[step]
        ends = self._steps.setdefault(step, {})
        ends.setdefault(name, at_ns)
        if len(ends) < len(carry):
            return
        parts = (each.program.traffic for each in self.split.parts.values())
        flows = max((len(each.flows) for each in parts if each is not None), default=0)
        now_ns = time.monotonic_ns() - self._begin_ns
        begins_ns = max(now_ns + STEP_LEAD_NS + 3 * self.trip_ns + flows * FLOW_LEAD_NS, *ends.values())
        for machine in wait:
            if machine in self._processes:
                self._tell(self._processes[machine], JointRunOrder(step=StepEnded(step, begins_ns)))

    def _end(self, order: JointRunOrder | None) -> None:
        """Asks all programs that still run to end; those that have not begun are ended."""
        for name, process in self._processes.items():
            if name in self._ending:
                continue
            self._ending[name] = time.monotonic()
            if order is None:
                with suppress(LabError):
                    process.close()
            else:
                self._tell(process, order)

    def _lose(self, name: str, why: str = "") -> None:
        """A machine is gone: the others end."""
        del self._processes[name]
        self.of.fleet[name].give_up()
        if self._begin_ns is None:
            self.failures.append(why or f"machine {name}: it was lost before the run began")
            self._end(None)
            return
        if self.lost is None:
            self.lost = LostMachine(name, self._heard[name][1])
        self._end(THE_END)

    def _tell(self, process: RemoteProcess, order: JointRunOrder) -> None:
        # One that is gone is heard of otherwise.
        with suppress(LabError):
            process.write(codec.line(order))
