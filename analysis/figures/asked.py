"""Figures that somebody asked for, of a scenario or on the command line, drawn.

In: an experiment with its summary, wishes (labs/record/figures.py), a style. Out: drawings. Each run's tables are read
once for all figures that need them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from analysis.figures import against, maps, phase
from analysis.figures.flowchart import FlowChart
from analysis.figures.happenings import Timeline
from analysis.figures.overtime import OverTime
from analysis.figures.request import FigureError, Request
from analysis.figures.spreads import Spread
from analysis.figures.style import PAGE, Drawing, Style
from analysis.load import ExperimentResults, RunResults
from labs.record import figures
from labs.record.figures import FigureSpec


class Made(Protocol):
    """A figure that is made of the tables of runs."""

    def wants(self, run: RunResults) -> bool:
        """Whether it is made of this run."""

    def gather(self, run: RunResults) -> Any:
        """What it needs of a run."""

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
    requests = [Request(experiment, found, spec, look, kinds) for spec in specs]
    made: dict[int, tuple[Made, dict[int, Any]]] = {}
    refused: dict[int, str] = {}
    for index, request in enumerate(requests):
        try:
            figures.check(request.spec, _values(experiment))
            if (maker := _OF_RUNS.get(request.spec.kind)) is not None:
                made[index] = maker(request), {}
        except ValueError as error:
            refused[index] = str(error)
    for run in experiment.runs if made else ():
        if not run.measured:
            continue
        for index, (figure, gathered) in made.items():
            try:
                if index not in refused and figure.wants(run):
                    gathered[run.number] = figure.gather(run)
            except FigureError as error:
                refused[index] = str(error)
        run.forget()
    done = [refused.get(index) or _drawn(request, made.get(index)) for index, request in enumerate(requests)]
    for run in experiment.runs:
        run.forget()
    return done


def _drawn(request: Request, made: tuple[Made, dict[int, Any]] | None) -> Drawing | str:
    try:
        if made is None:
            return _OF_METRICS[request.spec.kind](request)
        figure, gathered = made
        return figure.draw(gathered)
    except FigureError as error:
        return str(error)


def _values(experiment: ExperimentResults) -> dict[str, list[Any]]:
    """The parameters of an experiment with their values."""
    values: dict[str, list[Any]] = {}
    for run in experiment.runs:
        for name, value in run.parameters.items():
            if value not in values.setdefault(name, []):
                values[name].append(value)
    return values
