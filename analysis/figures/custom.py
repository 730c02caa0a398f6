"""Figures that a scenario or the command line asks for, drawn.

In: an experiment with its summary, wishes (labs/record/figures.py), a style. Out: drawings. Each run's tables are read
once for all figures that need them. Of many runs both reading and drawing are shared out over processes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ewan.analysis import load, side_by_side
from ewan.analysis.figures import by_parameter, maps, phase
from ewan.analysis.figures.flowchart import FlowChart
from ewan.analysis.figures.happenings import Timeline
from ewan.analysis.figures.overtime import OverTime
from ewan.analysis.figures.request import FigureError, Request
from ewan.analysis.figures.spreads import SampleFigure
from ewan.analysis.figures.style import PAGE, Drawing, Style, missing
from ewan.analysis.load import ExperimentResults, RunResults
from ewan.analysis.rundata import RunData
from ewan.analysis.side_by_side import SharedArgument
from ewan.labs.record import figures
from ewan.labs.record.figures import FigureSpec
from ewan.labs.record.scenario_requests import Parameter
from ewan.labs.record.summary import Summary

Gathered = dict[int, Any]
"""The data of a figure, by the runs' numbers."""


class TableFigure(Protocol):
    """A figure that is made of the tables of runs."""

    def wants(self, run: RunResults) -> bool:
        """Return whether the figure needs this run."""

    def gather(self, run: RunResults, data: RunData) -> Any:
        """The data that the figure needs of a run. `data`: the run's tables, which other figures use too."""

    def draw(self, gathered: Mapping[int, Any]) -> Drawing:
        """Draw the figure of the gathered data, by the numbers of runs; FigureError where it cannot be drawn."""


@dataclass(frozen=True, slots=True)
class SummaryFigure:
    """A figure that is made of metrics only: no tables of runs are read for it."""

    drawing: Callable[[Request], Drawing]
    request: Request

    def wants(self, run: RunResults) -> bool:
        """Return False: it needs no run."""
        return False

    def gather(self, run: RunResults, data: RunData) -> None:
        """Gather nothing."""

    def draw(self, gathered: Mapping[int, Any]) -> Drawing:
        """Draw the figure of the summary."""
        return self.drawing(self.request)


_KINDS: dict[str, Callable[[Request], TableFigure]] = {
    "metric": partial(SummaryFigure, by_parameter.draw),
    "map": partial(SummaryFigure, maps.draw),
    "phase": partial(SummaryFigure, phase.draw),
    "time": OverTime,
    "flow chart": FlowChart,
    "cdf": SampleFigure,
    "ccdf": SampleFigure,
    "box": SampleFigure,
    "timeline": Timeline,
}


Job = Callable[[ExperimentResults], Drawing | str | None]
"""The making of one figure, which can be sent to another process; a text: why there is none."""


class FigureFiles(NamedTuple):
    """`refused`: why figures are not there, in words, by their lines."""

    drawings: list[Drawing]
    refused: dict[str, str]


def draw(
    experiment: ExperimentResults,
    found: Summary,
    specs: Iterable[FigureSpec],
    look: Style = PAGE,
    kinds: Sequence[str] = (),
) -> list[Drawing | str]:
    """Each figure, in order, or why it cannot be drawn. LoadError where a table is damaged."""
    wanted = list(specs)
    if why := missing():
        return [why for _ in wanted]
    done = draw_all(experiment, jobs(experiment, found, wanted, look, kinds))
    return [each for each in done if each is not None]


def draw_all(experiment: ExperimentResults, wanted: Sequence[Job]) -> list[Drawing | str | None]:
    """Each figure, in order; of many runs by several processes."""
    runs = sum(run.measured for run in experiment.runs)
    if experiment.of_one_directory and side_by_side.shared(runs):
        return side_by_side.each(partial(_draw_alone, experiment.directory), wanted, runs)
    return [job(experiment) for job in wanted]


