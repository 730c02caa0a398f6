"""Figures that somebody asked for, of a scenario or on the command line, drawn.

In: an experiment with its summary, wishes (labs/record/figures.py), a style. Out: drawings. Each run's tables are read
once for all figures that need them. Of many runs both reading and drawing are shared out over processes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from analysis import load, side_by_side
from analysis.figures import against, maps, phase
from analysis.figures.flowchart import FlowChart
from analysis.figures.happenings import Timeline
from analysis.figures.overtime import OverTime
from analysis.figures.request import FigureError, Request
from analysis.figures.spreads import Spread
from analysis.figures.style import PAGE, Drawing, Style
from analysis.load import ExperimentResults, RunResults
from analysis.rundata import RunData
from labs.record import figures
from labs.record.figures import FigureSpec

Gathered = dict[int, Any]
"""What a figure is made of, by the runs' numbers."""


class Made(Protocol):
    """A figure that is made of the tables of runs."""

    def wants(self, run: RunResults) -> bool:
        """Whether it is made of this run."""

    def gather(self, run: RunResults, data: RunData) -> Any:
        """What it needs of a run, whose tables others see through `data` too."""

    def draw(self, gathered: Mapping[int, Any]) -> Drawing:
        """Of what was gathered of runs, by their numbers; FigureError where it cannot be drawn."""


_OF_METRICS: dict[str, Callable[[Request], Drawing]] = {"metric": against.draw, "map": maps.draw, "phase": phase.draw}
_OF_RUNS: dict[str, Callable[[Request], Made]] = {
    "time": OverTime,
    "flow chart": FlowChart,
    "cdf": Spread,
    "ccdf": Spread,
    "box": Spread,
    "timeline": Timeline,
}


class Drawn(NamedTuple):
    """`refused`: why figures are not there, in words, by their lines."""

    drawings: list[Drawing]
    refused: dict[str, str]


def draw(
    experiment: ExperimentResults,
    found: Mapping[str, Any],
    specs: Iterable[FigureSpec],
    look: Style = PAGE,
    kinds: Sequence[str] = (),
) -> list[Drawing | str]:
    """Each figure, in order, or why it cannot be drawn. LoadError where a table is damaged."""
    wanted = list(specs)
    numbers = [run.number for run in experiment.runs if run.measured]
    if len(side_by_side.shares(numbers, len(numbers))) < 2:
        gathered = _gather(experiment, found, wanted, numbers)
        return [_draw(experiment, found, look, kinds, each) for each in zip(wanted, gathered, strict=True)]
    parts = side_by_side.each(
        partial(_gather_part, experiment.directory, found, wanted),
        side_by_side.shares(numbers, len(numbers)),
        len(numbers),
    )
    together = [_together(of_parts) for of_parts in zip(*parts, strict=True)]
    given = list(zip(wanted, together, strict=True))
    return side_by_side.each(partial(_draw_alone, experiment.directory, found, look, kinds), given, len(numbers))


def _gather(
    experiment: ExperimentResults, found: Mapping[str, Any], specs: Sequence[FigureSpec], numbers: Collection[int]
) -> list[Gathered | str]:
    """Of each figure what it needs of these runs, or why it cannot be drawn."""
    made: dict[int, tuple[Made, Gathered]] = {}
    result: list[Gathered | str] = [{} for _ in specs]
    for index, spec in enumerate(specs):
        try:
            figures.check(spec, _values(experiment))
            if (maker := _OF_RUNS.get(spec.kind)) is not None:
                made[index] = maker(Request(experiment, found, spec)), {}
        except ValueError as error:
            result[index] = str(error)
    for run in experiment.runs if made else ():
        if run.number not in numbers:
            continue
        data = RunData(run.table, run.paths)
        for index, (figure, gathered) in made.items():
            try:
                if not isinstance(result[index], str) and figure.wants(run):
                    gathered[run.number] = figure.gather(run, data)
            except FigureError as error:
                result[index] = str(error)
        run.forget()
    return [each if isinstance(each, str) or index not in made else made[index][1] for index, each in enumerate(result)]


def _gather_part(
    directory: Path, found: Mapping[str, Any], specs: Sequence[FigureSpec], numbers: Collection[int]
) -> list[Gathered | str]:
    return _gather(load.experiment_once(directory), found, specs, numbers)


def _together(parts: Iterable[Gathered | str]) -> Gathered | str:
    """What processes gathered of one figure; in the order of the runs, so that its lines have theirs."""
    every: Gathered = {}
    for part in parts:
        if isinstance(part, str):
            return part
        every |= part
    return dict(sorted(every.items()))


def _draw(
    experiment: ExperimentResults,
    found: Mapping[str, Any],
    look: Style,
    kinds: Sequence[str],
    given: tuple[FigureSpec, Gathered | str],
) -> Drawing | str:
    spec, gathered = given
    if isinstance(gathered, str):
        return gathered
    request = Request(experiment, found, spec, look, kinds)
    try:
        if (maker := _OF_RUNS.get(spec.kind)) is not None:
            return maker(request).draw(gathered)
        return _OF_METRICS[spec.kind](request)
    except FigureError as error:
        return str(error)
    finally:
        for run in experiment.runs:
            run.forget()


def _draw_alone(
    directory: Path,
    found: Mapping[str, Any],
    look: Style,
    kinds: Sequence[str],
    given: tuple[FigureSpec, Gathered | str],
) -> Drawing | str:
    return _draw(load.experiment_once(directory), found, look, kinds, given)


def _values(experiment: ExperimentResults) -> dict[str, list[Any]]:
    """The parameters of an experiment with their values."""
    values: dict[str, list[Any]] = {}
    for run in experiment.runs:
        for name, value in run.parameters.items():
            if value not in values.setdefault(name, []):
                values[name].append(value)
    return values
