"""Progress of an experiment, point by point, while it runs and afterwards.

In: an experiment's directory, of which its record, the names of its runs' files and its summary are read. Out: for each
point of its parameters the state of its runs, and their results once they are analysed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from ewan.labs.base.documents import DocumentError
from ewan.labs.base.units.shown import NONE, fitting, interval_in
from ewan.labs.record import journal, quantities
from ewan.labs.record import summary as summaries
from ewan.labs.record.experiment import INPUTS, STAGES, Entry, ExperimentDocument, State
from ewan.labs.record.independent import varying
from ewan.labs.record.metrics import USUAL
from ewan.labs.record.scenario_requests import Parameter
from ewan.labs.record.summary import Mean, PointSummary

MOST_POINTS = 500
MOST_METRICS = 4
SUMMARY = "summary.json"
Became = Literal["waiting", "running", "done", "incomplete", "failed", "refused"]
"""The state of a run. `refused`: its lab did not pass its verification, so it is not executed."""


@dataclass(frozen=True, slots=True)
class PointProgress:
    """A point. `became`: how many of its runs, for each word that there is; `results` beside
    `ExperimentProgress.metrics`."""

    parameters: Mapping[str, str | int]
    runs: int
    became: Mapping[Became, int]
    error: str
    results: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExperimentProgress:
    """Progress of an experiment. `stage`: the present stage in the words that are shown; empty when all stages have
    ended."""

    directory: str
    status: State
    stage: str
    began: str
    varying: tuple[str, ...]
    metrics: tuple[str, ...]
    points: tuple[PointProgress, ...]
    points_in_all: int
    report: bool


def progress(directory: Path) -> ExperimentProgress:
    """Read the progress of the experiment in `directory`; OSError and DocumentError where there is none that can be
    read."""
    document = journal.load(directory)
    stage = next((STAGES[name] for name, each in document.stages.items() if each.status == "running"), "")
    grouped: dict[tuple[tuple[str, str], ...], list[Entry]] = {}
    for entry in document.runs:
        grouped.setdefault(_key(entry.parameters), []).append(entry)
    summary = _summary(directory)
    metrics = _metrics(document, summary)
    by_point = {_key(each.parameters): each.metrics for each in summary}
    scales = [_scale(name, summary) for name in metrics]
    points = [
        PointProgress(
            entries[0].parameters,
            len(entries),
            _counted(directory, document, entries),
            next((entry.error for entry in entries if entry.error), ""),
            tuple(
                _shown(by_point.get(key, {}).get(name), scale[0]) for name, scale in zip(metrics, scales, strict=True)
            ),
        )
        for key, entries in list(grouped.items())[:MOST_POINTS]
    ]
    return ExperimentProgress(
        directory=directory.name,
        status=document.status,
        stage=stage,
        began=document.started,
        varying=tuple(varying([entries[0].parameters for entries in grouped.values()])),
        metrics=tuple(f"{name} ({unit})" if unit else name for name, (_, unit) in zip(metrics, scales, strict=True)),
        points=tuple(points),
        points_in_all=len(grouped),
        report=(directory / "report.html").is_file(),
    )


def _key(parameters: Mapping[str, Parameter]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, str(value)) for name, value in parameters.items()))


def _counted(directory: Path, document: ExperimentDocument, entries: Sequence[Entry]) -> dict[Became, int]:
    found: dict[Became, int] = {}
    for entry in entries:
        became = _became(directory, document, entry)
        found[became] = found.get(became, 0) + 1
    return found


def _became(directory: Path, document: ExperimentDocument, entry: Entry) -> Became:
    match entry.status:
        case "complete":
            return "done"
        case "incomplete" | "failed":
            return entry.status
        case "waiting":
            if entry.verified is False and not document.unverified:
                return "refused"
            if document.status != "running":
                return "waiting"
            try:
                names = {path.name for path in (directory / entry.directory).iterdir()}
            except OSError:
                names = set()
            return "running" if names - set(INPUTS) else "waiting"


def _summary(directory: Path) -> Sequence[PointSummary]:
    try:
        return summaries.read(directory).points
    except (OSError, DocumentError):
        return ()


def _metrics(document: ExperimentDocument, summary: Sequence[PointSummary]) -> list[str]:
    return quantities.meant(document.metrics or USUAL, summaries.names(summary))[:MOST_METRICS]


def _scale(name: str, summary: Sequence[PointSummary]) -> tuple[float, str]:
    there = [point.metrics[name] for point in summary if name in point.metrics]
    return fitting([each.mean for each in there], there[0].unit)


def _shown(measured: Mean | None, divisor: float) -> str:
    return NONE if measured is None else interval_in(divisor, measured.mean, measured.low, measured.high)


def of_command(results: Path, command: str, after: float, before: float) -> Path | None:
    """The experiment of results/ that a command, as its record has it, began between two moments (UNIX time, s)."""
    for place in sorted(results.glob("*/experiment.json")):
        try:
            if not after - 2 <= place.parent.stat().st_ctime:
                continue
            document = journal.load(place.parent)
        except (OSError, ValueError):
            continue
        began = _moment(document.started)
        if document.command == command and after - 1 <= began <= before + 1:
            return place.parent
    return None


def _moment(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0
