"""The runs of a lab's scenarios for one student: which an expression needs, what each executes, what was seen of it.

In: a lab and a student's parameters; words that choose runs. Out: units that a `RunExecutor` brings back with their
files, and each as the `Run` that measures see. The lab's files are written where scenarios find what they name beside
them; nothing else is written, nothing is verified, and no experiment is made.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ewan.experiments.engine import preparation, unit
from ewan.experiments.engine.unit import Tools, Unit
from ewan.extras.course import rendering
from ewan.extras.course.measures.base import NoValueError, TimeSeries, Value
from ewan.extras.course.parameters import StudentParameters, value_of
from ewan.extras.course.reading import Lab
from ewan.generator import scenario as scenarios
from ewan.generator.scenario import Runs, ScenarioRun
from ewan.labs.spec import DescriptionError, names

Files = Mapping[str, bytes]
"""The files of a run by their names."""
ORIGIN = "course"
"""The name of the experiment in the store's entry of a run."""


class RunAnalysis(Protocol):
    """A run as analysis sees it (analysis/one_run.py)."""

    def table(self, name: str) -> pl.DataFrame:
        """A table of docs/reference/metrics.md."""

    def metric(self, words: str) -> float | None:
        """A metric in SI base units; None: it has none."""

    def series(
        self, name: str, step: str = "", flow: str = "", link: str = "", window: float = 0.0
    ) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Lines by label: times in seconds, values in SI base units."""


See = Callable[[Files, bytes, bytes], RunAnalysis]
"""The files that a run left, its plan and its schedule → what is to be seen of it."""


class RunExecutor(Protocol):
    """Brings back what runs left."""

    @property
    def tools(self) -> Tools:
        """The tools that runs are executed with."""

    def results(self, units: Sequence[Unit]) -> list[Files]:
        """Return the files of each unit, in order; from the store where it has them. LabError where one cannot be
        executed or does not complete, KeyboardInterrupt when it is asked to end."""


@dataclass(frozen=True, slots=True)
class RunSelection:
    """Words of a call that choose runs. `scenario` empty: the only one; `values`: of the scenario's parameters."""

    scenario: str = ""
    number: int | None = None
    seed: int | None = None
    values: Mapping[str, Value] = field(default_factory=dict)

    @classmethod
    def of(cls, words: Mapping[str, Value | None]) -> RunSelection:
        """Return the selection by `of`, `run`, `seed` and parameters; None stands for a value that is not known yet,
        and chooses all."""
        known = {name: value for name, value in words.items() if value is not None}
        number, seed = known.pop("run", None), known.pop("seed", None)
        return cls(
            str(known.pop("of", "")),
            None if number is None else int(number),
            None if seed is None else int(seed),
            known,
        )

    def __str__(self) -> str:
        words = [f'of="{self.scenario}"'] if self.scenario else []
        words += [f"run={self.number}"] if self.number is not None else []
        words += [f"seed={self.seed}"] if self.seed is not None else []
        return ", ".join([*words, *(f"{name}={value!r}" for name, value in self.values.items())]) or "all runs"


@dataclass
class StudentRun:
    """A run of the virtual clock, as measures see it; see `measures.base.Run`."""

    number: int
    name: str
    seed: int
    parameters: Mapping[str, Value]
    files: Files
    seen: RunAnalysis

    def metric(self, words: str) -> float:
        """See `Run`."""
        try:
            found = self.seen.metric(words)
        except ValueError as error:
            raise NoValueError(f"{words}: {error}") from None
        if found is None:
            raise NoValueError(f"run {self.number} ({self.name}) has no {words}")
        return found

    def series(self, name: str, *, step: str = "", flow: str = "", link: str = "", window: float = 0.0) -> TimeSeries:
        """See `Run`."""
        try:
            lines = self.seen.series(name, step, flow, link, window)
        except ValueError as error:
            raise NoValueError(f"{name}: {error}") from None
        if not lines:
            raise NoValueError(f"run {self.number} ({self.name}) has no {name}")
        if len(lines) > 1:
            raise NoValueError(f"{name}: is of several: {', '.join(lines)}: say of which")
        return TimeSeries(*next(iter(lines.values())))

    def table(self, name: str) -> pl.DataFrame:
        """See `Run`."""
        try:
            return self.seen.table(name)
        except ValueError as error:
            raise NoValueError(str(error)) from None

    def text(self, name: str) -> str:
        """See `Run`."""
        if name not in self.files:
            raise NoValueError(f"run {self.number} ({self.name}) left no {name}")
        return self.files[name].decode(errors="replace")


