"""Schedules of invented runs, for tests of the modules that read them."""

from __future__ import annotations

from collections.abc import Sequence

from ewan.generator.commands import RunCommand
from ewan.labs.record.schedule import CrossedPath, Flow, NamedSchedule, Part, ScheduledCommand

FLOW = Flow(
    number=7,
    name="both left1 to right1",
    step="both",
    role="load",
    transfer=3,
    kind="bulk",
    generator="ewan",
    source="left1",
    sink="right1",
    congestion="reno",
    scheduled_ns=5,
    volume_bytes=100,
    request=0,
)


def schedule(
    flows: Sequence[Flow] = (),
    commands: Sequence[ScheduledCommand] = (),
    series_ns: int = 10**8,
    paths: Sequence[CrossedPath] = (),
) -> NamedSchedule:
    """A run of these flows and commands."""
    return NamedSchedule(
        scenario="x",
        run="seed=1",
        parameters={},
        seed=1,
        clock="virtual",
        begin_ns=0,
        longest_ns=10**9,
        series_ns=series_ns,
        paths=tuple(paths),
        flows=tuple(flows),
        commands=tuple(commands),
    )


def command(index: int, step: str, node: str, part: Part = "command") -> ScheduledCommand:
    """One command of a run."""
    return ScheduledCommand(index, step, node, 0, False, None, part)


def ran(argv: Sequence[str], out: str = "out", files: str = "files") -> RunCommand:
    """The record of a command that began at T0."""
    return RunCommand(tuple(argv), 0, None, "a", 0, out, "err", files)
