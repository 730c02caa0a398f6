"""The wall time of a run, as a record (wall.json) and in words.

In: runs that have ended, the progress of those at work, facts of the machine. Out: wall.json, lines for people.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from ewan.labs.base import codec, writing
from ewan.labs.base.codec import JsonValue
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.base.units.shown import about
from ewan.labs.record import host_facts
from ewan.labs.record.experiment import checksum_once
from ewan.labs.runtime.progress import RunProgress
from ewan.labs.runtime.virtual import Run


def write_wall(directory: Path, started: str, took: Mapping[str, JsonValue]) -> None:
    """Writes wall.json, the one result of a run that depends on the machine. Raises OSError.

    `started`: when, in UTC. `took`: at least `wall_ns`; of a run in the virtual clock what `cost_of` says.
    """
    document = {"format": "ewan-wall/1", "started": started, "host": host_facts({}), **took}
    writing.write(directory / "wall.json", codec.document(document))


def cost_of(result: Run) -> dict[str, JsonValue]:
    """The cost of a run of the virtual clock, and its kernel. `ratio`: wall time for a second of virtual time."""
    cost = result.cost
    return {
        "kernel": str(result.kernel),
        "kernel_sha256": checksum_once(result.kernel),
        "ratio": cost.wall_ns / cost.virtual_ns if cost.virtual_ns else None,
        **dataclasses.asdict(cost),
    }


def summary(result: Run) -> str:
    """The cost of a run, in one line."""
    cost = result.cost
    wall = about(cost.wall_ns, "time", 3)
    if cost.virtual_ns is None:
        return f"{wall} of wall time"
    pace = cost.packets / cost.wall_ns * NS_PER_SECOND
    return (
        f"{about(cost.virtual_ns, 'time', 4)} of virtual time in {wall} of wall time "
        f"({cost.packets:,} packets received by nodes, {pace:,.0f} a second)"
    )


def words(progress: RunProgress) -> str:
    """The progress of a run, in one line."""
    wall = about(progress.wall_ns, "time", 3)
    if not progress.virtual_ns or progress.ratio is None:
        return f"starting, {wall}"
    text = f"{about(progress.virtual_ns, 'time', 4)} in {wall} (1 s takes {progress.ratio:.2f} s)"
    text += f", {progress.packets_per_s:,.0f} packets/s"
    if progress.left_ns is not None:
        text += f", about {about(progress.left_ns, 'time', 2)} left"
    return text
