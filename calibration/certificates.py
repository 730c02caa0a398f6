"""A certificate for one plan in either clock, without a word to the user: what the engine of experiments asks for.

In: a plan (live: its lab is up), a directory for what the probes leave. Out: the certificate.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from calibration.certify import verify, verify_virtual
from labs import cli
from labs.plan import Plan
from labs.record import Certificate
from labs.runtime import kernel
from labs.runtime.program import Program
from labs.runtime.virtual import Run, VirtualRuntime


def certify(plan: Plan, directory: Path, virtual: bool, stop: threading.Event) -> Certificate:
    """RuntimeError and LabError with one line when the probes cannot run, or were stopped."""
    return _virtual(plan, directory, stop) if virtual else _live(plan)


def _live(plan: Plan) -> Certificate:
    def control(link: str, request: dict[str, Any]) -> dict[str, Any]:
        return cli.runtime().control(plan.lab, link, request)

    return verify(plan, binary=cli.BINARY, control=control, versions=cli.runtime().versions(plan.lab))


def _virtual(plan: Plan, directory: Path, stop: threading.Event) -> Certificate:
    runs: list[Run] = []

    def verifying(program: Program) -> Path:
        run = VirtualRuntime(cli.BINARY).run(plan, program, directory, stop)
        runs.append(run)
        if run.interrupted:
            raise RuntimeError("interrupted before the lab was verified")
        return directory

    def facts() -> tuple[str, str, int]:
        run = runs[-1]
        return str(run.ended["kernel"]), kernel.digest(run.kernel), run.cost.memory_bytes

    return verify_virtual(plan, verifying, facts)
