"""Feedback of a task, as INGInious reads it.

In: a grade. Out: the bytes of `__feedback.json`, which INGInious' own commands write too (feedback-result,
feedback-grade, feedback-msg, feedback-custom); a task's `run` may as well call these with what is in it. The results
are those that the documentation of a run file names; texts are in reStructuredText. A task that takes the file that was
handed in has one problem, and INGInious shows nothing of others: so each question's verdict is in the text too. The
names of problems are the lab's questions.
"""

from __future__ import annotations

import re
from typing import Literal

from ewan.extras.course.formats import wording
from ewan.extras.course.grade import Grade, QuestionGrade
from ewan.labs.base import codec
from ewan.labs.base.codec import Struct, field

FILE = "__feedback.json"
PERCENT = 100.0
_SPECIAL = re.compile(r"([\\`*_|<>\[\]{}:.#=~^+-])")


class InginiousExtra(Struct):
    """Data that INGInious keeps beside the grade."""

    lab: str
    student: str
    points: float
    most: float = field(name="of")
    runs_confirmed: int
    runs: int


class InginiousFeedback(Struct):
    """`grade`: in percent of the points that a machine gives. `problems`: of each the result and its text."""

    result: Literal["success", "failed", "crash"]
    grade: float
    text: str
    problems: dict[str, tuple[Literal["success", "failed"], str]]
    custom: InginiousExtra


def write(grade: Grade) -> bytes:
    """The bytes of the feedback."""
    return codec.ordered(_feedback(grade))


def _feedback(grade: Grade) -> InginiousFeedback:
    share = grade.points / grade.most if grade.most else 0.0
    hints = [f"{each.name}: {wording.of_question(each, grade.language)}" for each in grade.questions]
    said = [wording.summary(grade), *filter(None, [wording.runs(grade)]), *hints]
    points = round(grade.points, 4)
    return InginiousFeedback(
        result=_result(grade),
        grade=round(PERCENT * share, 2),
        text="\n\n".join(plain(each) for each in said),
        problems={each.name: (_of(each), plain(wording.of_question(each, grade.language))) for each in grade.questions},
        custom=InginiousExtra(grade.lab, grade.student, points, grade.most, grade.confirmed, len(grade.runs)),
    )


def plain(text: str) -> str:
    """Text as reStructuredText that shows it as it is."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _result(grade: Grade) -> Literal["success", "failed", "crash"]:
    if grade.status == "failed":
        return "crash"
    right = grade.status == "graded" and all(_of(each) == "success" for each in grade.questions)
    return "success" if right else "failed"


def _of(question: QuestionGrade) -> Literal["success", "failed"]:
    return "success" if question.prediction or question.verdict in ("right", "teacher") else "failed"
