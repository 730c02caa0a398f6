"""The answers of the runtimes about labs: their status, the removed parts, and their routes."""

from __future__ import annotations

from typing import Literal

from ewan.labs.base.codec import Struct
from ewan.labs.routing_documents import RoutingTable
from ewan.labs.runtime.spinner_stats import SpinnerStats


class NodeStatus(Struct):
    """`pids`: of the processes in it. `machine`: of a lab over several."""

    name: str
    kind: str
    addresses: tuple[str, ...]
    up: bool
    pids: tuple[int, ...]
    machine: str | None = None


class SpinnerStatus(Struct):
    """`stats`: its answer; `error`: why there is none, or which of its links ended."""

    spinner: int
    cpu: int
    pid: int | None
    stats: SpinnerStats | None
    error: str | None


class MachineStatus(Struct):
    """`nodes`: those there; `error`: what is wrong with it."""

    machine: str
    ssh: str
    nodes: tuple[str, ...]
    error: str | None


class Status(Struct):
    """The status of a lab. `note`: why it is not complete; `plan`: its digest. `links_down`: the links that were taken
    down, None if that is not known; `machines`: of a lab over several; `runtime`: the runtime that made it."""

    lab: str
    state: Literal["complete", "incomplete", "down"]
    note: str
    plan: str | None
    nodes: tuple[NodeStatus, ...]
    spinners: tuple[SpinnerStatus, ...]
    warnings: tuple[str, ...]
    links_down: tuple[str, ...] | None = None
    machines: tuple[MachineStatus, ...] | None = None
    runtime: str | None = None

    @classmethod
    def unknown(cls, lab: str, state: Literal["incomplete", "down"], note: str) -> Status:
        """The status of a lab of which no more is known."""
        return cls(lab, state, note, None, (), (), ())


class LastCounters(Struct):
    """A spinner's answer to `stats` before it ended, or why there is none."""

    spinner: int
    stats: SpinnerStats | None = None
    error: str | None = None


class EndedProcess(Struct):
    """A process that was in the lab."""

    pid: int
    command: str


class GivenBack(Struct):
    """A card that is at home again. `notes`: what is other than it was, a line each."""

    card: str
    notes: tuple[str, ...]


class Removed(Struct):
    """The removed parts of a lab. `lab`: None if it had no manifest."""

    lab: str | None
    namespaces: tuple[str, ...]
    processes: tuple[EndedProcess, ...]
    paths: tuple[str, ...]
    spinners: tuple[LastCounters, ...]
    cards: tuple[GivenBack, ...] = ()
    containers: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()


class Tables(Struct):
    """The routes of nodes, by their names. `started_ns`: when the first router's services were, None where there is
    none."""

    tables: dict[str, RoutingTable]
    started_ns: int | None
    now_ns: int
