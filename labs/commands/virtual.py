"""Running a program in the virtual clock, with its progress shown."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path

from ewan.labs import clock, rundir
from ewan.labs.context import Context
from ewan.labs.plan import Plan
from ewan.labs.runtime import cpu
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import Program
from ewan.labs.runtime.virtual import Run, VirtualRuntime


def runtime_of(context: Context, kernel: str | None = None) -> VirtualRuntime:
    """The virtual clock's runtime; the build of its kernel is reported line by line on standard error. `kernel`: the
    name of one that the user added."""
    return context.virtual(tell=lambda line: context.reporter.messages.print(line, soft_wrap=True), kernel=kernel)


def run(
    context: Context, plan: Plan, program: Program, directory: Path, what: str, stop: threading.Event | None = None
) -> Run:
    """Runs the program in the lab of `plan`, with progress on standard error; its results are in `directory`.

    `what` names it in the progress. Raises LabError where it could not be done; `stop` ends it early.
    """
    started = datetime.now(UTC).isoformat(timespec="seconds")
    reporter, heading = context.reporter, f"{what} {plan.lab}"
    if line := cpu.notice():
        reporter.warn(line)
    try:
        with reporter.progress(f"{heading} in the virtual clock") as progress:
            runtime = context.virtual(
                show=lambda now: progress.tick(f"{heading}: {clock.words(now)}"),
                tell=lambda line: progress.step(f"building the virtual kernel, once: {line}", log=line),
            )
            result = runtime.run(plan, program, directory, stop)
    except LabError:
        rundir.drop(directory)  # nothing is in it where nothing had begun
        raise
    clock.write_wall(directory, started, clock.cost_of(result))
    for warning in result.ended.warnings:
        reporter.warn(warning)
    return result
