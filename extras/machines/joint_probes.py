"""Probes through a lab over several machines: each end of a stream is opened by a process on its own machine.

In: probes as emulator/traffic/src/probe/request.rs has them, a way to start programs on the machines, how far the
machines' clocks are apart. Out: the answer that one process gives which has all ends (`ewan.labs.runtime.probes`). A
one-way delay between two machines is corrected by their clocks' offsets, which are asked for before and after the
probe; its stream then has `clocks_ns`, the half-width of their uncertainty.

The machines' processes (`ewan-node probe --joint`, emulator/traffic/src/probe/joint.rs) go through each probe in step:
all open their sockets and learn each other's ports; all begin at one instant; each says when it has sent everything;
when all have, packets that are on the way are waited for. A probe that fails on one machine is dropped on the others.
"""

from __future__ import annotations

import contextlib
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from ewan.extras.machines.answers import (
    MachineAnswer,
    Nothing,
    Ports,
    ProbeBegins,
    ProbeOrder,
    ProbeQuestion,
    ProbesHere,
)
from ewan.extras.machines.results import CompletedProgram
from ewan.labs.base import codec
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.record.traffic import Endpoint
from ewan.labs.runtime.base import LabError, Seen
from ewan.labs.runtime.probe_documents import (
    DelayProbe,
    FailedResult,
    LossProbe,
    Probe,
    ProbeAnswer,
    ProbeResult,
    SaturateProbe,
    TcpProbe,
)
from ewan.labs.runtime.probes import begins

FORMAT = "ewan-joint/1"
COMMAND = ("probe", "--joint")
"""The arguments with which a machine's node binary is started."""
START_S = 60.0
READY_S = 60.0
"""Thousands of sockets take seconds."""
LATE_S = 60.0
"""So much later than it should at the latest a machine answers; what it saw may take long to bring here."""
LEAD_NS = 20_000_000
FRESH_NS = NS_PER_SECOND
"""A comparison of the clocks that is not older than this is the one before a probe."""
ONE_WAY = DelayProbe, LossProbe, SaturateProbe
THE_END, DROPPED = ProbeOrder(end=Nothing()), ProbeOrder(drop=Nothing())

Result = TypeVar("Result")
Tell = Callable[[str], None]
Half = dict[str, Any]
"""One machine's part of a probe, by its own clock: only the node binary looks into it."""


class ProbeProcess(Protocol):
    """A program on a machine while it runs, as `ssh.RemoteProcess` is; its methods raise LabError."""

    def write(self, data: bytes) -> None:
        """Gives it more on standard input."""

    def readline(self, longest_s: float | None = None) -> bytes:
        """The next line of its standard output; empty when there is none any more."""

    def wait(self, longest_s: float | None = None) -> CompletedProgram:
        """Waits for its end."""

    def close(self) -> None:
        """Ends it without waiting; waiting readers return."""


class Offset(NamedTuple):
    """The time (ns) by which a machine's CLOCK_REALTIME is ahead of the first machine's, and its uncertainty."""

    ns: int
    uncertainty_ns: int


