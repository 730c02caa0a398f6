"""The part of a run's program on each machine: the parts keep the numbers of the whole. Pure.

In: a program, the places of the lab's nodes. Out: a part for each machine, or LabError for a flow that cannot be in two
parts. A flow between two machines is two halves (emulator/traffic/src/flows/local_end.rs): each has the flow's number,
and so makes the same draws as the whole flow; the sink's listens at a port that both know. A step of which several
machines have parts has ended when all of these have: each part has a number of its own, and the process that drives the
machines announces the end of the whole step. A link that goes down loses its carrier on both of its machines; all other
changes of links are made where the emulator is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ewan.extras.machines.shares import TunnelWire
from ewan.labs.base.codec import replace
from ewan.labs.plan import Plan
from ewan.labs.record.events import Event
from ewan.labs.record.traffic import Endpoint, FlowRequest, Half, TrafficRequest
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.namespaces import NAMESPACES
from ewan.labs.runtime.program import Program

HALVED = ("bulk", "udp", "arrivals", "requests")
"""Kinds of flows whose ends may be on two machines."""
PORTS = (*range(61000, 65536), *range(20000, 32768))
"""Ports of sinks: outside the range of the kernel's own choices, and of usual servers."""
PART = 1 << 20
"""Added to the number of a step for a machine's part of it."""
SOURCE: Literal["source"] = "source"
SINK: Literal["sink"] = "sink"


