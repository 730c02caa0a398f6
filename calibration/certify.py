"""One verification: expectations, probes, verdicts, certificate.

In: a plan whose lab is up, the path of `ewan-node`, and a way to ask the links. Out: a certificate. The only part
of this package that starts anything.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from calibration import exact, expect, probe, spinner
from calibration.compare import compare
from labs.plan import Plan, digest
from labs.record import Certificate, HostFacts, host_facts
from labs.runtime.program import Program

Control = Callable[[str, dict[str, Any]], dict[str, Any]]
"""A link's name and a request → its spinner's answer."""


def verify(
    plan: Plan,
    *,
    binary: Path,
    control: Control,
    progress: Callable[[str], None] = lambda text: None,
    tolerances: expect.Tolerances | None = None,
    budget: probe.Budget | None = None,
    versions: Mapping[str, str] | None = None,
    routing: Mapping[str, Any] | None = None,
) -> Certificate:
    """Measures every link of `plan`, both ways, and its pairs. RuntimeError with one line when probes cannot run.

    `versions` of what made the lab, and what `routing` took, go into the record.
    """
    bounds = expect.beside_routing(tolerances or expect.Tolerances(), plan)
    begun = time.monotonic_ns()
    at = datetime.now(UTC).isoformat(timespec="seconds")
    expected = expect.expectations(plan)
    probing = probe.plan_probes(expected, plan.lab, budget)
    with _off_the_spinners(plan):
        before = _statistics(plan, control)
        answer = probe.run(plan, probing, binary, progress)
        after = _statistics(plan, control)
    rows = compare(expected, probing, answer, spinner.facts(before, after), bounds)
    return Certificate(
        plan_sha256=digest(plan),
        lab=plan.lab,
        time=at,
        host=host_facts({"ewan-node": _version(binary), **(versions or {})}),
        tolerances={**dataclasses.asdict(bounds), "reasons": expect.REASONS},
        rows=rows,
        probes=_without_raw(answer),
        spinners={str(index): found for index, found in enumerate(after)},
        elapsed_ns=time.monotonic_ns() - begun,
        routing=dict(routing or {}),
    )


Runs = Callable[[Program], Path]
"""A program → the directory of its run in the lab; an error of its own when it did not come to its end."""

Kernel = Callable[[], tuple[str, str, int]]
"""After the probes: the virtual kernel's version, its file's SHA-256, its memory in bytes."""


def verify_virtual(
    plan: Plan,
    runs: Runs,
    kernel: Kernel,
    *,
    tolerances: expect.Tolerances | None = None,
    budget: exact.Budget | None = None,
) -> Certificate:
    """The same in the virtual clock, through a runtime that makes the lab for the probes alone.

    The certificate holds nothing of this machine and none of its time: two of the same plan are the same bytes.
    """
    bounds = expect.beside_routing(tolerances or exact.TOLERANCES, plan)
    expected = expect.expectations(plan)
    probing = exact.plan_probes(expected, plan.lab, budget)
    directory = runs(exact.program(plan, probing))
    answer = exact.answer(probing, directory)
    routing = directory / "routing.json"
    rows = compare(expected, probing, answer, {}, bounds)
    version, digest_, memory_bytes = kernel()
    return Certificate(
        plan_sha256=digest(plan),
        lab=plan.lab,
        time="",
        host=HostFacts(
            kernel=version,
            machine="um",
            cpu_model="",
            cpus=1,
            memory_bytes=memory_bytes,
            clock_source="virtual",
            hypervisor=False,
            versions={"kernel_sha256": digest_},
        ),
        tolerances={**dataclasses.asdict(bounds), "reasons": exact.REASONS},
        rows=rows,
        probes=_without_raw(answer),
        spinners={},
        elapsed_ns=sum(result["elapsed_ns"] for result in answer["results"]),
        clock="virtual",
        routing=orjson.loads(routing.read_bytes()) if routing.exists() else {},
    )


@contextlib.contextmanager
def _off_the_spinners(plan: Plan) -> Iterator[None]:
    """Keeps all threads of this program on the hosts' CPUs meanwhile: a progress display that the kernel puts on a
    spinner's CPU would be measured as an error of the link."""
    old = os.sched_getaffinity(0)
    cpus = old & set(plan.host_cpus)
    _run_on(cpus)
    try:
        yield
    finally:
        if cpus:
            _run_on(old)


def _run_on(cpus: set[int]) -> None:
    for task in Path("/proc/self/task").iterdir() if cpus else ():
        # A thread may have ended meanwhile; without the right to move it, it stays.
        with contextlib.suppress(OSError):
            os.sched_setaffinity(int(task.name), cpus)


def _statistics(plan: Plan, control: Control) -> list[dict[str, Any]]:
    """One answer per spinner; a spinner that cannot be asked is part of the result, not an error."""
    answers = []
    for each in plan.spinners:
        try:
            answers.append(control(each.links[0], {"command": "stats"}) if each.links else {"ok": False})
        except (OSError, RuntimeError, ValueError) as error:
            answers.append({"ok": False, "error": str(error)})
    return answers


def _version(binary: Path) -> str:
    shown = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False)
    return shown.stdout.strip().removeprefix("ewan-node ") or "unknown"


def _without_raw(answer: dict[str, Any]) -> dict[str, Any]:
    """The rows hold what follows from single delays; the record need not carry them all."""
    for result in answer["results"]:
        for stream in result.get("streams", ()):
            stream.pop("delays_ns", None)
    return answer