@dataclass(frozen=True, slots=True)
class JointProbes:
    """`machine_of`: path of a network namespace → the machine where it is. `start`: a machine's node binary with these
    arguments. `offsets`: compares the clocks now; a machine that it leaves out is the one with which it compares.
    `cpus`: of each machine, where the probes' threads may run. `binary`: the node binary here, which merges.
    """

    start: Callable[[str, Sequence[str]], ProbeProcess]
    machine_of: Mapping[str, str]
    offsets: Callable[[], Mapping[str, Offset]]
    cpus: Mapping[str, Sequence[int]]
    binary: Path

    def run(self, probes: Sequence[Probe], tell: Tell, seen: Seen | None = None) -> ProbeAnswer:
        """The answer; LabError when a machine or its process is lost. `tell`, `seen`: as `send` has them."""
        used = {machine for each in probes for machine in self.machines_of(each)}
        names = [machine for machine in dict.fromkeys(self.machine_of.values()) if machine in used]
        results: list[ProbeResult] = []
        with self._session(names) as session:
            for number, each in enumerate(probes, 1):
                begun = time.monotonic_ns()
                try:
                    heading = _Heading(number, len(probes), tell)
                    shares = session.shares(each, self.machines_of(each), self._crosses(each), heading)
                    result = self._merged(each, time.monotonic_ns() - begun, shares)
                except _FailedError as error:
                    elapsed = time.monotonic_ns() - begun
                    result = FailedResult(each.name, elapsed, str(error))
                results.append(result)
                if seen is not None:
                    seen(results)
        return ProbeAnswer(tuple(results))

    def machines_of(self, probe: Probe) -> list[str]:
        """The machines that have ends of it."""
        return list(dict.fromkeys(self._machine(end) for pair in _ends(probe) for end in pair))

    def _machine(self, end: Endpoint) -> str:
        try:
            return self.machine_of[end.netns]
        except KeyError:
            raise LabError(f"{end.netns}: no machine has this network namespace") from None

    def _crosses(self, probe: Probe) -> bool:
        """Return whether delays are read off the clocks of two machines."""
        return isinstance(probe, ONE_WAY) and any(self._machine(a) != self._machine(b) for a, b in _ends(probe))

    def _merged(self, probe: Probe, elapsed_ns: int, shares: Sequence[Half]) -> ProbeResult:
        asked = codec.compact({"probe": probe, "elapsed_ns": elapsed_ns, "shares": shares})
        done = subprocess.run([self.binary, "probe", "--merge"], input=asked, capture_output=True, check=False)
        if done.returncode != 0:
            said = CompletedProgram(done.returncode, done.stdout, done.stderr).said
            raise LabError(f"ewan-node probe --merge: {said}")
        result: ProbeResult = codec.decode(cast(Any, ProbeResult), done.stdout, "result")
        return result

    @contextlib.contextmanager
    def _session(self, names: Sequence[str]) -> Iterator[_Session]:
        """A process on each of these machines."""
        with contextlib.ExitStack() as stack:
            processes: dict[str, ProbeProcess] = {}

            def start(name: str) -> None:
                processes[name] = self.start(name, COMMAND)

            def close() -> None:
                for process in list(processes.values()):
                    process.close()

            # Twice: what the pool's threads wait for ends before it waits for them, and one may have started meanwhile.
            stack.callback(close)
            pool = stack.enter_context(ThreadPoolExecutor(max(len(names), 1), "ewan-probe"))
            stack.callback(close)
            _all(pool, start, names)
            session = _Session(pool, processes, self.offsets)
            here = {name: [path for path, machine in self.machine_of.items() if machine == name] for name in names}
            session.open(
                {name: ProbesHere(FORMAT, tuple(here[name]), tuple(self.cpus.get(name, ()))) for name in names}
            )
            yield session


def _ends(probe: Probe) -> list[tuple[Endpoint, Endpoint]]:
    """The two ends of each of its streams, or of its connection."""
    return [(each.from_, each.to) for each in ([probe] if isinstance(probe, TcpProbe) else probe.streams)]


class _FailedError(Exception):
    """A probe that could not run; the others can."""


@dataclass(frozen=True, slots=True)
class _Heading:
    number: int
    of: int
    tell: Tell


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A comparison of the clocks: its moment by the first machine's, and by our own clock without steps."""

    at_ns: int
    monotonic_ns: int
    offsets: Mapping[str, Offset]

    def of(self, machine: str) -> Offset:
        return self.offsets.get(machine, Offset(0, 0))

    def reading(self, machine: str) -> dict[str, int]:
        """The reading, in the form of emulator/traffic/src/probe/results.rs."""
        offset = self.of(machine)
        return {"at_ns": self.at_ns, "offset_ns": offset.ns, "uncertainty_ns": offset.uncertainty_ns}