@dataclass(frozen=True, slots=True)
class MachineProgram:
    """The part of one machine. `halves`: for flows between machines, flow → its end that is here; `prepares`: numbers
    of preparations, from 1."""

    program: Program
    commands: tuple[int, ...]
    events: tuple[int, ...]
    halves: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class ProgramSplit:
    """`parts`: machine → its part, of all machines. `steps`: a step that several machines know of → the machines that
    carry out parts of it, and those where something waits for it."""

    parts: Mapping[str, MachineProgram]
    steps: Mapping[int, tuple[tuple[str, ...], tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class NodePlaces:
    """A lab's nodes and links on its machines. `cpus`: of each machine, where its flows' threads run."""

    plan: Plan
    machine_of: Mapping[str, str]
    stretched: Sequence[TunnelWire]
    cpus: Mapping[str, Sequence[int]]

    @property
    def machines(self) -> tuple[str, ...]:
        """The machines that have nodes."""
        return tuple(self.cpus)

    def of_end(self, end: Endpoint) -> str:
        """The machine where an end of a flow is."""
        return self.machine_of[end.netns.removeprefix(f"{NAMESPACES}/ewan-{self.plan.lab}-")]

    def check(self, program: Program) -> None:
        """LabError for a program that cannot run over these machines."""
        split(program, self, 0, {})

    def of_event(self, event: Event) -> Iterator[str]:
        """The machines that make a change: first the machine that has the link's emulator."""
        link = next(each for each in self.plan.links if each.name == event.link)
        yield self.machine_of[link.node]
        if event.down is not None:
            for each in self.stretched:
                if each.link == link.name:
                    yield each.far_machine


def split(program: Program, where: NodePlaces, run: int, ahead_ns: Mapping[str, int]) -> ProgramSplit:
    """All machines' parts.

    `run`: marks this run's packets; `ahead_ns`: how far a machine's clock is ahead of the first one's, where it is.
    """
    if program.traffic is not None and program.traffic.conditions:
        raise LabError(
            "when: states of congestion controls are looked at by one machine, and this lab has several: write at: or "
            "after:, or run it on one machine"
        )
    if program.probe is not None:
        raise LabError("probes of a program are of one machine")
    flows = _flows(program, where, run, ahead_ns)
    carried, waiting = _steps(program, where, flows)
    shared = {
        step: (tuple(machines), tuple(waiting.get(step, ())))
        for step, machines in carried.items()
        if waiting.get(step) and {*machines, *waiting[step]} != {next(iter(machines))}
    }
    parts = {machine: _part(program, where, machine, flows[machine], shared) for machine in where.machines}
    return ProgramSplit(parts, shared)


Flows = dict[str, list[FlowRequest]]


def _flows(program: Program, where: NodePlaces, run: int, ahead_ns: Mapping[str, int]) -> Flows:
    """Each machine's flows, with their numbers; of those between machines a half on each."""
    result: Flows = {machine: [] for machine in where.machines}
    ports: dict[str, int] = {}
    for number, flow in enumerate(program.traffic.flows if program.traffic else ()):
        numbered = replace(flow, number=number)
        machines = list(dict.fromkeys(where.of_end(end) for end in flow.ends))
        if len(machines) == 1:
            result[machines[0]].append(numbered)
            continue
        if flow.work.kind not in HALVED:
            raise LabError(
                f"{flow.name}: its ends are on the machines {' and '.join(machines)}, and {flow.work.kind} is not "
                'there between machines yet: keep them together with "placement:" in the file of machines'
            )
        source, sink = machines
        node = flow.ends[1].netns
        used = ports[node] = ports.get(node, -1) + 1
        if used >= len(PORTS):
            raise LabError(f"{flow.name}: more than {len(PORTS)} flows come to its sink from other machines")
        shared = PORTS[used], run, ahead_ns.get(sink, 0) - ahead_ns.get(source, 0)
        result[source].append(replace(numbered, half=Half(SOURCE, *shared)))
        result[sink].append(replace(numbered, half=Half(SINK, *shared)))
    return result


Machines = dict[int, dict[str, None]]
"""Step → machines."""


def _steps(program: Program, where: NodePlaces, flows: Flows) -> tuple[Machines, Machines]:
    """The machines that carry out each step, and those where something waits for it."""
    carried: Machines = {}
    waiting: Machines = {}
    for machine, those in flows.items():
        for flow in those:
            if flow.step is not None:
                carried.setdefault(flow.step, {})[machine] = None
            for step in flow.waits_for:
                waiting.setdefault(step, {})[machine] = None
    for command in program.commands:
        machine = where.machine_of[command.node]
        if command.step is not None and not command.service:
            carried.setdefault(command.step, {})[machine] = None
        for step in command.after:
            waiting.setdefault(step, {})[machine] = None
    return carried, waiting


def _part(
    program: Program, where: NodePlaces, machine: str, flows: Sequence[FlowRequest], shared: Mapping[int, object]
) -> MachineProgram:
    own = [(number, each) for number, each in enumerate(program.commands) if where.machine_of[each.node] == machine]

    def part_of(step: int | None) -> int | None:
        return step if step is None or step not in shared else step + PART

    commands = tuple(replace(each, number=number, step=part_of(each.step)) for number, each in own)
    mine = [replace(flow, step=part_of(flow.step)) for flow in flows]
    waited_by_commands = {step for each in commands for step in each.after}
    waited_by_flows = {step for flow in mine for step in flow.waits_for}
    events = [(number, event) for number, event in enumerate(program.events) if machine in set(where.of_event(event))]
    traffic: TrafficRequest | None = None
    if mine and program.traffic is not None:
        of_flows = {flow.step for flow in mine if flow.step is not None}
        told = sorted(step for step in of_flows if step in waited_by_commands or step >= PART)
        elsewhere = sorted(waited_by_flows - of_flows)
        traffic = replace(
            program.traffic,
            told=tuple(told),
            elsewhere=tuple(elsewhere),
            cpus=tuple(where.cpus[machine]),
            flows=tuple(mine),
        )
    result = replace(
        program,
        commands=commands,
        prepare=tuple(each for each in program.prepare if where.machine_of[each.node] == machine),
        traffic=traffic,
        events=tuple(event for _, event in events),
        elsewhere=tuple(sorted((waited_by_commands | waited_by_flows) & set(shared))),
    )
    return MachineProgram(
        result,
        tuple(number for number, _ in own),
        tuple(number for number, _ in events),
        {flow.number: flow.half.side for flow in mine if flow.half is not None and flow.number is not None},
    )
