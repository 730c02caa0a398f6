"""The experiments of a directory as rows: when, what, how far, whether verified, with what result; and which of them
are asked for.

In: results/, filters of the command line. Out: a row of text for each experiment.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from ewan.analysis import load
from ewan.labs.base.documents import DocumentError
from ewan.labs.base.units.ages import parse_age
from ewan.labs.base.units.shown import fitting, interval_in
from ewan.labs.record import quantities
from ewan.labs.record import summary as summaries
from ewan.labs.record.experiment import ExperimentDocument, State
from ewan.labs.record.metrics import RANKED

NotReadable = Literal["not readable"]
NOT_READABLE: NotReadable = "not readable"


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Conditions on rows; without any, all rows pass."""

    tags: tuple[str, ...] = ()
    scenario: str | None = None
    since: datetime | None = None
    status: str | None = None

    def takes(self, row: ExperimentRow) -> bool:
        """Return whether a row meets all conditions."""
        return (
            all(tag in row.tags for tag in self.tags)
            and self.scenario in (None, row.scenario)
            and (self.since is None or (bool(row.began) and datetime.fromisoformat(row.began) >= self.since))
            and self.status in (None, row.status)
        )


@dataclass(frozen=True, slots=True)
class ExperimentRow:
    """A row of `ewan exp list`, as text. `began`: the moment in UTC, ISO 8601; empty where the experiment cannot be
    read."""

    directory: str
    status: State | NotReadable
    scenario: str = ""
    began: str = ""
    clock: str = ""
    runs: str = ""
    disturbed: str = ""
    verified: str = ""
    result: str = ""
    name: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""

    @property
    def started(self) -> str:
        """The time of the start, to the minute."""
        return self.began[:16].replace("T", " ")


def since(text: str, now: datetime) -> datetime:
    """`2d`, `3h`, `30min`, `1w` before `now`, or a day or a moment of UTC; ValueError for other text."""
    if (ago := parse_age(text)) is not None:
        return now - ago
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f'--since "{text}": write how long ago, like "2d" or "3h", or a day, "2026-01-31"') from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def describe(path: Path) -> ExperimentRow:
    """An experiment in a row; the row of an unreadable one shows that."""
    try:
        experiment = load.experiment(path)
    except load.LoadError:
        return ExperimentRow(str(path), NOT_READABLE)
    document = experiment.document
    complete = sum(run.status == "complete" for run in experiment.runs)
    return ExperimentRow(
        directory=str(path),
        status=experiment.status,
        scenario=document.scenario,
        began=document.started,
        clock=document.clock,
        runs=f"{complete}/{len(experiment.runs)}",
        disturbed=disturbed(document),
        verified=verified(document),
        result=headline(path, experiment),
        name=document.name,
        tags=tuple(document.tags),
        note=document.note,
    )


def tags(rows: Iterable[ExperimentRow]) -> list[str]:
    """All that there are, sorted."""
    return sorted({tag for row in rows for tag in row.tags})


def disturbed(document: ExperimentDocument) -> str:
    """The number of runs whose links left their tolerance for a time; empty where no run was watched."""
    watched = [run.disturbed for run in document.runs if run.disturbed is not None]
    return str(sum(bool(seconds) for seconds in watched)) if watched else ""


def verified(document: ExperimentDocument) -> str:
    """`yes` if all labs of an experiment passed their verification, `no` if one failed, `–` if that is not known."""
    said = [run.verified for run in document.runs]
    if any(each is False for each in said):
        return "no"
    if said and all(said):
        return "yes"
    return "–"


def headline(path: Path, experiment: load.ExperimentResults) -> str:
    """One metric: the scenario's first, or the highest-ranked one; of several points the least and the largest."""
    try:
        points = summaries.read(path).points
    except (OSError, DocumentError):
        return ""
    for name in quantities.meant([*experiment.document.metrics, *RANKED], summaries.names(points)):
        each = [point.metrics[name].mean for point in points if name in point.metrics]
        means = [mean for mean in each if mean is not None]
        if means and (metric := quantities.metric_of(name)):
            divisor, unit = fitting(means, metric.unit)
            ends = dict.fromkeys(interval_in(divisor, value, None, None) for value in (min(means), max(means)))
            return f"{name} {' to '.join(ends)} {unit}".rstrip()
    return ""