@dataclass(slots=True)
class _Session:
    """The machines' processes, which wait for the next probe."""

    pool: ThreadPoolExecutor
    processes: Mapping[str, ProbeProcess]
    offsets: Callable[[], Mapping[str, Offset]]
    trips_ns: dict[str, int] = field(default_factory=dict)
    """Machine → the shortest time in which it answered anything: its round trip and a bit."""
    shown: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Machine → its CLOCK_REALTIME, and our clock without steps when that came."""
    last: _Comparison | None = None

    def open(self, ends: Mapping[str, ProbesHere]) -> None:
        """Tells each process the ends on its machine."""
        answers = self._ask({name: ProbeOrder(here=each) for name, each in ends.items()}, START_S)
        for name, told in answers.items():
            if (found := _expected(name, told, told.here, "here").format) != FORMAT:
                raise LabError(f"machine {name}: its ewan-node probes by {found}, and ours by {FORMAT}")

    def shares(self, probe: Probe, machines: Sequence[str], crosses: bool, heading: _Heading) -> list[Half]:
        """The observations of a probe by each of these machines, with its clock where that matters; _FailedError,
        LabError."""
        if not machines:
            return []
        before = self._fresh() if crosses else None
        run = secrets.randbits(32)
        asked = ProbeOrder(probe=ProbeQuestion(probe, run))
        answers = self._step(dict.fromkeys(machines, asked), READY_S)
        ready = [_expected(name, told, told.ready, "ready") for name, told in answers.items()]
        longest_ns = max(each.longest_ns for each in ready)
        heading.tell(begins(probe.name, heading.number, heading.of, longest_ns))
        ports = Ports(
            _merged_ports([each.ports.source for each in ready]), _merged_ports([each.ports.sink for each in ready])
        )
        begin = time.monotonic_ns() + LEAD_NS + 3 * max(self.trips_ns.values())
        orders = {name: ProbeOrder(begin=ProbeBegins(self._shows(name, begin), ports)) for name in machines}
        for name, told in self._step(orders, longest_ns / NS_PER_SECOND + LATE_S).items():
            _expected(name, told, told.sent, "sent")
        drain_s = 0.0 if isinstance(probe, TcpProbe) else probe.drain_ns / NS_PER_SECOND
        answers = self._step(dict.fromkeys(machines, THE_END), drain_s + LATE_S, last=True)
        halves = {name: _expected(name, told, told.half, "half").half for name, told in answers.items()}
        if before is None:
            return [{"half": half} for half in halves.values()]
        after = self._compare()
        return [
            {"half": half, "clock": {"before": before.reading(name), "after": after.reading(name)}}
            for name, half in halves.items()
        ]

    def _step(
        self, orders: Mapping[str, ProbeOrder], longest_s: float, *, last: bool = False
    ) -> dict[str, MachineAnswer]:
        """One order to each; where one machine cannot do its part, the others drop theirs, unless it was the last."""
        answers = self._ask(orders, longest_s)
        failed = {name: told.failed.error for name, told in answers.items() if told.failed is not None}
        if not failed:
            return answers
        waiting = [name for name in answers if name not in failed]
        if not last:
            for name, told in self._ask(dict.fromkeys(waiting, DROPPED), LATE_S).items():
                if told.failed is None:
                    _expected(name, told, told.dropped, "dropped")
        name, error = next(iter(failed.items()))
        raise _FailedError(f"machine {name}: {error}")

    def _ask(self, orders: Mapping[str, ProbeOrder], longest_s: float) -> dict[str, MachineAnswer]:
        """Each machine's next line."""

        def ask(name: str) -> MachineAnswer:
            process, begun = self.processes[name], time.monotonic_ns()
            process.write(codec.line(orders[name]))
            line = process.readline(longest_s)
            now = time.monotonic_ns()
            self.trips_ns[name] = min(now - begun, self.trips_ns.get(name, now))
            if not line.endswith(b"\n"):
                raise LabError(f"machine {name}: ewan-node probe ended: {process.wait(START_S).said}")
            told = _read(name, line)
            if told.real_ns is not None:
                self.shown[name] = told.real_ns, now
            return told

        return _all(self.pool, ask, list(orders))

    def _shows(self, name: str, monotonic_ns: int) -> int:
        """The CLOCK_REALTIME (ns) of a machine when our own clock is `monotonic_ns`, less the time that its answer took
        to come here."""
        real_ns, then = self.shown[name]
        return real_ns + monotonic_ns - then

    def _fresh(self) -> _Comparison:
        if self.last is not None and time.monotonic_ns() - self.last.monotonic_ns <= FRESH_NS:
            return self.last
        return self._compare()

    def _compare(self) -> _Comparison:
        begun = time.monotonic_ns()
        offsets = self.offsets()
        middle = (begun + time.monotonic_ns()) // 2
        name = next(iter(self.shown))
        at_ns = self._shows(name, middle) - offsets.get(name, Offset(0, 0)).ns
        self.last = _Comparison(at_ns, middle, offsets)
        return self.last


def _read(name: str, line: bytes) -> MachineAnswer:
    with contextlib.suppress(ValueError):
        return codec.decode(MachineAnswer, line, "")
    words = line.decode(errors="replace").strip()[:60]
    raise LabError(
        f"machine {name}: {words!r} came where ewan-node probe answers: "
        "does a file that the shell there reads print it (~/.bashrc)?"
    )


def _expected(name: str, told: MachineAnswer, part: Result | None, what: str) -> Result:
    if part is None:
        raise LabError(f"machine {name}: ewan-node probe printed {told.said} where {what} was expected")
    return part


def _merged_ports(columns: Sequence[Sequence[int | None]]) -> tuple[int | None, ...]:
    """Each machine knows the ports of its own ends."""
    return tuple(next((port for port in each if port is not None), None) for each in zip(*columns, strict=True))


def _all(pool: ThreadPoolExecutor, function: Callable[[str], Result], names: Sequence[str]) -> dict[str, Result]:
    """Calls it for all machines side by side; raises the first error when all have ended."""
    futures = {name: pool.submit(function, name) for name in names}
    wait(futures.values())
    return {name: future.result() for name, future in futures.items()}
