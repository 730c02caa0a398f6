"""The circumstances of an experiment: its runs, its machine, its verification.

In: an experiment, certificates. Out: names with words, and rows of text, for the report to lay out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from ewan.analysis import load
from ewan.analysis.figures.choice import ordered
from ewan.labs.base.units.shown import ARROWS, NONE, typographic, written
from ewan.labs.record import GRAVITY, Certificate, MachineFacts, Row, Verdict
from ewan.labs.record.experiment import STAGES, Stage, StageName


def facts(experiment: load.ExperimentResults) -> dict[str, str]:
    """The circumstances of an experiment by name: the clock, the time and the versions with which it ran."""
    document = experiment.document
    nodes = "containers" if document.runtime == "containerlab" else "network namespaces"
    clock = {
        "virtual": "virtual: a kernel of its own in simulated time; a rerun gives the same results to the byte",
        "live": f"live: {nodes} of this machine's kernel, in real time",
    }
    return _given(
        {
            "name": document.name,
            "tags": ", ".join(document.tags),
            "note": document.note,
            "runs": f"{len(experiment.runs)}: {extent(experiment)}",
            "clock": clock[document.clock],
            "scale": document.scale,
            "started": when(document.started),
            "ended": when(document.ended) if experiment.status != "running" else None,
            "command": document.command,
            "commit": document.commit,
            "virtual kernel": document.kernel_sha256,
            "node binary": document.binary_sha256,
        }
    )


def extent(experiment: load.ExperimentResults) -> str:
    """`4 choices of parameters, seeds 1, 2, 3`."""
    points, seeds = len(experiment.points), {run.seed for run in experiment.runs}
    return f"{points} choice{'s' * (points != 1)} of parameters, seed{'s' * (len(seeds) != 1)} {_counted(seeds)}"


def hosts(facts: MachineFacts, certificates: Iterable[Certificate]) -> dict[str, str]:
    """The machines that emulated, by name: this machine, described by `facts`, or the machines over which the labs
    stretched; in that case nothing ran on this machine."""
    machines = {name: each for certificate in certificates for name, each in certificate.machines.items()}
    if not machines:
        return host(facts)
    found = {}
    for name, each in machines.items():
        links, nodes = (", ".join(map(str, cpus)) or "none" for cpus in (each.link_cpus, each.host_cpus))
        found[f"machine {name}"] = "; ".join([*host(each.facts).values(), f"links on CPU {links}", f"nodes on {nodes}"])
    return found | {"started from, where nothing was emulated": "; ".join(host(facts).values())}


def host(facts: MachineFacts) -> dict[str, str]:
    """The machine, a row for each fact that is known."""
    machine = "a virtual machine" if facts.hypervisor else "no hypervisor seen"
    return _given(
        {
            "kernel": facts.kernel,
            "machine": f"{facts.machine}, {machine}" if facts.machine else None,
            "CPU": f"{facts.cpu_model} × {facts.cpus}" if facts.cpu_model else None,
            "memory": written(facts.memory_bytes, "B", 3) if facts.memory_bytes else None,
            "clock source": facts.clock_source,
            "versions": ", ".join(f"{name} {version}" for name, version in facts.versions.items()),
        }
    )


def _given(values: Mapping[str, str | bool | float | None]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items() if value not in (None, "")}


def stages(found: Mapping[StageName, Stage]) -> list[tuple[str, str]]:
    """The stages that have ended, with how long each took; those of making this page have not."""
    ended = {name: stage for name, stage in found.items() if stage.status not in ("waiting", "running")}
    rows = []
    for name in (name for name in STAGES if name in ended):
        took = ended[name].seconds
        words = [ended[name].status, f"{took:.1f}\u00a0s" if took is not None else ""]
        rows.append((STAGES[name], ", ".join(word for word in words if word)))
    return rows


def when(moment: str | None) -> str | None:
    """The moment that the engine writes, as `2026-01-02 03:04:05 UTC`."""
    if not moment:
        return None
    return re.sub(r"(\+00:00|Z)$", " UTC", moment.replace("T", " "))


def parameters(experiment: load.ExperimentResults) -> list[tuple[str, str]]:
    """Every parameter with its values, in the order that figures and tables have them."""
    names = dict.fromkeys(name for run in experiment.runs for name in run.parameters)
    rows = []
    for name in names:
        values = ordered(run.parameters[name] for run in experiment.runs if name in run.parameters)
        rows.append((name, _few(values)))
    return rows


def _few(values: Sequence[str]) -> str:
    """All of them, or of many the first and the last."""
    if len(values) <= MOST_VALUES:
        return ", ".join(values)
    return f"{len(values)} values: {', '.join(values[: MOST_VALUES // 2])}, …, {values[-1]}"


def _counted(numbers: Collection[int]) -> str:
    """`1, 2, 3`; many in ranges."""
    return ", ".join(map(str, sorted(numbers))) if len(numbers) <= MOST_VALUES else _ranges(sorted(numbers))


MOST_VALUES = 200
"""Values of a parameter, or seeds, that are written one by one."""
COUNTED: tuple[Verdict, ...] = ("ok", "outside", "not decidable", "not measured")


class ReportCertificate(NamedTuple):
    """A certificate in a few rows, in words."""

    lab: str
    plan: str
    passed: bool
    kernel: str
    counts: str
    runs: str
    rows: Sequence[Mapping[str, str]]


def certificate(found: Certificate, runs: Sequence[int]) -> ReportCertificate:
    """A certificate in a few rows: of each quantity how often it held, and the measurement closest to its tolerance.
    `runs`: the numbers of those in its lab."""
    kinds = dict.fromkeys(row.quantity for row in found.rows)
    counts = {verdict: found.count(verdict) for verdict in COUNTED}
    kernels = ", ".join(f"{name}: {each.facts.kernel}" for name, each in found.machines.items())
    return ReportCertificate(
        lab=found.lab,
        plan=found.plan_sha256[:12],
        passed=found.passed,
        kernel=kernels or found.host.kernel,
        counts=", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count),
        runs=_ranges(runs),
        rows=[_quantity([row for row in found.rows if row.quantity == kind]) for kind in kinds],
    )


def _quantity(rows: Sequence[Row]) -> dict[str, str]:
    judged = [row for row in rows if row.verdict in ("ok", "outside", "not decidable")]
    worst = max(judged or rows, key=lambda row: abs(row.error or 0) / (row.tolerance or 1))
    arrow = ARROWS.get(worst.direction, worst.direction)
    verdicts = {row.verdict for row in rows}
    known = worst.uncertainty if worst.measured is not None else None
    return {
        "quantity": worst.quantity,
        "count": f"{len(judged)} of {len(rows)}" if len(judged) < len(rows) else str(len(rows)),
        "where": f"{worst.link} {arrow}",
        "configured": _shown(worst.configured, worst.unit),
        "measured": _shown(worst.measured, worst.unit),
        "error": _shown(worst.error, worst.unit, 3),
        "tolerance": _shown(worst.tolerance, worst.unit, 3),
        "uncertainty": NONE if known is None else _shown(known.expanded, worst.unit, 2),
        "verdict": next(verdict for verdict in GRAVITY if verdict in verdicts),
    }


def _shown(value: float | None, unit: str, digits: int = 6) -> str:
    return typographic(written(value, unit, digits))


def _ranges(numbers: Sequence[int]) -> str:
    """`1–3, 7` for 1, 2, 3, 7."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}–{part[-1]}" for part in parts)
