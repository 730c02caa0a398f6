"""Detects that virtual time stands still for good, because a program in the lab works without ever waiting.

In: what watches a run's progress, and the guest's first process. Out: for how long, once patience is at its end. Half
of it is wall time; then the guest's processes have the other half in CPU time. So a busy machine, on which they wait
for a CPU, ends no run that would go on; one whose processes get none at all is ended after ten times the patience.
"""

from __future__ import annotations

import time

from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.runtime import sessions
from ewan.labs.runtime.progress import ProgressReading, Watch

LONGEST = 10
"""Times the patience, in wall time, whatever CPU time there was."""
NOT_BEGUN = ProgressReading(0, 0, 0, "the virtual kernel", 0)
"""The reading of a kernel that has not reported yet."""
LOOK_NS = NS_PER_SECOND // 2
"""Between two looks at the processes, of which there may be thousands."""


class Standstill:
    """The watch over one run, whose first process is `pid`."""

    def __init__(self, watch: Watch, pid: int) -> None:
        self._watch, self._pid = watch, pid
        self._began: tuple[int, int] | None = None
        """Virtual time, and the CPU time that the processes had when wall time's half was over."""
        self._looked = 0

    def found(self, patience_s: float, making_s: float, made_ns: int) -> tuple[int, ProgressReading] | None:
        """For how many ns of wall time it stands still, and where, if for good. Before `made_ns` of virtual time the
        lab is being made, and `making_s` is the patience."""
        still_ns, reading = self._watch.still()
        if reading is None:
            return (still_ns, NOT_BEGUN) if still_ns > making_s * NS_PER_SECOND else None
        patience_ns = (making_s if reading.virtual_ns < made_ns else patience_s) * NS_PER_SECOND
        if still_ns <= patience_ns / 2:
            self._began = None
            return None
        if still_ns > LONGEST * patience_ns:
            return still_ns, reading
        now = time.monotonic_ns()
        if now - self._looked < LOOK_NS:
            return None
        self._looked, cpu_ns = now, sessions.cpu_ns(self._pid)
        if self._began is None or self._began[0] != reading.virtual_ns:
            self._began = (reading.virtual_ns, cpu_ns)
        return (still_ns, reading) if cpu_ns - self._began[1] > patience_ns / 2 else None