def jobs(
    experiment: ExperimentResults,
    found: Summary,
    specs: Iterable[FigureSpec],
    look: Style = PAGE,
    kinds: Sequence[str] = (),
) -> list[Job]:
    """The work that remains for each figure when the tables of all runs have been read."""
    wanted = list(specs)
    numbers = [run.number for run in experiment.runs if run.measured]
    if not experiment.of_one_directory or not side_by_side.shared(len(numbers)):
        made = [_made(experiment, found, look, kinds, spec) for spec in wanted]
        return [partial(_drawn, *each) for each in zip(made, _gather(experiment, made, numbers), strict=True)]
    parts, common = side_by_side.shares(numbers, len(numbers)), SharedArgument(found)
    of_parts = side_by_side.each(partial(_gather_part, experiment.directory, common, wanted), parts, len(numbers))
    return [
        partial(_make_and_draw, common, look, kinds, spec, _together(gathered))
        for spec, *gathered in zip(wanted, *of_parts, strict=True)
    ]


def _made(
    experiment: ExperimentResults, found: Summary, look: Style, kinds: Sequence[str], spec: FigureSpec
) -> TableFigure | str:
    """A figure of nothing yet, or why it cannot be drawn."""
    try:
        figures.check(spec, values(experiment))
        return _KINDS[spec.kind](Request(experiment, found, spec, look, kinds))
    except ValueError as error:
        return str(error)


def _gather(
    experiment: ExperimentResults, made: Sequence[TableFigure | str], numbers: Collection[int]
) -> list[Gathered | str]:
    """The data that each figure needs of these runs, or the reason why it cannot be drawn."""
    result: list[Gathered | str] = [each if isinstance(each, str) else {} for each in made]
    for run in experiment.runs:
        if run.number not in numbers:
            continue
        data: RunData | None = None
        for index, (each, gathered) in enumerate(zip(made, result, strict=True)):
            try:
                if not isinstance(each, str) and not isinstance(gathered, str) and each.wants(run):
                    data = data or RunData.read(run)
                    gathered[run.number] = each.gather(run, data)
            except FigureError as error:
                result[index] = str(error)
        run.forget()
    return result


def _gather_part(
    directory: Path, found: SharedArgument[Summary], specs: Sequence[FigureSpec], numbers: Collection[int]
) -> list[Gathered | str]:
    experiment = load.experiment_once(directory)
    return _gather(experiment, [_made(experiment, found.value, PAGE, (), spec) for spec in specs], numbers)


def _together(parts: Iterable[Gathered | str]) -> Gathered | str:
    """The data of one figure from several processes, in the order of the runs, so that its lines keep that order."""
    every: Gathered = {}
    for part in parts:
        if isinstance(part, str):
            return part
        every |= part
    return dict(sorted(every.items()))


def _drawn(made: TableFigure | str, gathered: Gathered | str, experiment: ExperimentResults) -> Drawing | str:
    if isinstance(made, str):
        return made
    if isinstance(gathered, str):
        return gathered
    try:
        return made.draw(gathered)
    except FigureError as error:
        return str(error)
    finally:
        for run in experiment.runs:
            run.forget()


def _make_and_draw(
    found: SharedArgument[Summary],
    look: Style,
    kinds: Sequence[str],
    spec: FigureSpec,
    gathered: Gathered | str,
    experiment: ExperimentResults,
) -> Drawing | str:
    return _drawn(_made(experiment, found.value, look, kinds, spec), gathered, experiment)


def _draw_alone(directory: Path, job: Job) -> Drawing | str | None:
    return job(load.experiment_once(directory))


def values(experiment: ExperimentResults) -> dict[str, list[Parameter]]:
    """The parameters of an experiment with their values."""
    values: dict[str, dict[Parameter, None]] = {}
    for run in experiment.runs:
        for name, value in run.parameters.items():
            values.setdefault(name, {})[value] = None
    return {name: list(each) for name, each in values.items()}
