"""Running a program in the virtual clock, with its progress shown.

In: plans, programs. Out: run directories. The progress is a status line on a terminal, a line every few
seconds in a log.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
from rich.status import Status

from labs import cli, rundir
from labs.plan import Plan
from labs.record import host_facts
from labs.runtime import cpu, kernel
from labs.runtime.base import LabError
from labs.runtime.program import Program
from labs.runtime.progress import Progress
from labs.runtime.virtual import Run, VirtualRuntime
from labs.units import NS_PER_SECOND, about

LOG_EVERY_NS = 5 * NS_PER_SECOND


def run(plan: Plan, program: Program, directory: Path, what: str, stop: threading.Event | None = None) -> Run:
    """Runs it with progress on standard error; wall.json is written here: it alone tells of this machine."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    display = Display(f"{what} {plan.lab}")
    if line := cpu.notice():
        cli.messages.print(f"warning: {line}", style="yellow", soft_wrap=True)
    try:
        with cli.messages.status(f"{what} {plan.lab} in the virtual clock") as status:
            display.status = status
            runtime = VirtualRuntime(cli.BINARY, show=display.show, tell=display.tell)
            result = runtime.run(plan, program, directory, stop)
    except LabError:
        rundir.drop(directory)  # nothing is in it where nothing had begun
        raise
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
    (directory / "wall.json").write_bytes(orjson.dumps(wall(result, started), option=options))
    for warning in result.ended["warnings"]:
        cli.messages.print(f"warning: {warning}", style="yellow", soft_wrap=True)
    return result


def wall(result: Run, started: str) -> dict[str, Any]:
    """The record of what a run took, wall.json; `started`: when, in UTC."""
    cost = result.cost
    return {
        "format": "ewan-wall/1",
        "started": started,
        "host": host_facts({}),
        "kernel": str(result.kernel),
        "kernel_sha256": kernel.digest(result.kernel),
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


class Display:
    """Progress for people."""

    def __init__(self, what: str) -> None:
        self.status: Status | None = None
        self._what = what
        self._last = time.monotonic_ns()

    def show(self, progress: Progress) -> None:
        if cli.messages.is_terminal:
            if self.status is not None:
                self.status.update(f"{self._what}: {words(progress)}")
        elif time.monotonic_ns() - self._last > LOG_EVERY_NS:
            self._last = time.monotonic_ns()
            cli.messages.print(f"{self._what}: {words(progress)}", soft_wrap=True)

    def tell(self, line: str) -> None:
        """Of the kernel's build."""
        if cli.messages.is_terminal and self.status is not None:
            self.status.update(f"building the virtual kernel, once: {line}")
        else:
            cli.messages.print(line, soft_wrap=True)


def words(progress: Progress) -> str:
    wall = about(progress.wall_ns, "time", 3)
    if not progress.virtual_ns or progress.ratio is None:
        return f"starting, {wall}"
    text = f"{about(progress.virtual_ns, 'time', 4)} in {wall} (1 s takes {progress.ratio:.2f} s)"
    text += f", {progress.packets_per_s:,.0f} packets/s"
    if progress.left_ns is not None:
        text += f", about {about(progress.left_ns, 'time', 2)} left"
    return text
