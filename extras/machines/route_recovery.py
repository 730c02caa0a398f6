"""The recovery of routes after links go down or come back while a run goes on, where a protocol finds them.

In: the numbers of carrier changes by each machine, and the routes of all machines, looked at again and again. Out: for
each such event the time from T0 when routes carried every pair again, to some tenths of a second."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from ewan.extras.machines.programs import NodePlaces, ProgramSplit
from ewan.extras.machines.routes import BETWEEN_S, ClusterRoutes
from ewan.labs.routing_documents import Reach
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import Program

Look = tuple[Reach, list[int]]


@dataclass(slots=True)
class RouteRecovery:
    """The recoveries of one run. `recovered_ns`: event, by its number → the time when the routes had followed."""

    routes: ClusterRoutes
    program: Program
    split: ProgramSplit
    where: NodePlaces
    recovered_ns: dict[int, int] = field(default_factory=dict)
    _made: dict[str, int] = field(default_factory=dict)
    """Machine → how many carriers it has changed."""
    _waiting: dict[int, None] = field(default_factory=dict)
    """Events that were made, and that the routes have not followed."""
    _asked: Future[Look] | None = None
    _begun_s: float = 0.0

    def moved(self, machine: str, made: int) -> None:
        """A machine has changed so many carriers."""
        if self.routes.plan.routing == "static":
            return
        self._made[machine] = made
        for number, event in enumerate(self.program.events):
            if event.down is not None and number not in self.recovered_ns and self._is_made(number):
                self._waiting[number] = None
                self._asked = None  # what was asked before it does not count

    def _is_made(self, number: int) -> bool:
        """Return whether all machines of an event have made it; each makes its own in the order of their times."""
        events = self.program.events
        for machine in self.where.of_event(events[number]):
            mine = [each for each in self.split.parts[machine].events if events[each].down is not None]
            order = sorted(mine, key=lambda each: events[each].at_ns)
            if order.index(number) >= self._made.get(machine, 0):
                return False
        return True

    def look(self, pool: ThreadPoolExecutor, begin_ns: int) -> None:
        """Takes the last state of the routes, and asks again; `begin_ns`: T0 by our clock. Does not wait."""
        if not self._waiting:
            return
        if self._asked is None:
            if time.monotonic() - self._begun_s >= BETWEEN_S:
                self._begun_s = time.monotonic()
                self._asked = pool.submit(self.routes.look)
            return
        if not self._asked.done():
            return
        asked, self._asked = self._asked, None
        try:
            reach, _ = asked.result()
        except LabError:
            return  # who is lost is heard of otherwise
        if not reach.unreachable:
            self.recovered_ns |= dict.fromkeys(self._waiting, time.monotonic_ns() - begin_ns)
            self._waiting.clear()
