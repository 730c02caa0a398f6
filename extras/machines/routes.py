"""The routes of a lab over several machines: each machine reports those of its nodes, and the node binary here judges
them.

In: connections, the lab's record, the whole plan. Out: the pairs that are carried, now or when a protocol has
settled."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ewan.extras.machines.queries import ASK_S, SHARES, WORK_S, all_of, answer_of, done
from ewan.extras.machines.records import ClusterLabRecord
from ewan.labs.base import codec
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.plan import Link, Plan
from ewan.labs.routing_documents import Convergence, Reach, Recovery, RoutingTable
from ewan.labs.runtime.answers import Tables
from ewan.labs.runtime.base import LabError

if TYPE_CHECKING:
    from ewan.extras.machines.ssh import ConnectedMachine, Fleet

BETWEEN_S = 0.2
"""Two looks at the routes of all machines."""


@dataclass(frozen=True, slots=True)
class ClusterRoutes:
    """The routes of one lab; `file` is the whole plan's, `binary` the node binary here."""

    fleet: Fleet
    record: ClusterLabRecord
    plan: Plan
    file: Path
    binary: Path

    def settle(self, longest_s: float) -> Convergence:
        """Waits until the routes carry every pair on the plan's path, as `ewan.labs.runtime.base.RouteConvergence`
        describes it."""
        begun = time.monotonic()
        started: float | None = None
        while True:
            reach, ages_ns = self.look()
            now = time.monotonic()
            started = min(started or now, now - max(ages_ns, default=0) / NS_PER_SECOND)
            settled = not reach.unreachable and not reach.astray
            if settled or now - begun > longest_s:
                assert self.plan.routing != "static"
                after_ns, waited_ns = (round((now - since) * NS_PER_SECOND) for since in (started, begun))
                return Convergence(
                    self.plan.routing, settled, after_ns, waited_ns, reach.unreachable, reach.cut_off, reach.astray
                )
            time.sleep(BETWEEN_S)

    def set_carrier(self, link: Link, up: bool, longest_s: float, changed: Callable[[], None]) -> Recovery:
        """Both machines of a stretched link take the carrier of their interfaces, or give it back; routes follow.

        `changed` is called between the two. See `ewan.labs.runtime.base.LinkFailures`."""
        directory = str(SHARES / self.plan.lab)
        far = [each.far_machine for each in self.record.stretched if each.link == link.name]
        begun = time.monotonic()

        def change(remote: ConnectedMachine) -> None:
            words = ["carrier", "--state", directory, "--link", link.name, "--up" if up else "--down"]
            command = [self.record.binary[remote.name], *words, "--longest-s", "0"]
            done(remote.name, remote.run(command, longest_s=WORK_S))

        all_of(self.fleet, change, [self.record.machine_of[link.node], *far])
        changed()
        while True:
            reach, _ = self.look()
            now = time.monotonic()
            settled = not reach.unreachable
            if settled or self.plan.routing == "static" or now - begun > longest_s:
                recovered = round((now - begun) * NS_PER_SECOND) if settled else None
                return Recovery(recovered, reach.unreachable, reach.cut_off)
            time.sleep(BETWEEN_S)

    def look(self) -> tuple[Reach, list[int]]:
        """The reachability of the pairs by the routes of all machines, and the times (ns) for which routers have run on
        each."""

        told = self._told()
        tables = _joined(told)
        ages = [each.now_ns - each.started_ns for each in told.values() if each.started_ns is not None]
        command = [str(self.binary), "reach", "--plan", str(self.file)]
        answer = subprocess.run(command, input=codec.compact(tables), capture_output=True)
        if answer.returncode != 0:
            raise LabError(answer.stderr.decode(errors="replace").strip())
        return codec.decode(Reach, answer.stdout, "routes"), ages

    def tables(self) -> dict[str, RoutingTable]:
        """The routes of all nodes, as `ewan.labs.runtime.base.RouteReader` has them."""
        return _joined(self._told())

    def _told(self) -> dict[str, Tables]:
        def ask(remote: ConnectedMachine) -> Tables:
            command = [self.record.binary[remote.name], "routes", "--state", str(SHARES / self.plan.lab)]
            return answer_of(Tables, remote.name, remote.run(command, longest_s=ASK_S))

        return all_of(self.fleet, ask, [machine.name for machine in self.record.machines])


def _joined(told: Mapping[str, Tables]) -> dict[str, RoutingTable]:
    return {node: table for each in told.values() for node, table in each.tables.items()}