class Student:
    """A lab for one student, and what of its runs was brought back so far; each run is asked for once.

    DescriptionError where a scenario is wrong, LabError where a run does not complete.
    """

    def __init__(self, lab: Lab, drawing: StudentParameters, executor: RunExecutor, see: See) -> None:
        self.lab, self.drawing = lab, drawing
        self._executor, self._see = executor, see
        self._place = tempfile.TemporaryDirectory(prefix="ewan-course-")
        self._found: dict[str, StudentRun] = {}
        self._units: dict[tuple[str, int], tuple[Unit, ScenarioRun]] = {}

    def __enter__(self) -> Student:
        for name, content in rendering.files(self.lab, self.drawing, kept=True).items():
            (Path(self._place.name) / name).write_bytes(content)
        return self

    def __exit__(self, *_: object) -> None:
        self._place.cleanup()

    @cached_property
    def _runs(self) -> dict[str, Runs]:
        return {name: self._read(name).runs() for name in self.lab.scenarios}

    def _read(self, name: str) -> scenarios.Scenario:
        return scenarios.load(Path(self._place.name) / f"{name}{names.SCENARIO}")

    def bring(self, wanted: Sequence[RunSelection]) -> None:
        """Has all runs that are chosen executed at once, those that are not there yet."""
        units = [self._unit(*each) for chosen in wanted for each in self._numbers(chosen)]
        self._bring(units)

    def runs(self, chosen: RunSelection) -> list[StudentRun]:
        """The runs that are chosen; NoValueError where none is."""
        pairs = [self._unit(*each) for each in self._numbers(chosen)]
        if not pairs:
            raise NoValueError(f"no run is so: {chosen}")
        self._bring(pairs)
        return [self._found[work.key] for work, _ in pairs]

    def changed(self, scenario: str, settings: Mapping[str, str]) -> ChangedLab:
        """The same lab with values of a student's choice for parameters of one scenario."""
        read = self._read(scenario)
        for name in settings:
            if name not in read.parameters:
                raise DescriptionError(f"{scenario}: has no parameter {name}")
        return ChangedLab(self, scenario, frozenset(settings), read.runs(settings))

    def units(self, scenario: str) -> Iterator[Unit]:
        """Yield the units of every run of a scenario; also of those that no truth needs."""
        for number in range(1, len(self._runs[scenario]) + 1):
            yield self._unit(scenario, number)[0]

    def points(self, scenario: str) -> Sequence[Mapping[str, str | int]]:
        """The values of the parameters of each of a scenario's points."""
        return self._runs[scenario].points

    def _numbers(self, chosen: RunSelection) -> Iterator[tuple[str, int]]:
        scenario = chosen.scenario or self.lab.scenarios[0]
        if scenario not in self._runs:
            raise NoValueError(f"there is no scenario {scenario}")
        yield from ((scenario, number) for number in matching(self._runs[scenario], chosen))

    def _unit(self, scenario: str, number: int) -> tuple[Unit, ScenarioRun]:
        if (scenario, number) not in self._units:
            self._units[scenario, number] = self.unit(self._runs[scenario], number, scenario)
        return self._units[scenario, number]

    def unit(self, runs: Runs, number: int, scenario: str) -> tuple[Unit, ScenarioRun]:
        """Return the unit of a run."""
        facts = preparation.facts_of(True)
        (run, plan, schedule) = next(runs.scheduled(facts, preparation.clock(True), [number]))
        job = preparation.job(run, plan, schedule)
        tools, expected = self._executor.tools, job.entry.expected_ns
        return unit.unit(job.contents, tools, expected, scenario, ORIGIN, run.name), run

    def _bring(self, pairs: Sequence[tuple[Unit, ScenarioRun]]) -> None:
        missing = {work.key: (work, run) for work, run in pairs if work.key not in self._found}
        if not missing:
            return
        for (key, (work, run)), files in zip(
            missing.items(), self._executor.results([work for work, _ in missing.values()]), strict=True
        ):
            self._found[key] = self._seen(work, run, files)

    def bring_units(self, pairs: Sequence[tuple[Unit, ScenarioRun]]) -> list[StudentRun]:
        """These runs, in order."""
        self._bring(pairs)
        return [self._found[work.key] for work, _ in pairs]

    def _seen(self, work: Unit, run: ScenarioRun, files: Files) -> StudentRun:
        values = {name: value_of(text) for name, text in run.parameters.items()}
        return StudentRun(run.number, run.name, run.seed, values, files, self._see(files, work.plan, work.schedule))


@dataclass
class ChangedLab:
    """A lab of a student with the student's own values for parameters of one scenario, `names`. The run with them is
    meant where neither another scenario nor a value of one of these parameters is named; else one of the lab's."""

    student: Student
    scenario: str
    names: frozenset[str]
    _runs: Runs

    def runs(self, chosen: RunSelection) -> list[StudentRun]:
        """As `Student.runs`."""
        if chosen.scenario not in ("", self.scenario) or self.names & chosen.values.keys():
            return self.student.runs(replace(chosen, scenario=chosen.scenario or self.scenario))
        pairs = [self.student.unit(self._runs, number, self.scenario) for number in matching(self._runs, chosen)]
        if not pairs:
            raise NoValueError(f"no run is so: {chosen}")
        return self.student.bring_units(pairs)

    def units(self) -> Iterator[Unit]:
        """Yield the units of every run with these values."""
        for number in range(1, len(self._runs) + 1):
            yield self.student.unit(self._runs, number, self.scenario)[0]


def matching(runs: Runs, chosen: RunSelection) -> Iterator[int]:
    """The numbers of the runs that are chosen; NoValueError for a parameter that the scenario does not have."""
    for index, point in enumerate(runs.points):
        for name in chosen.values:
            if name not in point:
                raise NoValueError(f"the scenario has no parameter {name}: {', '.join(point) or 'it has none'}")
        if not all(same(point[name], value) for name, value in chosen.values.items()):
            continue
        for turn in range(runs.seeds):
            number = index * runs.seeds + turn + 1
            if chosen.number not in (None, number):
                continue
            if chosen.seed is None or runs[number - 1].seed == chosen.seed:
                yield number


def same(written: str | int, value: Value) -> bool:
    """Return whether a parameter's value is this one, as it is written or as an amount."""
    if str(written) == str(value):
        return True
    mine, other = value_of(written), value_of(value) if isinstance(value, str) else value
    if isinstance(mine, str) or isinstance(other, str):
        return False
    return math.isclose(float(mine), float(other), rel_tol=1e-12)
