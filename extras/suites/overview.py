"""The results of a suite in one table: applications against congestion controls, as multiples of the reference.

In: experiments' directories with their summary.json (analysis), and the responses of WM. Out: rows of text for people,
the same as data. A ratio's interval is that of its mean over the seeds, each seed's run divided by the reference's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ewan.experiments.engine.experiment import Experiment
from ewan.extras.suites.application import RESPONSES_IN_TIME
from ewan.extras.suites.applications import APPLICATIONS
from ewan.labs.base.codec import Struct, field
from ewan.labs.base.units.shown import about, with_interval
from ewan.labs.record import summary as summaries
from ewan.labs.record import tables

SHOWN = {"mean completion time": "mean completion", "deviation of completion time": "deviation of completion"}
PATTERN = "pattern"
"""The parameter of an application that gives a row each."""


class ReferenceRatio(Struct):
    """A metric as a multiple of the reference's, with its interval."""

    ratio: float | None
    low: float | None
    high: float | None


class OverviewRow(Struct, omit_defaults=False):
    """A metric of an application. `reference` in ns; `ratios` with their interval and shares `within`, by congestion
    control."""

    app: str = field(name="application")
    facet: str
    metric: str
    reference: float | None = field(name="reference_ns")
    ratios: dict[str, ReferenceRatio] = field(name="normalised", default_factory=dict)
    within: dict[str, float] = field(name="share", default_factory=dict)


@dataclass(frozen=True, slots=True)
class Suite:
    """`experiments`: application → its directory."""

    experiments: Mapping[str, Path]
    controls: Sequence[str]
    reference: str
    constraint_ns: int
    facets: Sequence[str] = ()
    """Parameters with several values, which give a row each."""

    def rows(self) -> list[OverviewRow]:
        """The rows in the order of the applications; an experiment without a summary has none."""
        return [row for app, directory in self.experiments.items() for row in self._of(app, directory)]

    def _of(self, app: str, directory: Path) -> list[OverviewRow]:
        if not (directory / summaries.FILE).exists():
            return []
        summary = summaries.read(directory)
        rows: dict[tuple[str, str], OverviewRow] = {}
        for point in summary.points:
            control = str(point.parameters.get("congestion", self.reference))
            facet = self._facet(point.parameters)
            for metric in APPLICATIONS[app].overview:
                if metric == RESPONSES_IN_TIME:
                    if (facet, metric) not in rows:
                        rows[facet, metric] = OverviewRow(app, facet, metric, None, {}, self._in_time(directory, facet))
                    continue
                row = rows.setdefault((facet, metric), OverviewRow(app, facet, metric, None))
                own = point.metrics.get(metric)
                if control == self.reference and own is not None:
                    rows[facet, metric] = row = OverviewRow(app, facet, metric, own.mean, row.ratios, row.within)
                ratio = point.normalised.get(metric)
                if ratio is not None:
                    row.ratios[control] = ReferenceRatio(ratio.ratio, ratio.low, ratio.high)
        return list(rows.values())

    def _facet(self, parameters: Mapping[str, str | int]) -> str:
        pattern = [str(parameters[PATTERN])] if PATTERN in parameters else []
        return " ".join([*pattern, *(f"{name}={parameters[name]}" for name in self.facets if name in parameters)])

    def _in_time(self, directory: Path, facet: str) -> dict[str, float]:
        """The share of the load's responses that kept to the constraint, by congestion control."""
        experiment = Experiment.load(directory)
        counts: dict[str, list[int]] = {}
        for run in experiment.runs:
            if run.status != "complete" or self._facet(run.parameters) != facet:
                continue
            place = experiment.place(run)
            asked = tables.read(place, "flows").filter((pl.col("kind") == "requests") & (pl.col("role") == "load"))
            times = tables.read(place, "exchanges").filter(pl.col("flow").is_in(asked["flow"].unique().to_list()))
            both = counts.setdefault(str(run.parameters.get("congestion", self.reference)), [0, 0])
            both[0] += times.filter(pl.col("duration_ns") <= self.constraint_ns).height
            both[1] += times.height
        return {control: kept / all_ for control, (kept, all_) in counts.items() if all_}

    def columns(self) -> list[str]:
        """Heads of the table: the reference first, then the others."""
        others = [control for control in self.controls if control != self.reference]
        return ["application", "metric", self.reference, *others]

    def text(self, row: OverviewRow) -> list[str]:
        """The reference as it is, the others as multiples of it with their intervals."""
        names = {RESPONSES_IN_TIME: f"responses within {about(self.constraint_ns, 'time')}"}
        shown = names.get(row.metric) or SHOWN.get(row.metric, row.metric)
        cells = [f"{row.app} {row.facet}".strip(), shown]
        for control in self.columns()[2:]:
            if row.metric == RESPONSES_IN_TIME:
                share = row.within.get(control)
                cells.append("–" if share is None else f"{share:.1%}")
            elif control == self.reference:
                cells.append("–" if row.reference is None else about(row.reference, "time"))
            else:
                cells.append(_ratio(row.ratios.get(control)))
        return cells


def _ratio(result: ReferenceRatio | None) -> str:
    """`0.970 ± 0.020`; without an interval where there is one seed."""
    if result is None or result.ratio is None:
        return "–"
    return with_interval(result.ratio, result.low, result.high, "ratio")


def status(directory: Path) -> str:
    """The status of an experiment; LabError where its record is gone."""
    return Experiment.load(directory).document.status
