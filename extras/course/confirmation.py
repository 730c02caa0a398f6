"""The confirmation of a student's runs: each is held against the same run, executed by the grader. Pure.

In: the records of a submission, and what the student's own scenarios execute and leave. Out: of each run that it is
confirmed, or why it is not. What a submission says is only compared: which runs are executed follows from the student's
number only, so that no submission makes the grader run anything else, or more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ewan.extras.course import grade, submission

MOST_RUNS = 1024
"""The most runs of a submission that are compared."""


@dataclass(frozen=True, slots=True)
class KnownRun:
    """A run of the student's own scenario. `tables`: the checksum of what it left here (`records.tables`); None: it
    could not be executed here, and `error` says why."""

    scenario: str
    name: str
    key: str
    inputs: str
    tables: str | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class StudentVersions:
    """SHA-256 of the virtual kernel and the node binary, and of each scenario's text as this student was given it."""

    kernel: str
    binary: str
    texts: Mapping[str, str]


def confirm(
    experiments: Iterable[submission.SubmittedExperiment], known: Iterable[KnownRun], versions: StudentVersions
) -> list[grade.RunGrade]:
    """Each run that was handed in, once: what was run again by the student is one run."""
    by_inputs = {each.inputs: each for each in known}
    result: dict[tuple[str, str], grade.RunGrade] = {}
    for experiment in experiments:
        for run in experiment.runs:
            if (run.inputs, run.tables) in result:
                continue
            said = grade.TOO_MANY
            if len(result) < MOST_RUNS:
                own = by_inputs.get(run.inputs)
                said = _unknown(experiment, versions) if own is None else _held(run, experiment, own, versions)
            result[run.inputs, run.tables] = grade.RunGrade(
                scenario=experiment.scenario, name=run.name, inputs=run.inputs, said=said
            )
    return list(result.values())


def _held(
    run: submission.SubmittedRun, experiment: submission.SubmittedExperiment, own: KnownRun, versions: StudentVersions
) -> str:
    """A run of the student's own scenario: its bytes decide."""
    if own.tables is None:
        return f"{grade.NOT_CONFIRMED}could not be executed here: {own.error}"
    if run.tables == own.tables:
        return grade.CONFIRMED
    if not _same_tools(experiment, versions):
        return grade.OTHER_TOOLS
    return grade.DIFFER if run.key == own.key else grade.OTHER_VERSION


def _unknown(experiment: submission.SubmittedExperiment, versions: StudentVersions) -> str:
    """Why a run is none of the student's own scenarios."""
    if versions.texts.get(experiment.scenario) != experiment.text:
        return grade.CHANGED
    if not experiment.changed and not _same_tools(experiment, versions):
        return grade.OTHER_TOOLS
    return grade.TRIED if experiment.changed else grade.CHANGED


def _same_tools(experiment: submission.SubmittedExperiment, versions: StudentVersions) -> bool:
    return (experiment.kernel, experiment.binary) == (versions.kernel, versions.binary)
