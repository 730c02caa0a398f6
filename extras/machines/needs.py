"""The needs of runs on the machines that they are spread over, and the missing ones. Checked before anything is made.

In: programs of runs, the places of nodes. Out: for each machine the programs that are to run there, each with the
reason, and the congestion controls of flows; those that it lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ewan.extras.machines.queries import ASK_S, all_of, done
from ewan.labs.plan import Plan, tunnels_of
from ewan.labs.runtime import machines, node_overrides
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.multi_machine import MachineNeeds, MissingPrograms

if TYPE_CHECKING:
    from ewan.extras.machines.ssh import ConnectedMachine, Fleet

_LOOK = """
PATH=$1
shift
cat /proc/sys/net/ipv4/tcp_available_congestion_control
for program; do command -v -- "$program" >/dev/null 2>&1 || printf "%s\\n" "$program"; done
"""


def check_possible(plan: Plan) -> None:
    """LabError for parts of a plan that belong to one machine: its cards, devices at its ports, machines within it."""
    for found, what in (
        (plan.hardware, "a link that is a device"),
        (plan.cards, "a network card of one machine"),
        (machines.of(plan), "a host that is a machine of its own"),
        (tunnels_of(plan), "a tunnel"),
    ):
        if found:
            raise LabError(f"lab {plan.lab} has {what}, and stretches over several machines: leave one of the two out")
    if node_overrides.needs_containers(plan):
        raise LabError(
            f"lab {plan.lab} needs containers, which `ewan lab compile --machines` writes files for, one a machine"
        )


def lacking(fleet: Fleet, needs: MachineNeeds, searched: str) -> dict[str, MissingPrograms]:
    """The missing programs of each machine; `searched`: the directories in which programs are looked for, as PATH has
    them."""

    def ask(remote: ConnectedMachine) -> MissingPrograms:
        wanted = list(needs.programs.get(remote.name, {}))
        told = remote.run(["sh", "-c", _LOOK, "sh", searched, *wanted], longest_s=ASK_S)
        done(remote.name, told)
        first, *missing = told.stdout.decode(errors="replace").splitlines()
        known = tuple(first.split())
        absent = sorted(needs.congestion.get(remote.name, set()) - set(known))
        return MissingPrograms(tuple(missing), tuple(absent), known)

    return all_of(fleet, ask, needs.machines)
