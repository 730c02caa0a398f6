"""The true answers of a lab for one student: computed from this student's runs and from formulas, never stored.

In: a lab for a student, whose runs an executor brings back. Out: the truth of each question, with what known mistakes
give; and of settings that a student chose, what holds of a run with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from ewan.extras.course import expressions
from ewan.extras.course.expressions import Names
from ewan.extras.course.fields import Question
from ewan.extras.course.measures.base import Measure, NoValueError, Value, every
from ewan.extras.course.parameters import value_of
from ewan.extras.course.runs import RunSelection, Student, StudentRun
from ewan.extras.course.verdicts import KnownMistake, Truth


class Chooser(Protocol):
    """The owner of the runs that expressions read: `Student` or `ChangedLab`."""

    def runs(self, chosen: RunSelection) -> list[StudentRun]:
        """The runs that are chosen; NoValueError where none is."""


def of(student: Student) -> dict[str, Truth]:
    """The truth of each question, by its name. All runs that are needed are executed at once."""
    texts = list(_texts(student))
    student.bring([RunSelection.of(_choosing(call)) for text in texts for call in expressions.calls(text)])
    values, wrong = _values(student)
    measures = functions(student)
    return {each.name: _truth(each, values, wrong, measures) for each in student.lab.course.questions}


def _texts(student: Student) -> Iterator[str]:
    """All expressions but those of settings."""
    yield from student.lab.course.values.values()
    for question in student.lab.course.questions:
        yield from (text for text in (question.truth, question.closed) if text is not None)
        yield from (hint.given for hint in question.hints if hint.given is not None)


def _choosing(call: expressions.MeasureCall) -> dict[str, Value | None]:
    """The words of a call that choose runs; the others are the measure's own."""
    own = every()[call.name].keywords
    return {name: value for name, value in call.keywords.items() if name not in own}


def _values(student: Student) -> tuple[dict[str, Value], dict[str, str]]:
    """Parameters, and the lab's own values in their order; those that could not be computed, with why."""
    names: dict[str, Value] = dict(student.drawing.numbers)
    wrong: dict[str, str] = {}
    measures = functions(student)
    for name, text in student.lab.course.values.items():
        try:
            names[name] = _evaluated(text, names, wrong, measures)
        except NoValueError as error:
            wrong[name] = str(error)
    return names, wrong


def _evaluated(
    text: str,
    names: Names,
    wrong: Mapping[str, str],
    measures: Mapping[str, Callable[..., Value]],
) -> Value:
    for name in expressions.names_in(text) & wrong.keys():
        raise NoValueError(f"{name}: {wrong[name]}")
    return expressions.evaluate(text, names, measures)


def _truth(
    question: Question,
    names: Names,
    wrong: Mapping[str, str],
    measures: Mapping[str, Callable[..., Value]],
) -> Truth:
    last = next((hint.say for hint in question.hints if hint.given is None), "")
    if question.truth is None:
        return Truth(last=last)
    try:
        value = _evaluated(question.truth, names, wrong, measures)
        if question.kind is not None and not isinstance(value, float):
            raise NoValueError(f"{question.truth}: is no number")
        known = tuple(
            KnownMistake(_evaluated(hint.given, names, wrong, measures), hint.say)
            for hint in question.hints
            if hint.given is not None
        )
        closed = None if question.closed is None else float(_evaluated(question.closed, names, wrong, measures))
    except NoValueError as error:
        return Truth(last=last, why=str(error))
    return Truth(value, known, last, closed)


def held(student: Student, question: Question, settings: Mapping[str, str]) -> list[bool]:
    """Return for each condition, in order, whether it holds of a run with these settings.

    DescriptionError where a scenario does not take them, NoValueError where the run does not have what is asked for.
    """
    changed = student.changed(student.lab.scenario_of(question), settings)
    values, wrong = _values(student)
    chosen = {name: value_of(text) for name, text in settings.items()}
    names = {**values, expressions.SETTINGS: chosen}
    measures = functions(changed)
    return [bool(_evaluated(each.that, names, wrong, measures)) for each in question.holds or ()]


def functions(chooser: Chooser) -> dict[str, Callable[..., Value]]:
    """The measures as expressions call them, over the runs that their words choose."""
    return {name: partial(_called, each, chooser) for name, each in every().items()}


def _called(measure: Measure, chooser: Chooser, *arguments: Any, **words: Any) -> Value:
    own = {name: value for name, value in words.items() if name in measure.keywords}
    chosen = RunSelection.of({name: value for name, value in words.items() if name not in own})
    runs: Sequence[StudentRun] = chooser.runs(chosen)
    if measure.several:
        return measure.function(runs, *arguments, **own)
    if len(runs) > 1:
        raise NoValueError(f"{measure.name}: {len(runs)} runs are so: {chosen}: say which, by a parameter or run=1")
    return measure.function(runs[0], *arguments, **own)
