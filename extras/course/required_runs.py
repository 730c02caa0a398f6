"""The runs that a lab asks its student for: those that a grader executes again to confirm them.

In: a lab for a student, what the student answered and ran. Out: units. Which values a student may have given to a
parameter is for the lab to say: those of its scenarios and of the commands in its text, and, where a question asks for
settings, each within its limits. So no submission makes the grader run anything else, or anything that takes longer.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ewan.experiments.engine.unit import Unit
from ewan.extras.course import markdown, rendering, verdicts, words
from ewan.extras.course.answers import WrittenAnswer
from ewan.extras.course.runs import Student
from ewan.extras.course.submission import SubmittedExperiment
from ewan.labs.base.errors import UserError
from ewan.labs.base.units import UnitError
from ewan.labs.spec import names

MOST_TRIED = 64
"""Runs with a student's own settings."""
Settings = Mapping[str, str]
"""The values of parameters on a command line, several of one with commas between."""


@dataclass
class RequiredRuns:
    """The runs that a lab requires of a student. `texts`: the SHA-256 of each scenario's text, by its name, as the
    student was given it."""

    student: Student
    texts: Mapping[str, str]
    commands: list[tuple[str, Settings]] = field(default_factory=list)

    def __post_init__(self) -> None:
        lab = self.student.lab
        text = rendering.text(lab, self.student.drawing, markdown.marker)
        for line in markdown.commands(text):
            with contextlib.suppress(ValueError):
                self.commands += _of_command(line)

    def units(self, given: Mapping[str, WrittenAnswer], experiments: Iterable[SubmittedExperiment]) -> Iterator[Unit]:
        """Yield the required runs of the scenarios that the student has run."""
        told = list(experiments)
        ran = {each.scenario for each in told}
        for name in self.student.lab.scenarios:
            if name in ran:
                yield from self.student.units(name)
        for scenario, settings in self.commands:
            if settings and scenario in ran:
                yield from self._changed(scenario, settings)
        for scenario, settings in self._chosen(given):
            if scenario in ran:
                yield from self._changed(scenario, settings)
        left = MOST_TRIED
        for each in told:
            if left > 0 and self._allowed(each):
                tried = self._changed(each.scenario, each.settings)[:left]
                left -= len(tried)
                yield from tried

    def _changed(self, scenario: str, settings: Settings) -> list[Unit]:
        try:
            return list(self.student.changed(scenario, settings).units())
        except UserError:
            return []

    def _chosen(self, given: Mapping[str, WrittenAnswer]) -> Iterator[tuple[str, Settings]]:
        """The settings that the student answered."""
        lab = self.student.lab
        for question in lab.course.questions:
            if question.settings is not None:
                with contextlib.suppress(UnitError):
                    own, numbers = words.of(lab.language), self.student.drawing.numbers
                    yield lab.scenario_of(question), verdicts.settings_of(question, given[question.name], numbers, own)

    def _allowed(self, experiment: SubmittedExperiment) -> bool:
        """Return whether the student tried what the lab leaves free, in a scenario as it was given."""
        scenario = experiment.scenario
        if not experiment.settings or self.texts.get(scenario) != experiment.text:
            return False
        if math.prod(values.count(",") + 1 for values in experiment.settings.values()) > MOST_TRIED:
            return False  # each value is combined with all others
        known = self._known(scenario)
        return all(
            value.strip() in known[name] or self._free(scenario, name, value)
            for name, values in experiment.settings.items()
            for value in values.split(",")
        )

    def _known(self, scenario: str) -> Mapping[str, set[str]]:
        """The values that the scenario and the text have, of each parameter."""
        found: dict[str, set[str]] = defaultdict(set)
        for point in self.student.points(scenario):
            for name, value in point.items():
                found[name].add(str(value))
        for of, settings in self.commands:
            for name, values in settings.items() if of == scenario else ():
                found[name] |= {value.strip() for value in values.split(",")}
        return found

    def _free(self, scenario: str, name: str, value: str) -> bool:
        """Return whether a question asks for this parameter, and the value is within its limits."""
        lab = self.student.lab
        for question in lab.course.questions:
            setting = (question.settings or {}).get(name)
            if setting is not None and lab.scenario_of(question) == scenario:
                with contextlib.suppress(UnitError):
                    verdicts.checked(setting, value, self.student.drawing.numbers, words.of(lab.language))
                    return True
        return False


def _of_command(line: str) -> Iterator[tuple[str, Settings]]:
    """The scenario and the settings of `ewan run FILE --set NAME=VALUES …`; nothing of other commands."""
    told = shlex.split(line)
    if told[:2] != ["ewan", "run"] or len(told) < 3 or {"--size", "--seeds"} & set(told):
        return
    pairs = [word.partition("=") for before, word in itertools.pairwise(told) if before == "--set"]
    yield told[2].removesuffix(names.SCENARIO), {name: value for name, _, value in pairs}
