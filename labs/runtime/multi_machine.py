"""The interface of the extra that makes live labs over several machines, and the needs of runs on these machines.

In: programs of runs, and the machines of the nodes. Out: for each machine the programs that run there, each with its
reason, and the congestion controls of flows; and those that the machine lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ewan.labs.base.codec import Struct
from ewan.labs.runtime.base import LiveClockRuntime
from ewan.labs.runtime.services import OURSELVES

if TYPE_CHECKING:
    from ewan.labs.compile.facts import HostFacts
    from ewan.labs.plan import Plan
    from ewan.labs.record.traffic import Endpoint
    from ewan.labs.runtime.program import Program

MANIFEST = "ewan-cluster/1"
"""The format of such a lab's manifest, which has its machines and what each has of it."""


class Placement(Protocol):
    """The machines of the nodes of a lab."""

    @property
    def machine_of(self) -> Mapping[str, str]:
        """The machine of each node."""
        ...

    def of_end(self, end: Endpoint) -> str:
        """The machine where an end of a flow is."""
        ...

    def check(self, program: Program) -> None:
        """LabError for what cannot be over these machines."""
        ...


@dataclass(slots=True)
class MachineNeeds:
    """Machine → program → why; machine → congestion controls."""

    programs: dict[str, dict[str, str]] = field(default_factory=dict)
    congestion: dict[str, set[str]] = field(default_factory=dict)

    def add(self, program: Program, where: Placement) -> None:
        """One run's. LabError for what cannot be over these machines."""
        where.check(program)
        steps = [(each.node, each.argv[0]) for each in program.prepare]
        steps += [(each.node, each.argv[0]) for each in program.commands]
        for node, word in steps:
            if word != OURSELVES:
                of_machine = self.programs.setdefault(where.machine_of[node], {})
                of_machine.setdefault(word, f"node {node} is to run")
        for flow in program.traffic.flows if program.traffic else ():
            if flow.socket.congestion:
                for end in flow.ends:
                    self.congestion.setdefault(where.of_end(end), set()).add(flow.socket.congestion)

    @property
    def machines(self) -> list[str]:
        """Those that must have anything."""
        return list(dict.fromkeys((*self.programs, *self.congestion)))


@dataclass(frozen=True, slots=True)
class MissingPrograms:
    """The programs and congestion controls that a machine lacks, and the congestion controls that it has."""

    programs: tuple[str, ...]
    congestion: tuple[str, ...]
    known: tuple[str, ...]


def first(found: Mapping[str, MissingPrograms], names: Iterable[str]) -> tuple[str, MissingPrograms] | None:
    """The first of these machines that lacks anything."""
    return next(((name, found[name]) for name in names if found[name].programs or found[name].congestion), None)


class LabPreparation(Protocol):
    """A lab that could be made."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of the preparation, for a person."""
        ...

    @property
    def machine_of(self) -> Mapping[str, str]:
        """The machine of each node."""
        ...

    @property
    def whole(self) -> Plan:
        """The plan of the lab, with the spinners of all machines."""
        ...

    @property
    def plans(self) -> Mapping[str, Plan]:
        """The share of each machine."""
        ...


class LinkSamplesNow(Struct):
    """`samples`: of each machine that answered, by family; `silent`: the labels of the links of the others."""

    samples: tuple[dict[str, str], ...]
    silent: tuple[dict[str, str], ...]


class LinkSamples(Protocol):
    """The samples that the links of a lab have given."""

    def now(self) -> LinkSamplesNow:
        """All samples until now."""
        ...


class MultiMachineRuntime(LiveClockRuntime, Protocol):
    """A runtime whose labs stretch over several machines."""

    def host_facts(self) -> HostFacts:
        """The facts that the compiler needs about all machines together."""
        ...

    def where(self, plan: Plan) -> Placement:
        """The machines on which the nodes of a lab would be; the lab does not exist yet."""
        ...

    def lacking(self, wanted: MachineNeeds, searched: str) -> Mapping[str, MissingPrograms]:
        """The programs and congestion controls that runs need and that the machines lack; `searched` is a PATH."""
        ...

    def prepare(self, plan: Plan) -> LabPreparation:
        """Prepare a lab without making it; only the node binary stays on the machines."""
        ...

    def samples(self, name: str) -> AbstractContextManager[LinkSamples]:
        """Samples of the links, from their machines."""
        ...
