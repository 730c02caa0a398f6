"""Doubts that a student has worked for the answers, for the teacher to judge. Pure.

In: a submission, its verdicts, its runs. Out: a line for each doubt. A student's machine can compute every truth, since
it checks answers: right answers prove little. Runs are made in a minute and a journal can be forged, so that these
lines find who is careless, and not who takes pains. They change no point.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ewan.extras.course import expressions, grade, history
from ewan.extras.course.confirmation import KnownRun
from ewan.extras.course.fields import Question
from ewan.extras.course.reading import TEMPLATE, Lab
from ewan.extras.course.submission import Submission
from ewan.labs.spec import names

FEW = 1
"""Checks with which all answers are right at once."""
MANY = 5
"""Right answers that are no accident."""
_KINDS = ("words", "settings")


def of(
    told: Submission,
    lab: Lab,
    questions: Sequence[grade.QuestionGrade],
    runs: Sequence[grade.RunGrade],
    known: Sequence[KnownRun],
) -> Iterator[str]:
    """The doubts about a submission, a line each."""
    judged = [each for each in questions if not each.by_teacher and not each.prediction]
    right = [each.name for each in judged if each.verdict == "right"]
    confirmed = {each.inputs for each in runs if each.confirmed}
    seen = {each.scenario for each in known if each.inputs in confirmed}
    measured = [name for name in right if scenarios_of(lab, lab.questions[name])]
    needed = {name: scenarios_of(lab, lab.questions[name]) for name in measured if not lab.questions[name].closed}
    unseen = {name: left for name, each in needed.items() if (left := each - seen)}
    checks = max(len(told.checks), told.journal.checks if told.journal else 0)
    times = f"{checks} check{'s' * (checks != 1)}"
    if measured and not confirmed:
        yield f"{len(right)} of {len(judged)} right, no confirmed run, {times}"
    elif unseen:
        where = ", ".join(sorted({name for left in unseen.values() for name in left}))
        yield f"no confirmed run of {where}, whose results are right answers to {', '.join(unseen)}"
    if len(right) == len(judged) >= MANY and checks <= FEW and (confirmed or not measured):
        yield f"{len(right)} of {len(judged)} right, {times}"
    if told.journal is not None and (line := history.missing(told.checks, told.journal)):
        yield line


def scenarios_of(lab: Lab, question: Question) -> set[str]:
    """The scenarios whose runs have the answer, of those that students have."""
    if question.truth is None or question.answer in _KINDS:
        return set()
    texts, todo = [], [question.truth]
    while todo:  # values are made of others that stand before them
        texts.append(todo.pop())
        todo += [lab.course.values[name] for name in expressions.names_in(texts[-1]) & lab.course.values.keys()]
    found = {str(call.keywords.get("of") or lab.scenarios[0]) for text in texts for call in expressions.calls(text)}
    return found & {name.removesuffix(TEMPLATE).removesuffix(names.SCENARIO) for name in lab.files}
