"""A check: answers against truths, a verdict for each question.

In: a lab, a student's parameters, answers, whatever brings back runs. Out: verdicts in the order of the questions. The
command, the notebook and the grader check by this one module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ewan.extras.course import markdown, truths, verdicts, words
from ewan.extras.course.answers import WrittenAnswer
from ewan.extras.course.fields import Question
from ewan.extras.course.measures.base import NoValueError
from ewan.extras.course.parameters import StudentParameters
from ewan.extras.course.reading import Lab
from ewan.extras.course.runs import RunExecutor, See, Student
from ewan.extras.course.verdicts import QuestionVerdict, Truth
from ewan.labs.base.units import UnitError
from ewan.labs.spec import DescriptionError


def check(
    lab: Lab,
    drawing: StudentParameters,
    given: Mapping[str, WrittenAnswer],
    executor: RunExecutor,
    see: See,
    recorded: Mapping[str, Sequence[str]],
) -> list[QuestionVerdict]:
    """The verdict on each answer. Nothing is run where no answer needs it. `recorded`: the predictions of earlier
    checks (`verdicts.recorded_predictions`).

    DescriptionError where the lab itself is wrong, LabError where a run does not complete.
    """
    with Student(lab, drawing, executor, see) as student:
        computed = any(_computed(each) and not given[name].empty for name, each in lab.questions.items())
        found = truths.of(student) if computed else {}
        return every(student, found, given, recorded)


def every(
    student: Student,
    found: Mapping[str, Truth],
    given: Mapping[str, WrittenAnswer],
    recorded: Mapping[str, Sequence[str]],
) -> list[QuestionVerdict]:
    """The verdict on each answer; `found`: the truths of its lab for its student; `recorded`: see `check`."""
    lab = student.lab
    judged = [one(student, each, found, given[each.name]) for each in lab.course.questions]
    return verdicts.compared(lab.questions, judged, words.of(lab.language), recorded)


def _computed(question: Question) -> bool:
    return question.truth is not None


def one(student: Student, question: Question, found: Mapping[str, Truth], given: WrittenAnswer) -> QuestionVerdict:
    """The verdict on one answer; `found`: the truths of its lab for its student."""
    own = words.of(student.lab.language)
    if question.settings is None:
        return verdicts.judge(question, found.get(question.name, Truth()), given, own)
    if given.empty or given.wrong:
        return verdicts.settle(question, given, None, own)
    try:
        chosen = verdicts.settings_of(question, given, student.drawing.numbers, own)
        return verdicts.settle(question, given, truths.held(student, question, chosen), own)
    except UnitError as error:
        why = own.instead.format(how=markdown.how(question, own)) or str(error)
        return verdicts.settle(question, given, None, own, why)
    except NoValueError as error:
        return verdicts.settle(question, given, None, own, str(error))
    except DescriptionError as error:
        return verdicts.settle(question, given, None, own, f"the scenario does not take that: {error}")
