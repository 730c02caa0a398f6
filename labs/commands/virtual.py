"""Running a program in the virtual clock, with its progress shown."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path

import orjson

from labs import clock, rundir
from labs.context import Context
from labs.plan import Plan
from labs.runtime import cpu
from labs.runtime.base import LabError
from labs.runtime.program import Program
from labs.runtime.virtual import Run


def run(
    context: Context, plan: Plan, program: Program, directory: Path, what: str, stop: threading.Event | None = None
) -> Run:
    """Runs it with progress on standard error; wall.json is written here: it alone tells of this machine."""
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
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
    (directory / "wall.json").write_bytes(orjson.dumps(clock.wall(result, started), option=options))
    for warning in result.ended["warnings"]:
        reporter.warn(warning)
    return result
