"""The inventory of a lab over several machines: the machines that answer, their nodes and interfaces.

In: connections, of which some may be absent, and the lab's record. Out: rows of `ewan ps` and of verifications."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ewan.extras.machines.facts import sections
from ewan.extras.machines.queries import ASK_S, SHARES, all_of, done
from ewan.extras.machines.records import ClusterLabRecord
from ewan.labs.plan import Plan
from ewan.labs.runtime.answers import MachineStatus, NodeStatus
from ewan.labs.runtime.base import LabError, RemoteMachine
from ewan.labs.runtime.inspections import Inspection

Found = TypeVar("Found")

if TYPE_CHECKING:
    from ewan.extras.machines.ssh import ConnectedMachine, Fleet

FILES = r"""
section() { printf '\n== %s\n' "$1"; }
section uname; uname -rm
section cpuinfo; cat /proc/cpuinfo
section meminfo; cat /proc/meminfo
section clocksource; cat /sys/devices/system/clocksource/clocksource0/current_clocksource
section loadavg; cat /proc/loadavg
section stat; cat /proc/stat
section processes; cat /proc/[0-9]*/stat
section lab; grep -l -a -F -e "$1" /proc/[0-9]*/cmdline
true
"""
"""The script for `sh -c` by which a machine describes itself, a part each. `processes`: a line of proc_pid_stat(5)
each; `lab`: files of those whose command line has the script's argument, a share's directory, in it."""


def machines(fleet: Fleet, record: ClusterLabRecord) -> tuple[MachineStatus, ...]:
    """The status of each machine: its SSH target, its nodes, and its error."""
    told = []
    for machine in record.machines:
        absent = fleet.absent.get(machine.name)
        error = str(absent) if absent is not None else "the connection was lost" if fleet[machine.name].dead else ""
        nodes = tuple(node for node, where in record.machine_of.items() if where == machine.name)
        told.append(MachineStatus(machine.name, machine.ssh, nodes, error or None))
    return tuple(told)


def nodes(fleet: Fleet, record: ClusterLabRecord, plan: Plan) -> tuple[NodeStatus, ...]:
    """The status of all nodes, from the namespaces of each machine; processes in them are not listed."""

    def ask(remote: ConnectedMachine) -> frozenset[str]:
        told = remote.run(["ls", "/run/netns"], longest_s=ASK_S)
        return frozenset(told.stdout.decode(errors="replace").split())

    results = fleet.each(ask, [machine.name for machine in record.machines])
    there = {name: frozenset() if isinstance(told, LabError) else told for name, told in results.items()}
    return tuple(
        NodeStatus(
            node.name,
            node.kind,
            addresses=tuple(address for interface in node.interfaces for address in interface.addresses),
            up=f"ewan-{plan.lab}-{node.name}" in there[record.machine_of[node.name]],
            pids=(),
            machine=record.machine_of[node.name],
        )
        for node in plan.nodes
    )


def inspect(fleet: Fleet, record: ClusterLabRecord, lab: str, what: Inspection[Found]) -> list[Found]:
    """The results of a command of the node binary that reads a plan, for all machines' shares."""

    def ask(remote: ConnectedMachine) -> list[Found]:
        words = ["sh", "-c", 'exec "$1" "$2" <"$3"', "sh", record.binary[remote.name], what.command]
        told = remote.run([*words, str(SHARES / lab / "plan.json")], longest_s=ASK_S)
        done(remote.name, told)
        return what.read(told.stdout)

    every = all_of(fleet, ask, [machine.name for machine in record.machines])
    return [each for told in every.values() for each in told]


def elsewhere(fleet: Fleet, record: ClusterLabRecord, plan: Plan) -> dict[str, RemoteMachine]:
    """All machines, asked side by side."""

    def ask(remote: ConnectedMachine) -> dict[str, str]:
        told = remote.run(["sh", "-c", FILES, "sh", str(SHARES / plan.lab)], longest_s=ASK_S)
        done(remote.name, told)
        return sections(told.stdout.decode(errors="replace"))

    files = all_of(fleet, ask, [machine.name for machine in record.machines])
    spinners: dict[str, list[int]] = {name: [] for name in files}
    for number in range(len(plan.spinners)):
        spinners[record.machine_of_spinner(number)[0]].append(number)
    return {name: RemoteMachine(tuple(spinners[name]), record.host_cpus[name], told) for name, told in files.items()}
