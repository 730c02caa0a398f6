"""Two experiments in one figure: their runs together, with one more parameter, which names a run's experiment.

In: two experiments. Out: one that figures are drawn of, and its summary. The runs of the second are numbered after
those of the first. A parameter that has a single value in each of the two, and not the same, distinguishes them: it is
no parameter of the runs any more."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from ewan.analysis import disturbance_overlap, load, summary
from ewan.analysis.load import ExperimentResults, RunResults
from ewan.labs.base import codec
from ewan.labs.record.quantities import Quantity
from ewan.labs.record.scenario_requests import Reference, Values
from ewan.labs.record.summary import PointSummary, RunSummary, Summary

EXPERIMENT = "experiment"
"""The parameter."""
FIRST, SECOND = "first", "second"


class OverlaidResults(ExperimentResults):
    """`document` is that of the first, but for its status."""

    of_one_directory = False

    def __init__(self, first: ExperimentResults, second: ExperimentResults) -> None:
        self.first, self.second = first, second
        self.names = _names(first, second)
        self.apart = tuple(constants_apart(first, second))
        self.offset = max((run.number for run in first.runs), default=0)
        self.numbered = f"Run {self.offset + 1} and those after it are run 1 and so on of {second.directory.name}."
        super().__init__(first.directory, first.document)

    def _runs(self) -> Iterator[RunResults]:
        for side, name, offset in self.sides:
            for run in side.runs:
                parameters = self.parameters_of(run.parameters, name)
                yield dataclasses.replace(run, number=run.number + offset, parameters=parameters)

    @property
    def sides(self) -> tuple[tuple[ExperimentResults, str, int], ...]:
        """Each experiment with its name and the offset of the numbers of its runs."""
        return (self.first, self.names[0], 0), (self.second, self.names[1], self.offset)

    def parameters_of(self, own: Values, name: str) -> Values:
        """The parameters of a run of the experiment of that name."""
        return {EXPERIMENT: name} | {key: value for key, value in own.items() if key not in self.apart}

    def summary(self, wanted: Iterable[Quantity]) -> Summary:
        """The summary that a figure of these metrics needs; LoadError where a table is damaged."""
        asked = list(wanted)
        found = [summary.for_figure(side, asked) for side in (self.first, self.second)]
        runs: list[RunSummary] = []
        points: list[PointSummary] = []
        for own, (_, name, offset) in zip(found, self.sides, strict=True):
            runs += [
                codec.replace(run, number=run.number + offset, parameters=self.parameters_of(run.parameters, name))
                for run in own.runs
            ]
            points += [
                codec.replace(
                    point,
                    parameters=self.parameters_of(point.parameters, name),
                    runs=tuple(number + offset for number in point.runs),
                )
                for point in own.points
            ]
        return codec.replace(
            found[0],
            normalise=Reference(EXPERIMENT, self.names[0]),
            runs=tuple(runs),
            points=tuple(points),
            disturbed=disturbance_overlap.together(runs),
        )


def _names(first: ExperimentResults, second: ExperimentResults) -> tuple[str, str]:
    """The names of the two experiments, or else the constants in which they differ."""
    called = (first.document.name, second.document.name)
    if all(called) and called[0] != called[1]:
        return called
    apart = constants_apart(first, second)
    if apart:
        one, two = (", ".join(load.word(key, values[at]) for key, values in apart.items()) for at in (0, 1))
        return one, two
    return FIRST, SECOND


def constants_apart(first: ExperimentResults, second: ExperimentResults) -> dict[str, tuple[str, str]]:
    """Parameters that each has one value of, and not the same."""
    found = {}
    for name in dict.fromkeys(name for side in (first, second) for run in side.runs for name in run.parameters):
        values = [{str(run.parameters.get(name)) for run in side.runs} for side in (first, second)]
        if all(len(each) == 1 for each in values) and values[0] != values[1]:
            found[name] = (values[0].pop(), values[1].pop())
    return found
