"""What a run in the virtual clock took, as a record and in words. Pure, but for the machine's facts.

In: runs that have ended, the progress of those at work. Out: wall.json, lines for people.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from labs.record import host_facts
from labs.record.experiment import checksum
from labs.runtime.progress import Progress
from labs.runtime.virtual import Run
from labs.units import NS_PER_SECOND, about


def wall(result: Run, started: str) -> dict[str, Any]:
    """The record of what a run took, wall.json; `started`: when, in UTC."""
    cost = result.cost
    return {
        "format": "ewan-wall/1",
        "started": started,
        "host": host_facts({}),
        "kernel": str(result.kernel),
        "kernel_sha256": checksum(result.kernel),
        "ratio": cost.wall_ns / cost.virtual_ns if cost.virtual_ns else None,
        **dataclasses.asdict(cost),
    }


def summary(result: Run) -> str:
    """What it took, in one line."""
    cost = result.cost
    wall = about(cost.wall_ns, "time", 3)
    if cost.virtual_ns is None:
        return f"{wall} of wall time"
    pace = cost.packets / cost.wall_ns * NS_PER_SECOND
    return (
        f"{about(cost.virtual_ns, 'time', 4)} of virtual time in {wall} of wall time "
        f"({cost.packets:,} packets received by nodes, {pace:,.0f} a second)"
    )


def words(progress: Progress) -> str:
    """How far a run is, in one line."""
    wall = about(progress.wall_ns, "time", 3)
    if not progress.virtual_ns or progress.ratio is None:
        return f"starting, {wall}"
    text = f"{about(progress.virtual_ns, 'time', 4)} in {wall} (1 s takes {progress.ratio:.2f} s)"
    text += f", {progress.packets_per_s:,.0f} packets/s"
    if progress.left_ns is not None:
        text += f", about {about(progress.left_ns, 'time', 2)} left"
    return text
